"""Bringing messages in: batches into the store first, vectors afterwards."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import accumulate, islice

from reservoir_cli.embedding import Embedder, Progress
from reservoir_cli.errors import ReservoirError
from reservoir_cli.importers import Record, Skipped
from reservoir_cli.messages import (
    Conversation,
    Message,
    Scope,
    StoredMessage,
    clean_text,
    plain_text,
)
from reservoir_cli.store import Passage, Store
from reservoir_cli.tokens import TokenCounter

_BATCH = 1_000
#: A group is safe when it is done, and is sorted by length: of so many messages, or fewer if
#: they have so many characters, which take some five seconds.
_GROUP, _GROUP_CHARACTERS = 512, 200_000


@dataclass
class Totals:
    """What an import did.

    :param mended: messages in which something that is no text was replaced by U+FFFD.
    :param reasons: each of the ``skipped`` with its place.
    """

    imported: int = 0
    already: int = 0
    skipped: int = 0
    mended: int = 0
    reasons: list[str] = field(default_factory=list)

    def line(self) -> str:
        """The one line a person reads."""
        return (
            f"imported {self.imported:,}, already there {self.already:,}, skipped {self.skipped:,}"
        )


def load(
    store: Store,
    records: Iterable[Record | Skipped],
    *,
    where: str,
    partition: str | None,
    instance: str | None,
    default_partition: str,
    counter: TokenCounter,
    now: datetime,
) -> Totals:
    """Save the messages of a file; what is there already is left as it is.

    :param where: the file's name, for the reasons.
    :param partition: put everything there, whatever the records say; so with ``instance``.
    """
    totals = Totals()
    clock = _Clock(now)
    place = (partition, instance, default_partition)
    source = iter(records)
    while batch := list(islice(source, _BATCH)):
        with store.writing():
            timed = [
                replace(each, message=clock.timed(each.message, store, _place(each, *place)))
                if isinstance(each, Record)
                else each
                for each in batch
            ]
            for scope, some in _by_place(timed, *place):
                conversations = [each.conversation for each in some if each.conversation]
                messages = [each.message for each in some]
                _save(store, scope, messages, conversations, counter, now, totals)
        for bad in batch:
            if isinstance(bad, Skipped):
                totals.skipped += 1
                totals.reasons.append(f"{where}, {bad.place}: {bad.reason}")
    return totals


def _save(
    store: Store,
    scope: Scope,
    messages: list[Message],
    conversations: list[Conversation],
    counter: TokenCounter,
    now: datetime,
    totals: Totals,
) -> None:
    store.add_conversations(scope, conversations)
    added = store.add(scope, messages, counter=counter, now=now)
    fresh = sum(each is not None for each in added)
    totals.mended += sum(clean_text(each.content) != each.content for each in messages)
    totals.imported += fresh
    totals.already += len(added) - fresh


def _by_place(
    batch: Iterable[Record | Skipped],
    partition: str | None,
    instance: str | None,
    default_partition: str,
) -> Iterator[tuple[Scope, list[Record]]]:
    """Records by partition and instance, each in the order of the file."""
    places: dict[Scope, list[Record]] = {}
    for each in batch:
        if isinstance(each, Record):
            scope = _place(each, partition, instance, default_partition)
            places.setdefault(scope, []).append(each)
    return iter(places.items())


def _place(
    record: Record, partition: str | None, instance: str | None, default_partition: str
) -> Scope:
    """Where a record goes; it keeps its instance unless the whole file goes elsewhere."""
    there = partition or record.partition or default_partition
    return Scope(there, instance or (record.instance if partition is None else None) or there)


@dataclass
class _Clock:
    """Times for records that have none: the predecessor's, else the import's, a ms apart."""

    start: datetime
    previous: datetime | None = None
    index: int = 0
    bases: dict[Scope, datetime] = field(default_factory=dict)

    def timed(self, message: Message, store: Store, scope: Scope) -> Message:
        if message.created_at is not None:
            self.previous = message.created_at
            return message
        if self.previous is not None:
            return replace(message, created_at=self.previous)
        if scope not in self.bases:
            newest = store.last(scope, 1)
            after = [each.created_at + timedelta(milliseconds=1) for each in newest]
            self.bases[scope] = max([self.start, *after])
        self.index += 1
        moment = self.bases[scope] + timedelta(milliseconds=self.index - 1)
        return replace(message, created_at=moment)


def embed_pending(
    store: Store,
    embedder: Embedder,
    scope: Scope,
    *,
    synapse_threshold: float,
    progress: Progress,
    limit: int | None = None,
    newest: bool = False,
    wait: float | None = None,
) -> int:
    """Give messages their vectors, in groups that each are safe when they are done.

    :param synapse_threshold: from this likeness on messages are linked.
    :param limit: at most so many messages; ``None`` for all.
    :param wait: seconds to wait for the write lock.
    :returns: how many messages were embedded.
    :raises ReservoirError: the store's vectors are of another model.
    """
    _require_same_model(store, embedder)
    total = store.pending_count(scope) if limit is None else limit
    done = 0
    while limit is None or done < limit:
        most = min(_GROUP, total - done or 1)
        some = _first_of(store.pending(most, scope, newest=newest))
        if not some:
            break
        passages = _embedded(some, embedder)
        with store.writing(wait):
            if store.active_model() is None:
                store.activate_model(embedder.model_id, embedder.name)
            numbers = [each.id for each in some]
            store.add_passages(embedder.model_id, numbers, passages, synapse_threshold)
        done += len(some)
        progress("embedding", done, max(total, done))
    return done


def _require_same_model(store: Store, embedder: Embedder) -> None:
    active = store.active_model()
    if active is not None and active[0] != embedder.model_id:
        raise ReservoirError(
            f"the vectors of this store are of another model than {embedder.name}",
            hint=f"reservoir config --set embedding_model={active[1]}",
        )


def _first_of(messages: list[StoredMessage]) -> list[StoredMessage]:
    """As many of them as make a group; one, however long it is."""
    lengths = accumulate(len(plain_text(each)) for each in messages)
    count = sum(1 for length in lengths if length <= _GROUP_CHARACTERS)
    return messages[: max(1, count)]


def _embedded(messages: list[StoredMessage], embedder: Embedder) -> list[Passage]:
    # A message without any text keeps no vector, and is no longer pending.
    texts = [(each.id, text) for each in messages if (text := plain_text(each)).strip()]
    spans = [
        (message_id, number, start, end, text[start:end])
        for message_id, text in texts
        for number, (start, end) in enumerate(embedder.passages(text))
    ]
    vectors = embedder.encode_documents([passage for *_, passage in spans])
    return [
        Passage(message_id, number, start, end, vector)
        for (message_id, number, start, end, _), vector in zip(spans, vectors, strict=True)
    ]
