"""How well each message serves the question: similarity, recency, priority. Pure numpy.

Half of what a search misses has its words in the messages around it ("Where did you go?" /
"Chicago!"), so a message is judged together with its neighbours: in its word counts, by the
question it answers, and by the best of its surroundings. ``docs/ranking.md`` has the measurements.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.records import Candidates, Posting

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

# The constants lie on plateaus of the benchmark; see docs/ranking.md.
COSINE_SHARE, BM25_SHARE = 0.6, 0.4
NEIGHBOUR_WORDS, NEIGHBOURS = 0.3, 2
REPLY_LINK = 0.2
WINDOW_SHARE, WINDOW = 0.3, 10
DATE_SHARE = 0.4
K1, B = 1.2, 0.75


@dataclass(frozen=True, slots=True)
class Sessions:
    """Messages in order of session and time.

    :param order: shape (n,), the place of each one among the candidates; ``None`` if they stand
        in this order already.
    :param number: int32, shape (n,), of its session, in this order; ascending.
    """

    order: Places | None
    number: NDArray[np.int32]

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
        return np.asarray(self.number[distance:] == self.number[:-distance])


@dataclass(frozen=True, slots=True)
class Scored:
    """Candidates with their scores, each of shape (n,), float64.

    :param bm25: raw, with the words of neighbours.
    :param dates: nearness to a date the question names, in 0…1.
    :param similarity: in 0…1.
    :param recency: in 0…1.
    :param priority: in 0…1 for weights that add up to 1.
    """

    candidates: Candidates
    bm25: Floats
    dates: Floats
    similarity: Floats
    recency: Floats
    priority: Floats


def score(candidates: Candidates, settings: Settings, now_ms: int, dates: Floats) -> Scored:
    """Priority = similarity weight · similarity + recency weight · recency.

    :param now_ms: the moment of asking, milliseconds since 1970.
    :param dates: shape (n,), nearness to a date the question names, 0…1; zeros if it names none.
    """
    found = sessions(candidates, round(1000 * settings.session_gap))
    words = bm25(candidates.postings, candidates.terms, found)
    if settings.similarity == "cosine":
        alike = np.maximum(0.0, np.nan_to_num(candidates.cosine.astype(np.float64)))
    else:
        alike = similarity(candidates.cosine, words, candidates.asks, dates, found)
    if settings.recency == "age":
        recent = recency_by_age(candidates.created_at, now_ms, settings.recency_half_life)
    else:
        recent = recency(np.arange(len(candidates.ids))[::-1])
    priority = settings.similarity_weight * alike + settings.recency_weight * recent
    return Scored(candidates, words, dates, alike, recent, priority)


def similarity(
    cosine: NDArray[np.float32],
    words: Floats,
    asks: NDArray[np.bool_],
    dates: Floats,
    found: Sessions,
) -> Floats:
    """Meaning, words, and what stands around them, relative to the best of the scope.

    h = 0.6 · mm(cosine) + 0.4 · mm(BM25), without a vector mm(BM25) alone; a reply inherits
    0.2 · h of the question before it; to that 0.3 · the best within ten messages and 0.4 · the
    date; mm of all.

    :param cosine: shape (n,), NaN where there is no vector: for such a message words count in
        full.
    :param asks: shape (n,), whether a message contains a question mark.
    :returns: shape (n,), in 0…1.
    """
    alike = min_max(words)
    known = ~np.isnan(cosine)
    alike[known] = COSINE_SHARE * min_max(cosine[known]) + BM25_SHARE * alike[known]
    own = found.laid(alike)
    inherited = own.copy()
    answers = found.laid(asks)[:-1] & found.together(1)
    inherited[1:] += REPLY_LINK * own[:-1] * answers
    around = inherited + WINDOW_SHARE * window_max(inherited, found, WINDOW)
    return min_max(found.back(around) + DATE_SHARE * dates)


def sessions(candidates: Candidates, gap_ms: int) -> Sessions:
    """Group messages: a conversation is a session, and outside of one a silence ends it."""
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
    """Where each message stands when every thread is brought together, in order of time."""
    order = _by_thread(candidates.thread)
    places = np.arange(len(candidates.thread))
    if order is not None:
        places[order] = places.copy()
    return places


def _by_thread(thread: NDArray[np.int64]) -> Places | None:
    """The order that brings each thread together; ``None`` if each is together already.

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


def bm25(postings: Sequence[Posting], terms: NDArray[np.int32], found: Sessions) -> Floats:
    """BM25 in which a message's neighbours in its session count for 0.3 of a message.

    A term's count, and a message's length, take in the two messages before and after it;
    document frequencies are the scope's. Source of the formula: Robertson and Zaragoza, "The
    Probabilistic Relevance Framework: BM25 and Beyond", 2009, k1 = 1.2, b = 0.75.

    :param postings: for each stem of the question, where it stands and how often.
    :param terms: shape (n,), words of each message.
    :returns: shape (n,).
    """
    total = len(terms)
    scores = np.zeros(total)
    if not postings or not total:
        return scores
    lengths = _around(found.laid(terms), found)
    norms = K1 * (1 - B + B * lengths / max(lengths.mean(), 1e-9))
    spot_of = found.back(np.arange(total))
    for posting in postings:
        where, counts = _with_neighbours(spot_of[posting.places], posting.counts, found)
        holding = len(where)
        rarity = max(np.log((total - holding + 0.5) / (holding + 0.5)), 1e-6)
        scores[where] += rarity * (K1 + 1) * counts / (counts + norms[where])
    return found.back(scores)


def _with_neighbours(
    places: Places, counts: NDArray[np.int32], found: Sessions
) -> tuple[Places, Floats]:
    """Where a term counts, its neighbours included, and how much; in session order."""
    spots, shares = [], []
    for shift in range(-NEIGHBOURS, NEIGHBOURS + 1):
        moved = (places + shift).clip(0, len(found.number) - 1)
        inside = (found.number[moved] == found.number[places]) & (moved == places + shift)
        spots.append(moved[inside])
        shares.append((1.0 if shift == 0 else NEIGHBOUR_WORDS) * counts[inside])
    where, back = np.unique(np.concatenate(spots), return_inverse=True)
    return where, np.bincount(back, np.concatenate(shares)).astype(np.float64)


def _around(terms: NDArray[np.int32], found: Sessions) -> Floats:
    """Words of each message and its neighbours; in session order."""
    sums = terms.astype(np.float64)
    for distance in range(1, min(NEIGHBOURS, len(terms) - 1) + 1):
        together = found.together(distance)
        sums[distance:] += terms[:-distance] * together
        sums[:-distance] += terms[distance:] * together
    return sums


def window_max(values: Floats, found: Sessions, reach: int) -> Floats:
    """The greatest value within so many messages before and after, inside the session.

    Windows double until they are wide enough, so that the cost grows with log(reach).

    :param values: shape (n,), in session order, none below 0.
    """
    ahead, behind = values.copy(), values.copy()
    covered = 0
    while covered < reach and covered + 1 < len(values):
        step = min(covered + 1, reach - covered)
        together = found.together(step)
        np.maximum(ahead[:-step], ahead[step:] * together, out=ahead[:-step])
        np.maximum(behind[step:], behind[:-step] * together, out=behind[step:])
        covered += step
    return np.maximum(ahead, behind)


def best(scores: Floats, count: int) -> Places:
    """The places of the greatest scores, the best first, of equal ones the newest.

    :param scores: shape (n,), in order of time.
    :returns: shape (min(count, n),).
    """
    places = np.arange(len(scores))
    if 0 < count < len(scores):
        # Sorting all of a million takes ten times as long as finding the few that count.
        least = np.partition(scores, len(scores) - count)[len(scores) - count]
        places = np.flatnonzero(scores >= least)
    order = np.lexsort((-places, -scores[places]))
    return places[order][: max(count, 0)]


def min_max(values: NDArray[Any]) -> Floats:
    """Stretch values to 0…1; of equal values, 0 if they are 0, else 1."""
    if not len(values):
        return np.zeros(0)
    wide = values.astype(np.float64)
    low, high = wide.min(), wide.max()
    if low == high:
        return np.zeros(len(wide)) if high == 0 else np.ones(len(wide))
    return np.asarray((wide - low) / (high - low))


def recency(ranks: NDArray[np.int64]) -> Floats:
    """Score how recent messages are, 1 for the newest.

    Heavy-tailed in rank, 1/(1 + log2(1 + rank)), so that an old message keeps a chance
    against the newest.

    :param ranks: shape (n,), 0 for the newest message of the scope.
    :returns: shape (n,), in (0, 1].
    """
    return np.asarray(1.0 / (1.0 + np.log2(1.0 + ranks)))


def recency_by_age(created_at: NDArray[np.int64], now_ms: int, half_life: float) -> Floats:
    """Score how recent messages are by their age: 2^(-age / half-life).

    :param created_at: shape (n,), milliseconds since 1970; what lies ahead has no age.
    :param half_life: seconds.
    :returns: shape (n,), in 0…1.
    """
    ages = np.maximum(0, now_ms - created_at) / 1000.0
    return np.asarray(np.exp2(-ages / half_life))
