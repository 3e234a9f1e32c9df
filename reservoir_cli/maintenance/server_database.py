"""Manage the database of a store on a server."""

from typing import Any

from reservoir_cli.errors import UsageError
from reservoir_cli.maintenance.database import Database
from reservoir_cli.storage.postgres import admin, ann_index
from reservoir_cli.storage.postgres.store import PostgresStore


class ServerDatabase(Database):
    """The database of a store on a server."""

    def status(self) -> dict[str, Any]:
        facts = super().status()
        return facts if facts["bytes"] is None else facts | admin.facts(self._server)

    def _guard(self) -> None:
        admin.guard(self._server)

    def build_index(self, partition: str) -> float:
        return ann_index.build(self._server, partition, self._progress).recall

    def drop_index(self, partition: str) -> bool:
        return ann_index.drop(self._server, partition)

    @property
    def _server(self) -> PostgresStore:
        if not isinstance(self._store, PostgresStore):
            raise UsageError(
                f"there is no store at {self._store.location} yet",
                hint="reservoir db migrate creates it",
            )
        return self._store
