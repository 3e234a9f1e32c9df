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

from reservoir_cli.settings import Settings
from reservoir_cli.window import Candidates, Posting, Scored

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

    :param order: shape (n,), the place of each one among the candidates.
    :param first: shape (n,), where its session begins in this order.
    :param last: shape (n,), where it ends.
    """

    order: Places
    first: Places
    last: Places

    def laid(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the candidates in this order."""
        return values[self.order]

    def back(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of this order as the candidates stand."""
        there = np.empty_like(values)
        there[self.order] = values
        return there


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

    h = 0.6 · mm(cosine) + 0.4 · mm(BM25); a reply inherits 0.2 · h of the question before it;
    to that 0.3 · the best within ten messages and 0.4 · the date; mm of all.

    :param cosine: shape (n,), NaN where there is no vector: such a message counts as the least
        similar by meaning, and takes part by its words alone.
    :param asks: shape (n,), whether a message contains a question mark.
    :returns: shape (n,), in 0…1.
    """
    meaning = np.zeros(len(cosine))
    known = ~np.isnan(cosine)
    meaning[known] = min_max(cosine[known])
    own = found.laid(COSINE_SHARE * meaning + BM25_SHARE * min_max(words))
    inherited = own.copy()
    answers = found.laid(asks)[:-1] & (found.first[1:] == found.first[:-1])
    inherited[1:] += np.where(answers, REPLY_LINK * own[:-1], 0.0)
    around = inherited + WINDOW_SHARE * window_max(inherited, found, WINDOW)
    return min_max(found.back(around) + DATE_SHARE * dates)


def sessions(candidates: Candidates, gap_ms: int) -> Sessions:
    """Group messages: a conversation is a session, and outside of one a silence ends it."""
    order = np.argsort(candidates.thread, kind="stable")
    thread = candidates.thread[order]
    silence = np.diff(candidates.created_at[order]) > gap_ms
    breaks = (thread[1:] != thread[:-1]) | (silence & candidates.loose[order][1:])
    starts = np.flatnonzero(np.concatenate([[len(order) > 0], breaks]))
    number = np.cumsum(np.concatenate([[0], breaks]))[: len(order)]
    ends = np.append(starts[1:], len(order)) - 1
    return Sessions(order, starts[number], ends[number])


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
    sums = np.concatenate([[0], np.cumsum(found.laid(terms), dtype=np.float64)])
    here = np.arange(total)
    low = np.maximum(found.first, here - NEIGHBOURS)
    high = np.minimum(found.last, here + NEIGHBOURS)
    lengths = sums[high + 1] - sums[low]
    norms = K1 * (1 - B + B * lengths / max(lengths.mean(), 1e-9))
    place_of = np.empty(total, np.intp)
    place_of[found.order] = here
    for posting in postings:
        where, counts = _with_neighbours(place_of[posting.places], posting.counts, found)
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
        moved = places + shift
        inside = (moved >= found.first[places]) & (moved <= found.last[places])
        spots.append(moved[inside])
        shares.append((1.0 if shift == 0 else NEIGHBOUR_WORDS) * counts[inside])
    where, back = np.unique(np.concatenate(spots), return_inverse=True)
    return where, np.bincount(back, np.concatenate(shares)).astype(np.float64)


def window_max(values: Floats, found: Sessions, reach: int) -> Floats:
    """The greatest value within so many messages before and after, inside the session.

    Windows double until they are wide enough, so that the cost grows with log(reach).

    :param values: shape (n,), in session order.
    """
    ahead = _max_ahead(values, found.last, reach)
    behind = _max_ahead(values[::-1], len(values) - 1 - found.first[::-1], reach)[::-1]
    return np.maximum(ahead, behind)


def _max_ahead(values: Floats, last: Places, reach: int) -> Floats:
    """The greatest value from a place to so many after it, up to its session's last."""
    best, covered = values.copy(), 0
    here = np.arange(len(values))
    while covered < reach:
        step = min(covered + 1, reach - covered)
        ahead = np.minimum(here + step, last)
        best = np.maximum(best, best[ahead])
        covered += step
    return best


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
