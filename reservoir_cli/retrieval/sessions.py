"""Group messages into sessions: conversations, or what no long silence interrupts. Pure numpy."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.storage.records import Candidates

Places = NDArray[np.intp]


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
    known: dict[Hashable, NDArray[Any]] = field(default_factory=dict, repr=False, compare=False)

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

    def together(self, distance: int) -> NDArray[np.bool_]:
        """Whether a message and the one so far behind it are of one session.

        :returns: shape (n - distance,), in this order.
        """
        if distance not in self.known:
            self.known[distance] = self.number[distance:] == self.number[:-distance]
        return self.known[distance]

    def edges(self, reach: int) -> NDArray[np.int64]:
        """Return where the neighbours of each message begin, and where they end.

        :param reach: how many there are on each side, if the session has them.
        :returns: shape (2, n), in this order.
        """
        if ("edges", reach) not in self.known:
            places = np.arange(len(self.number))
            inner = ~np.diff(self.number, prepend=-1, append=-1).astype(bool)
            starts = np.maximum.accumulate(np.where(inner[:-1], 0, places))
            ends = np.minimum.accumulate(np.where(inner[1:], len(places), places + 1)[::-1])[::-1]
            near = np.maximum(starts, places - reach), np.minimum(ends, places + reach + 1)
            self.known["edges", reach] = np.stack(near)
        return self.known["edges", reach]


def sessions(candidates: Candidates, gap_ms: int) -> Sessions:
    """Group messages: a conversation is a session, and outside of one a silence ends it."""
    grouped: Sessions | None = candidates.known.get(gap_ms)
    if grouped is None:
        grouped = candidates.known[gap_ms] = _sessions(candidates, gap_ms)
    return grouped


def _sessions(candidates: Candidates, gap_ms: int) -> Sessions:
    thread = candidates.thread
    order = _by_thread(thread)
    created_at, loose = candidates.created_at, candidates.loose
    if order is not None:
        thread, created_at, loose = thread[order], created_at[order], loose[order]
    breaks = thread[1:] != thread[:-1]
    breaks |= (np.diff(created_at) > gap_ms) & loose[1:]
    number = np.zeros(len(thread), np.int32)
    np.cumsum(breaks, out=number[1:])
    return Sessions(order, number)


def places_in_threads(candidates: Candidates) -> Places:
    """Return where each message stands when every thread is brought together, in order of time."""
    if "threads" not in candidates.known:
        order = _by_thread(candidates.thread)
        places = np.arange(len(candidates.thread))
        if order is not None:
            places[order] = places.copy()
        candidates.known["threads"] = places
    known: Places = candidates.known["threads"]
    return known


def _by_thread(thread: NDArray[np.int64]) -> Places | None:
    """Return the order that groups each conversation; ``None`` if they are grouped already.

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
