"""Find messages by keys, ids and filters, without ranking."""

from bisect import bisect
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import (
    EVERYTHING,
    EVERYWHERE,
    ConversationName,
    Filter,
    IdField,
    Key,
    Scope,
    StoredMessage,
    clean_text,
)
from reservoir_cli.redaction import MASKED_ID, redact_id, without_secrets
from reservoir_cli.settings.config import Config
from reservoir_cli.storage.keys import Keys
from reservoir_cli.storage.store import Store
from reservoir_cli.storage.tables.holdings import NamedField
from reservoir_cli.storage.tables.list_conversations import ConversationList
from reservoir_cli.util.clock import FAR_AHEAD


class Lookup:
    """Finds messages of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def keys_of(self, ids: Sequence[int] | Sequence[Key], scope: Scope = EVERYWHERE) -> list[Key]:
        """Return the keys of messages in a scope with these ids; keys are returned unchanged.

        :raises UsageError: on a server, several partitions of the scope use one of the ids.
        """
        keys = [key for key in ids if isinstance(key, Key)]
        numbers = {number for number in ids if isinstance(number, int)}
        by_id: dict[int, Key] = {}
        for message in self._store.by_id(sorted(numbers), scope) if numbers else ():
            if other := by_id.get(message.id):
                partitions = " and ".join(sorted((other.partition, message.partition)))
                raise UsageError(
                    f"message {message.id} is in {partitions}", hint="choose one of them with -p"
                )
            by_id[message.id] = message.key
        return [*keys, *by_id.values()]

    def expired(
        self, config: Config, scope: Scope = EVERYWHERE, now: datetime | None = None
    ) -> Keys | None:
        """Return messages of a scope that are older than their partition keeps them, if it does.

        A message dated far in the future is as old as the one stored before it.
        """
        now = now or datetime.now(UTC)
        expiring = list(_expiring(self._store, config, scope, now))
        if not expiring:
            return None
        keys, ahead = Keys(), now + FAR_AHEAD
        for scope, until in expiring:
            keys.extend(self._store.find(scope, Filter(until=until)))
        for scope, _ in expiring:
            since = ahead + timedelta(milliseconds=1)
            if later := self._store.find(scope, Filter(since=since)):
                others = sorted(self._store.find(scope, Filter(until=ahead)))
                keys.extend(_stored_after(later, others, set(keys)))
        return keys

    def ids_starting_with(self, field: IdField, beginning: str, scope: Scope) -> list[str]:
        """Return the trace or conversation ids that begin with a text, in full or as masked."""
        beginning = clean_text(beginning)
        ids = self._store.starting_with(field, beginning, scope)
        if not beginning.startswith(MASKED_ID.rstrip("-")):
            return ids
        masked = {stored: redact_id(stored) for stored in self._store.ids(field, scope)}
        return ids + [
            stored
            for stored, masked_id in masked.items()
            if masked_id != stored and masked_id.startswith(beginning)
        ]

    def ids(self, field: IdField, scope: Scope) -> list[str]:
        """Return all trace or conversation ids of a scope, in order."""
        return self._store.ids(field, scope)

    def stored_id(self, field: IdField, masked_id: str, scope: Scope) -> str:
        """Return the stored id of one that is shown masked; the same id if there is none."""
        if not masked_id.startswith(MASKED_ID):
            return masked_id
        ids = self.ids_starting_with(field, masked_id, scope)
        return masked_id if masked_id in ids or not ids else ids[0]

    def names(self, field: NamedField, scope: Scope) -> list[str]:
        """Return the sources, projects or tags of a scope, in order, without those with secrets."""
        return [name for name in self._store.names(field, scope) if not without_secrets(name)[1]]

    def ids_of_conversation(self, message: StoredMessage) -> list[int]:
        """Return the ids of a message's conversation, or of those in none, in order of time."""
        scope = Scope(message.partition, message.instance)
        conversation = message.conversation_id
        if conversation is not None:
            conversation = self.stored_id("conversation_id", conversation, scope)
        name = (message.partition, message.instance, conversation)
        return list(self.ids_by_conversation(scope, Filter(conversation_id=conversation))[name])

    def ids_by_conversation(
        self, scope: Scope, where: Filter = EVERYTHING
    ) -> Mapping[ConversationName, Sequence[int]]:
        """Return the ids of messages by their conversation, in order of time."""
        return self._store.ids_by_conversation(scope, where)

    def newest_conversations(
        self, scope: Scope, where: Filter = EVERYTHING, count: int = 50, start: int = 0
    ) -> ConversationList:
        """Return a page of conversations, those with the newest messages first, not redacted."""
        return self._store.newest_conversations(scope, where, count, start)

    def channels(self, where: Filter = EVERYTHING) -> list[tuple[str, str, int]]:
        """Return (partition, instance, number of messages) for messages that match a filter."""
        if where == EVERYTHING:
            return self._store.channels()
        counts = Counter[tuple[str, str]]()
        for (partition, instance, _), ids in self.ids_by_conversation(EVERYWHERE, where).items():
            counts[partition, instance] += len(ids)
        return [(*channel, count) for channel, count in counts.items()]

    def elsewhere(
        self, scope: Scope, where: Filter = EVERYTHING
    ) -> list[tuple[str, str, int]] | None:
        """Return :meth:`channels`; ``None`` if the scope must not be left for a note."""
        return None if self.keeps_to(scope) else self.channels(where)

    def keeps_to(self, scope: Scope) -> bool:
        """Return whether work in a partition must not read others, which are on other machines."""
        return scope.partition is not None and not self._store.lists_channels


def retention(config: Config, partition: str) -> timedelta | None:
    """Return how long messages of a partition are kept; ``None`` means for ever."""
    days = config.settings(partition).retention_days
    return None if days is None else timedelta(days=days)


def _expiring(
    store: Store, config: Config, scope: Scope, now: datetime
) -> Iterator[tuple[Scope, datetime]]:
    """Yield the scopes in which messages expire, with the time before which they have."""
    for partition, instance, _ in store.channels():
        if scope.partition not in (None, partition) or scope.instance not in (None, instance):
            continue
        if age := retention(config, partition):
            yield Scope(partition, instance), now - age


def _stored_after(
    later: Sequence[Key], others: Sequence[Key], expired: Collection[Key]
) -> Iterator[Key]:
    """Yield the keys whose preceding one is expired; for the first of all, the first of others."""
    for key in later:
        previous = max(bisect(others, key) - 1, 0)
        if others and others[previous] in expired:
            yield key
