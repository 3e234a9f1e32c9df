"""Render the window with all data about it: format ``json``, and the API's messages. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from reservoir_cli.chat.turn import Section, Turn
from reservoir_cli.context.candidate import Candidate, Dropped, Tier, discount
from reservoir_cli.context.finished_window import (
    FinishedWindow,
    current_turn,
    fixed_turns,
    summaries_turn,
)
from reservoir_cli.context.render.quote_recalled import printed_text
from reservoir_cli.messages import ToolCall, call_from_dict
from reservoir_cli.tokens.counter import PER_MESSAGE

#: How many filler messages are explained: those that are not candidates by themselves.
EXPLAINED_OTHERS = 100
#: The fields of a printed message, in order.
_FIELDS = (
    "id trace_id conversation_id partition instance role content name tool_calls tool_call_id "
    "created_at source source_id section tier tokens similarity cosine bm25 recency priority "
    "excerpt_priority spans".split()
)


def to_json(window: FinishedWindow, *, explain: bool) -> dict[str, Any]:
    """Return the request, the budget, all messages with scores, and what was left out."""
    budget = window.budget
    sections = budget.sections
    fields = {
        "schema_version": 1,
        "query": window.request.query,
        "trace_id": window.request.trace_id,
        "scope": dict(window.scope),
        "model": window.request.model,
        "counter": window.meter.name,
        "budget": {
            "window": budget.window,
            "reserve": budget.reserve,
            "available": budget.available,
            "system": sections.get(Section.SYSTEM, 0),
            "procedure": sections.get(Section.PROCEDURE, 0),
            "knowledge": sections.get(Section.KNOWLEDGE, 0),
            "episodes": sections.get(Section.EPISODE, 0),
            "current": sections.get(Section.CURRENT, 0),
            "history_available": budget.history,
            "history_used": window.history_used,
            "used": window.used,
            "utilisation": round(window.used / budget.available, 4),
            "window_utilisation": round(window.used / budget.window, 4),
        },
        "messages": rows(window),
        "dropped": [_dropped_row(window, dropped) for dropped in window.selection.dropped],
        "not_reached": window.not_reached,
        "truncated": window.truncated,
        "relevance": window.relevance,
        "floor": window.floor,
        "nothing_found": window.nothing_found,
        "excerpts": window.excerpts,
        "timings_ms": {name: round(ms, 1) for name, ms in window.timings_ms.items()},
    }
    return {**fields, "explain": explain_candidates(window)} if explain else fields


def rows(window: FinishedWindow) -> list[dict[str, Any]]:
    """Return all printed messages in order; those that are not stored have no scores."""
    return [
        *(_given_row(window, turn) for turn in fixed_turns(window.request)),
        *(_given_row(window, turn) for turn in summaries_turn(window.request)),
        *(_row(window, Section.RECALLED, message) for message in window.selection.recalled),
        *(_row(window, Section.HISTORY, message) for message in window.selection.history),
        *(_given_row(window, turn) for turn in current_turn(window.request)),
    ]


def explain_candidates(window: FinishedWindow) -> list[dict[str, Any]]:
    """Return every candidate, the best first, with the reasons; of fillers, the first hundred."""
    selection = window.selection
    reasons = selection.reasons
    outcomes = [(row, "kept", reasons.get(row.message.id, "")) for row in window.kept]
    left_out = (*selection.dropped, *selection.passed_over)
    outcomes += [(drop.candidate, "dropped", drop.reason) for drop in left_out]
    outcomes.sort(key=lambda outcome: (-outcome[0].scores.priority, -outcome[0].message.id))
    fillers = [candidate.message.id for candidate, *_ in outcomes if candidate.filler]
    unexplained = set(fillers[EXPLAINED_OTHERS:])
    return [
        {
            **_scores(window, candidate),
            "id": candidate.message.id,
            "role": candidate.message.role.value,
            "created_at": candidate.message.created_at.isoformat(),
            "outcome": outcome,
            "reason": reason,
            "parts": dict(candidate.scores.parts or {}),
        }
        for candidate, outcome, reason in outcomes
        if candidate.message.id not in unexplained
    ]


def _row(window: FinishedWindow, section: Section, candidate: Candidate) -> dict[str, Any]:
    framing = PER_MESSAGE if section is Section.HISTORY else 0
    row = {
        **candidate.message.to_row(),
        "section": section.value,
        **_scores(window, candidate, framing),
        "excerpt_priority": None,
        "spans": None,
    }
    if candidate.spans is not None:
        row["content"] = printed_text(candidate.message, candidate.spans)
        row["tokens"] = window.meter.count(row["content"])
        row["excerpt_priority"] = discount(candidate, 0) * candidate.scores.priority
        row["spans"] = [list(span) for span in candidate.spans]
    return row


def _scores(window: FinishedWindow, candidate: Candidate, framing: int = 0) -> dict[str, Any]:
    scores = candidate.scores
    return {
        "tier": candidate.tier.value,
        "tokens": window.meter.scale(candidate.message.tokens + framing),
        "similarity": scores.similarity,
        "cosine": scores.cosine,
        "bm25": scores.bm25,
        "recency": scores.recency,
        "priority": scores.priority,
    }


def _given_row(window: FinishedWindow, turn: Turn) -> dict[str, Any]:
    request, current = window.request, turn.section is Section.CURRENT
    return {
        **dict.fromkeys(_FIELDS),
        "trace_id": request.trace_id if current else None,
        "partition": window.scope["partition"],
        "instance": window.scope["instance"],
        "role": turn.role,
        "content": turn.content,
        "created_at": request.now.isoformat() if current else None,
        "section": turn.section.value,
        "tokens": window.meter.count(turn.content, messages=1),
    }


def _dropped_row(window: FinishedWindow, dropped: Dropped) -> dict[str, Any]:
    candidate = dropped.candidate
    return {
        "id": candidate.message.id,
        "tier": candidate.tier.value,
        "tokens": window.meter.scale(candidate.message.tokens),
        "priority": candidate.scores.priority,
        "reason": dropped.reason,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowMessage:
    """A message of a context window, or a section given by the caller.

    :param id: ``None`` for a section; a section has no scores either.
    :param section: the part of the window that holds it.
    :param role: ``user``, ``assistant``, ``system`` or ``tool``; ``context`` for given material.
    :param tokens: as counted for this window.
    :param tier: why it is a candidate.
    :param similarity: 0 to 1, how well it fits the question.
    :param recency: 0 to 1, how new it is.
    :param priority: similarity and recency combined; the highest are chosen.
    :param excerpt_priority: of an excerpt: the priority of its first passage; else ``None``.
    :param spans: of an excerpt: start and end of each part, in characters of the whole message;
        else ``None``.
    :param row: the message as plain JSON values: a row of format ``json``.
    """

    id: int | None
    section: Section
    role: str
    content: str
    tokens: int
    partition: str
    instance: str | None
    trace_id: str | None
    conversation_id: str | None
    created_at: datetime | None
    name: str | None
    tool_calls: tuple[ToolCall, ...]
    tool_call_id: str | None
    source: str | None
    source_id: str | None
    tier: Tier | None
    similarity: float | None
    cosine: float | None
    bm25: float | None
    recency: float | None
    priority: float | None
    excerpt_priority: float | None
    spans: tuple[tuple[int, int], ...] | None
    row: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "WindowMessage":
        """Return the message described by a row of format ``json``."""
        values = {name: row[name] for name in cls.__slots__ if name != "row"}
        values["section"] = Section(row["section"])
        values["tier"] = Tier(row["tier"]) if row["tier"] else None
        values["tool_calls"] = tuple(map(call_from_dict, row["tool_calls"] or ()))
        values["spans"] = row["spans"] and tuple((start, end) for start, end in row["spans"])
        created_at = row["created_at"]
        values["created_at"] = datetime.fromisoformat(created_at) if created_at else None
        return cls(**values, row=row)

    def to_row(self) -> dict[str, Any]:
        """Return the message as plain JSON values."""
        return dict(self.row)


def messages_of(window: FinishedWindow) -> tuple[WindowMessage, ...]:
    """Return everything that is printed of a window, in order."""
    return tuple(map(WindowMessage.from_row, rows(window)))
