"""The verbs of a store that look after what is kept: find, take out, move, copy, change the model.

They stand apart from those that every question needs.
"""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from reservoir_cli.messages import Conversation, Key, Message, Scope, StoredMessage, check_name
from reservoir_cli.storage.keys import Keys
from reservoir_cli.storage.records import (
    ConversationSummary,
    Filter,
    IdField,
    Passage,
    PlaceSummary,
    Progress,
    ThreadName,
)
from reservoir_cli.storage.sqlite import conversations as finding
from reservoir_cli.storage.sqlite import properties, reads, secure_delete

if TYPE_CHECKING:
    from array import array

    from reservoir_cli.storage.replicate import Link, Portion, Remainder

#: Seconds that a checkpoint waits for readers; a question takes less than one.
_FOR_READERS = 5.0
_EVERYTHING = Filter()


class Keeping(ABC):
    """What :class:`.SqliteStore` does beside answering questions."""

    _connection: sqlite3.Connection

    @abstractmethod
    def writing(self, wait: float | None = None) -> AbstractContextManager[None]:
        """One write transaction."""

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[None]:
        """One read transaction."""

    @abstractmethod
    def _decoding(self) -> AbstractContextManager[None]:
        """Errors of unpacking as those of a damaged file."""

    @abstractmethod
    def _alone(self) -> AbstractContextManager[None]:
        """The connection to oneself, outside of transactions."""

    # Finding

    def find(self, scope: Scope, where: Filter = _EVERYTHING) -> Keys:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.snapshot():
            return finding.find(self._connection, scope, where)

    def starting_with(self, field: IdField, prefix: str, scope: Scope) -> list[str]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.snapshot():
            return reads.starting_with(self._connection, field, prefix, scope)

    def threads(self, scope: Scope, where: Filter = _EVERYTHING) -> "dict[ThreadName, array[int]]":
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.snapshot():
            return finding.threads(self._connection, scope, where)

    def conversation(self, partition: str, instance: str, number: str) -> Conversation | None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.snapshot():
            return finding.conversation(self._connection, partition, instance, number)

    def titles(self, partition: str, numbers: Sequence[str]) -> dict[tuple[str, str | None], str]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.snapshot():
            return finding.titles(self._connection, partition, numbers)

    def conversations(self, scope: Scope) -> list[ConversationSummary]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.snapshot():
            return finding.conversations(self._connection, scope)

    def place_summaries(self, scope: Scope) -> list[PlaceSummary]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.snapshot():
            return finding.places(self._connection, scope)

    def passages(self, keys: Sequence[Key]) -> dict[Key, list[Passage]]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite.vectors import passages

        with self.snapshot(), self._decoding():
            model_id = properties.get(self._connection, properties.MODEL_ID)
            return passages(self._connection, model_id, keys) if model_id else {}

    def dimensions(self) -> int | None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.snapshot():
            row = self._connection.execute(
                """
                SELECT LENGTH(vector) / 4 FROM embeddings
                WHERE model_id = (SELECT value FROM properties WHERE key = ?) LIMIT 1
                """,
                [properties.MODEL_ID],
            ).fetchone()
        return row[0] if row else None

    # Forgetting

    def forget(self, keys: Sequence[Key], progress: Progress = lambda *_: None) -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite import delete

        with self.writing(), self._decoding():
            ids = [number for _, number in keys]
            delete.remove(self._connection, ids, mark=True, progress=progress)
            progress("rewriting the full text", 0, 0)
            secure_delete.seal(self._connection)

    def finish_forgetting(self) -> bool:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self._alone():
            return secure_delete.finish(self._connection, _FOR_READERS)

    def forgotten(self, messages: Sequence[Message]) -> list[bool]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite.writes import source_of

        with self.snapshot():
            sources = [source_of(each) for each in messages]
            from reservoir_cli.storage.sqlite import tombstones  # it loads OpenSSL

            gone = tombstones.forgotten(self._connection, sources)
            return [each in gone for each in sources]

    # Moving and copying

    def move_partition(self, old: str, new: str) -> tuple[int, int]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite.move_partition import move

        with self.writing(), self._decoding():
            return move(self._connection, old, check_name(new))

    def copy_to(self, target: Path, progress: Progress = lambda *_: None) -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite.backup import copy

        with self.snapshot():
            copy(self._connection, target, progress)

    def portion(self, after: Key | None, count: int) -> "Portion":
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite import replicate

        with self.snapshot():
            return replicate.portion(self._connection, after.id if after else 0, count)

    def put_portion(self, given: "Portion") -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite import replicate

        with self.writing():
            replicate.put_portion(self._connection, given)

    def twins(self) -> list[Key]:
        """See :class:`~reservoir_cli.storage.base.Store`; an id is unique in a file."""
        return []

    def links(self, keys: Sequence[Key]) -> "list[Link]":
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite import replicate

        with self.snapshot():
            return replicate.links(self._connection, [number for _, number in keys])

    def put_links(self, given: "Sequence[Link]") -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite import replicate

        with self.writing():
            replicate.put_links(self._connection, given)

    def remainder(self) -> "Remainder":
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite import replicate

        with self.snapshot():
            return replicate.remainder(self._connection)

    def put_remainder(self, given: "Remainder") -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite import replicate

        with self.writing():
            replicate.put_remainder(self._connection, given)

    def noted(self, key: str) -> str | None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.snapshot():
            return properties.get(self._connection, key)

    def note(self, key: str, value: str | None) -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.writing():
            if value is None:
                properties.drop(self._connection, key)
            else:
                properties.put(self._connection, key, value)

    # Changing the model

    def next_model(self) -> tuple[str, str] | None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.snapshot():
            found = properties.get(self._connection, properties.NEXT_ID)
            name = properties.get(self._connection, properties.NEXT_NAME)
        return (found, name) if found and name else None

    def begin_model(self, model_id: str, name: str) -> str:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite import model_switch

        with self.writing():
            return model_switch.begin(self._connection, model_id, name)

    def give_up_model(self) -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite import model_switch

        with self.writing():
            model_switch.give_up(self._connection)

    def lacking(self, limit: int) -> list[StoredMessage]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite import model_switch

        with self.snapshot():
            return model_switch.lacking(self._connection, limit)

    def lacking_count(self) -> int:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.snapshot():
            row = self._connection.execute("SELECT COUNT(*) FROM rebuilding").fetchone()
            return int(row[0])

    def switch_model(self, kept_as: str) -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite import model_switch

        with self.writing():
            model_switch.switch(self._connection, kept_as)

    def clear_former_model(self) -> bool:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite import model_switch

        with self.snapshot():
            if properties.get(self._connection, properties.FORMER_ID) is None:
                return False
        with self.writing():
            return model_switch.clear_away(self._connection)
