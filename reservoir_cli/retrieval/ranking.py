"""Score messages by similarity, recency and priority. Pure numpy.

Half of the messages that a search misses have their words in the messages around them ("Where did
you go?" / "Chicago!"), so a message is scored together with its neighbours: by their words, the
question it answers, and the best of the messages around it. Measurements are in
``docs/ranking.md``.
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
#: Short messages say little by themselves: in conversations of short messages, this share of a
#: message's score is the mean around it, and a question loses this share of its own score.
MEAN_SHARE, MEAN_WINDOW, ASKING_LOSS = 0.3, 4, 0.07
#: Messages count as short up to this many words on average; with twice as many they do not.
SHORT_TALK = 60
DATE_SHARE = 0.4
#: The best of many passages scores high by chance: the cosine is reduced by this much for each
#: factor of e in their number.
LENGTH_PENALTY = 0.03
#: The components of a similarity: the meaning and words of the message itself, the question it
#: answers, the best of the messages around it, and a date in the question.
PARTS = ("meaning", "words", "question", "surroundings", "date")


@dataclass(frozen=True, slots=True)
class Scored:
    """Candidates with their scores, each of shape (n,), float64.

    :param bm25: unscaled, including the words of neighbours.
    :param dates: nearness to a date in the question, in 0…1.
    :param similarity: in 0…1.
    :param recency: in 0…1.
    :param priority: in 0…1 if the weights add up to 1.
    :param relevance: how well the question fits the best message; see ``recall_floor.py``.
    :param parts: the components of the similarity, which add up to it, shape (5, n), rows as in
        ``PARTS``; ``None`` unless requested.
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
    """Score candidates; priority is the weighted sum of similarity and recency.

    A question that follows up on a running session is scored a second time together with the last
    turns, and the similarity is the mean of both. Messages of the running session keep the first
    score, as the last turns would match themselves.

    :param now_ms: the time of the question, milliseconds since 1970.
    :param dates: shape (n,), nearness to a date in the question, 0…1; zeros if it names none.
    :param parts: also return the components of each similarity.
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
    """Divide each similarity into its components, shape (5, n)."""
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
    """Return which messages are in the session of the newest message of history's instance."""
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
    """Combine meaning, words, neighbours and dates, relative to the best of the scope.

    m = cosine − 0.03 · ln(passages); h = 0.6 · mm(m) + 0.4 · mm(BM25), or mm(BM25) without a
    vector. A reply inherits 0.2 · h of the question before it, proportionally less if it has more
    than 60 words. Added to this are 0.3 · the best score within ten messages, :func:`_balance` for
    short messages, and 0.4 · the date score. mm is applied to the sum.

    :param cosine: shape (n,), NaN for messages without a vector, whose words count in full.
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
    """Return each message's score alone, then with its question's, then with its neighbours'.

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
    """Return each message's score with its question's added, then with its neighbours'.

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
    """Return the adjustment that moves short messages' scores towards the mean around them.

    A question loses a little: it shares words with its answer without being one.

    :returns: shape (n,), in session order.
    """
    if "short talk" not in found.known:
        means = window_mean(lengths, found, MEAN_WINDOW)
        found.known["short talk"] = np.clip(2.0 - means / SHORT_TALK, 0.0, 1.0)
    nearer = MEAN_SHARE * (window_mean(inherited, found, MEAN_WINDOW) - inherited)
    loss = ASKING_LOSS * asks * own
    return np.asarray(found.known["short talk"] * (nearer - loss))


def window_mean(values: NDArray[Any], found: Sessions, reach: int) -> Floats:
    """Return the mean over each message and its neighbours in its session.

    :param values: shape (n,), in session order.
    """
    starts, ends = found.edges(reach)
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts))


def window_max(values: Floats, found: Sessions, reach: int) -> Floats:
    """Return the greatest value among the neighbours of each message in its session.

    Windows double until they are wide enough, so the cost grows with log(reach).

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
    """Return the positions of the highest scores, best first; ties newest first.

    :param scores: shape (n,), in order of time.
    :returns: shape (min(count, n),).
    """
    places = greatest(scores, count) if 0 < count < len(scores) else np.arange(len(scores))
    order = np.lexsort((-places, -scores[places]))
    return places[order][: max(count, 0)]


def min_max(values: NDArray[Any]) -> Floats:
    """Scale values to 0…1; if all are equal, to 0 if they are 0, else to 1."""
    return _stretched(values.astype(np.float64))


def _stretched(values: Floats) -> Floats:
    """Apply :func:`min_max` in place, overwriting the values."""
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

    Heavy-tailed in rank, 1/(1 + log2(1 + rank)), so that old messages can still compete with the
    newest.

    :param ranks: shape (n,), 0 for the newest message of the scope.
    :returns: shape (n,), in (0, 1].
    """
    scores = 1.0 + ranks
    np.log2(scores, out=scores)
    scores += 1.0
    return np.asarray(np.divide(1.0, scores, out=scores))


def recency_by_age(created_at: NDArray[np.int64], now_ms: int, half_life: float) -> Floats:
    """Score how recent messages are by their age: 2^(-age / half-life).

    :param created_at: shape (n,), milliseconds since 1970; future times count as age 0.
    :param half_life: seconds.
    :returns: shape (n,), in 0…1.
    """
    ages = np.maximum(0, now_ms - created_at) / 1000.0
    return np.asarray(np.exp2(-ages / half_life))
