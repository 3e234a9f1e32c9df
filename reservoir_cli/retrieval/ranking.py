"""Score messages by similarity, recency and priority. Pure numpy.

Half of the messages that a search misses have their words in the messages around them ("Where did
you go?" / "Chicago!"), so a message is scored with its neighbours. See ``docs/ranking.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.retrieval import ranking_constants as constants
from reservoir_cli.retrieval.bm25_with_neighbours import bm25
from reservoir_cli.retrieval.recall_floor import count_absent, fit, weigh_words
from reservoir_cli.retrieval.sessions import Sessions, group_sessions
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.search.candidates import Candidates, Posting, TalkScores

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]
Scores = TypeVar("Scores", Floats, Floats | None)

#: Components of a similarity: own meaning and words, the question's, the best around it, a date.
PARTS = ("meaning", "words", "question", "surroundings", "date")


class Scored(NamedTuple):
    """Candidates with their scores, each of shape (n,), float64."""

    candidates: Candidates
    bm25: Floats  # unscaled, including the words of neighbours
    dates: Floats  # nearness to a date in the question, in 0…1, as similarity and recency
    similarity: Floats
    recency: Floats
    priority: Floats  # in 0…1 if the weights add up to 1
    fit: Floats  # how well each message fits the question; see ``recall_floor.py``
    talk: Floats | None = None  # similarity with turns before the question; ``None`` without any
    parts: Floats | None = None  # shape (5, n), rows as in ``PARTS``, adding up to the similarity

    @property
    def relevance(self) -> float:
        """How well the best message fits the question."""
        return float(self.fit.max(initial=0.0))


class Echoes(NamedTuple):
    """Earlier askings of a question: those that say no more than it, and an answer."""

    positions: Positions  # of the former, ascending
    older: Positions  # of those that repeat what a newer one says
    answered: tuple[int, ...] = ()  # of the newest asking that got an answer, and of its replies


class Words(NamedTuple):
    """The BM25 scores of candidates, shape (n,): with the question, then with turns before it."""

    question: Floats
    talk: Floats


def score_words(candidates: Candidates, settings: Settings) -> Words:
    """Score candidates by their words alone, which needs no cosines."""
    sessions = sessions_of(candidates, settings)
    question = bm25(candidates.postings, candidates.terms, sessions)
    if candidates.talk is None:
        return Words(question, question)
    talk = question.copy()
    for weight, postings in candidates.talk.postings:
        talk += weight * bm25(postings, candidates.terms, sessions)
    return Words(question, talk)


def sessions_of(candidates: Candidates, settings: Settings) -> Sessions:
    """Return the sessions of candidates."""
    return group_sessions(candidates, round(1000 * settings.session_gap))


def without_echoes(candidates: Candidates, echoes: Echoes) -> Candidates:
    """Return the candidates with echoes as messages without words and meaning, which lend none."""
    is_echo = np.zeros(len(candidates.ids), bool)
    is_echo[echoes.positions] = True

    def without(postings: Sequence[Posting]) -> tuple[Posting, ...]:
        others = (
            posting.at(~is_echo[posting.positions])._replace(
                titled=None if posting.titled is None else posting.titled[~is_echo[posting.titled]]
            )
            for posting in postings
        )
        return tuple(posting for posting in others if len(posting.all_positions()))

    postings = without(candidates.postings)
    stems = {posting.stem for posting in postings}
    absent = (posting.stem for posting in candidates.postings if posting.stem not in stems)
    talk = candidates.talk
    if talk is not None:
        talk = TalkScores(
            np.where(is_echo, np.float32(np.nan), talk.cosine),
            tuple((weight, without(postings)) for weight, postings in talk.postings),
        )
    return candidates._replace(
        cosine=np.where(is_echo, np.float32(np.nan), candidates.cosine),
        postings=postings,
        absent=(*candidates.absent, *absent),
        talk=talk,
    )


def trust_dates(dates: Floats, candidates: Candidates, echoes: Echoes | None) -> Floats:
    """Return lower date scores if the question's words lead elsewhere: dates are misremembered.

    This is so if messages around the dates have hardly a word of it and are further from its
    meaning than another, no question itself, that has several, most of its words by rarity.

    :param dates: shape (n,), nearness to a date in the question, 0…1.
    """
    around = dates >= constants.EARLIER_YEAR
    if not around.any():
        return dates
    is_other = ~(around | candidates.asks)
    if echoes is not None:
        is_other[echoes.positions] = False
    counts = np.zeros(len(dates), np.int64)
    for posting in candidates.postings:
        counts[posting.all_positions()] += 1
    matched, total = weigh_words(candidates.postings, len(candidates.absent), len(dates))
    best = int(np.where(is_other & (counts > 1), matched, -1.0).argmax())
    has_words = counts[best] > 1 and matched[best] >= constants.MOST_WORDS * total
    is_nearer = not (candidates.cosine[around] >= candidates.cosine[best]).any()
    has_none = matched[around].max() <= constants.HARDLY_A_WORD * matched[best]
    if is_other[best] and has_words and is_nearer and has_none:
        return np.asarray(constants.DOUBTFUL_DATE * dates)
    return dates


def score(
    candidates: Candidates,
    settings: Settings,
    now_ms: int,
    dates: Floats,
    words: Words | None = None,
    *,
    question: str | None = None,
    echoes: Echoes | None = None,
    parts: bool = False,
) -> Scored:
    """Score candidates; priority is the weighted sum of similarity and recency.

    A question that follows up on a running session is scored a second time together with the last
    turns, and the similarity is the mean of both. Messages of the running session keep the first
    score, as the last turns would match themselves.

    :param now_ms: the time of the question, milliseconds since 1970.
    :param dates: shape (n,), nearness to a date in the question, 0…1; zeros if it names none.
    :param words: those of :func:`score_words`, if they are known already.
    :param question: its absent names and numbers do not lower the fit; ``None`` to count them too.
    :param echoes: messages that only repeat the question, which stand behind all others; and the
        newest answer to it, which is as similar as its question.
    :param parts: also return the components of each similarity.
    """
    sessions, compared = sessions_of(candidates, settings), candidates
    if echoes is not None and len(echoes.positions):
        candidates, words = without_echoes(candidates, echoes), None
    words = words or score_words(candidates, settings)

    def compare(cosine: NDArray[np.float32], words: Floats) -> tuple[Floats, Floats | None]:
        if settings.similarity == "cosine":
            similarities = np.maximum(0.0, np.nan_to_num(cosine.astype(np.float64)))
            others = np.zeros((len(PARTS) - 1, len(similarities)))
            return similarities, np.vstack([similarities, *others]) if parts else None
        similarities = similarity(candidates, cosine, words, dates, sessions)
        if not parts:
            return similarities, None
        return similarities, _components(candidates, cosine, words, dates, sessions, similarities)

    similarities, components = compare(candidates.cosine, words.question)
    running, talk = is_running(candidates, sessions), candidates.talk
    of_talk: Floats | None = None
    if talk is not None:
        talk_similarities, talk_components = compare(talk.cosine, words.talk)
        of_talk = talk_similarities
        similarities = np.where(running, similarities, (similarities + talk_similarities) / 2)
        if components is not None and talk_components is not None:
            components = np.where(running, components, (components + talk_components) / 2)
    if settings.recency == "age":
        recencies = recency_by_age(candidates.created_at, now_ms, settings.recency_half_life)
    else:
        if "recency" not in candidates.cache:
            candidates.cache["recency"] = recency(np.arange(len(candidates.ids))[::-1])
        recencies = candidates.cache["recency"]
    if echoes is not None:
        recencies = _without(recencies, echoes)
        similarities, components = _without(similarities, echoes), _without(components, echoes)
        _rank_answer(echoes.answered, similarities, components)
    absent = None if question is None else count_absent(question, candidates.absent)
    priority = settings.similarity_weight * similarities
    priority += settings.recency_weight * recencies
    return Scored(
        compared,
        words.question,
        dates,
        similarities,
        recencies,
        priority,
        fit(candidates, dates, running, absent),
        of_talk,
        components,
    )


def _without(scores: Scores, echoes: Echoes) -> Scores:
    """Return scores with those of echoes as 0, so that they stand behind all others."""
    if scores is None:
        return scores
    scores = scores.copy()
    scores[..., echoes.positions] = 0.0
    return scores


def _rank_answer(answered: Sequence[int], similarities: Floats, components: Floats | None) -> None:
    """Make the replies to an earlier asking as similar as the asking, in place."""
    lower = [at for at in answered[1:] if similarities[at] < similarities[answered[0]]]
    if lower:
        similarities[lower] = similarities[answered[0]]
        if components is not None:
            components[:, lower] = components[:, answered[:1]]


def _components(
    candidates: Candidates,
    cosine: NDArray[np.float32],
    words: Floats,
    dates: Floats,
    sessions: Sessions,
    similarities: Floats,
) -> Floats:
    """Divide each similarity into its components, shape (5, n)."""
    own, inherited, around = _score_terms(candidates, cosine, words, sessions)
    word_share = min_max(words.copy())
    word_share[~np.isnan(cosine)] *= constants.BM25_SHARE
    terms = np.vstack(
        [
            sessions.to_candidate_order(own) - word_share,
            word_share,
            sessions.to_candidate_order(inherited - own),
            sessions.to_candidate_order(around - inherited),
            constants.DATE_SHARE * dates,
        ]
    )
    totals = terms.sum(axis=0)
    return np.asarray(
        terms * np.divide(similarities, totals, out=np.zeros_like(totals), where=totals > 0)
    )


def is_running(candidates: Candidates, sessions: Sessions) -> NDArray[np.bool_]:
    """Return whether messages are in the session of the newest one of history, shape (n,)."""
    own = np.flatnonzero(candidates.own)
    number = sessions.to_candidate_order(sessions.number)
    return np.asarray(number == number[own[-1]]) if len(own) else np.zeros(len(number), bool)


def similarity(
    candidates: Candidates,
    cosine: NDArray[np.float32],
    words: Floats,
    dates: Floats,
    sessions: Sessions,
) -> Floats:
    """Combine meaning, words, neighbours and dates, relative to the best of the scope; in 0…1.

    m = cosine − 0.03 · ln(passages); h = 0.6 · mm(m) + 0.4 · mm(BM25), or mm(BM25) without a
    vector. A reply inherits 0.2 · h of the question before it, proportionally less if it has more
    than 60 words. Added to this are 0.3 · the best score within ten messages, :func:`_balance` for
    short messages, and the date score. mm is applied to the sum.

    :param cosine: shape (n,), NaN for messages without a vector, whose words count in full.
    """
    _, _, around = _score_terms(candidates, cosine, words, sessions)
    scores = sessions.to_candidate_order(around)
    if dates.any():
        scores += constants.DATE_SHARE * dates
    return min_max(scores)


def _score_terms(
    candidates: Candidates, cosine: NDArray[np.float32], words: Floats, sessions: Sessions
) -> tuple[Floats, Floats, Floats]:
    """Return each message's score alone, then with its question's, then with its neighbours'."""
    own = sessions.to_session_order(_own_scores(candidates, cosine, words))
    asks = sessions.to_session_order(candidates.asks)
    lengths = sessions.to_session_order(candidates.terms)
    inherited, around = np.empty_like(own), np.empty_like(own)
    for span, part in sessions.parts():
        inherited[span], around[span] = _add_neighbours(own[span], asks[span], lengths[span], part)
    return own, inherited, around


def _own_scores(candidates: Candidates, cosine: NDArray[np.float32], words: Floats) -> Floats:
    if "penalties" not in candidates.cache:
        long_messages = np.flatnonzero(candidates.passages > 1)
        penalties = np.zeros(len(cosine))
        penalties[long_messages] = constants.LENGTH_PENALTY * np.log(
            candidates.passages[long_messages]
        )
        candidates.cache["penalties"] = penalties
    scores = min_max(words.copy(), constants.BM25_SHARE)
    scores += min_max(cosine - candidates.cache["penalties"], constants.COSINE_SHARE)
    without_vector = np.flatnonzero(np.isnan(cosine))
    if len(without_vector):
        scores[without_vector] = min_max(words.copy())[without_vector]
    return scores


def _add_neighbours(
    own: Floats, asks: NDArray[np.bool_], lengths: NDArray[np.int32], sessions: Sessions
) -> tuple[Floats, Floats]:
    """Return each score, in session order, with its question's added, then with its neighbours'."""
    if "answers" not in sessions.cache:
        answers = asks[:-1] * sessions.same_session(1)
        short = np.minimum(1.0, constants.SHORT_REPLY / np.maximum(lengths[1:], 1))
        sessions.cache["answers"] = constants.REPLY_LINK * answers * short
    inherited = own.copy()
    inherited[1:] += own[:-1] * sessions.cache["answers"]
    around = window_max(inherited, sessions, constants.WINDOW)
    around *= constants.WINDOW_SHARE
    around += inherited
    around += _balance(own, inherited, asks, lengths, sessions)
    return inherited, around


def _balance(
    own: Floats,
    inherited: Floats,
    asks: NDArray[np.bool_],
    lengths: NDArray[np.int32],
    sessions: Sessions,
) -> Floats:
    """Return the adjustment that moves short messages' scores towards the mean around them.

    A question loses a little: it shares words with its answer without being one.
    """
    if "mean share" not in sessions.cache:
        means = window_mean(lengths, sessions, constants.MEAN_WINDOW)
        short_talk = np.clip(2.0 - means / constants.SHORT_TALK, 0.0, 1.0)
        sessions.cache["mean share"] = constants.MEAN_SHARE * short_talk
        sessions.cache["asking loss"] = constants.ASKING_LOSS * asks * short_talk
    adjustment = window_mean(inherited, sessions, constants.MEAN_WINDOW)
    adjustment -= inherited
    adjustment *= sessions.cache["mean share"]
    adjustment -= sessions.cache["asking loss"] * own
    return adjustment


def window_mean(values: NDArray[Any], sessions: Sessions, reach: int) -> Floats:
    """Return the mean over each message and its neighbours in its session, in session order."""
    starts, ends, counts = sessions.windows(reach)
    sums = np.zeros(len(values) + 1)
    np.cumsum(values, dtype=np.float64, out=sums[1:])
    # Every position is valid; in this mode it is not checked.
    means = sums.take(ends, mode="clip")
    means -= sums.take(starts, mode="clip")
    means /= counts
    return np.asarray(means)


def window_max(values: Floats, sessions: Sessions, reach: int) -> Floats:
    """Return the greatest value among the neighbours of each message in its session.

    Windows double until they are wide enough, so the cost grows with log(reach).

    :param values: in session order, none below 0.
    """
    ahead, behind = values.copy(), values.copy()
    covered = 0
    while covered < reach and covered + 1 < len(values):
        step = min(covered + 1, reach - covered)
        same_session = sessions.same_session(step)
        np.maximum(ahead[:-step], ahead[step:] * same_session, out=ahead[:-step])
        np.maximum(behind[step:], behind[:-step] * same_session, out=behind[step:])
        covered += step
    return np.maximum(ahead, behind, out=ahead)


def best(scores: Floats, count: int) -> Positions:
    """Return the positions of the highest scores, best first; ties newest first.

    :param scores: shape (n,), in order of time; minus infinity for messages to leave out.
    """
    positions = greatest(scores, count) if 0 < count < len(scores) else np.arange(len(scores))
    positions = positions[scores[positions] > -np.inf]
    order = np.lexsort((-positions, -scores[positions]))
    return positions[order][: max(count, 0)]


def min_max(values: Floats, share: float = 1.0) -> Floats:
    """Scale values to 0…share in place; if all are equal, to 0 or share; NaN stays."""
    if not len(values):
        return values
    low, high = np.fmin.reduce(values), np.fmax.reduce(values)
    if low == high:
        low, high = 0.0, high or 1.0
    if low:
        values -= low
    values /= (high - low) / share
    return values


def recency(ranks: NDArray[np.int64]) -> Floats:
    """Score how recent messages are, 1 for the newest, by their ranks in the scope from 0.

    Heavy-tailed, 1/(1 + log2(1 + rank)), so that old messages can still compete with the newest.
    """
    scores = 1.0 + ranks
    np.log2(scores, out=scores)
    scores += 1.0
    return np.asarray(np.divide(1.0, scores, out=scores))


def recency_by_age(created_at: NDArray[np.int64], now_ms: int, half_life: float) -> Floats:
    """Score how recent messages are by their age: 2^(-age / half-life); future times are age 0.

    :param created_at: shape (n,), milliseconds since 1970.
    :param half_life: seconds.
    """
    ages = np.maximum(0, now_ms - created_at) / 1000.0
    return np.asarray(np.exp2(-ages / half_life))


def leave_out_others(scored: Scored) -> Scored:
    """Return the scores without messages that the filter excludes: similarity is minus infinity.

    They are not history's own. The other scores stay those in the whole scope.
    """
    matching = scored.candidates.matching
    if matching is None:
        return scored
    candidates = scored.candidates._replace(own=scored.candidates.own & matching)
    return leave_out(scored._replace(candidates=candidates), np.flatnonzero(~matching))


def leave_out(scored: Scored, positions: Positions) -> Scored:
    """Return the scores with a similarity and priority of minus infinity for some messages."""
    similarity, priority = scored.similarity.copy(), scored.priority.copy()
    similarity[positions] = priority[positions] = -np.inf
    talk = scored.talk
    if talk is not None:
        talk = talk.copy()
        talk[positions] = -np.inf
    return scored._replace(similarity=similarity, priority=priority, talk=talk)


_SAMPLING_STEP = 64  #: One value in this many is sampled to guess a lower bound.


def greatest(values: NDArray[Any], count: int) -> NDArray[np.intp]:
    """Return the indices of the greatest values, ascending, including all ties with the least.

    :param values: shape (n,), without NaN.
    :param count: 0 < count < n.
    """
    indices = _guess_candidates(values, count)
    if len(indices) < count:
        indices = np.arange(len(values))
    candidates = values[indices]
    least = np.partition(candidates, len(candidates) - count)[len(candidates) - count]
    chosen: NDArray[np.intp] = indices[candidates >= least]
    return chosen


def _guess_candidates(values: NDArray[Any], count: int) -> NDArray[np.intp]:
    """Return the indices of values above a bound guessed from a sample; may be too few."""
    sample = values[::_SAMPLING_STEP]
    rank = 2 * count // _SAMPLING_STEP + 8
    if rank >= len(sample):
        return np.zeros(0, np.intp)
    return np.flatnonzero(values >= np.partition(sample, len(sample) - rank)[len(sample) - rank])
