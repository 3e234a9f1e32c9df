"""The public class ``Reservoir``: an open store with a method for each operation."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reservoir_cli.check_arguments import checked
from reservoir_cli.errors import ReservoirError, TextRemainsError, UsageError
from reservoir_cli.messages import (
    EVERYWHERE,
    Key,
    Message,
    Scope,
    StoredMessage,
    check_name,
    clean_text,
)
from reservoir_cli.reservoir_reads import ReservoirReads
from reservoir_cli.settings.locations import is_on_a_server
from reservoir_cli.storage.tables.conversations import ConversationSummary
from reservoir_cli.storage.tables.holdings import NamedField, PlaceSummary
from reservoir_cli.storage.tables.list_conversations import ConversationList, ListedConversation
from reservoir_cli.storage.tables.proxy_ledger import LedgerEntry
from reservoir_cli.storage.tables.tags_and_pins import TagsAndPins
from reservoir_cli.util.progress import Progress, counted, no_progress

if TYPE_CHECKING:
    from reservoir_cli.api_types import (
        BudgetPlan,
        Check,
        Database,
        ExchangeLog,
        File,
        ImportReport,
        Model,
        Outcome,
        Source,
        SyncReport,
    )

__all__ = [
    "ConversationList",
    "ConversationSummary",
    "LedgerEntry",
    "ListedConversation",
    "NamedField",
    "PlaceSummary",
    "Reservoir",
]


@checked
class Reservoir(ReservoirReads):
    """An open store of messages, with operations that read and change it.

    Use it as a context manager, or call :meth:`close`.
    """

    # Add messages

    def ingest(
        self,
        messages: Sequence[Message],
        *,
        partition: str | None = None,
        instance: str | None = None,
        embed: bool = True,
        pair: bool = False,
    ) -> list[StoredMessage]:
        """Store messages; they are committed on return, and embedded unless ``embed=False``.

        :param pair: link a reply without a trace id to the newest open question.
        :returns: the new messages; those whose source id was stored already are left out.
        """
        scope = self.scope(partition, instance)
        return self._ingestor.ingest(scope, messages, embed=embed, pair=pair)

    def import_files(
        self,
        *sources: "str | Path | File",
        form: str | None = None,
        partition: str | None = None,
        instance: str | None = None,
        dry_run: bool = False,
        embed: bool = False,
        copies: bool = True,
        include_forgotten: bool = False,
        exclude: Sequence[str] = (),
    ) -> "ImportReport":
        """Store the messages of files, folders and zips.

        All sources are opened before the first message is stored: if one cannot be read, nothing
        is stored.

        :param form: the format; ``None`` to detect it from the content.
        :param dry_run: report what would be imported, and store nothing.
        :param embed: embed the new messages, too.
        :param copies: also store messages that other partitions or instances have already.
        :param include_forgotten: also store messages that were forgotten earlier, in any partition.
        :param exclude: folders whose files and conversations are left out.
        :raises UsageError: the format is unknown.
        :raises ReservoirError: a source cannot be read, or its format is not recognised.
        """
        from reservoir_cli.transfer.import_files import import_files

        return import_files(
            self._ingestor,
            [Path(source) if isinstance(source, str) else source for source in sources],
            form=form,
            partition=partition,
            instance=instance,
            dry_run=dry_run,
            embed=embed,
            copies=copies,
            include_forgotten=include_forgotten,
            exclude=exclude,
        )

    def sync(
        self,
        sources: "Sequence[Source] | None" = None,
        *,
        embed: bool = True,
        whole: bool = False,
        copies: bool = False,
        now: datetime | None = None,
    ) -> "SyncReport":
        """Import new messages from the histories of other tools on this machine.

        Nothing is imported while another process syncs the store.

        :param sources: ``None`` for those of the settings; see
            :mod:`reservoir_cli.transfer.sync.sync_sources`.
        :param embed: embed the new messages, newest first; without a model, only notify.
        :param whole: store unfinished last turns, too.
        :param copies: also store messages that other partitions or instances have already.
        :param now: the current time; ``None`` for the wall clock.
        :raises UsageError: a source in the settings is invalid.
        """
        from reservoir_cli.transfer.sync import history_sources, sync_sources

        report = sync_sources.sync(
            self._ingestor,
            history_sources.configured_sources(self.config) if sources is None else sources,
            whole=whole,
            copies=copies,
            now=now,
            progress=self._progress,
        )
        if embed and report.imported:
            self.indexer.embed_if_possible()
        return report

    def embed(
        self,
        scope: Scope = EVERYWHERE,
        newest: int | None = None,
        most: int | None = None,
        *,
        wait: bool = True,
    ) -> int:
        """Embed pending messages; see :meth:`reservoir_cli.api_types.Indexer.embed`."""
        return self.indexer.embed(scope, newest, most, wait=wait)

    def summarize(
        self, partition: str | None = None, *, command: str | None = None, dry_run: bool = False
    ) -> "Iterator[Outcome]":
        """Summarise the conversations of a partition that have no summary, or have grown since.

        :param command: reads a conversation on stdin and prints its summary; split as a shell
            would, but run without one. Summaries that it has not written are replaced.
        :raises ModelUnavailableError: a conversation needs a summary, and there is no embedding
            model.
        """
        from reservoir_cli.maintenance.summarize import parse_command, summarize

        arguments = parse_command(command)
        return summarize(
            self.store,
            self.indexer.embedder,
            self.redactor,
            Scope(partition or self.config.settings().partition),
            command=arguments,
            dry_run=dry_run,
            announce=lambda name: self._notify(f"conversations go to: {name}"),
        )

    # Change messages

    def edit(self, message: int | Key, text: str, *, scope: Scope = EVERYWHERE) -> StoredMessage:
        """Replace the text of a message, and return the message.

        The old text is removed from the store's files; the message's embeddings are
        rebuilt, and the summary of its conversation is deleted.

        :param message: its id in the scope, or its key.
        :raises UsageError: the text is empty.
        :raises ReservoirError: there is no such message; or it was edited, but a reader of the
            store keeps the old text in its files.
        """
        if not text.strip():
            raise UsageError("the new text is empty", hint="reservoir forget deletes a message")
        key = self._key(message, scope)
        self._ingestor.edit(self._stored(key), clean_text(text))
        return self._read(key)

    def tag(self, message: int | Key, *names: str, scope: Scope = EVERYWHERE) -> StoredMessage:
        """Add tags to a message; return the message with all its tags.

        :param message: its id in the scope, or its key.
        :raises UsageError: a name is empty or has control characters.
        :raises ReservoirError: there is no such message.
        """
        key = self._key(message, scope)
        stored_names = [self.redactor.stored_text(key.partition, name) for name in names]
        TagsAndPins(self.store).add_tags(key, stored_names)
        return self._read(key)

    def untag(self, message: int | Key, *names: str, scope: Scope = EVERYWHERE) -> StoredMessage:
        """Remove tags from a message; see :meth:`tag`."""
        key = self._key(message, scope)
        TagsAndPins(self.store).remove_tags(key, names)
        return self._read(key)

    def pin(self, message: int | Key, *, scope: Scope = EVERYWHERE) -> StoredMessage:
        """Pin a message, so that every context includes it; see :meth:`tag`."""
        key = self._key(message, scope)
        TagsAndPins(self.store).pin(key, datetime.now(UTC))
        return self._read(key)

    def unpin(self, message: int | Key, *, scope: Scope = EVERYWHERE) -> StoredMessage:
        """Unpin a message; see :meth:`tag`."""
        key = self._key(message, scope)
        TagsAndPins(self.store).unpin(key)
        return self._read(key)

    def _key(self, message: int | Key, scope: Scope) -> Key:
        if isinstance(message, Key):
            keys = [stored.key for stored in self.store.by_key([message])]
        else:
            keys = self.lookup.keys_of([message], scope)
        if not keys:
            number = message if isinstance(message, int) else message.id
            raise ReservoirError(f"no message {number} in {scope}")
        return keys[0]

    def _read(self, key: Key) -> StoredMessage:
        """Return a changed message, redacted."""
        return self.redactor.messages([self._stored(key)])[0]

    def _stored(self, key: Key) -> StoredMessage:
        """Return a message that was found a moment ago, as it is stored."""
        for message in self.store.by_key([key]):
            return message
        raise ReservoirError(
            f"message {key.id} is no longer in {key.partition}",
            hint="another command moved or forgot it at the same time",
        )

    # Delete and move

    def forget(self, ids: Sequence[int] | Sequence[Key], scope: Scope = EVERYWHERE) -> None:
        """Delete messages and all data derived from them, for good.

        Imports skip them from now on, unless :meth:`import_files` includes forgotten messages. The
        same text typed again is stored as a new message.

        :param ids: ids of messages in the scope, or keys.
        :raises UsageError: on a server, several partitions of the scope have one of the ids.
        :raises TextRemainsError: they are deleted, but a reader of the store keeps their text in
            its files.
        """
        keys = self.lookup.keys_of(ids, scope)
        if not self.store.delete(keys, self._progress):
            deleted = counted(len(keys), "message")
            raise TextRemainsError(f"deleted {deleted}, but parts of the text")

    def move(
        self, keys: Sequence[Key], partition: str, instance: str | None = None
    ) -> tuple[list[Key], int]:
        """Move messages to another partition, which may exist.

        They keep their times, tags and source ids, and imports know them in the new place.

        :param keys: as :meth:`find` returns them; those that are there already stay.
        :param instance: ``None`` to keep each message's own; one that is named like its partition
            gets the new partition's name.
        :returns: the keys of the moved messages, and how many the target had already.
        """
        targets: dict[Scope, list[Key]] = {}
        for message in self.store.by_key(keys):
            own = partition if message.instance == message.partition else message.instance
            target = Scope(check_name(partition), check_name(instance or own))
            if target != Scope(message.partition, message.instance):
                targets.setdefault(target, []).append(message.key)
        moved: list[Key] = []
        merged = 0
        counter, now = self._ingestor.counter(partition), datetime.now(UTC)
        for target, chosen in targets.items():
            there, known = self.store.move(chosen, target, counter=counter, now=now)
            moved, merged = moved + there, merged + known
        return moved, merged

    def move_partition(self, old: str, new: str) -> tuple[int, int]:
        """Move all messages of a partition to another one, which may exist.

        :returns: the numbers of moved messages, and of deleted ones that the target had already.
        :raises UsageError: both are the same partition, so each message would be a duplicate.
        """
        if old == new:
            raise UsageError(f"{old} cannot be moved to itself", hint="name another partition")
        self._progress("moving", 0, 0)
        return self.store.move_partition(old, new)

    # Count

    def stats(self, since: datetime | None = None, partition: str | None = None) -> dict[str, Any]:
        """Return token usage of contexts over time, and what the store holds: ``stats --json``.

        :param partition: count only this partition.
        """
        return self.runs.summary(since, partition)

    def budget(
        self,
        *,
        partition: str | None = None,
        model: str | None = None,
        maximum: int | None = None,
        reserve: int | None = None,
        system: int | None = None,
        procedure: int = 0,
        knowledge: int = 0,
        episodes: int = 0,
        current: int = 0,
    ) -> "BudgetPlan":
        """Plan the tokens of a context, without any message.

        :param maximum: tokens of a context window to plan for, instead of the model's.
        :param reserve: tokens kept for the answer, instead of those of the settings.
        :param system: tokens of the system prompt; ``None`` to count the configured one.
        :param procedure: tokens of procedures; the others likewise.
        :raises UsageError: the reserve leaves nothing, or the model is unknown.
        """
        from reservoir_cli.context.prepare_request import plan_budget

        return plan_budget(
            self.config,
            partition=partition,
            model=model,
            maximum=maximum,
            reserve=reserve,
            system=system,
            procedure=procedure,
            knowledge=knowledge,
            episodes=episodes,
            current=current,
        )

    def models(self, partition: str | None = None) -> "list[Model]":
        """Return the known models, with the additions and changes of the settings."""
        return self.config.known_models(partition)

    # The store

    def backup(self, file: str | Path) -> None:
        """Copy the store to a file, which is replaced once the copy is complete.

        :raises ReservoirError: there is no store, or the copy cannot be written.
        """
        from reservoir_cli.maintenance.backup import back_up

        back_up(self.store, Path(file), self.config.path, self._progress)

    @classmethod
    def doctor(
        cls,
        location: str | Path | None = None,
        *,
        config_file: Path | None = None,
        repair: bool = False,
        progress: Progress = no_progress,
    ) -> "Iterator[Check]":
        """Check settings, store, model and speed, as far as each is accessible.

        :param repair: first rebuild derived data, and fix file permissions.
        """
        from reservoir_cli.maintenance.doctor import examine
        from reservoir_cli.transfer.sync.history_sources import check

        return examine(location, config_file, progress, check_source=check, repair=repair)

    @property
    def database(self) -> "Database":
        """The database that keeps the store."""
        parts = self.store, self.config, self.indexer, self._progress
        if is_on_a_server(self.location):
            from reservoir_cli.maintenance.server_database import ServerDatabase

            return ServerDatabase(*parts)
        from reservoir_cli.maintenance.database import Database

        return Database(*parts)

    @cached_property
    def exchanges(self) -> "ExchangeLog":
        """The log by which the proxy stores requests to models and their answers."""
        from reservoir_cli.transfer.proxied.store_exchange import ExchangeLog

        return ExchangeLog(self._ingestor)
