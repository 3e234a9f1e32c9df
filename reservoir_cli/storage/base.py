"""Where messages are kept: one protocol, and one implementation a kind of database.

Callers see :class:`Store` only. Messages and their full-text rows are written in one
transaction; vectors follow in a second one, so that a message is safe before it is embedded.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from reservoir_cli.messages import Conversation, Key, Message, Scope, StoredMessage
from reservoir_cli.settings.location import SERVERS, check_location, is_on_a_server
from reservoir_cli.storage.records import (
    ConversationSummary,
    Fault,
    Filter,
    IdField,
    Passage,
    PlaceSummary,
    Progress,
    ThreadName,
)

if TYPE_CHECKING:
    from array import array

    import numpy as np
    from numpy.typing import NDArray

    from reservoir_cli.storage.keys import Keys
    from reservoir_cli.storage.records import Candidates, Talk
    from reservoir_cli.storage.replicate import Link, Portion, Remainder
    from reservoir_cli.tokens import TokenCounter

#: The likeness from which on messages are linked, on the scale (1 + cosine)/2: one number, or what
#: gives that of a partition.
LinkThreshold = float | Callable[[str], float]


_EVERYTHING = Filter()


class Store(Protocol):
    """A place that keeps messages. All methods raise ``StoreError`` when it fails.

    :param location: a path, or a URL without its password.
    :param receiving: it is being copied to by this program; other writes are refused until the
        copy is finished.
    """

    location: str
    read_only: bool
    receiving: bool

    def files(self) -> list[Path]:
        """The files that this store is, whether they are there or not; none on a server."""

    def size(self) -> int | None:
        """The bytes that it takes; ``None`` where there is no store yet."""

    def engine(self) -> str:
        """The program that keeps it, the versions of that, and the number of its schema."""

    def close(self) -> None:
        """Give the file or connection back."""

    def writing(self, wait: float | None = None) -> AbstractContextManager[None]:
        """One write transaction; inner ones join it.

        :param wait: seconds to wait for other writers; ``None`` for the store's usual patience.
        :raises StoreLockedError: others kept it for longer.
        """

    def passing(self) -> AbstractContextManager[None]:
        """Writes inside do not wait for the disk: a power cut may take them back, and only them."""

    def snapshot(self) -> AbstractContextManager[None]:
        """One read transaction: everything read inside is of one moment."""

    def add(
        self,
        scope: Scope,
        messages: Sequence[Message],
        *,
        counter: "TokenCounter",
        now: datetime,
        pair: bool = False,
    ) -> list[StoredMessage | None]:
        """Store messages in a partition and instance, at once and for good.

        :param now: what messages without a time get; a reply comes behind its own question.
        :param pair: an assistant message without a trace id answers the newest open question.
        :returns: one entry a message; ``None`` where its source id was there already.
        """

    def add_conversations(self, scope: Scope, conversations: Sequence[Conversation]) -> None:
        """Note titles and models of conversations; what is known already is renewed."""

    def add_passages(
        self,
        model_id: str,
        passages: Mapping[Key, Sequence[Passage]],
        synapse_threshold: LinkThreshold,
    ) -> None:
        """Store the vectors of messages, which are then no longer pending, and tie them.

        :param passages: of each message; none of one without a text.
        """

    def faults(self) -> list[Fault]:
        """What is wrong with the store itself, or with what is derived from its messages."""

    def repair(self, synapse_threshold: LinkThreshold) -> list[int]:
        """Make everything again that is derived: full text, what ranking reads, synapses.

        :returns: ids of messages whose texts had bytes that are no text; U+FFFD stands there now.
        """

    def renew_counts(self, counts: Mapping[Key, int], counter: str) -> None:
        """Replace the stored token counts of messages, which another counter made."""

    def mark_secrets(self, found: Mapping[Key, Sequence[str]]) -> None:
        """Note the kinds of secrets that messages hold, in place of what was noted before."""

    def add_run(self, run: Mapping[str, Any]) -> None:
        """Record a context that was built: numbers and names, never text."""

    def runs(self, since: datetime | None) -> list[dict[str, Any]]:
        """The records of contexts, oldest first."""

    def holdings(self) -> dict[str, int]:
        """How many messages, conversations, vectors and links there are."""

    def tied(self, ids: Iterable[int], depth: int, scope: Scope) -> list[int]:
        """Ids of messages so many links away or nearer, without those asked for."""

    def activate_model(self, model_id: str, name: str) -> None:
        """Make this the model whose vectors are compared."""

    def active_model(self) -> tuple[str, str] | None:
        """(identity, name) of the model whose vectors are compared; ``None`` before the first."""

    def pending(self, limit: int, scope: Scope, *, newest: bool = False) -> list[StoredMessage]:
        """Messages without vectors as they came in, the last ones first if ``newest``."""

    def pending_count(self, scope: Scope) -> int:
        """How many messages of a scope have no vectors yet."""

    def last(self, scope: Scope, count: int, where: Filter = _EVERYTHING) -> list[StoredMessage]:
        """The newest messages, oldest first; all of them when ``count`` is 0."""

    def by_id(self, ids: Sequence[int], scope: Scope) -> list[StoredMessage]:
        """These messages, where they are in the scope, oldest first."""

    def by_key(self, keys: Sequence[Key]) -> list[StoredMessage]:
        """Return these messages, where they are still there, oldest first."""

    def with_partners(self, ids: Sequence[int], scope: Scope) -> list[StoredMessage]:
        """These messages and what belongs to them: trace, tool calls and results."""

    def keyword(
        self, text: str, scope: Scope, limit: int, where: Filter = _EVERYTHING
    ) -> tuple[list[tuple[int, float]], bool]:
        """Return the ids and BM25 scores of messages that hold the words, best first.

        Scores are those of the whole scope, whatever the filter lets through.

        :returns: the hits, and whether they hold all the words (else any of them).
        """

    def candidates(
        self,
        scope: Scope,
        own: str | None,
        question: str,
        vector: "NDArray[np.float32] | None",
        where: Filter = _EVERYTHING,
        talk: "Talk | None" = None,
    ) -> "Candidates":
        """Return every message of a scope with what ranking needs, in order of time.

        Those that the filter leaves out are marked, so that scores stay those of the scope.

        :param own: the instance that history comes from; its documents are not marked as own.
        :param vector: of the question, by the active model.
        :param talk: what was said just before, to be compared in the same scan.
        """

    def newest_instance(self, partition: str) -> str | None:
        """The instance of a partition that was written to last, but for documents."""

    def places(self) -> list[tuple[str, str, int]]:
        """(partition, instance, messages), the fullest first."""

    def find(self, scope: Scope, where: Filter = _EVERYTHING) -> "Keys":
        """Return the keys of messages, in order of time."""

    def starting_with(self, field: IdField, prefix: str, scope: Scope) -> list[str]:
        """Return the first ids of a scope that start with a prefix; ten at most."""

    def threads(self, scope: Scope, where: Filter = _EVERYTHING) -> "dict[ThreadName, array[int]]":
        """The ids of messages by their thread, threads and messages in order of time."""

    def conversation(self, partition: str, instance: str, number: str) -> Conversation | None:
        """What an import told of a conversation."""

    def titles(self, partition: str, numbers: Sequence[str]) -> dict[tuple[str, str | None], str]:
        """The titles of conversations by (instance, number); some have none."""

    def conversations(self, scope: Scope) -> list[ConversationSummary]:
        """The conversations of a scope, in order of their first messages."""

    def place_summaries(self, scope: Scope) -> list[PlaceSummary]:
        """The instances of each partition, in order of their names."""

    def passages(self, keys: Sequence[Key]) -> dict[Key, list[Passage]]:
        """The passages of messages by the active model; a message without vectors has none."""

    def dimensions(self) -> int | None:
        """How long the vectors of the active model are; ``None`` while there are none."""

    def forget(self, keys: Sequence[Key], progress: Progress = ...) -> None:
        """Delete messages and all that is derived from them, and bar them from imports.

        Then call :meth:`finish_forgetting`: until it is done, words may be left in the files.
        """

    def finish_forgetting(self) -> bool:
        """See to it that no word of what was forgotten is left in any file of the store.

        :returns: whether it is done; a reader may stand in the way.
        """

    def forgotten(self, messages: Sequence[Message]) -> list[bool]:
        """Of each message whether one of its source and source id was forgotten."""

    def move_partition(self, old: str, new: str) -> tuple[int, int]:
        """Bring all messages of a partition into another.

        :returns: how many were moved, and how many were there already and are gone.
        """

    def copy_to(self, target: Path, progress: Progress = ...) -> None:
        """Copy the store as it is at this moment into an empty file.

        :raises ReservoirError: it is on a server.
        """

    def portion(self, after: Key | None, count: int) -> "Portion":
        """Return the messages behind a key, in an order of the store's own, and what is theirs."""

    def put_portion(self, given: "Portion") -> None:
        """Write messages of another store with their ids, and make what is derived of them."""

    def links(self, keys: Sequence[Key]) -> "list[Link]":
        """Return the links from messages to those before them."""

    def twins(self) -> list[Key]:
        """Return the messages whose id another one has, in a partition before theirs."""

    def put_links(self, given: "Sequence[Link]") -> None:
        """Write links between messages that are there."""

    def remainder(self) -> "Remainder":
        """What the store holds that belongs to no message."""

    def put_remainder(self, given: "Remainder") -> None:
        """Write that, in place of what is there of it."""

    def noted(self, key: str) -> str | None:
        """What the store was told to remember of itself under a name."""

    def note(self, key: str, value: str | None) -> None:
        """Remember something of the store itself under a name, or no longer."""

    def next_model(self) -> tuple[str, str] | None:
        """(identity, name) of the model that is being built beside the active one."""

    def begin_model(self, model_id: str, name: str) -> str:
        """Begin to build a model's vectors, or go on.

        :returns: the identity to store them under.
        """

    def give_up_model(self) -> None:
        """Remove what was built of the next model."""

    def lacking(self, limit: int) -> list[StoredMessage]:
        """Messages without vectors of the next model, as they came in."""

    def lacking_count(self) -> int:
        """How many messages have no vectors of the next model."""

    def switch_model(self, kept_as: str) -> None:
        """Make the next model the active one, if it is still this; what it lacks is pending."""

    def clear_former_model(self) -> bool:
        """Remove a portion of the vectors that a switch left behind.

        :returns: whether there is more.
        """


def open_store(location: str, *, create: bool = True, patience: float = 30.0) -> Store:
    """Open the store at a path, or on the server of a URL; what is not there is made.

    :param create: without it nothing is made: a store that is not there stands in empty.
    :param patience: seconds to wait while others write.
    :raises UsageError: it is neither a path nor the URL of a server.
    :raises StoreError: it cannot be opened, is newer than the program, or is corrupt.
    """
    check_location(location)
    if not is_on_a_server(location):
        from reservoir_cli.storage.sqlite.store import SqliteStore

        return SqliteStore(location, create=create, patience=patience)
    from reservoir_cli.storage.postgres.store import PostgresStore

    store = PostgresStore(location, patience=patience)
    try:
        if store.server.schema is not None or create:
            store.prepare()
            return store
    except BaseException:
        store.close()
        raise
    store.close()
    from reservoir_cli.storage.sqlite.store import SqliteStore

    empty = SqliteStore(":memory:", create=False, patience=patience)
    empty.location = store.location
    return empty


__all__ = [
    "SERVERS",
    "LinkThreshold",
    "Store",
    "is_on_a_server",
    "open_store",
]
