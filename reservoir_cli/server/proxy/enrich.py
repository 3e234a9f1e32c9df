"""Add what fits a question to a request, and again what was added to the questions before it."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from reservoir_cli.context.recall import Recall, Skipped
from reservoir_cli.messages import Scope
from reservoir_cli.redaction import Mode
from reservoir_cli.reservoir import LedgerEntry, Reservoir
from reservoir_cli.server.proxy.json_spans import insert
from reservoir_cli.server.proxy.question_identity import Question
from reservoir_cli.server.proxy.request import ParsedRequest
from reservoir_cli.server.state import ServerState
from reservoir_cli.server.store_threads import HASTE

T = TypeVar("T")

#: Seconds that a request waits for the store, at most.
PATIENCE = 0.3
#: Tokens that are added to one question, and to all of a conversation.
BUDGET, MOST_OF_CONVERSATION = 1_000, 8_000
#: Fewer tokens are not worth a quote.
_LEAST = 100
#: The share of the model's window from which on nothing more is added.
_FULL = 0.9
#: Characters of a token, roughly.
_CHARACTERS = 4
#: What was written down is cleared after so many entries.
_CLEAR_AFTER = 50


@dataclass(frozen=True, slots=True)
class Enriched:
    """A request with what was added to it.

    :param body: as it goes to the model.
    :param note: what was done, for the header ``x-reservoir``.
    """

    body: bytes
    note: str


@dataclass(frozen=True, slots=True)
class _Turn:
    """A request, and what was known when it came.

    :param masked: secrets must be hidden.
    :param version: of the texts of the partition; see :meth:`Ledger.version`.
    :param deadline: when it has waited long enough, in seconds of the event loop.
    """

    request: ParsedRequest
    partition: str
    masked: bool
    version: int
    deadline: float


@dataclass(frozen=True, slots=True)
class _Unwritten:
    """An entry on its way to the ledger, and the version of the texts that it quotes."""

    entry: LedgerEntry
    version: int


class Enricher:
    """Enriches requests from the store."""

    def __init__(self, state: ServerState) -> None:
        self._state, new_thread = state, state.new_thread
        # Threads of their own: what was added before is added again even if questions wait, or
        # another program writes.
        self._ledger = new_thread("ledger", HASTE)
        self._ledger_writes = new_thread("ledger writes")
        self._unwritten: dict[tuple[str, str], dict[tuple[int, str], _Unwritten]] = {}
        self._put = 0
        self._puts: deque[Callable[[Reservoir], None]] = deque()
        self._last_asked: Callable[[Reservoir], object] | None = None
        for thread in (self._ledger, self._ledger_writes):
            thread.submit(lambda reservoir: reservoir.exchanges)  # opens the store
        state.reader.warm()

    def close(self) -> None:
        """Close the store."""
        self._ledger.close()
        self._ledger_writes.close()

    def rehearse(self) -> None:
        """Ask the last question once more, if there is time.

        What a question computes for all messages is ready for the next one then, although
        something was stored since.
        """
        if self._last_asked:
            self._state.reader.submit_if_idle(self._last_asked)

    async def enrich(self, request: ParsedRequest, partition: str, instance: str) -> Enriched:
        """Return a request with what fits its newest question.

        It takes 0.3 seconds at most, and whatever goes wrong, less is added.
        """
        deadline = asyncio.get_running_loop().time() + PATIENCE
        masked = self._is_masked(partition)

        def read(reservoir: Reservoir) -> tuple[str, int, dict[tuple[int, str], LedgerEntry]]:
            now, ledger = datetime.now(UTC), reservoir.exchanges.ledger
            known = None
            if not request.named:
                known = reservoir.exchanges.continued(Scope(partition, instance), request.messages)
            conversation, version = known or request.conversation, ledger.version(partition)
            entries = ledger.get(partition, conversation, masked=masked, now=now)
            return conversation, version, entries

        # What is written while the ledger is read may be in neither.
        unwritten = {talk: dict(entries) for talk, entries in self._unwritten.items()}
        ledger = await _within(deadline, self._ledger.run(read))
        if ledger is None:
            return Enriched(request.text.encode(), "skipped; reason=store")
        conversation, version, known = ledger
        request = replace(request, conversation=conversation)
        known = known | {
            key: kept.entry
            for key, kept in unwritten.get((partition, conversation), {}).items()
            if kept.version == version
        }
        entries = {
            question.at: entry
            for question in request.questions
            if (entry := known.get((question.ordinal, question.id)))
        }
        turn = _Turn(request, partition, masked, version, deadline)
        note = await self._add_newest(turn, entries)
        text = insert(request.text, {at: f"\n\n{entry.block}" for at, entry in entries.items()})
        return Enriched(text.encode(), note)

    async def _add_newest(self, turn: _Turn, entries: dict[int, LedgerEntry]) -> str:
        """Add an entry for the newest question if it has none; return what was done."""
        again, newest = len(entries), turn.request.questions[-1]
        behind = f"; replayed={again}" if again else ""
        if not newest.newest or newest.at in entries:
            return f"replayed={again}" if again else "skipped; reason=no question"
        used = sum(entry.tokens for entry in entries.values())
        reason = self._why_full(turn.request, used)
        if reason is None:
            budget = min(BUDGET, MOST_OF_CONVERSATION - used)
            found = await self._recall(turn, newest, budget)
            if isinstance(found, Recall):
                entries[newest.at] = self._keep(turn, newest, found)
                return f"added; tokens={found.tokens}; messages={len(found.messages)}{behind}"
            reason = found
        return f"skipped; reason={reason}{behind}"

    async def _recall(self, turn: _Turn, question: Question, budget: int) -> Recall | str:
        """Return what was said earlier about a question, or why there is nothing."""

        def ask(reservoir: Reservoir, *, recorded: bool = True) -> Recall | Skipped:
            return reservoir.recall(
                question.text,
                partition=turn.partition,
                budget=budget,
                exclude_conversation=turn.request.conversation,
                recorded=recorded,
            )

        self._last_asked = partial(ask, recorded=False)
        found = await _within(turn.deadline, self._state.reader.run(ask))
        if found is None:
            return "timeout"
        return found if isinstance(found, Recall) else found.reason.value

    def _keep(self, turn: _Turn, question: Question, found: Recall) -> LedgerEntry:
        """Write down what is added, so that it is added again."""
        partition, conversation, masked = turn.partition, turn.request.conversation, turn.masked
        entry = LedgerEntry(question.ordinal, question.id, found.text.strip(), found.tokens, masked)
        quoted = [message.id for message in found.messages if message.id is not None]
        self._put += 1
        clear = self._put % _CLEAR_AFTER == 1

        def put(reservoir: Reservoir) -> None:
            ledger, now = reservoir.exchanges.ledger, datetime.now(UTC)
            ledger.put(partition, conversation, entry, quoted, version=turn.version, now=now)
            if clear:
                ledger.expire(partition, masked=masked, now=now)

        unwritten = _Unwritten(entry, turn.version)
        self._puts.append(put)
        written = self._ledger_writes.submit_in_pause(self._put_waiting)
        self._wait_for(written, (partition, conversation), unwritten)
        return entry

    def _put_waiting(self, reservoir: Reservoir) -> None:
        """Write the entries that wait; the first of several calls finds all of them.

        They are written in one transaction. If that fails, for instance because two servers wait
        for each other's locks, they are written one by one.
        """
        puts = [self._puts.popleft() for _ in range(len(self._puts))]
        try:
            if puts:
                with reservoir.store.write():
                    for put in puts:
                        put(reservoir)
        except Exception:
            for put in puts:
                put(reservoir)

    def _wait_for(
        self, written: Future[None], conversation: tuple[str, str], unwritten: _Unwritten
    ) -> None:
        """Remember an entry until it is written, or cannot be."""
        entries = self._unwritten.setdefault(conversation, {})
        key = (unwritten.entry.ordinal, unwritten.entry.question)
        entries[key] = unwritten
        loop = asyncio.get_running_loop()

        def drop() -> None:
            entries.pop(key, None)
            if not entries:
                self._unwritten.pop(conversation, None)

        written.add_done_callback(lambda _: loop.call_soon_threadsafe(drop))

    def _why_full(self, request: ParsedRequest, used: int) -> str | None:
        """Return why nothing more may be added to a conversation, or ``None``."""
        if MOST_OF_CONVERSATION - used < _LEAST:
            return "enough was added"
        window = request.model and self._state.config.context_window(request.model)
        if window and request.characters / _CHARACTERS + used >= _FULL * window:
            return "the window is full"
        return None

    def _is_masked(self, partition: str) -> bool:
        return str(self._state.config.lookup("redact", partition)[0]) != Mode.OFF.value


async def _within(deadline: float, work: Awaitable[T]) -> T | None:
    """Return what work gives; ``None`` if it fails or takes too long."""
    left = deadline - asyncio.get_running_loop().time()
    try:
        return await asyncio.wait_for(work, max(left, 0.0))
    except Exception:  # the request goes on without it, whatever it was
        return None
