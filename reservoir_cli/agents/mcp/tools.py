"""The server's five tools: descriptions for clients, and answers from a store."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reservoir_cli.agents import injection_log
from reservoir_cli.agents.warm_store import Opener, WarmStore
from reservoir_cli.context.budget import Meter
from reservoir_cli.context.cut_tool_results import cut_tool_result
from reservoir_cli.context.prepare_request import storing_meter
from reservoir_cli.context.recall import Recall
from reservoir_cli.context.render.context_frame import wrap
from reservoir_cli.context.render.control_tokens import defuse
from reservoir_cli.context.render.quote_recalled import RECALLED_NOTE, quote_line
from reservoir_cli.errors import ReservoirError, StoreError, UsageError
from reservoir_cli.messages import (
    LARGEST_ID,
    Filter,
    Message,
    Scope,
    StoredMessage,
    clean_text,
    cut,
    plain_text,
)
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.retrieval.hits import Hit
from reservoir_cli.retrieval.snippet import choose_part
from reservoir_cli.settings.recall_switch import find_switch
from reservoir_cli.settings.reload import LiveConfig
from reservoir_cli.settings.schema import RECALL_BUDGET
from reservoir_cli.util.clock import local_day
from reservoir_cli.util.parse_time_options import parse_time

_MAX_NAME = 40  #: The most characters of an unknown parameter's name that an error quotes.
#: The forms in which models write numbers.
_WRITTEN_NUMBER = re.compile(r"\s*\[?#?([0-9]{1,19})(?:\.0)?\]?\s*")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a tool; ``low`` and ``high`` limit a number, or the length of a text."""

    about: str = ""
    default: int | None = None
    low: int = 0
    high: int = 0
    required: bool = False
    is_number: bool = False
    choices: tuple[str, ...] = ()

    def schema(self) -> dict[str, Any]:
        """Return the parameter as JSON Schema."""
        schema: dict[str, Any] = {"type": "integer" if self.is_number else "string"}
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.default is not None:
            schema["default"] = self.default
        if self.about:
            schema["description"] = self.about
        return schema


def _text(about: str = "", high: int = 400, *choices: str, required: bool = False) -> Parameter:
    return Parameter(about, None, 1, high, required, choices=choices)


def _number(default: int | None, low: int, high: int, about: str = "") -> Parameter:
    return Parameter(about, default, low, high, required=default is None, is_number=True)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool."""

    name: str
    about: str
    parameters: Mapping[str, Parameter]
    writes: bool = False
    deletes: bool = False

    def schema(self) -> dict[str, Any]:
        """Return the parameters as JSON Schema."""
        return {
            "type": "object",
            "properties": {name: item.schema() for name, item in self.parameters.items()},
            "required": [name for name, item in self.parameters.items() if item.required],
            "additionalProperties": False,
        }

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value of every parameter; ``None`` for an absent one without a default."""
        for name in arguments:
            if name not in self.parameters:
                raise self._error(f"has no parameter {_quote_name(name)}")
        return {
            name: self._check_value(name, parameter, arguments.get(name))
            for name, parameter in self.parameters.items()
        }

    def _check_value(self, name: str, parameter: Parameter, value: Any) -> int | str | None:
        if value is None and not parameter.required:
            return parameter.default
        if value is None:
            raise self._error(f"needs {name}")
        if parameter.is_number:
            return self._check_number(name, parameter, value)
        return self._check_text(name, parameter, value)

    def _check_number(self, name: str, parameter: Parameter, value: Any) -> int:
        """Check a number; models also write ``"12"``, ``12.0`` and ``"#12"``."""
        if isinstance(value, str):
            match = _WRITTEN_NUMBER.fullmatch(value)
            value = int(match[1]) if match else None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is not int or not parameter.low <= value <= parameter.high:
            whole = f"a whole number from {parameter.low:,} to {parameter.high:,}"
            raise self._error(f"needs {whole} as {name}")
        return value

    def _check_text(self, name: str, parameter: Parameter, value: Any) -> str:
        if parameter.choices and value not in parameter.choices:
            raise self._error(f"needs one of {', '.join(parameter.choices)} as {name}")
        if not isinstance(value, str) or not value.strip():
            raise self._error(f"needs text as {name}")
        if len(value) > parameter.high:
            raise self._error(f"takes at most {parameter.high:,} characters as {name}")
        return value

    def _error(self, problem: str) -> UsageError:
        hint = f"{self.name} takes {', '.join(self.parameters)}"
        return UsageError(f"{self.name} {problem}", hint=hint)


def _quote_name(name: str) -> str:
    """Quote a name from a client for an error: shortened, and without control characters."""
    text = name if len(name) <= _MAX_NAME else name[:_MAX_NAME] + "…"
    return repr(text) if text.isprintable() else ascii(text)


_SINCE = "2026-05-09, 7d, last week"

_RECALL = Tool(
    "recall",
    "What was said earlier about a question, as dated quotes from past conversations.",
    {
        "question": _text("Whole question, names and dates spelled out", 20_000, required=True),
        "budget": _number(RECALL_BUDGET, 100, 20_000, "Tokens at most"),
        "since": _text(_SINCE),
        "until": _text(),
    },
)
_SEARCH = Tool(
    "search",
    "List single messages by words and meaning, best first.",
    {
        "query": _text("", 20_000, required=True),
        "limit": _number(10, 1, 50),
        "since": _text(),
        "until": _text(),
        "mode": _text("", 20, "hybrid", "keyword", "semantic"),
    },
)
_READ = Tool(
    "read",
    "Read a message whole, with its neighbours in the conversation.",
    {
        "id": _number(None, 1, LARGEST_ID),
        "around": _number(4, 0, 50),
        "max_tokens": _number(2_000, 100, 20_000),
    },
)
_REMEMBER = Tool(
    "remember",
    "Store a decision, fact or preference for later conversations, when asked to or when something "
    "lasting is settled. No secrets.",
    {
        "text": _text("Self-contained, with names and dates", 20_000, required=True),
        "replaces": Parameter(
            "Note of yours that it corrects", low=1, high=LARGEST_ID, is_number=True
        ),
    },
    writes=True,
)
#: What happens to messages that are no notes.
_OTHERS_MARKED = "Other messages are marked as outdated."
_OTHERS_STAY = "Other messages stay: [mcp] correct is off."
_FORGET = Tool(
    "forget",
    "Delete a note of yours.",
    {"id": _number(None, 1, LARGEST_ID)},
    writes=True,
    deletes=True,
)


def offered_tools(
    partitions: Sequence[str] = (), *, read_only: bool = False, corrects: bool = False
) -> dict[str, Tool]:
    """Return the tools by name."""
    recall = _RECALL
    if partitions:
        partition = _text("", 400, *partitions)
        recall = replace(recall, parameters={**recall.parameters, "partition": partition})
    others = _OTHERS_MARKED if corrects else _OTHERS_STAY
    forget = replace(_FORGET, about=f"{_FORGET.about} {others}")
    offered = [recall, _SEARCH, _READ, _REMEMBER, forget]
    return {tool.name: tool for tool in offered if not (read_only and tool.writes)}


@dataclass(frozen=True, slots=True)
class Caller:
    """The agent that calls a tool."""

    client: str | None = None
    folders: tuple[Path, ...] = ()


UNKNOWN = Caller()
SOURCE = "mcp"  #: Source and instance of messages that agents store.
_READING = (_RECALL.name, _SEARCH.name, _READ.name)  #: Tools that read messages.
OUTDATED = "outdated"  #: The tag of messages that an agent found to be no longer true.
_SNIPPET = 300  #: Characters of a search hit's snippet.


class Answers:
    """Answer calls from one store, which is opened when a call needs it. Not thread-safe."""

    def __init__(self, open_reservoir: Opener) -> None:
        self._open_reservoir = open_reservoir
        self._store = WarmStore(self._open_store)
        self._settings: LiveConfig | None = None
        self._notes: list[str] = []
        self._recalled: Recall | None = None
        self.release = self._store.release  #: Closes the store, and frees the memory of its model.
        self._answers: Mapping[str, Callable[..., str]] = {
            "recall": self._recall,
            "search": self._search,
            "read": self._read,
            "remember": self._remember,
            "forget": self._forget,
        }

    def answer(
        self, tool: str, arguments: Mapping[str, Any], partition: str, caller: Caller = UNKNOWN
    ) -> str:
        """Return a tool's answer."""
        try:
            self._notes.clear()
            reservoir = self._store.open(create=tool == "remember")
            self._apply_settings(reservoir)
            if tool in _READING and (
                switch := find_switch(reservoir.config, partition, *caller.folders)
            ):
                return f"Nothing recalled: recall is switched off by {switch}."
            text: str = self._answers[tool](reservoir, partition, **arguments)
            recall, self._recalled = self._recalled, None
            if recall:
                injection_log.record(reservoir, recall, "mcp", caller.client, partition)
        except StoreError:
            self.release()  # the next call reconnects
            raise
        return "\n".join([text, *(f"note: {note}" for note in self._notes)])

    def _open_store(self, create: bool) -> Reservoir:
        reservoir = self._open_reservoir(create=create, notify=self._notes.append)
        warnings = reservoir.config.warnings  # they are for the user
        self._notes[:] = [note for note in self._notes if note not in warnings]
        reservoir.redactor = reservoir.redactor.for_agents
        self._settings = LiveConfig(reservoir.config, self._notes.append)
        reservoir.serve()
        return reservoir

    def _apply_settings(self, reservoir: Reservoir) -> None:
        config = self._settings.current() if self._settings else reservoir.config
        if config is not reservoir.config:
            reservoir.use(config)
            reservoir.redactor = reservoir.redactor.for_agents

    def _recall(
        self,
        reservoir: Reservoir,
        partition: str,
        question: str,
        budget: int,
        since: str | None,
        until: str | None,
    ) -> str:
        outcome = reservoir.recall(
            question,
            partition=partition,
            budget=budget,
            since=_parse_time(since),
            until=_parse_time(until),
        )
        if isinstance(outcome, Recall):
            self._recalled = outcome
            self._notes[:] = outcome.notes  # those of the store are not needed beside the text
            return outcome.text.rstrip("\n")
        self._notes.extend(outcome.notes)
        return f"Nothing recalled: {outcome.explanation}."

    def _search(
        self,
        reservoir: Reservoir,
        partition: str,
        query: str,
        limit: int,
        since: str | None,
        until: str | None,
        mode: str | None,
    ) -> str:
        hits = reservoir.search(
            query,
            mode=mode or "hybrid",
            limit=limit,
            partition=partition,
            where=Filter(since=_parse_time(since), until=_parse_time(until)),
            passages=True,
        )
        return _frame([_hit_line(hit) for hit in hits]) if hits else "Nothing found."

    def _read(
        self, reservoir: Reservoir, partition: str, id: int, around: int, max_tokens: int
    ) -> str:
        rows = reservoir.messages([id], Scope(partition))
        is_note = bool(rows) and rows[0].source == SOURCE  # notes are in no conversation
        ids = [id] if is_note else reservoir.lookup.ids_of_conversation(rows[0]) if rows else []
        if id not in ids:
            raise ReservoirError(f"no message #{id} in partition {partition}")
        position = ids.index(id)
        nearby = ids[max(0, position - around) : position + around + 1]
        rows = reservoir.messages(nearby, Scope(partition, rows[0].instance))
        meter = storing_meter(reservoir.config.settings(partition))
        return _fit(meter, rows, nearby.index(id), max_tokens)

    def _remember(
        self, reservoir: Reservoir, partition: str, text: str, replaces: int | None
    ) -> str:
        text = clean_text(text.strip())
        old = None if replaces is None else _correctable(reservoir, partition, replaces)
        note_id = _find_note(reservoir, partition, text)
        if note_id is None:
            message = Message("assistant", text, source=SOURCE)
            stored = reservoir.ingest([message], partition=partition, instance=SOURCE)
            if not stored:
                raise ReservoirError(
                    "nothing was stored: the text only quotes earlier conversations"
                )
            note_id = stored[0].id
        done = f"Stored as [#{note_id}]."
        return done if old is None or old.id == note_id else f"{done} {_retract(reservoir, old)}"

    def _forget(self, reservoir: Reservoir, partition: str, id: int) -> str:
        return _retract(reservoir, _correctable(reservoir, partition, id))


def _find_note(reservoir: Reservoir, partition: str, text: str) -> int | None:
    stored = reservoir.redactor.stored_text(partition, text)
    keys = reservoir.find(Scope(partition), Filter(source=SOURCE, text=stored))
    content = reservoir.redactor.text(partition, stored)
    notes = (row.id for row in reservoir.messages(keys) if row.content == content)
    return next(notes, None)


def _correctable(reservoir: Reservoir, partition: str, number: int) -> StoredMessage:
    """Return a message that an agent may correct: its notes, and with ``[mcp] correct`` any."""
    rows = reservoir.messages([number], Scope(partition))
    if rows and (rows[0].source == SOURCE or reservoir.config.mcp_correct):
        return rows[0]
    raise ReservoirError(
        f"no note #{number} in partition {partition}", hint="only your own notes can be changed"
    )


def _retract(reservoir: Reservoir, message: StoredMessage) -> str:
    if message.source != SOURCE:
        reservoir.tag(message.key, OUTDATED)
        return f"Marked [#{message.id}] as outdated."
    reservoir.forget([message.key])
    return f"Deleted [#{message.id}]."


def _hit_line(hit: Hit) -> str:
    message = hit.message
    part, _ = choose_part(plain_text(message), hit.words, hit.passage, _SNIPPET)
    title = f" ({cut(' '.join(hit.title.split()), 60)})" if hit.title else ""
    return defuse(f"[#{message.id}] {local_day(message.created_at)} {message.role}{title}: {part}")


def _fit(meter: Meter, rows: Sequence[StoredMessage], index: int, max_tokens: int) -> str:
    """Quote a message and the neighbours that fit, nearest first; truncate it if it is too long."""
    low, high = index, index + 1
    if meter.count(_quote_rows(rows[low:high])) > max_tokens:
        return _truncate(meter, rows[index], max_tokens)
    for distance in range(1, len(rows)):
        before, after = index - distance, index + distance + 1
        if before >= 0 and before == low - 1:
            low -= meter.count(_quote_rows(rows[before:high])) <= max_tokens
        if after <= len(rows) and after == high + 1:
            high += meter.count(_quote_rows(rows[low:after])) <= max_tokens
    return _quote_rows(rows[low:high])


def _truncate(meter: Meter, message: StoredMessage, max_tokens: int) -> str:
    whole = replace(message, content=plain_text(message), tool_calls=())
    room = max_tokens
    while True:  # quoting adds tokens to each line
        limit = int(room / meter.factor)
        text = _quote_rows([cut_tool_result(whole, limit, meter.counter)])
        excess = meter.count(text) - max_tokens
        if excess <= 0 or room <= 0:
            return text
        room -= excess + 1


def _quote_rows(rows: Sequence[StoredMessage]) -> str:
    return _frame([quote_line(row, numbered=True) for row in rows])


def _frame(lines: Sequence[str]) -> str:
    """Frame lines, so that importers of the client's log recognise them as ours."""
    return wrap("\n".join([RECALLED_NOTE, *lines]))


def _parse_time(typed: str | None) -> datetime | None:
    return parse_time(typed, datetime.now(UTC)) if typed else None
