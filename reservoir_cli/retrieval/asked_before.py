"""Find earlier askings of a question: those whose replies say nothing, and the newest answer.

An exchange without an answer contains every word of the question and nothing else, so it would rank
before the messages that answer it, which need not contain any word of their question.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from reservoir_cli.messages import Role, Scope, StoredMessage
from reservoir_cli.retrieval.empty_replies import (
    adds_something,
    content_words,
    knows_nothing,
    sentences,
)
from reservoir_cli.retrieval.ranking import Echoes
from reservoir_cli.retrieval.sessions import Positions, Sessions
from reservoir_cli.storage.search.candidates import Candidates
from reservoir_cli.storage.search.fulltext import count_terms
from reservoir_cli.storage.store import Store
from reservoir_cli.util.unicode_text import has_question_mark

#: A message is read if it has this share of the question's stems and this cosine, or the second
#: cosine alone, and is not much longer than the question.
_SHARE, _NEAR, _SAME = 0.5, 0.5, 0.85
_LENGTH_FACTOR, _LENGTH_MORE = 2, 12
#: Of the nearest such messages so many are read, and if one of them repeats the question, more.
_FIRST_READ, _READ = 12, 500
#: Messages read after a question for its reply, and after one that begins with calls of tools.
_REPLIES, _STEPS = 2, 16
#: The share of the question's words that a repetition contains; one that adds no word, or some.
_SUBSET, _REPEATED = 0.5, 0.65
_LEAD = 6  # the most content words before a colon that only lead to the question after it
_NAMED = 2  # content words of a request that a reply names which does not know about them
_EQUAL = 0.7  # the share of their words that two equal replies have in common

#: A message and what the assistant said after it, with their positions.
_Turn = list[tuple[int, StoredMessage]]


class _Exchange(NamedTuple):
    """A question that was asked before, and its replies."""

    positions: tuple[int, ...]
    answer: tuple[int, ...]  # the question and what it was answered, without what came before calls
    reply: frozenset[str]
    says_nothing: bool
    repeats: bool  # whether it was the same question, not another one that was asked in vain


def find_echoes(
    store: Store, scope: Scope, candidates: Candidates, sessions: Sessions, question: str
) -> Echoes | None:
    """Find earlier askings that got no answer or that of a later one, and the newest, if any."""
    asked = content_words(question)
    suspects = _find_suspects(candidates, question)
    if not asked or not len(suspects):
        return None
    exchanges: list[_Exchange] = []
    for start, end in ((0, _FIRST_READ), (_FIRST_READ, _READ)):
        exchanges += _read(store, scope, candidates, sessions, suspects[start:end], question)
        if not exchanges:
            return None
    exchanges.sort(key=lambda exchange: -exchange.positions[0])  # newest first
    echoes = [exchange for exchange in exchanges if exchange.says_nothing]
    older = [exchange for exchange in echoes if exchange.repeats][1:]
    answers: list[frozenset[str]] = []
    for exchange in exchanges:
        if not exchange.says_nothing:
            if any(_are_equal(exchange.reply, newer) for newer in answers):
                older.append(exchange)
            answers.append(exchange.reply)
    answered = next((row.answer for row in exchanges if not row.says_nothing), ())
    return Echoes(_positions([*echoes, *older]), _positions(older), answered)


def _positions(exchanges: Sequence[_Exchange]) -> Positions:
    return np.array(sorted({at for row in exchanges for at in row.positions}), np.intp)


def _find_suspects(candidates: Candidates, question: str) -> Positions:
    """Return the positions of messages that may repeat a question, the nearest first."""
    counts = np.zeros(len(candidates.ids))
    for posting in candidates.postings:
        counts[posting.places] += 1
    share = counts / max(1, len(candidates.postings) + len(candidates.absent))
    cosine = candidates.cosine
    near = (share >= _SHARE) & ~(cosine < _NEAR)
    near |= cosine >= _SAME
    near &= candidates.terms <= _LENGTH_FACTOR * count_terms(question) + _LENGTH_MORE
    positions = np.flatnonzero(near)
    order = np.argsort(-(np.nan_to_num(cosine[positions]) + share[positions]), kind="stable")
    return positions[order]


def _read(
    store: Store,
    scope: Scope,
    candidates: Candidates,
    sessions: Sessions,
    suspects: Positions,
    question: str,
) -> list[_Exchange]:
    """Read messages, and return those that repeat the question or asked in vain, with replies."""
    turns = _read_turns(store, scope, candidates, sessions, suspects, _REPLIES)
    working = [first for first, turn in turns.items() if any(row.tool_calls for _, row in turn)]
    if working:
        longer = np.array(working, np.intp)
        turns |= _read_turns(store, scope, candidates, sessions, longer, _STEPS)
    exchanges = []
    for first, turn in turns.items():
        replies = [(at, row) for at, row in turn[1:] if row.content.strip()]
        if not turn or turn[0][1].role is not Role.USER:
            continue
        message, texts = turn[0][1], " ".join(row.content for _, row in replies)
        same = bool(candidates.cosine[first] >= _SAME)
        is_same = repeats(message, question, texts, same=same)
        if is_same or _asked_in_vain(message.content, texts):
            says_nothing = not adds_something(texts, f"{question} {message.content}")
            if says_nothing and turn[-1][1].tool_calls:  # the reply may be further on
                continue
            places = (first, *(at for at, _ in replies))
            answer = (first, *(at for at, row in replies if not row.tool_calls))
            words = content_words(texts)
            exchanges.append(_Exchange(places, answer, words, says_nothing, is_same))
    return exchanges


def _asked_in_vain(asked: str, reply: str) -> bool:
    """Return whether a text is only a question, and the reply that its answer is not known."""
    if len(sentences(asked)) > 1:
        return False
    if not has_question_mark(asked) and len(content_words(asked) & content_words(reply)) < _NAMED:
        return False
    return knows_nothing(reply) and not adds_something(reply, asked)


def _read_turns(
    store: Store,
    scope: Scope,
    candidates: Candidates,
    sessions: Sessions,
    positions: Positions,
    most: int,
) -> dict[int, _Turn]:
    """Return by position a message and what the assistant said after it, with their positions."""
    following = _following(sessions, positions, most)
    read = sorted({at for row in following.values() for at in row})
    ids = [int(candidates.ids[at]) for at in read]
    rows = {row.id: row for row in store.by_id(ids, scope)}
    turns = {}
    for first, places in following.items():
        known = [(at, row) for at in places if (row := rows.get(int(candidates.ids[at])))]
        turn = known[:1]
        for at, row in known[1:]:
            if row.role not in (Role.ASSISTANT, Role.TOOL):
                break
            if row.role is Role.ASSISTANT:
                turn.append((at, row))
        turns[first] = turn
    return turns


def _following(
    sessions: Sessions, positions: Positions, most: int
) -> Mapping[int, tuple[int, ...]]:
    rows = {}
    for position, at in zip(
        positions.tolist(), sessions.session_positions(positions).tolist(), strict=True
    ):
        end = at + 1
        while (
            end - at <= most
            and end < len(sessions.number)
            and sessions.number[end] == sessions.number[at]
        ):
            end += 1
        order = range(at, end) if sessions.order is None else sessions.order[at:end].tolist()
        rows[position] = tuple(order)
    return rows


def repeats(message: StoredMessage, question: str, reply: str, *, same: bool) -> bool:
    """Return whether a message asks the same; ``same`` says whether it means nearly that."""
    if not reply.strip() and not has_question_mark(message.content):
        return False
    asked, words = content_words(question), content_words(_without_lead(message.content))
    added = words - asked
    if not added and len(words & asked) >= _SUBSET * len(asked):
        return True
    alike = len(words & asked) >= _REPEATED * len(asked) and len(added) <= max(2, len(asked) / 2)
    if not alike and not same:
        return False
    return has_question_mark(message.content) or knows_nothing(reply)


def _without_lead(text: str) -> str:
    """Return a text without a few words before a colon, as in ``Please look it up: …``."""
    lead, _, rest = text.replace("\uff1a", ":").partition(":")
    is_lead = len(content_words(lead)) <= _LEAD and not re.search(r"[\d\n]", lead)
    return rest if is_lead and rest.strip() else text


def _are_equal(first: frozenset[str], second: frozenset[str]) -> bool:
    return len(first & second) >= _EQUAL * len(first | second)
