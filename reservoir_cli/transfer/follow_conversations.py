"""Store a message where its conversation is, else where the settings put its folder."""

from dataclasses import replace
from functools import cache

from reservoir_cli.messages import Scope
from reservoir_cli.settings.config import Config
from reservoir_cli.storage.store import Store
from reservoir_cli.transfer.reading.importer import Record
from reservoir_cli.transfer.stages import Destination


class Follower:
    """Chooses where records go: a conversation stays in a place, folders go to their project.

    :param only_moved: conversations stay only if they were moved, and folders have no project.
    """

    def __init__(
        self, store: Store, config: Config, destination: Destination, *, only_moved: bool
    ) -> None:
        self._store, self._destination, self._only_moved = store, destination, only_moved
        self._partition_of = cache(config.partition_of)
        self._has_moved = cache(store.has_moved)
        self._places: list[Scope] | None = None
        self._scopes: dict[tuple[Scope | None, str], Scope] = {}

    def scope_of(self, record: Record) -> Scope:
        """Return the scope of a record."""
        conversation = record.message.conversation_id
        usual = self._destination.scope_of(record) if self._only_moved else None
        if not conversation or (usual and not self._has_moved(usual)):
            return usual or self._assigned(record)
        if (usual, conversation) not in self._scopes:
            self._scopes[usual, conversation] = self._find(record, conversation, usual)
        return self._scopes[usual, conversation]

    def _assigned(self, record: Record) -> Scope:
        usual = self._destination.scope_of(record)
        partition = self._partition_of(record.folder) if record.folder else None
        if partition is None or partition == usual.partition:
            return usual
        instance = self._destination.instance or self._destination.home
        return Scope(partition, instance or record.instance or partition)

    def _find(self, record: Record, conversation: str, usual: Scope | None) -> Scope:
        session = conversation.partition("/")[0]
        names = list(dict.fromkeys(filter(None, (conversation, session, record.parent))))
        if usual:
            turns = [replace(record.message, conversation_id=name) for name in names]
            if not any(self._store.moved_away(usual, turns)):
                return usual
        assigned = usual or self._assigned(record)
        if self._places is None:
            self._places = [Scope(*place[:2]) for place in self._store.places()]
        places = [assigned, *self._places]
        partitions = sorted({str(place.partition) for place in places})
        for name in names:
            if (usual, name) in self._scopes:
                return self._scopes[usual, name]
            known = {Scope(*place) for place in self._store.places_of(partitions, name)}
            if found := next((place for place in places if place in known), None):
                return found
        return assigned
