"""Skip imported messages that the store has from the proxy, or in another partition or instance.

In the proxy's and the client's log they have the same conversation and text, but other ids.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from reservoir_cli.context.render import context_frame
from reservoir_cli.messages import THINKING, Filter, Message, Scope
from reservoir_cli.redaction import Redactor
from reservoir_cli.storage.content_identity import parts_of, plain, session_of
from reservoir_cli.storage.store import Store
from reservoir_cli.storage.tables.sources import Sources
from reservoir_cli.transfer.reading.importer import Record

SOURCE = "proxy"  # source of the messages that the proxy stores
#: The proxy stores a message after it was sent, and clocks differ a little.
_SLACK = timedelta(minutes=1)
#: The times of stored messages, by the identity of their text.
_StoredTexts = dict[str, list[datetime]]


def normalise(text: str) -> str:
    """Return a text without the additions of clients and contexts printed by Reservoir."""
    return context_frame.unwrap(plain(text)).text.strip()


def identity_prefix(text: str) -> str:
    """Return the prefix of a user message's identity, which depends on the text alone."""
    import hashlib  # loads OpenSSL

    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:16]


class ProxyFilter:
    """Finds messages that the proxy has stored, loading conversations as an import needs them."""

    def __init__(self, store: Store, redactor: Redactor) -> None:
        self._store, self._redactor = store, redactor
        self._partitions: set[str | None] | None = None
        self._unmatched: dict[tuple[str, str], _StoredTexts] = {}
        self._dropped_reply = False

    def skip_known(self, scope: Scope, records: Sequence[Record]) -> list[Record]:
        """Return records without those that the proxy has stored; keep the proxy's own."""
        if all(record.message.source == SOURCE for record in records):
            return list(records)
        if self._partitions is None:
            scopes = Sources(self._store).scopes(SOURCE)
            self._partitions = {scope.partition for scope in scopes}
        if scope.partition not in self._partitions:
            return list(records)
        return list(self._filter(str(scope.partition), records))

    def _filter(self, partition: str, records: Sequence[Record]) -> Iterator[Record]:
        for record in records:
            message = record.message
            if message.source == SOURCE or not message.conversation_id:
                yield record
                continue
            if message.name == THINKING and self._dropped_reply:
                continue
            unmatched = self._load_unmatched(partition, session_of(message.conversation_id))
            self._dropped_reply = bool(unmatched) and _match(
                unmatched, self._redactor.scan(message, partition)[0]
            )
            if not self._dropped_reply:
                yield record

    def _load_unmatched(self, partition: str, conversation: str) -> _StoredTexts:
        key = (partition, conversation)
        if key not in self._unmatched:
            selection = Filter(conversation_id=conversation, source=SOURCE)
            unmatched = self._unmatched[key] = {}
            for message in self._store.last(Scope(partition), 0, selection):
                for part in parts_of(message):
                    unmatched.setdefault(part, []).append(message.created_at)
        return self._unmatched[key]


def _match(unmatched: _StoredTexts, message: Message) -> bool:
    since = message.created_at and message.created_at - _SLACK
    times = [unmatched.get(part, []) for part in parts_of(message)]
    first = [
        next(
            (index for index, stored in enumerate(stored_times) if not since or stored >= since),
            None,
        )
        for stored_times in times
    ]
    if not times or None in first:
        return False
    for stored_times, index in zip(times, first, strict=True):
        del stored_times[index or 0 : (index or 0) + 1]
    return True


class ElsewhereFilter:
    """Finds messages in other partitions and instances; each source is looked up once."""

    def __init__(self, store: Store) -> None:
        self._sources = Sources(store)
        self._scopes: dict[str, list[Scope]] = {}

    def find_known(self, scope: Scope, messages: Sequence[Message]) -> list[bool]:
        """Return for each message whether another scope than this one has it."""
        ids = [(str(message.source), str(message.source_id)) for message in messages]
        present = set()
        for source in {source for source, _ in ids}:
            if source not in self._scopes:
                self._scopes[source] = self._sources.scopes(source)
            others = [other for other in self._scopes[source] if other != scope]
            if others:
                of_source = {identity for identity in ids if identity[0] == source}
                present |= self._sources.find_present(others, list(of_source))
        return [identity in present for identity in ids]
