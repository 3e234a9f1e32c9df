"""Choose for a recall what stands out: nobody may have asked for it. Pure numpy."""

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.context.rank_messages import Ranking
from reservoir_cli.context.request import ContextRequest
from reservoir_cli.retrieval import ranking as ranks
from reservoir_cli.retrieval.ranking import Floats, Positions

#: The share of the best one's similarity that suffices: for a question, and in a running session.
_NEAR, _NEAR_IN_SESSION = 0.4, 0.85
_ALIKE = 0.85  # the share of the best fit that also counts as near if a question stands alone
_MOST_IN_SESSION = 3  # messages for a prompt in a session, without their questions or replies
_STATEMENT = 5  # words from which what is said after a reply may be a fact
#: Messages are read until they could fill the room this many times; at least so many are.
_READ_AHEAD, _FEWEST_READ = 2, 16
#: Approximate tokens of a passage, as which a long message counts, and of what frames a message.
_PASSAGE_TOKENS, _FRAME_TOKENS = 100, 16
#: A message stands out if the fifth best session beside its own has at most this share of its
#: similarity: for the prompt, for the prompt with the talk before it, and for a prompt that asks
#: nothing and to which that talk does not belong.
_STANDS_OUT, _STANDS_OUT_OF_TALK, _STANDS_OUT_ALONE, _NTH = 2 / 3, 0.7, 0.55, 5
#: What a cosine must exceed the recall floor by if a message does not stand out, as there is much
#: about what is asked for again and again.
_NEAR_IN_MEANING = 0.4
#: What is nearest to the prompt alone joins what stands out for the talk with this share of its
#: similarity.
_BOTH = 0.75
_BEYOND_FLOOR = 0.1  # what a prompt that asks nothing must exceed the recall floor by


def find_standouts(ranking: Ranking, request: ContextRequest, room: int) -> Positions:
    """Return the positions of the messages to recall, with replies; none if none stands out.

    :param room: tokens for messages; beside a best one that is larger, the best others count.
    """
    chosen = _choose(ranking, request, room)
    candidates = ranking.scored.candidates
    questions = chosen[candidates.asks[chosen]]
    answers = _following(ranking, questions)
    if request.in_session:  # few messages are recalled, and the asker may say the answer next
        told = _following(ranking, answers)
        is_statement = ~candidates.asks[told] & (candidates.terms[told] >= _STATEMENT)
        answers = np.concatenate([answers, told[is_statement]])
    if candidates.matching is not None:
        answers = answers[candidates.matching[answers]]
    # np.unique would load numpy's masked arrays.
    return np.array(sorted({*chosen.tolist(), *answers.tolist()}), np.intp)


def _following(ranking: Ranking, positions: Positions) -> Positions:
    """Return the positions of the messages that follow some in their sessions."""
    order = np.argsort(ranking.thread_positions)
    following = order[np.minimum(ranking.thread_positions[positions] + 1, len(order) - 1)]
    same_session = ranking.sessions[following] == ranking.sessions[positions]
    return np.asarray(following[same_session])


def _choose(ranking: Ranking, request: ContextRequest, room: int) -> Positions:
    """Return the positions of the messages to recall, the best first; none if none stands out."""
    similarity = ranking.scored.similarity
    if ranking.nothing_fits or not len(similarity):
        return np.zeros(0, np.intp)
    if request.in_session:
        chosen = _choose_in_session(ranking, request)
        return np.concatenate([chosen, _said_since(ranking, chosen)])
    tokens = ranking.scored.candidates.tokens
    fitting = np.where(tokens <= room, similarity, -np.inf)
    most = _FEWEST_READ + _READ_AHEAD * room // _FRAME_TOKENS
    choices = [_near_best(scores, _NEAR, most) for scores in (similarity, fitting)]
    choices.append(_fit_alike(ranking)[::-1])
    return np.concatenate([_enough(positions, tokens, room) for positions in choices])


def _enough(positions: Positions, tokens: NDArray[np.int32], room: int) -> Positions:
    """Return the first of some messages: as many as are worth reading for the room."""
    sizes = np.minimum(tokens[positions], _PASSAGE_TOKENS) + _FRAME_TOKENS
    count = int(np.searchsorted(np.cumsum(sizes), _READ_AHEAD * room, side="right"))
    return positions[: max(_FEWEST_READ, count)]


def _choose_in_session(ranking: Ranking, request: ContextRequest) -> Positions:
    """Return the positions of what stands out for a prompt, or else for the talk before it too.

    For a prompt that asks nothing, both lead to the same message, or it stands out more.
    """
    similarity, talk = ranking.scored.similarity, ranking.scored.talk
    near = _near_best(similarity, _NEAR_IN_SESSION, _MOST_IN_SESSION)
    of_talk = near[:0]
    if talk is not None:
        of_talk = _near_best(talk, _NEAR_IN_SESSION, _MOST_IN_SESSION)
    background = _background(similarity, ranking.sessions)
    # Whether the talk before the prompt, if there is any, leads to the same message.
    same = not len(of_talk) or near[:1].tolist() == of_talk[:1].tolist()
    if background <= (_STANDS_OUT if request.asks or same else _STANDS_OUT_ALONE):
        fits = ranking.scored.relevance >= ranking.floor + _BEYOND_FLOOR
        return near if request.asks or fits else near[:0]
    if request.asks and _is_near_in_meaning(ranking, near):
        return near
    if talk is None or _background(talk, ranking.sessions) > _STANDS_OUT_OF_TALK:
        return near[:0]
    if not request.asks:
        return of_talk if same else near[:0]
    both = near[:1][talk[near[:1]] >= _BOTH * talk[of_talk[:1]]]
    return np.concatenate([of_talk, both])


def _said_since(ranking: Ranking, chosen: Positions) -> Positions:
    """Return the position of the best message since an earlier answer, if that is chosen.

    What was true when the question was asked before may have changed; a question does not say so.
    """
    if set(ranking.answered).isdisjoint(chosen.tolist()):
        return chosen[:0]
    since = ranking.scored.similarity.copy()
    since[: max(ranking.answered) + 1] = -np.inf
    since[ranking.scored.candidates.asks] = -np.inf
    best, highest = ranks.best(since, 1), float(ranking.scored.similarity.max())
    return best[since[best] >= _NEAR * highest]


def _is_near_in_meaning(ranking: Ranking, near: Positions) -> bool:
    """Return whether the best message means nearly the same; only if the model's floor is known."""
    best = near[:1].tolist()
    best = [ranking.answered[0] if at in ranking.answered else at for at in best]
    cosine = ranking.scored.candidates.cosine[best]
    return ranking.floor > 0 and bool((cosine >= ranking.floor + _NEAR_IN_MEANING).any())


def _fit_alike(ranking: Ranking) -> Positions:
    """Return the positions of the messages that fit nearly as well as the one that fits best.

    Similarities are relative: of messages that are all alike, most are far below the best.
    """
    fit = ranking.scored.fit
    alike = (fit >= _ALIKE * fit.max()) & (ranking.scored.similarity > -np.inf)
    return np.flatnonzero(alike)


def _background(similarity: Floats, sessions: NDArray[np.integer]) -> float:
    """Return the similarity of the fifth best other session, as a share of the best; 0 if fewer.

    :param similarity: shape (n,), minus infinity for messages that do not count.
    :param sessions: shape (n,), the session of each message.
    """
    highest = np.full(int(sessions.max()) + 1, -np.inf)
    np.maximum.at(highest, sessions, similarity)
    by_session = np.sort(highest[highest > -np.inf])[::-1]
    if len(by_session) <= _NTH or by_session[0] <= 0:
        return 0.0
    return float(by_session[_NTH] / by_session[0])


def _near_best(similarity: Floats, share: float, most: int) -> Positions:
    best = ranks.best(similarity, most)
    return best[similarity[best] >= share * similarity[best[0]]] if len(best) else best
