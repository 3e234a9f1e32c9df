"""Group messages into sessions: conversations, or runs without a long gap. Pure numpy."""

import itertools
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.storage.search.candidates import Candidates

Positions = NDArray[np.intp]

_PART = 16_384  # approximate number of messages to process together


class Sessions(NamedTuple):
    """Messages in order of session and time."""

    order: Positions | None  # shape (n,), among the candidates; ``None`` if they are in this order
    number: NDArray[np.int32]  # shape (n,), the number of its session, in this order; ascending
    cache: dict[Hashable, Any]

    def to_session_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the candidates' values in this order."""
        return values if self.order is None else values[self.order]

    def to_candidate_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values in this order in the order of the candidates."""
        if self.order is None:
            return values
        restored = np.empty_like(values)
        restored[self.order] = values
        return restored

    def session_positions(self, positions: Positions) -> Positions:
        """Return the positions of candidates in this order."""
        if self.order is None:
            return positions
        if "spots" not in self.cache:
            self.cache["spots"] = self.to_candidate_order(np.arange(len(self.order)))
        session_positions: Positions = self.cache["spots"][positions]
        return session_positions

    def same_session(self, distance: int) -> NDArray[np.float64]:
        """Return 1 for each message in the session of the one at a distance after it, else 0.

        Scores are multiplied by it, which takes half as long again with booleans.
        """
        if distance not in self.cache:
            same = self.number[distance:] == self.number[:-distance]
            self.cache[distance] = same.astype(np.float64)
        same_session: NDArray[np.float64] = self.cache[distance]
        return same_session

    def windows(self, reach: int) -> tuple[Positions, Positions, NDArray[np.float64]]:
        """Return where windows of so many neighbours on each side begin and end, and their size."""
        if ("edges", reach) not in self.cache:
            positions = np.arange(len(self.number))
            begins = np.flatnonzero(np.diff(self.number, prepend=-1))
            lengths = np.diff(begins, append=len(positions))
            starts = np.maximum(np.repeat(begins, lengths), positions - reach)
            ends = np.minimum(np.repeat(begins + lengths, lengths), positions + reach + 1)
            self.cache["edges", reach] = starts, ends, (ends - starts).astype(np.float64)
        windows: tuple[Positions, Positions, NDArray[np.float64]] = self.cache["edges", reach]
        return windows

    def parts(self) -> list[tuple[slice, "Sessions"]]:
        """Divide the messages into parts of whole sessions that fit the processor's cache."""
        if "parts" not in self.cache:
            ends = np.flatnonzero(np.diff(self.number, append=-1)) + 1
            full = ends.searchsorted(np.arange(_PART, len(self.number) + _PART, _PART))
            cuts = sorted({0, *ends[full.clip(max=len(ends) - 1)].tolist()}) if len(ends) else []
            self.cache["parts"] = [
                (slice(start, end), Sessions(None, self.number[start:end], {}))
                for start, end in itertools.pairwise(cuts)
            ]
        parts: list[tuple[slice, Sessions]] = self.cache["parts"]
        return parts


def group_sessions(candidates: Candidates, gap_ms: int) -> Sessions:
    """Group messages: a conversation is a session; outside of one, a long gap ends a session."""
    grouped: Sessions | None = candidates.cache.get(gap_ms)
    if grouped is None:
        grouped = candidates.cache[gap_ms] = _group_sessions(candidates, gap_ms)
    return grouped


def _group_sessions(candidates: Candidates, gap_ms: int) -> Sessions:
    thread, order = candidates.thread, _by_thread(candidates)
    created_at, loose = candidates.created_at, candidates.loose
    if order is not None:
        thread, created_at, loose = thread[order], created_at[order], loose[order]
    breaks = thread[1:] != thread[:-1]
    if loose.any():
        breaks |= (np.diff(created_at) > gap_ms) & loose[1:]
    number = np.zeros(len(thread), np.int32)
    np.cumsum(breaks, out=number[1:])
    return Sessions(order, number, {})


def thread_positions(candidates: Candidates) -> Positions:
    """Return the position of each message when sorted by thread, in order of time within each."""
    if "threads" not in candidates.cache:
        order, positions = _by_thread(candidates), np.arange(len(candidates.thread))
        if order is not None:
            positions[order] = positions.copy()
        candidates.cache["threads"] = positions
    positions_by_candidate: Positions = candidates.cache["threads"]
    return positions_by_candidate


def _by_thread(candidates: Candidates) -> Positions | None:
    """Return the order that groups each conversation; ``None`` if they are already grouped."""
    if "by thread" not in candidates.cache:
        candidates.cache["by thread"] = _grouping_order(candidates.thread)
    order: Positions | None = candidates.cache["by thread"]
    return order


def _grouping_order(thread: NDArray[np.int64]) -> Positions | None:
    """Return the order that groups equal numbers; ``None`` if they are already grouped.

    Sorts runs of one thread instead of messages: there are few if conversations do not overlap.
    """
    if not len(thread):
        return None
    starts = np.concatenate([[0], np.flatnonzero(thread[1:] != thread[:-1]) + 1])
    runs = thread[starts]
    by_thread = np.argsort(runs, kind="stable")
    if (np.diff(runs[by_thread]) > 0).all():
        return None
    lengths = np.diff(np.append(starts, len(thread)))[by_thread]
    ends = np.cumsum(lengths)
    return np.repeat(starts[by_thread] - (ends - lengths), lengths) + np.arange(len(thread))
