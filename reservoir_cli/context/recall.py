"""Recall messages for an agent's question, or give the reason why there are none."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from reservoir_cli.context.prepare_request import Prepared, prepare
from reservoir_cli.context.prompts_that_ask_nothing import (
    asks_nothing,
    is_about_the_work,
    is_question,
)
from reservoir_cli.context.render.formats import ContextWindow
from reservoir_cli.context.render.json import WindowMessage
from reservoir_cli.context.window_constants import SESSION_LEAST, SESSION_SHARE
from reservoir_cli.embedding import Embedder
from reservoir_cli.messages import EVERYTHING, Filter, Role, clean_text
from reservoir_cli.redaction import Redactor
from reservoir_cli.settings import recall_switch
from reservoir_cli.settings.config import Config
from reservoir_cli.storage.search.candidates import Said
from reservoir_cli.storage.store import Store

#: A longer prompt, such as a pasted log, is searched for by its beginning and its end.
_LONGEST = 8_000
BY_WORDS = "Found by words alone: no embedding model is ready."


class Reason(StrEnum):
    """The reason why nothing is recalled."""

    NO_QUESTION = "no question"
    SWITCHED_OFF = "switched off"
    EMPTY = "no messages"
    NOTHING_FOUND = "nothing found"
    NO_ROOM = "no room"
    RECALLED_BEFORE = "recalled before"


_EXPLANATIONS = {
    Reason.NO_QUESTION: "there is no question to search for",
    Reason.SWITCHED_OFF: f"the prompt begins with {recall_switch.WORD}",
    Reason.EMPTY: "there are no messages to search",
    Reason.NOTHING_FOUND: "nothing about this was found",
    Reason.NO_ROOM: "nothing that was found fits the budget",
    Reason.RECALLED_BEFORE: "what was found was recalled in this session before",
}


@dataclass(frozen=True, slots=True)
class Recall:
    """Messages recalled for a question, and user-facing notes.

    :param text: all messages, quoted and framed for a model.
    :param messages: in the order of the text; ``content`` is the printed part of each.
    """

    question: str
    text: str
    tokens: int
    messages: tuple[WindowMessage, ...]
    notes: tuple[str, ...] = ()

    def to_row(self) -> dict[str, Any]:
        """Return the recall as plain JSON values."""
        return {
            "question": self.question,
            "skipped": None,
            "text": self.text,
            "tokens": self.tokens,
            "messages": [_row(message) for message in self.messages],
        }


@dataclass(frozen=True, slots=True)
class Skipped:
    """The outcome when nothing is recalled."""

    question: str
    reason: Reason
    notes: tuple[str, ...] = ()

    @property
    def explanation(self) -> str:
        """The reason as a sentence."""
        return _EXPLANATIONS[self.reason]

    def to_row(self) -> dict[str, Any]:
        """Return the decision as plain JSON values, with the fields of a recall."""
        return {
            "question": self.question,
            "skipped": self.reason.value,
            "text": "",
            "tokens": 0,
            "messages": [],
        }


def prepare_recall(
    config: Config,
    question: str,
    *,
    partition: str | None,
    budget: int,
    exclude_conversation: str | None,
    now: datetime | None,
    talk: Sequence[tuple[str, str]] = (),
    shown: Sequence[int] = (),
) -> Prepared:
    """Resolve the settings of a recall once.

    :param exclude_conversation: the id of the reader's session.
    :param talk: (role, text) of the turns of that session, oldest first.
    :param shown: ids of the messages that the reader has already.
    :raises UsageError: a budget that is not positive, or a time without a zone.
    """
    question, half = clean_text(question), _LONGEST // 2
    session = clean_text(exclude_conversation or "") or None
    said = tuple(Said(Role(role), clean_text(text)) for role, text in talk)
    if session or said:
        budget = min(budget, max(SESSION_LEAST, round(SESSION_SHARE * budget)))
    prepared = prepare(
        config.with_flags({"episodes": "off"}),
        question if len(question) <= _LONGEST else f"{question[:half]}\n{question[-half:]}",
        partition=partition,
        budget=budget,
        system="",
        now=now,
    )
    question = prepared.request.query
    request = prepared.request._replace(
        recall_only=True,
        exclude_conversation=session,
        in_session=bool(session or said),
        asks=is_question(question),
        talk=said,
        shown=frozenset(shown),
    )
    return prepared._replace(request=request)


def recall(
    prepared: Prepared,
    store: Store,
    load_embedder: Callable[[], Embedder | None],
    *,
    redactor: Redactor,
    where: Filter = EVERYTHING,
) -> tuple[Recall | Skipped, ContextWindow | None]:
    """Recall messages for a question, unless it asks nothing or nothing fits it.

    :param prepared: a request for recalled messages only, with its settings.
    :param load_embedder: returns the model; ``None`` to rank by words only.
    :returns: the outcome, and the window it was taken from if one was built.
    """
    question, meter = prepared.request.query, prepared.storing_meter(store)
    in_session = prepared.request.in_session
    if recall_switch.begins_with_word(question):
        return Skipped(question, Reason.SWITCHED_OFF), None
    if asks_nothing(question) or (in_session and is_about_the_work(question)):
        return Skipped(question, Reason.NO_QUESTION), None
    from reservoir_cli.context.build_context import build_context  # loads numpy

    embedder = load_embedder()
    request = prepared.request._replace(recall_note="" if embedder else BY_WORDS)
    prepared = prepared._replace(request=request)
    window = build_context(prepared, store, embedder, meter, redactor=redactor, where=where)
    notes = (*window.notes, *window.hints)
    if window.kept:
        text = window.to("text")
        assert isinstance(text, str)
        return Recall(question, text, window.used, window.messages, notes), window
    return Skipped(question, _find_reason(window), notes), window


def _find_reason(window: ContextWindow) -> Reason:
    if window.nothing_found:
        return Reason.NOTHING_FOUND
    if window.lacks_room:
        return Reason.NO_ROOM
    return Reason.RECALLED_BEFORE if window.request.shown and window.relevance else Reason.EMPTY


def _row(message: WindowMessage) -> dict[str, Any]:
    return {name: value for name, value in message.to_row().items() if name not in _OF_A_WINDOW}


#: Fields of a window's message that a recalled message does not need.
_OF_A_WINDOW = frozenset(
    ("section", "tier", "cosine", "bm25", "recency", "priority", "excerpt_priority")
)
