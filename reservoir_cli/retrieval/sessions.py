"""Group messages into sessions: conversations, or what no long silence interrupts. Pure numpy."""

import itertools
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.storage.candidates import Candidates

Places = NDArray[np.intp]

#: Messages that are worked on at once, about.
_PART = 16_384


@dataclass(frozen=True, slots=True)
class Sessions:
    """Messages in order of session and time.

    :param order: shape (n,), the place of each one among the candidates; ``None`` if they stand
        in this order already.
    :param number: int32, shape (n,), of its session, in this order; ascending.
    :param known: arrays that were computed of them, which no question changes.
    """

    order: Places | None
    number: NDArray[np.int32]
    known: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)

    def laid(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the candidates in this order."""
        return values if self.order is None else values[self.order]

    def back(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of this order as the candidates stand."""
        if self.order is None:
            return values
        there = np.empty_like(values)
        there[self.order] = values
        return there

    def spots(self, places: Places) -> Places:
        """Return where candidates stand in this order."""
        if self.order is None:
            return places
        if "spots" not in self.known:
            self.known["spots"] = self.back(np.arange(len(self.order)))
        spots: Places = self.known["spots"][places]
        return spots

    def together(self, distance: int) -> NDArray[np.bool_]:
        """Whether a message and the one so far behind it are of one session.

        :returns: shape (n - distance,), in this order.
        """
        if distance not in self.known:
            self.known[distance] = self.number[distance:] == self.number[:-distance]
        together: NDArray[np.bool_] = self.known[distance]
        return together

    def edges(self, reach: int) -> NDArray[np.int64]:
        """Return where the neighbours of each message begin, and where they end.

        :param reach: how many there are on each side, if the session has them.
        :returns: shape (2, n), in this order.
        """
        if ("edges", reach) not in self.known:
            places = np.arange(len(self.number))
            begins = np.flatnonzero(np.diff(self.number, prepend=-1))
            lengths = np.diff(begins, append=len(places))
            starts = np.repeat(begins, lengths)
            ends = np.repeat(begins + lengths, lengths)
            near = np.maximum(starts, places - reach), np.minimum(ends, places + reach + 1)
            self.known["edges", reach] = np.stack(near)
        edges: NDArray[np.int64] = self.known["edges", reach]
        return edges

    def parts(self) -> list[tuple[slice, "Sessions"]]:
        """Divide the messages into parts of whole sessions, each with its places in this order.

        What fits into the processor's cache is computed several times as fast.
        """
        if "parts" not in self.known:
            ends = np.flatnonzero(np.diff(self.number, append=-1)) + 1
            full = ends.searchsorted(np.arange(_PART, len(self.number) + _PART, _PART))
            cuts = sorted({0, *ends[full.clip(max=len(ends) - 1)].tolist()}) if len(ends) else []
            self.known["parts"] = [
                (slice(start, end), Sessions(None, self.number[start:end]))
                for start, end in itertools.pairwise(cuts)
            ]
        parts: list[tuple[slice, Sessions]] = self.known["parts"]
        return parts


def sessions(candidates: Candidates, gap_ms: int) -> Sessions:
    """Group messages: a conversation is a session, and outside of one a silence ends it."""
    grouped: Sessions | None = candidates.known.get(gap_ms)
    if grouped is None:
        grouped = candidates.known[gap_ms] = _sessions(candidates, gap_ms)
    return grouped


def _sessions(candidates: Candidates, gap_ms: int) -> Sessions:
    thread, order = candidates.thread, _by_thread(candidates)
    created_at, loose = candidates.created_at, candidates.loose
    if order is not None:
        thread, created_at, loose = thread[order], created_at[order], loose[order]
    breaks = thread[1:] != thread[:-1]
    if loose.any():
        breaks |= (np.diff(created_at) > gap_ms) & loose[1:]
    number = np.zeros(len(thread), np.int32)
    np.cumsum(breaks, out=number[1:])
    return Sessions(order, number)


def places_in_threads(candidates: Candidates) -> Places:
    """Return where each message stands when every thread is brought together, in order of time."""
    if "threads" not in candidates.known:
        order, places = _by_thread(candidates), np.arange(len(candidates.thread))
        if order is not None:
            places[order] = places.copy()
        candidates.known["threads"] = places
    known: Places = candidates.known["threads"]
    return known


def _by_thread(candidates: Candidates) -> Places | None:
    """Return the order that groups each conversation; ``None`` if they are grouped already."""
    if "by thread" not in candidates.known:
        candidates.known["by thread"] = _grouped(candidates.thread)
    order: Places | None = candidates.known["by thread"]
    return order


def _grouped(thread: NDArray[np.int64]) -> Places | None:
    """Return the order that groups equal numbers; ``None`` if they stand together already.

    What is sorted is not messages but runs of one thread: few where people talk in one
    conversation at a time.
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
