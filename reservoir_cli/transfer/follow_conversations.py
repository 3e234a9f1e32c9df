"""Store a message where its conversation is, else where the settings put its folder."""

from functools import cache

from reservoir_cli.messages import Scope
from reservoir_cli.settings.config import Config
from reservoir_cli.storage.store import Store
from reservoir_cli.transfer.reading.importer import Record
from reservoir_cli.transfer.stages import Destination


class Follower:
    """Chooses where records go: a conversation stays in a place, folders go to their project."""

    def __init__(self, store: Store, config: Config, destination: Destination) -> None:
        self._store, self._destination = store, destination
        self._partition_of = cache(config.partition_of)
        self._places: list[Scope] | None = None
        self._scopes: dict[str, Scope] = {}

    def scope_of(self, record: Record) -> Scope:
        """Return the scope of a record."""
        conversation = record.message.conversation_id
        if not conversation:
            return self._assigned(record)
        if conversation not in self._scopes:
            self._scopes[conversation] = self._find(record, conversation)
        return self._scopes[conversation]

    def _assigned(self, record: Record) -> Scope:
        usual = self._destination.scope_of(record)
        partition = self._partition_of(record.folder) if record.folder else None
        if partition is None or partition == usual.partition:
            return usual
        instance = self._destination.instance or self._destination.home
        return Scope(partition, instance or record.instance or partition)

    def _find(self, record: Record, conversation: str) -> Scope:
        assigned = self._assigned(record)
        if self._places is None:
            self._places = [Scope(*place[:2]) for place in self._store.places()]
        places = [assigned, *(place for place in self._places if place != assigned)]
        session = conversation.partition("/")[0]
        for name in dict.fromkeys(filter(None, (conversation, session, record.parent))):
            if name in self._scopes:
                return self._scopes[name]
            threads = [(str(place.partition), str(place.instance), name) for place in places]
            known = self._store.known_conversations(threads)
            if found := next((thread for thread in threads if thread in known), None):
                return Scope(*found[:2])
        return assigned
