"""Answer tool calls from a store: messages are quoted, framed, and redacted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from reservoir_cli.agents.kept_store import KeptStore, Opener
from reservoir_cli.context.budget import Meter
from reservoir_cli.context.excerpts import shorten_result
from reservoir_cli.context.prepare_request import storing_meter
from reservoir_cli.context.recall import Recall
from reservoir_cli.context.render.frame import wrap
from reservoir_cli.context.render.recalled import RECALLED_NOTE, defuse, quote_line
from reservoir_cli.errors import ReservoirError, StoreError
from reservoir_cli.messages import Message, Scope, StoredMessage, cut, plain_text
from reservoir_cli.reservoir import Filter, Reservoir
from reservoir_cli.retrieval.search_hits import Hit
from reservoir_cli.retrieval.snippet import choose_part
from reservoir_cli.settings.reload import LiveConfig
from reservoir_cli.util.clock import local_day
from reservoir_cli.util.parse_time_options import parse_time

#: Source and instance of messages that agents store.
SOURCE = "mcp"
#: Characters of a search hit's snippet.
_SNIPPET = 300


class Answers:
    """Answer calls from one store, which is opened when a call needs it. Not thread-safe."""

    def __init__(self, open_reservoir: Opener) -> None:
        self._open_reservoir = open_reservoir
        self._store = KeptStore(self._open_store)
        self._settings: LiveConfig | None = None
        self._notes: list[str] = []
        #: Closes the store, and frees the memory of its model.
        self.release = self._store.release
        self._answers: Mapping[str, Callable[..., str]] = {
            "recall": self._recall,
            "search": self._search,
            "read": self._read,
            "remember": self._remember,
        }

    def answer(self, tool: str, arguments: Mapping[str, Any], partition: str) -> str:
        """Return a tool's answer.

        :param arguments: as returned by :meth:`Tool.check`.
        :raises ReservoirError: the tool failed.
        """
        try:
            reservoir = self._store.open(create=tool == "remember")
            self._notes.clear()
            self._apply_settings(reservoir)
            text: str = self._answers[tool](reservoir, partition, **arguments)
        except StoreError:
            self.release()  # the next call reconnects
            raise
        return "\n".join([text, *(f"note: {note}" for note in self._notes)])

    def _open_store(self, create: bool) -> Reservoir:
        reservoir = self._open_reservoir(create=create, notify=self._notes.append)
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
        self, reservoir: Reservoir, partition: str, question: str, budget: int, since: str | None
    ) -> str:
        outcome = reservoir.recall(
            question, partition=partition, budget=budget, since=_parse_time(since)
        )
        if isinstance(outcome, Recall):
            self._notes.clear()  # not needed beside the recalled text
            return outcome.text.rstrip("\n")
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
        if not hits:
            return "Nothing found."
        return _frame([_hit_line(hit) for hit in hits])

    def _read(
        self, reservoir: Reservoir, partition: str, id: int, around: int, max_tokens: int
    ) -> str:
        rows = reservoir.messages([id], Scope(partition))
        ids = reservoir.lookup.thread(rows[0]) if rows else []
        if id not in ids:
            raise ReservoirError(f"no message #{id} in partition {partition}")
        position = ids.index(id)
        nearby = ids[max(0, position - around) : position + around + 1]
        rows = reservoir.messages(nearby, Scope(partition, rows[0].instance))
        meter = storing_meter(reservoir.config.settings(partition))
        return _fit(meter, rows, nearby.index(id), max_tokens)

    def _remember(self, reservoir: Reservoir, partition: str, text: str) -> str:
        message = Message("assistant", text.strip(), source=SOURCE)
        stored = reservoir.ingest([message], partition=partition, instance=SOURCE)
        if not stored:
            raise ReservoirError("nothing was stored: the text quotes earlier conversations only")
        return f"Stored as [#{stored[0].id}]."


def _hit_line(hit: Hit) -> str:
    message = hit.message
    part, _ = choose_part(plain_text(message), hit.words, hit.passage, _SNIPPET)
    title = f" ({cut(' '.join(hit.title.split()), 60)})" if hit.title else ""
    return defuse(f"[#{message.id}] {local_day(message.created_at)} {message.role}{title}: {part}")


def _fit(meter: Meter, rows: Sequence[StoredMessage], index: int, max_tokens: int) -> str:
    """Quote a message and the neighbours that fit, nearest first; truncate it if it is too long.

    :param index: position of the message among the rows.
    """
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
    """Quote the beginning of a message, and note how much is missing."""
    whole = replace(message, content=plain_text(message), tool_calls=())
    room = max_tokens
    while True:  # quoting adds tokens to each line
        limit = int(room / meter.factor)
        text = _quote_rows([shorten_result(whole, limit, meter.counter)])
        excess = meter.count(text) - max_tokens
        if excess <= 0 or room <= 0:
            return text
        room -= excess + 1


def _quote_rows(rows: Sequence[StoredMessage]) -> str:
    """Quote messages in order, grouped by day."""
    lines, day = [], ""
    for row in rows:
        if local_day(row.created_at) != day:
            lines.append(day := local_day(row.created_at))
        lines.append(quote_line(row, numbered=True))
    return _frame(lines)


def _frame(lines: Sequence[str]) -> str:
    """Frame lines, so that importers of the client's log recognise them as ours."""
    return wrap("\n".join([RECALLED_NOTE, *lines]))


def _parse_time(typed: str | None) -> datetime | None:
    return parse_time(typed, datetime.now(UTC)) if typed else None
