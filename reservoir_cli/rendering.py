"""The finished window, and how it is written down for whoever reads it. Pure.

A window is a list of turns; each format is one function from turns to text or JSON. What is
counted is what these functions write.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, assert_never

from reservoir_cli.budget import PER_MESSAGE, Meter
from reservoir_cli.errors import UsageError
from reservoir_cli.messages import Message, Role, StoredMessage, ToolCall, call_text, plain_text
from reservoir_cli.window import (
    FORMATS,
    Candidate,
    ContextRequest,
    Dropped,
    Format,
    Section,
    Selection,
    TokenBudget,
)

RECALLED_TITLE = "[Recalled Messages]"
#: ``context`` is material, neither an instruction nor something the user said.
CONTEXT = "context"


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the window, before a provider's form is chosen.

    :param role: one of the four roles, or ``context``.
    :param source: the stored message it prints, if it is one.
    """

    section: Section
    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    source: Candidate | None = None


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """The messages for a model, inside a budget, with a reason for each."""

    request: ContextRequest
    budget: TokenBudget
    selection: Selection
    meter: Meter
    scope: Mapping[str, str | None]
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def history_used(self) -> int:
        """Tokens of the recalled messages and the history, as they are printed."""
        turns = _recalled_turn(self.selection.recalled) + _history_turns(self.selection.history)
        return count_turns(turns, self.request.format, self.meter)

    @property
    def used(self) -> int:
        """Tokens of everything that is printed."""
        return sum(self.budget.sections.values()) + self.history_used

    @property
    def truncated(self) -> bool:
        """Whether something was left out for lack of room."""
        return any(each.reason in ("no room", "too large") for each in self.selection.dropped)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Everything that is printed, in order: the rows of ``--format json``."""
        recalled = [_row(self, Section.RECALLED, each) for each in self.selection.recalled]
        history = [_row(self, Section.HISTORY, each) for each in self.selection.history]
        return (
            recalled + history + [_current_row(self, each) for each in current_turn(self.request)]
        )

    def to(self, form: str | None = None) -> str | dict[str, Any]:
        """The window in a format: a text, or a JSON document as a dict.

        :param form: one of the formats of ``reservoir context``; the one asked for by default.
        :raises UsageError: there is no such format.
        """
        chosen = parse_format(form or self.request.format)
        match chosen:
            case "text":
                return to_text(window_turns(self))
            case "openai":
                return _to_openai(self)
            case "json":
                return _to_json(self)
        assert_never(chosen)

    def summary(self) -> str:
        """One line about the run, for people."""
        share = 100 * self.used / self.budget.available
        tiers = [each.tier for each in (*self.selection.recalled, *self.selection.history)]
        recent = sum(tier == "recent" for tier in tiers)
        parts = [
            f"{self.meter.mark}{self.used:,} of {self.budget.available:,} tokens ({share:.0f}%)",
            f"{recent} recent",
            f"{len(tiers) - recent} recalled",
            f"{len(self.selection.dropped)} dropped",
            f"reserve {self.budget.reserve:,}",
            *([self.request.model] if self.request.model else []),
        ]
        return " · ".join(parts)


def parse_format(text: str) -> Format:
    """Read a format by its name.

    :raises UsageError: there is no such format.
    """
    for known in FORMATS:
        if text == known:
            return known  # type: ignore[return-value]
    raise UsageError(f"unknown format {text!r}", hint=f"formats are {', '.join(FORMATS)}")


def window_turns(window: ContextWindow) -> list[Turn]:
    """The whole window in order, the current message last."""
    return [
        *_recalled_turn(window.selection.recalled),
        *_history_turns(window.selection.history),
        *current_turn(window.request),
    ]


def current_turn(request: ContextRequest) -> list[Turn]:
    """The question; none when it is empty."""
    if not request.query.strip():
        return []
    return [Turn(Section.CURRENT, Role.USER.value, request.query)]


def recalled_line(message: StoredMessage | Message) -> str:
    """A recalled message as it is quoted."""
    return f"{message.role}: {plain_text(message)}"


def count_turns(turns: Sequence[Turn], form: Format, meter: Meter) -> int:
    """Tokens of turns in the format they are printed in; ``json`` counts as ``text``."""
    if not turns:
        return 0
    if form == "openai":
        return sum(meter.count(_openai_words(each), messages=1) for each in turns)
    return meter.count(to_text(turns), messages=len(turns))


def history_framing(form: Format, message: StoredMessage) -> str:
    """What a turn of history has around its text in a format."""
    if form == "openai":
        ids = [call.id for call in message.tool_calls] + [message.tool_call_id or ""]
        return " ".join(ids)
    return f"{message.role}: \n"


def _recalled_turn(recalled: Sequence[Candidate]) -> list[Turn]:
    if not recalled:
        return []
    lines = [RECALLED_TITLE]
    for day, some in groupby(recalled, key=lambda each: each.message.created_at.date()):
        lines.append(day.isoformat())
        lines += [recalled_line(each.message) for each in some]
    return [Turn(Section.RECALLED, CONTEXT, "\n".join(lines))]


def _history_turns(history: Iterable[Candidate]) -> list[Turn]:
    return [
        Turn(
            Section.HISTORY,
            each.message.role.value,
            each.message.content,
            each.message.tool_calls,
            each.message.tool_call_id,
            each.message.name,
            each,
        )
        for each in history
    ]


def to_text(turns: Sequence[Turn]) -> str:
    """Sections parted by an empty line; history and question as ``role: …``."""
    blocks = []
    for _, some in groupby(turns, key=lambda each: each.section):
        blocks.append("\n".join(_text_line(each) for each in some))
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _text_line(turn: Turn) -> str:
    if turn.section not in (Section.HISTORY, Section.CURRENT):
        return turn.content
    calls = [call_text(call) for call in turn.tool_calls]
    return f"{turn.role}: " + "\n".join([turn.content, *calls] if turn.content else calls)


def _to_openai(window: ContextWindow) -> dict[str, Any]:
    turns = window_turns(window)
    if not current_turn(window.request):
        turns = _until_last_user(turns)
    model = {"model": window.request.model} if window.request.model else {}
    return {**model, "messages": [_openai_message(each) for each in turns]}


def _until_last_user(turns: list[Turn]) -> list[Turn]:
    """A request ends with the user's message; without a question, with the last one of history."""
    users = [place for place, each in enumerate(turns) if each.role == Role.USER]
    end = users[-1] + 1 if users else 0
    return [each for place, each in enumerate(turns) if place < end or each.role == CONTEXT]


def _openai_message(turn: Turn) -> dict[str, Any]:
    role = Role.SYSTEM.value if turn.role == CONTEXT else turn.role
    message: dict[str, Any] = {"role": role, "content": turn.content}
    if turn.tool_calls:
        message["content"] = turn.content or None
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in turn.tool_calls
        ]
    if turn.role == Role.TOOL:
        message["tool_call_id"] = turn.tool_call_id
    return message


def _openai_words(turn: Turn) -> str:
    calls = [f"{call.id} {call.name} {call.arguments}" for call in turn.tool_calls]
    return "\n".join([turn.content, *calls, *([turn.tool_call_id] if turn.tool_call_id else [])])


def _to_json(window: ContextWindow) -> dict[str, Any]:
    budget, used, history = window.budget, window.used, window.history_used
    return {
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
            "system": budget.sections.get(Section.SYSTEM, 0),
            "procedure": budget.sections.get(Section.PROCEDURE, 0),
            "knowledge": budget.sections.get(Section.KNOWLEDGE, 0),
            "episodes": budget.sections.get(Section.EPISODE, 0),
            "current": budget.sections.get(Section.CURRENT, 0),
            "history_available": budget.history,
            "history_used": history,
            "used": used,
            "utilisation": round(used / budget.available, 4),
            "window_utilisation": round(used / budget.window, 4),
        },
        "messages": window.messages,
        "dropped": [_dropped_row(window, each) for each in window.selection.dropped],
        "not_reached": window.selection.not_reached,
        "truncated": window.truncated,
        "timings_ms": {name: round(ms, 1) for name, ms in window.timings_ms.items()},
    }


def _row(window: ContextWindow, section: Section, candidate: Candidate) -> dict[str, Any]:
    message, scores = candidate.message, candidate.scores
    framed = message.tokens + (PER_MESSAGE if section is Section.HISTORY else 0)
    return {
        **message.to_row(),
        "section": section.value,
        "tier": candidate.tier.value,
        "tokens": window.meter.scaled(framed),
        "similarity": scores.similarity,
        "cosine": scores.cosine,
        "bm25": scores.bm25,
        "recency": scores.recency,
        "priority": scores.priority,
    }


def _current_row(window: ContextWindow, turn: Turn) -> dict[str, Any]:
    scope, request = window.scope, window.request
    return {
        "id": None,
        "trace_id": request.trace_id,
        "conversation_id": None,
        "partition": scope["partition"],
        "instance": scope["instance"],
        "role": turn.role,
        "content": turn.content,
        "name": None,
        "tool_calls": None,
        "tool_call_id": None,
        "created_at": request.now.isoformat(),
        "source": None,
        "source_id": None,
        "section": turn.section.value,
        "tier": None,
        "tokens": window.budget.sections.get(turn.section, 0),
        "similarity": None,
        "cosine": None,
        "bm25": None,
        "recency": None,
        "priority": None,
    }


def _dropped_row(window: ContextWindow, dropped: Dropped) -> dict[str, Any]:
    candidate = dropped.candidate
    return {
        "id": candidate.message.id,
        "tier": candidate.tier.value,
        "tokens": window.meter.scaled(candidate.message.tokens),
        "priority": candidate.scores.priority,
        "reason": dropped.reason,
    }


def to_document(value: str | dict[str, Any]) -> str:
    """A rendered window as it is printed: text as it is, JSON on lines of its own."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
