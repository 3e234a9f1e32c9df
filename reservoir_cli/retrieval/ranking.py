"""How well each message serves the question: similarity, recency, priority. Pure numpy.

Half of what a search misses has its words in the messages around it ("Where did you go?" /
"Chicago!"), so a message is judged together with its neighbours: in its word counts, by the
question it answers, and by the best of its surroundings. ``docs/ranking.md`` has the measurements.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.retrieval.bm25_with_neighbours import bm25
from reservoir_cli.retrieval.recall_floor import relevance
from reservoir_cli.retrieval.sessions import Sessions, sessions
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.candidates import Candidates
from reservoir_cli.util.greatest import greatest

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

# The constants lie on plateaus of the benchmark; see docs/ranking.md.
COSINE_SHARE, BM25_SHARE = 0.6, 0.4
REPLY_LINK, SHORT_REPLY = 0.2, 60
WINDOW_SHARE, WINDOW = 0.3, 10
#: A short message says little alone: in talk of short messages so much of a message's score goes by
#: the mean of itself and its neighbours, and so much of its own is taken off if it asks.
MEAN_SHARE, MEAN_WINDOW, ASKING_LOSS = 0.3, 4, 0.07
#: Talk is short if messages have at most so many words on average; with twice as many it is not.
SHORT_TALK = 60
DATE_SHARE = 0.4
#: The best of many passages is high by chance: what the cosine loses for each e-fold of them.
LENGTH_PENALTY = 0.03
#: What a similarity is made of: the meaning and words of the message itself, the question it
#: answers, the best of its surroundings, and a date that the question names.
PARTS = ("meaning", "words", "question", "surroundings", "date")


@dataclass(frozen=True, slots=True)
class Scored:
    """Candidates with their scores, each of shape (n,), float64.

    :param bm25: raw, with the words of neighbours.
    :param dates: nearness to a date the question names, in 0…1.
    :param similarity: in 0…1.
    :param recency: in 0…1.
    :param priority: in 0…1 for weights that add up to 1.
    :param relevance: how well the question fits the best of them; see ``recall_floor.py``.
    :param parts: what the similarity is made of, shape (5, n), rows as in ``PARTS``, which add up
        to it; ``None`` unless it was asked for.
    """

    candidates: Candidates
    bm25: Floats
    dates: Floats
    similarity: Floats
    recency: Floats
    priority: Floats
    relevance: float
    parts: Floats | None = None


def score(
    candidates: Candidates,
    settings: Settings,
    now_ms: int,
    dates: Floats,
    *,
    parts: bool = False,
) -> Scored:
    """Priority = similarity weight · similarity + recency weight · recency.

    A question that follows up on a running session is compared a second time, together with what
    was said last. Similarity is the mean of both; messages of the running session keep the first,
    as the last turns would match themselves.

    :param now_ms: the moment of asking, milliseconds since 1970.
    :param dates: shape (n,), nearness to a date the question names, 0…1; zeros if it names none.
    :param parts: tell what each similarity is made of.
    """
    found = sessions(candidates, round(1000 * settings.session_gap))
    words = bm25(candidates.postings, candidates.terms, found)
    alike = _alike(candidates, candidates.cosine, words, dates, found, settings)
    made_of = _parts(candidates, candidates.cosine, words, dates, found, settings, alike, parts)
    running, talk = _running(candidates, found), candidates.talk
    if talk is not None:
        said = words.copy()
        for weight, postings in talk.postings:
            said += weight * bm25(postings, candidates.terms, found)
        together = _alike(candidates, talk.cosine, said, dates, found, settings)
        more = _parts(candidates, talk.cosine, said, dates, found, settings, together, parts)
        alike = np.where(running, alike, (alike + together) / 2)
        if made_of is not None and more is not None:
            made_of = np.where(running, made_of, (made_of + more) / 2)
    if settings.recency == "age":
        recent = recency_by_age(candidates.created_at, now_ms, settings.recency_half_life)
    else:
        if "recency" not in candidates.known:
            candidates.known["recency"] = recency(np.arange(len(candidates.ids))[::-1])
        recent = candidates.known["recency"]
    priority = settings.similarity_weight * alike
    priority += settings.recency_weight * recent
    fit = relevance(candidates, dates, running)
    return Scored(candidates, words, dates, alike, recent, priority, fit, made_of)


def _alike(
    candidates: Candidates,
    cosine: NDArray[np.float32],
    words: Floats,
    dates: Floats,
    found: Sessions,
    settings: Settings,
) -> Floats:
    if settings.similarity == "cosine":
        return np.maximum(0.0, np.nan_to_num(cosine.astype(np.float64)))
    return similarity(candidates, cosine, words, dates, found)


def _parts(
    candidates: Candidates,
    cosine: NDArray[np.float32],
    words: Floats,
    dates: Floats,
    found: Sessions,
    settings: Settings,
    alike: Floats,
    wanted: bool,
) -> Floats | None:
    """Divide similarities among what they are made of, shape (5, n)."""
    if not wanted:
        return None
    if settings.similarity == "cosine":
        return np.vstack([alike, *np.zeros((len(PARTS) - 1, len(alike)))])
    own, inherited, around = _terms(candidates, cosine, words, found)
    of_words = min_max(words)
    of_words[~np.isnan(cosine)] *= BM25_SHARE
    terms = np.vstack(
        [
            found.back(own) - of_words,
            of_words,
            found.back(inherited - own),
            found.back(around - inherited),
            DATE_SHARE * dates,
        ]
    )
    whole = terms.sum(axis=0)
    return np.asarray(terms * np.divide(alike, whole, out=np.zeros_like(whole), where=whole > 0))


def _running(candidates: Candidates, found: Sessions) -> NDArray[np.bool_]:
    """Mark the session of the newest message of the instance that history comes from."""
    own = np.flatnonzero(candidates.own)
    number = found.back(found.number)
    return np.asarray(number == number[own[-1]]) if len(own) else np.zeros(len(number), bool)


def similarity(
    candidates: Candidates,
    cosine: NDArray[np.float32],
    words: Floats,
    dates: Floats,
    found: Sessions,
) -> Floats:
    """Combine meaning, words, and what stands around them, relative to the best of the scope.

    m = cosine − 0.03 · ln(passages); h = 0.6 · mm(m) + 0.4 · mm(BM25), without a vector mm(BM25)
    alone; a reply inherits 0.2 · h of the question before it, of more than 60 words the less the
    longer it is; to that 0.3 · the best within ten messages, what :func:`_balance` adds in talk of
    short messages, and 0.4 · the date; mm of all.

    :param cosine: shape (n,), NaN where there is no vector: for such a message words count in
        full.
    :returns: shape (n,), in 0…1.
    """
    _, _, around = _terms(candidates, cosine, words, found)
    similar = found.back(around)
    if dates.any():
        similar += DATE_SHARE * dates
    return _stretched(similar)


def _terms(
    candidates: Candidates, cosine: NDArray[np.float32], words: Floats, found: Sessions
) -> tuple[Floats, Floats, Floats]:
    """Return each message's score alone, then with its question added, then with its neighbours.

    :returns: each of shape (n,), in session order.
    """
    own = found.laid(_alone(candidates, cosine, words))
    asks, lengths = found.laid(candidates.asks), found.laid(candidates.terms)
    inherited, around = np.empty_like(own), np.empty_like(own)
    for place, part in found.parts():
        inherited[place], around[place] = _among_neighbours(
            own[place], asks[place], lengths[place], part
        )
    return own, inherited, around


def _alone(candidates: Candidates, cosine: NDArray[np.float32], words: Floats) -> Floats:
    """Return each message's score by its own meaning and words, shape (n,)."""
    alike = min_max(words)
    if "penalties" not in candidates.known:
        several = np.flatnonzero(candidates.passages > 1)
        penalties = np.zeros(len(cosine))
        penalties[several] = LENGTH_PENALTY * np.log(candidates.passages[several])
        candidates.known["penalties"] = penalties
    known = ~np.isnan(cosine)
    embedded = known if not known.all() else slice(None)
    meaning = cosine[embedded] - candidates.known["penalties"][embedded]
    alike[embedded] *= BM25_SHARE
    meaning = _stretched(meaning)
    meaning *= COSINE_SHARE
    alike[embedded] += meaning
    return alike


def _among_neighbours(
    own: Floats, asks: NDArray[np.bool_], lengths: NDArray[np.int32], found: Sessions
) -> tuple[Floats, Floats]:
    """Return each message's score with its question added, then with its neighbours.

    All arrays have shape (n,) and are in session order.

    :param lengths: words of each message.
    """
    if "answers" not in found.known:
        answers = asks[:-1] & found.together(1)
        short = np.minimum(1.0, SHORT_REPLY / np.maximum(lengths[1:], 1))
        found.known["answers"] = answers * short
    inherited = own.copy()
    inherited[1:] += REPLY_LINK * own[:-1] * found.known["answers"]
    around = WINDOW_SHARE * window_max(inherited, found, WINDOW)
    around += _balance(own, inherited, asks, lengths, found)
    return inherited, inherited + around


def _balance(
    own: Floats,
    inherited: Floats,
    asks: NDArray[np.bool_],
    lengths: NDArray[np.int32],
    found: Sessions,
) -> Floats:
    """Return what brings a message of short talk nearer to the mean around it.

    What asks loses a little, since it has the words of an answer and is none.

    :returns: shape (n,), in session order.
    """
    if "short talk" not in found.known:
        means = window_mean(lengths, found, MEAN_WINDOW)
        found.known["short talk"] = np.clip(2.0 - means / SHORT_TALK, 0.0, 1.0)
    nearer = MEAN_SHARE * (window_mean(inherited, found, MEAN_WINDOW) - inherited)
    loss = ASKING_LOSS * asks * own
    return np.asarray(found.known["short talk"] * (nearer - loss))


def window_mean(values: NDArray[Any], found: Sessions, reach: int) -> Floats:
    """Return the mean of each message and its neighbours in its session.

    :param values: shape (n,), in session order.
    """
    starts, ends = found.edges(reach)
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts))


def window_max(values: Floats, found: Sessions, reach: int) -> Floats:
    """Return the greatest value among the neighbours of each message in its session.

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
    """Return the positions of the greatest scores, best first; of equal ones the newest first.

    :param scores: shape (n,), in order of time.
    :returns: shape (min(count, n),).
    """
    places = greatest(scores, count) if 0 < count < len(scores) else np.arange(len(scores))
    order = np.lexsort((-places, -scores[places]))
    return places[order][: max(count, 0)]


def min_max(values: NDArray[Any]) -> Floats:
    """Stretch values to 0…1; of equal values, 0 if they are 0, else 1."""
    return _stretched(values.astype(np.float64))


def _stretched(values: Floats) -> Floats:
    """Return :func:`min_max` of values, which are overwritten."""
    if not len(values):
        return values
    low, high = values.min(), values.max()
    if low == high:
        values[:] = 0.0 if high == 0 else 1.0
        return values
    values -= low
    values /= high - low
    return values


def recency(ranks: NDArray[np.int64]) -> Floats:
    """Score how recent messages are, 1 for the newest.

    Heavy-tailed in rank, 1/(1 + log2(1 + rank)), so that an old message keeps a chance
    against the newest.

    :param ranks: shape (n,), 0 for the newest message of the scope.
    :returns: shape (n,), in (0, 1].
    """
    scores = 1.0 + ranks
    np.log2(scores, out=scores)
    scores += 1.0
    return np.asarray(np.divide(1.0, scores, out=scores))


def recency_by_age(created_at: NDArray[np.int64], now_ms: int, half_life: float) -> Floats:
    """Score how recent messages are by their age: 2^(-age / half-life).

    :param created_at: shape (n,), milliseconds since 1970; what lies ahead has no age.
    :param half_life: seconds.
    :returns: shape (n,), in 0…1.
    """
    ages = np.maximum(0, now_ms - created_at) / 1000.0
    return np.asarray(np.exp2(-ages / half_life))
