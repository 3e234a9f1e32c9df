"""Find messages by keys, ids and filters, without ranking."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import (
    Filter,
    IdField,
    Key,
    Scope,
    StoredMessage,
    ThreadName,
    clean_text,
)
from reservoir_cli.redaction import MASKED_ID, redact_id, without_secrets
from reservoir_cli.retrieval.expired_messages import find_expired
from reservoir_cli.settings.config import Config
from reservoir_cli.storage.keys import Keys
from reservoir_cli.storage.store import Store
from reservoir_cli.storage.tables.holdings import NamedField
from reservoir_cli.storage.tables.list_threads import ThreadList

_EVERYTHING, _ALL = Scope(None), Filter()


class Lookup:
    """Finds messages of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def keys_of(self, ids: Sequence[int] | Sequence[Key], scope: Scope = _EVERYTHING) -> list[Key]:
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
        self, config: Config, scope: Scope = _EVERYTHING, now: datetime | None = None
    ) -> Keys | None:
        """See :func:`find_expired`."""
        return find_expired(self._store, config, scope, now)

    def ids_starting_with(self, field: IdField, beginning: str, scope: Scope) -> list[str]:
        """Return the trace or conversation ids that begin with a text, in full or as masked."""
        beginning = clean_text(beginning)
        ids = self._store.starting_with(field, beginning, scope)
        if not beginning.startswith(MASKED_ID.rstrip("-")):
            return ids
        masked = {stored: redact_id(stored) for stored in self._store.ids(field, scope)}
        return ids + [
            stored
            for stored, shown in masked.items()
            if shown != stored and shown.startswith(beginning)
        ]

    def ids(self, field: IdField, scope: Scope) -> list[str]:
        """Return all trace or conversation ids of a scope, in order."""
        return self._store.ids(field, scope)

    def stored_id(self, field: IdField, shown: str, scope: Scope) -> str:
        """Return the stored id of one that is shown masked; the same id if there is none."""
        if not shown.startswith(MASKED_ID):
            return shown
        ids = self.ids_starting_with(field, shown, scope)
        return shown if shown in ids or not ids else ids[0]

    def names(self, field: NamedField, scope: Scope) -> list[str]:
        """Return the sources, projects or tags of a scope, in order, without those with secrets."""
        return [name for name in self._store.names(field, scope) if not without_secrets(name)[1]]

    def thread(self, message: StoredMessage) -> list[int]:
        """Return the ids of a message's conversation, or of those in none, in order of time."""
        scope = Scope(message.partition, message.instance)
        conversation = message.conversation_id
        if conversation is not None:
            conversation = self.stored_id("conversation_id", conversation, scope)
        name = (message.partition, message.instance, conversation)
        return list(self.threads(scope, Filter(conversation_id=conversation))[name])

    def threads(self, scope: Scope, where: Filter = _ALL) -> Mapping[ThreadName, Sequence[int]]:
        """Return the ids of messages by their conversation, in order of time."""
        return self._store.threads(scope, where)

    def newest_threads(
        self, scope: Scope, where: Filter = _ALL, count: int = 50, start: int = 0
    ) -> ThreadList:
        """Return a page of threads, those with the newest messages first, not redacted."""
        return self._store.newest_threads(scope, where, count, start)

    def places(self, where: Filter = _ALL) -> list[tuple[str, str, int]]:
        """Return (partition, instance, number of messages) for messages that match a filter."""
        if where == _ALL:
            return self._store.places()
        counts = Counter[tuple[str, str]]()
        for (partition, instance, _), ids in self.threads(_EVERYTHING, where).items():
            counts[partition, instance] += len(ids)
        return [(*place, count) for place, count in counts.items()]

    def elsewhere(self, scope: Scope, where: Filter = _ALL) -> list[tuple[str, str, int]] | None:
        """Return :meth:`places`; ``None`` if the scope must not be left for a note."""
        return None if self.keeps_to(scope) else self.places(where)

    def keeps_to(self, scope: Scope) -> bool:
        """Return whether work in a partition must not read others, which are on other machines."""
        return scope.partition is not None and not self._store.lists_places
