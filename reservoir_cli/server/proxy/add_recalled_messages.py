"""Add recalled messages to a request's newest question, and replay the blocks of earlier ones."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from reservoir_cli.agents import injection_log
from reservoir_cli.agents.read_transcript import quoted_numbers
from reservoir_cli.context.recall import Reason, Recall, Skipped
from reservoir_cli.messages import Scope
from reservoir_cli.redaction import Mode
from reservoir_cli.reservoir import LedgerEntry, Reservoir
from reservoir_cli.server import limits
from reservoir_cli.server.proxy.json_spans import insert
from reservoir_cli.server.proxy.parse_request import ParsedRequest, Question
from reservoir_cli.server.state import ServerState
from reservoir_cli.settings.recall_switch import find_switch
from reservoir_cli.util import timeouts

T = TypeVar("T")

_CHARACTERS_PER_TOKEN = 4  # average characters per token
#: Old ledger entries are deleted at the start, and once per this many new entries.
_EXPIRE_EVERY = 50


@dataclass(frozen=True, slots=True)
class Enriched:
    """An enriched body, and what was added or why nothing was, for the header ``x-reservoir``."""

    body: bytes
    note: str


@dataclass(frozen=True, slots=True)
class _Job:
    """A request, and the version of the store's texts when it arrived.

    :param deadline: when to stop waiting for the store, in seconds of the event loop's clock.
    :param quoted: ids of the messages that the request's blocks have already.
    """

    request: ParsedRequest
    client: str
    partition: str
    masked: bool
    version: int
    deadline: float
    quoted: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Unwritten:
    entry: LedgerEntry
    version: int


class Enricher:
    """Enrich requests from the store."""

    def __init__(self, state: ServerState) -> None:
        self._state, new_thread = state, state.new_thread
        # Separate threads: earlier blocks must be replayed even while questions are queued or
        # another program writes.
        self._ledger = new_thread("ledger", timeouts.LOCKED_STORE_OF_REQUEST)
        self._ledger_writes = new_thread("ledger writes")
        self._unwritten: dict[tuple[str, str], dict[tuple[int, str], _Unwritten]] = {}
        self._put_count = 0
        self._settings = state.config  # those by which old entries were deleted last
        self._puts: deque[Callable[[Reservoir], None]] = deque()
        self._last_asked: Callable[[Reservoir], object] | None = None
        for thread in (self._ledger, self._ledger_writes):
            thread.submit(lambda reservoir: reservoir.exchanges)  # opens the store
        self._ledger_writes.submit_batch_in_pause(self._expire)
        self.warmed = state.reader.warm()  # until then, the first question would wait for the model

    def close(self) -> None:
        """Close the store."""
        self._ledger.close()
        self._ledger_writes.close()

    def rehearse(self) -> None:
        """Ask the last question again when idle, to refill caches that storing invalidated."""
        if self._last_asked:
            self._state.reader.submit_if_idle(self._last_asked)

    def write_queued(self, reservoir: Reservoir) -> None:
        """Write all queued entries at once; if that fails, as when two servers wait, one by one.

        A changed text of the partition makes older entries invalid unless they are written before.
        """
        puts = list[Callable[[Reservoir], None]]()
        with suppress(IndexError):  # two threads may take from the queue
            while True:
                puts.append(self._puts.popleft())
        try:
            if puts:
                due = time.monotonic() + limits.MAX_HOLD
                with reservoir.store.write():
                    for put in puts:
                        self._ledger_writes.give_way(due)
                        put(reservoir)
        except Exception as error:  # its text might quote a message
            self._state.log(f"ledger entries are written one by one: {type(error).__name__}")
            for put in puts:
                put(reservoir)

    async def enrich(
        self, request: ParsedRequest, partition: str, instance: str, client: str
    ) -> Enriched:
        """Add recalled messages to the newest question, within 0.3 seconds; less on failures."""
        deadline = asyncio.get_running_loop().time() + timeouts.RECALL_OF_REQUEST
        self._expire_after_changes()
        masked = self._is_masked(partition)

        def read(reservoir: Reservoir) -> tuple[str, int, dict[tuple[int, str], LedgerEntry]]:
            now, ledger = datetime.now(UTC), reservoir.exchanges.ledger
            continued = None
            if not request.named and not request.continues:
                continued = reservoir.exchanges.find_continued(
                    Scope(partition, instance), request.messages
                )
            conversation, version = continued or request.conversation, ledger.version(partition)
            entries = ledger.get(partition, conversation, masked=masked, now=now)
            return conversation, version, entries

        # Copied before the ledger is read: an entry that is written meanwhile could be missed.
        unwritten = {key: dict(entries) for key, entries in self._unwritten.items()}
        ledger = await _wait_until(deadline, self._ledger.run(read))
        if ledger is None:
            return Enriched(request.text.encode(), "skipped; reason=store")
        conversation, version, prior = ledger
        request = replace(request, conversation=conversation)
        prior = prior | {
            key: pending.entry
            for key, pending in unwritten.get((partition, conversation), {}).items()
            if pending.version == version and pending.entry.masked >= masked
        }
        entries = {
            question.at: entry
            for question in request.questions
            if not question.kept and (entry := prior.get((question.ordinal, question.id)))
        }
        counted = prior if request.continues else entries  # the provider keeps all earlier blocks
        used = sum(entry.tokens for entry in counted.values())
        # Also what a hook of the client has added.
        quoted = quoted_numbers([request.text, *(entry.block for entry in counted.values())])
        job = _Job(request, client, partition, masked, version, deadline, quoted)
        note = await self._add_newest(job, entries, used)
        text = insert(request.text, {at: f"\n\n{entry.block}" for at, entry in entries.items()})
        return Enriched(text.encode(), note)

    async def _add_newest(self, job: _Job, entries: dict[int, LedgerEntry], used: int) -> str:
        replayed, newest = len(entries), next(reversed(job.request.questions), None)
        suffix = f"; replayed={replayed}" if replayed else ""
        if newest is None or not newest.newest or newest.at in entries:
            return f"replayed={replayed}" if replayed else "skipped; reason=no question"
        reason = newest.kept or self._why_off(job) or self._why_full(job.request, used)
        if not reason:
            budget = min(limits.BUDGET, limits.CONVERSATION_BUDGET - used)
            recall = await self._recall(job, newest, budget)
            if isinstance(recall, Recall):
                self._ledger_writes.submit_in_pause(partial(_log_injection, job, recall))
                entries[newest.at] = self._add_entry(job, newest, recall)
                return f"added; tokens={recall.tokens}; messages={len(recall.messages)}{suffix}"
            reason = recall
        return f"skipped; reason={reason}{suffix}"

    async def _recall(self, job: _Job, question: Question, budget: int) -> Recall | str:
        def ask(reservoir: Reservoir, *, recorded: bool = True) -> Recall | Skipped:
            return reservoir.recall(
                question.text,
                partition=job.partition,
                budget=budget,
                exclude_conversation=job.request.conversation,
                talk=_talk_before(job.request),
                shown=job.quoted,
                recorded=recorded,
            )

        self._last_asked = partial(ask, recorded=False)
        recall = await _wait_until(job.deadline, self._state.reader.run(ask))
        if recall is None:
            return "timeout"
        return recall if isinstance(recall, Recall) else recall.reason.value

    def _add_entry(self, job: _Job, question: Question, recall: Recall) -> LedgerEntry:
        partition, conversation, masked = job.partition, job.request.conversation, job.masked
        text, tokens = recall.text.strip(), recall.tokens
        entry = LedgerEntry(question.ordinal, question.id, text, tokens, masked)
        quoted = [message.id for message in recall.messages if message.id is not None]

        def put(reservoir: Reservoir) -> None:
            if self._is_masked(partition) and not masked:
                return  # since the question was asked, secrets must be redacted
            ledger, now = reservoir.exchanges.ledger, datetime.now(UTC)
            ledger.put(partition, conversation, entry, quoted, version=job.version, now=now)

        unwritten = _Unwritten(entry, job.version)
        self._puts.append(put)
        written = self._ledger_writes.submit_batch_in_pause(self.write_queued)
        self._hold_until_written(written, (partition, conversation), unwritten)
        self._put_count += 1
        if self._put_count % _EXPIRE_EVERY == 0:
            self._ledger_writes.submit_batch_in_pause(self._expire)
        return entry

    def _expire_after_changes(self) -> None:
        """Delete entries with secrets if the settings have changed: they may be redacted now."""
        settings = self._state.config
        if settings is not self._settings:
            self._settings = settings
            self._ledger_writes.submit_batch_in_pause(self._expire)

    def _expire(self, reservoir: Reservoir) -> None:
        ledger = reservoir.exchanges.ledger
        for partition in ledger.partitions():
            ledger.expire(partition, masked=self._is_masked(partition), now=datetime.now(UTC))

    def _hold_until_written(
        self, written: Future[None], conversation: tuple[str, str], unwritten: _Unwritten
    ) -> None:
        entries = self._unwritten.setdefault(conversation, {})
        key = (unwritten.entry.ordinal, unwritten.entry.question)
        entries[key] = unwritten
        loop = asyncio.get_running_loop()

        def drop() -> None:
            entries.pop(key, None)
            if not entries:
                self._unwritten.pop(conversation, None)

        written.add_done_callback(lambda _: loop.call_soon_threadsafe(drop))

    def _why_off(self, job: _Job) -> str:
        is_off = find_switch(self._state.config, job.partition, job.request.folder)
        return Reason.SWITCHED_OFF.value if is_off else ""

    def _why_full(self, request: ParsedRequest, used: int) -> str:
        if limits.CONVERSATION_BUDGET - used < limits.MIN_BUDGET:
            return "enough was added"
        window = self._window(request)
        if (
            window
            and request.characters / _CHARACTERS_PER_TOKEN + used >= limits.FULL_WINDOW * window
        ):
            return "the window is full"
        return ""

    def _window(self, request: ParsedRequest) -> int | None:
        usual = self._state.config.context_window(request.model) if request.model else None
        return min(filter(None, (usual, request.window)), default=None)

    def _is_masked(self, partition: str) -> bool:
        return str(self._state.config.lookup("redact", partition)[0]) != Mode.OFF.value


def _log_injection(job: _Job, recall: Recall, reservoir: Reservoir) -> None:
    session = job.request.conversation
    injection_log.record(reservoir, recall, "proxy", job.client, job.partition, session)


def _talk_before(request: ParsedRequest) -> list[tuple[str, str]]:
    turns = [
        (str(message.role), message.content)
        for message in request.messages
        if message.role in ("user", "assistant") and message.content.strip()
    ]
    return turns[-limits.TALK_TURNS :]


async def _wait_until(deadline: float, work: Awaitable[T]) -> T | None:
    """Return the result of an awaitable; ``None`` if it fails or takes too long."""
    timeout = deadline - asyncio.get_running_loop().time()
    try:
        return await asyncio.wait_for(work, max(timeout, 0.0))
    except Exception:  # enrichment is optional: forward the request without it
        return None
