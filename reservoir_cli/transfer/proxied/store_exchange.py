"""Store the requests and answers that pass through the proxy.

The proxy's ``parse_request`` gives messages the identities by which they are recognised.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from reservoir_cli.context.counter_factors import count_record
from reservoir_cli.messages import Filter, Message, Scope, StoredMessage
from reservoir_cli.storage.content_identity import parts_of
from reservoir_cli.storage.tables.proxy_ledger import Ledger
from reservoir_cli.storage.tables.sources import Sources
from reservoir_cli.storage.tables.tags_and_pins import TagsAndPins
from reservoir_cli.transfer.ingest import Ingestor
from reservoir_cli.transfer.proxied.exchange import PARTIAL, Exchange
from reservoir_cli.transfer.proxied.repeated_questions import RepeatedQuestions
from reservoir_cli.transfer.reading.importer import Record, Thread
from reservoir_cli.transfer.skip_duplicates import SOURCE, identity_prefix
from reservoir_cli.transfer.stages import Destination, ImportOptions
from reservoir_cli.transfer.store_records import FileImport
from reservoir_cli.util.clock import is_far_ahead

_SHORTENED = 3  # a shortened history has at least a summary, a question and its answer
#: The number of questions of a shortened history to look up, and of messages to compare.
_TRIED, _COMPARED = 8, 6
_STEP = timedelta(milliseconds=1)


class ExchangeLog:
    """Stores the exchanges of the proxy and finds their conversations."""

    def __init__(self, ingestor: Ingestor) -> None:
        self._ingestor, self._store, self._redactor = ingestor, ingestor.store, ingestor.redactor
        self._sources = Sources(ingestor.store)
        self._repeated = RepeatedQuestions(ingestor.store, self._redact)
        self.ledger = Ledger(ingestor.store)

    def store(self, exchange: Exchange, now: datetime | None = None) -> int:
        """Store the new messages of an exchange, and return how many they are.

        A retry replaces the old answer; see ``repeated_questions``.
        """
        now = now or datetime.now(UTC)
        if not exchange.is_stored:
            self._record_count(exchange, now)
            return 0
        if exchange.moves:
            exchange = replace(exchange, scope=self._find_scope(exchange))
        if not exchange.named and exchange.is_whole:
            conversation = self.find_continued(exchange.scope, exchange.messages)
            exchange = replace(exchange, conversation=conversation or exchange.conversation)
        exchange = self._repeated.keep_apart(exchange, now)
        history = list(_records(exchange, now))
        records = self._date_after_known(exchange, history, self._select_new(exchange, history))
        added = 0
        if records:
            destination = Destination(str(exchange.scope.partition), exchange.scope.instance, "")
            file_import = FileImport(self._ingestor, destination, ImportOptions(), SOURCE, now)
            added = file_import.load(records).imported
        if exchange.reply:
            self._replace_answer(exchange, exchange.reply, now)
            self._record_count(exchange, now)
        return added

    def _record_count(self, exchange: Exchange, now: datetime) -> None:
        if not exchange.model or not exchange.reported or not exchange.reply:
            return
        text = exchange.reply.content
        counter = self._ingestor.counter(str(exchange.scope.partition))
        record = count_record(exchange.scope, exchange.model, counter, text, exchange.reported, now)
        if record:
            self._store.add_run(record)

    def _find_scope(self, exchange: Exchange) -> Scope:
        scopes = [exchange.scope, *(Scope(*row[:2]) for row in self._store.channels())]
        conversation = exchange.conversation
        names = [(str(scope.partition), str(scope.instance), conversation) for scope in scopes]
        present = self._store.known_conversations(names)
        return next((Scope(*name[:2]) for name in names if name in present), exchange.scope)

    def find_continued(self, scope: Scope, messages: Sequence[Message]) -> str | None:
        """Return the conversation that messages continue; clients drop the oldest from the list."""
        questions = [index for index, message in enumerate(messages) if message.role == "user"]
        if len(questions) < 2:
            return None
        sources, before = self._sources, (SOURCE, messages[questions[-2]].source_id or "")
        if stored := sources.find_stored(scope, [before]):
            return stored[before].conversation_id
        for start in questions[:-1][:_TRIED]:
            excerpt = messages[start : min(start + _COMPARED, questions[-1])]
            for conversation in sources.conversations(
                scope, SOURCE, identity_prefix(excerpt[0].content)
            ):
                if self._contains_sequence(scope, conversation, excerpt):
                    return conversation
        return None

    def _contains_sequence(
        self, scope: Scope, conversation: str, excerpt: Sequence[Message]
    ) -> bool:
        partition = str(scope.partition)
        parts = _parts(self._redactor.scan(message, partition)[0] for message in excerpt)
        stored = _parts(self._store.last(scope, 0, Filter(conversation_id=conversation)))
        starts = [index for index, part in enumerate(stored) if parts[:1] == [part]]
        return any(stored[index : index + len(parts)] == parts for index in starts)

    def _select_new(self, exchange: Exchange, records: Sequence[Record]) -> list[Record]:
        """Return the records that are neither stored nor forgotten under another source's id.

        In a history that a client has shortened, some old messages have new identities.
        """
        ids = [(SOURCE, str(record.message.source_id)) for record in records]
        present = self._sources.find_present([exchange.scope], ids)
        forgotten = self._forgotten_identities(exchange)
        new = [
            record
            for record, identity in zip(records, ids, strict=True)
            if identity not in present and identity[1] not in forgotten
        ]
        if ids[0] in present or len(records) < _SHORTENED or not exchange.is_whole:
            return new
        stored_parts = self._stored_parts(exchange)
        newest = {identity for _, identity in ids[-2:]}
        return [
            record
            for record in new
            if record.message.source_id in newest
            or not stored_parts.issuperset(parts_of(self._redact(exchange, record.message)))
        ]

    def _date_after_known(
        self, exchange: Exchange, history: Sequence[Record], new: list[Record]
    ) -> list[Record]:
        """Date new messages after the previous one, unless that is far ahead of the clock."""
        before = history[: history.index(new[0])] if new else []
        stored = self._stored_messages(exchange, [record.message for record in before[-1:]])
        for previous in stored.values():
            first = new[0].message.created_at
            assert first
            behind = previous.created_at - first
            if behind >= timedelta() and not is_far_ahead(previous.created_at, first):
                return [_delay(record, behind + _STEP) for record in new]
        return new

    def _forgotten_identities(self, exchange: Exchange) -> set[str]:
        if not self._store.forgotten_sessions([exchange.conversation]):
            return set()
        roles = [message.role for message in exchange.messages]
        replies = [index for index, role in enumerate(roles) if role == "assistant"]
        repeated = [
            replace(
                self._redact(exchange, message),
                conversation_id=exchange.conversation,
                created_at=None,
            )
            for message in exchange.messages[: replies[-1] + 1 if replies else 0]
        ]
        flags = self._store.forgotten_contents(repeated)
        return {
            str(message.source_id)
            for message, is_forgotten in zip(repeated, flags, strict=True)
            if is_forgotten
        }

    def _redact(self, exchange: Exchange, message: Message) -> Message:
        return self._redactor.scan(message, str(exchange.scope.partition))[0]

    def _stored_parts(self, exchange: Exchange) -> set[str]:
        where = Filter(conversation_id=exchange.conversation)
        return set(_parts(self._store.last(exchange.scope, 0, where)))

    def _stored_messages(
        self, exchange: Exchange, messages: Sequence[Message]
    ) -> dict[tuple[str, str], StoredMessage]:
        ids = [(SOURCE, message.source_id) for message in messages if message.source_id]
        return self._sources.find_stored(exchange.scope, ids)

    def _replace_answer(self, exchange: Exchange, reply: Message, now: datetime) -> None:
        """Replace a stored answer with a new one, unless the user edited it."""
        old = next(iter(self._stored_messages(exchange, [reply]).values()), None)
        if old is None or (exchange.partial and PARTIAL not in old.tags):
            return
        partition = str(exchange.scope.partition)
        message, _ = self._redactor.scan(reply, partition)
        if (message.content, message.tool_calls) != (old.content, old.tool_calls):
            if self._store.edited([old]):
                return
            renewed = replace(
                message,
                source=SOURCE,
                trace_id=old.trace_id,
                created_at=old.created_at,
                conversation_id=exchange.conversation,
            )
            self._store.replace(
                {old.key: renewed}, counter=self._ingestor.counter(partition), now=now
            )
        if PARTIAL in old.tags and not exchange.partial:
            TagsAndPins(self._store).remove_tags(old.key, [PARTIAL])


def _delay(record: Record, time: timedelta) -> Record:
    created_at = record.message.created_at
    assert created_at
    return replace(record, message=replace(record.message, created_at=created_at + time))


def _parts(messages: Iterable[Message | StoredMessage]) -> list[str]:
    return [part for message in messages for part in parts_of(message)]


def _records(exchange: Exchange, now: datetime) -> Iterator[Record]:
    thread = Thread(SOURCE, exchange.conversation, model=exchange.model)
    replies = [] if exchange.reply is None else [exchange.reply]
    if exchange.partial:
        replies = [replace(reply, tags=(PARTIAL,)) for reply in replies]
    moment = now - _STEP * (len(exchange.messages) + len(replies))
    for message in [*exchange.messages, *replies]:
        moment += _STEP
        yield thread.record(replace(message, created_at=moment), message.source_id)
