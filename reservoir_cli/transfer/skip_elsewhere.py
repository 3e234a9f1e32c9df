"""Skip imported messages that another partition or instance of the store already has."""

from collections.abc import Sequence

from reservoir_cli.messages import Scope
from reservoir_cli.storage.sources import Sources
from reservoir_cli.storage.store import Store
from reservoir_cli.transfer.importers import Record


class ElsewhereFilter:
    """Finds messages in other partitions and instances; each source is looked up once."""

    def __init__(self, store: Store) -> None:
        self._sources = Sources(store)
        self._places: dict[str, list[Scope]] = {}

    def skip_known(self, scope: Scope, records: Sequence[Record]) -> list[Record]:
        """Return records without those that another scope than this one has."""
        ids = {(str(record.message.source), str(record.message.source_id)) for record in records}
        present = set()
        for source in {source for source, _ in ids}:
            if source not in self._places:
                self._places[source] = self._sources.places(source)
            others = [place for place in self._places[source] if place != scope]
            if others:
                of_source = [identity for identity in ids if identity[0] == source]
                present |= self._sources.find_present(others, of_source)
        return [
            record
            for record in records
            if (record.message.source, record.message.source_id) not in present
        ]
