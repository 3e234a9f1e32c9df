"""The public class ``Reservoir``: an open store with a method for each operation."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from reservoir_cli.check_arguments import checked
from reservoir_cli.errors import ReservoirError, TextRemainsError, UsageError
from reservoir_cli.messages import (
    EVERYTHING,
    EVERYWHERE,
    Filter,
    Key,
    Message,
    Scope,
    StoredMessage,
    check_name,
    clean_text,
    title_of,
)
from reservoir_cli.redaction import Redactor
from reservoir_cli.settings import config
from reservoir_cli.settings.config import Config
from reservoir_cli.settings.schema import RECALL_BUDGET
from reservoir_cli.settings.setting import Value
from reservoir_cli.settings.store_locations import is_on_a_server
from reservoir_cli.storage.open_store import open_for_use
from reservoir_cli.storage.store import Store
from reservoir_cli.storage.tables.conversations import ConversationSummary as ConversationSummary
from reservoir_cli.storage.tables.holdings import ChannelSummary as ChannelSummary
from reservoir_cli.storage.tables.holdings import NamedField as NamedField
from reservoir_cli.storage.tables.list_conversations import ConversationList as ConversationList
from reservoir_cli.storage.tables.list_conversations import ListedConversation as ListedConversation
from reservoir_cli.storage.tables.proxy_ledger import LedgerEntry as LedgerEntry
from reservoir_cli.storage.tables.tags_and_pins import TagsAndPins
from reservoir_cli.util.progress import Progress, counted
from reservoir_cli.util.timeouts import LOCKED_STORE

if TYPE_CHECKING:
    from reservoir_cli.api_types import (
        BudgetPlan,
        Check,
        ContextOptions,
        ContextWindow,
        Database,
        Embedder,
        ExchangeLog,
        ExportReport,
        File,
        Hit,
        ImportReport,
        Indexer,
        Ingestor,
        Lookup,
        Model,
        Outcome,
        Pieces,
        Recall,
        Runs,
        Skipped,
        Source,
        SyncReport,
    )


def _ignore(*_: object) -> None:
    """Accept and discard a report."""


@checked
class Reservoir:
    """An open store of messages, with operations that read and change it.

    Use it as a context manager, or call :meth:`close`.

    :ivar location: the path of the store, or its URL without the password.
    :ivar config: the settings; :meth:`use` changes them.
    :ivar redactor: redacts all returned messages.
    """

    def __init__(
        self,
        store: Store,
        settings: Config,
        *,
        embedder: "Embedder | None" = None,
        offline: bool = False,
        ready_only: bool = False,
        notify: Callable[[str], None] = _ignore,
        progress: Progress = _ignore,
    ) -> None:
        self.store, self.location = store, store.location
        self.config, self.redactor, self.offline = settings, _redactor(settings), offline
        self._embedder, self._ready_only = embedder, ready_only
        self._notify, self._progress = notify, progress

    @classmethod
    def open(
        cls,
        location: str | Path | None = None,
        *,
        settings: Mapping[str, Value] | None = None,
        config_file: Path | None = None,
        known: Config | None = None,
        create: bool = True,
        embedder: "Embedder | None" = None,
        offline: bool = False,
        ready_only: bool = False,
        patience: float = LOCKED_STORE,
        notify: Callable[[str], None] = _ignore,
        progress: Progress = _ignore,
    ) -> Self:
        """Open a store and its settings.

        :param location: a file, or the URL of a server; ``None`` for the user's own store.
        :param settings: settings that override all others, such as ``{"recency_weight": 0.0}``.
        :param known: settings read earlier, instead of ``settings`` and ``config_file``.
        :param create: create the file if it does not exist; otherwise reads find nothing, and
            writes raise ``StoreError``.
        :param embedder: used instead of the model in the settings.
        :param ready_only: never download or compile a model, and embed no messages before a
            question is answered: for callers that cannot wait.
        :param patience: seconds to wait for another writer.
        :param notify: called with each user-facing message, one sentence.
        :param progress: called during long work with its description, the amount done, and the
            total.
        :raises UsageError: a setting is invalid.
        :raises StoreError: the store cannot be opened, or is an unfinished copy (``create``).
        """
        if known is None:
            known = config.load(config_file, settings)
            for warning in known.warnings:
                notify(warning)
        path = known.store_location(location)
        store = open_for_use(path, create=create, patience=patience, notify=notify)
        return cls(
            store,
            known,
            embedder=embedder,
            offline=offline,
            ready_only=ready_only,
            notify=notify,
            progress=progress,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store."""
        if "runs" in self.__dict__:
            self.runs.write_recalls()
        self.store.close()

    def use(self, settings: Config) -> None:
        """Replace the settings; the open store and the loaded model stay."""
        if settings is not self.config:
            self.config, self.redactor = settings, _redactor(settings)
            for name in ("_ingestor", "exchanges"):
                self.__dict__.pop(name, None)
            if "indexer" in self.__dict__:
                self.indexer.config = settings

    def serve(self) -> None:
        """Prepare for many questions: the first one takes longer, later ones are faster."""
        self.indexer.serving = True
        self.store.keep_warm()

    def scope(self, partition: str | None = None, instance: str | None = None) -> Scope:
        """Return the scope of a partition and an instance; ``None`` stands for the default."""
        partition = partition or str(self.config.lookup("partition")[0])
        return Scope(partition, instance or partition)

    # Read

    def view(
        self, scope: Scope | None = None, count: int = 10, where: Filter = EVERYTHING
    ) -> list[StoredMessage]:
        """Return the latest messages of a scope, oldest first; all of them if ``count`` is 0."""
        return self.redactor.messages(self.store.last(scope or self.scope(), count, where))

    def messages(
        self, ids: Sequence[int] | Sequence[Key], scope: Scope = EVERYWHERE
    ) -> list[StoredMessage]:
        """Return messages by their ids in the scope, or by their keys, oldest first."""
        keys = [key for key in ids if isinstance(key, Key)]
        numbers = [number for number in ids if isinstance(number, int)]
        messages = self.store.by_key(keys) if keys else self.store.by_id(numbers, scope)
        return self.redactor.messages(messages)

    def find(self, scope: Scope, where: Filter = EVERYTHING) -> Sequence[Key]:
        """Return the keys of the messages that match, in order of time."""
        return self.store.find(scope, where)

    def conversations(
        self, scope: Scope = EVERYWHERE, *, only: str | None = None
    ) -> list[ConversationSummary]:
        """Return the conversations of a scope, oldest first.

        :param only: the id of the only conversations to return.
        """
        summaries = self.store.conversations(scope, only)
        return [_redact(summary, self.redactor) for summary in summaries]

    def partitions(self) -> list[ChannelSummary]:
        """Return a summary of each instance of each partition, sorted by name."""
        return self.store.channel_summaries(EVERYWHERE)

    def export(
        self,
        out: Path | Callable[[str], object],
        scope: Scope | None = None,
        *,
        format: str = "jsonl",
        where: Filter = EVERYTHING,
        embeddings: bool = False,
        explain_empty: Callable[[], str] = str,
    ) -> "ExportReport":
        """Write the messages of a scope to a file atomically, or pass the text to a function.

        :param out: a file, or a function that is called with each piece of the text.
        :param embeddings: include embeddings; formats ``jsonl`` and ``json`` only.
        :param explain_empty: returns the hint if nothing matches and the file is not empty.
        :raises UsageError: the format is unknown, or cannot include embeddings.
        :raises ReservoirError: the file cannot be written.
        """
        from reservoir_cli.transfer.export import export_messages

        return export_messages.export_to(
            out,
            self.store,
            scope or self.scope(),
            where,
            format,
            redactor=self.redactor,
            embeddings=embeddings,
            settings=self.config.path,
            progress=self._progress,
            explain_empty=explain_empty,
        )

    # Ask

    def search(
        self,
        term: str,
        *,
        mode: str = "hybrid",
        limit: int = 10,
        partition: str | None = None,
        instance: str | None = None,
        scope: Scope | None = None,
        threshold: float | None = None,
        link: bool = False,
        deduplicate: bool = False,
        where: Filter = EVERYTHING,
        passages: bool = False,
    ) -> "list[Hit]":
        """Find messages by meaning and words.

        See :class:`reservoir_cli.retrieval.hits.SearchCriteria`.

        :param mode: ``hybrid``, ``keyword`` or ``semantic``.
        :param scope: the messages to search; by default the partition, or the named instance.
        :param where: return only messages that match; scores are those of the whole scope.
        :param passages: add to each hit its best passage, the positions of the query's words, and
            the title of its conversation.
        :raises ModelUnavailableError: the mode is ``semantic``, and there is no model.
        """
        from reservoir_cli.retrieval import hits, search

        term = clean_text(term)
        scope = scope or Scope(partition or self.config.settings().partition, instance)
        criteria = hits.SearchCriteria(
            term,
            scope,
            mode=mode,
            limit=limit,
            threshold=threshold,
            link=link,
            deduplicate=deduplicate,
            where=where,
            passages=passages,
            redactor=self.redactor,
            link_cosine=lambda name: self.config.settings(name).link_cosine,
        )
        embedder = None
        if mode != "keyword":
            embedder = self.indexer.embedder_for_question(scope, required=mode == "semantic")
        settings, now = self.config.settings(scope.partition), datetime.now().astimezone()
        matches = search.search(self.store, embedder, criteria, settings, now)
        masked = [hit.masked(self.redactor) for hit in matches]
        return search.with_words(masked, term, mode) if passages else masked

    def context(
        self,
        query: str,
        *,
        partition: str | None = None,
        instance: str | None = None,
        model: str | None = None,
        budget: int | str | None = None,
        format: str = "text",
        system: str | None = None,
        procedure: "Pieces" = (),
        knowledge: "Pieces" = (),
        episode: Sequence[str] = (),
        options: "ContextOptions | None" = None,
        save: bool = False,
        trace_id: str | None = None,
        where: Filter = EVERYTHING,
        now: datetime | None = None,
        explain: bool = False,
        without: Sequence[int] = (),
    ) -> "ContextWindow":
        """Build the best context for a question within a token budget.

        :param budget: tokens for everything, or ``recommended``; by default the model's limit.
        :param format: the default format of ``.to()``, whose tokens are counted.
        :param procedure: (name, text) pairs or a mapping; ``knowledge`` alike, by source.
        :param options: settings for this context only.
        :param save: store the question afterwards, as a user message with ``trace_id``.
        :param where: include only stored messages that match; scores are those of the whole scope.
        :param now: the time of the question, aware; ``None`` for the wall clock.
        :param explain: include the components of each similarity.
        :param without: ids of messages to leave out; the scores of others do not change.
        :raises UsageError: the model or format is unknown, or the budget is too large.
        """
        from reservoir_cli.context import build_context, prepare_request

        options = options or prepare_request.ContextOptions()
        prepared = prepare_request.prepare(
            self.config.with_flags(options.flags()),
            query,
            partition=partition,
            instance=instance,
            model=model,
            budget=budget,
            format=format,
            system=system,
            procedure=procedure,
            knowledge=knowledge,
            episode=episode,
            trace_id=trace_id,
            now=now,
        )
        scope = Scope(prepared.request.partition)
        meter = prepared.meter(self.store, offline=self.offline)
        window = build_context.build_context(
            prepared,
            self.store,
            self.indexer.embedder_for_question(scope) if query.strip() else None,
            meter,
            redactor=self.redactor,
            where=where,
            explain=explain,
            without=without,
        )
        if save and (question := window.request.question()):
            scope = self.scope(window.request.partition, window.request.instance)
            self._ingestor.ingest(scope, [question])
        return window

    def recall(
        self,
        question: str,
        *,
        partition: str | None = None,
        budget: int | None = None,
        exclude_conversation: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        now: datetime | None = None,
        talk: Sequence[tuple[str, str]] = (),
        shown: Sequence[int] = (),
        recorded: bool = True,
    ) -> "Recall | Skipped":
        """Recall messages for an agent, which has its own history.

        The same question gives the same text while the store does not change. Secrets are masked
        unless ``redact`` is off.

        :param budget: tokens of the text; ``None`` for 1,500.
        :param exclude_conversation: the id of the current session, which is not recalled.
        :param since: recall only messages from this time on, aware; ``until``, those before it.
        :param now: the time of the question, aware; ``None`` for the wall clock.
        :param talk: (role, text) of the turns of the current session, oldest first; by default
            those that are stored.
        :param shown: ids of messages that the agent has already, which are not recalled.
        :param recorded: include it in the statistics.
        :raises UsageError: the budget is not positive, or a time has no zone.
        """
        from reservoir_cli.context import recall as recalling

        prepared = recalling.prepare_recall(
            self.config,
            question,
            partition=partition,
            budget=RECALL_BUDGET if budget is None else budget,
            exclude_conversation=exclude_conversation,
            now=now,
            talk=talk,
            shown=shown,
        )
        scope = Scope(prepared.request.partition)
        outcome, window = recalling.recall(
            prepared,
            self.store,
            lambda: self.indexer.embedder_for_question(scope),
            redactor=self.redactor.for_agents,
            where=Filter(since=since, until=until),
        )
        if recorded:
            self.runs.record_recall(prepared.request, window)
        return outcome

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

        They keep their times, tags and source ids, and imports know them in the new channel.

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
            there, twins = self.store.move(chosen, target, counter=counter, now=now)
            moved, merged = moved + there, merged + twins
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
        progress: Progress = _ignore,
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

    # Parts

    @cached_property
    def lookup(self) -> "Lookup":
        """Finds messages by ids and conversations."""
        from reservoir_cli.retrieval.lookup import Lookup

        return Lookup(self.store)

    @cached_property
    def indexer(self) -> "Indexer":
        """The indexer, which embeds messages."""
        from reservoir_cli.retrieval.embed_messages import Indexer

        return Indexer(
            self.store,
            self.config,
            embedder=self._embedder,
            offline=self.offline,
            ready_only=self._ready_only,
            notify=self._notify,
            progress=self._progress,
        )

    @cached_property
    def runs(self) -> "Runs":
        """The records of contexts and recalls."""
        from reservoir_cli.context.run_statistics import Runs

        return Runs(self.store, self._notify)

    @cached_property
    def _ingestor(self) -> "Ingestor":
        from reservoir_cli.transfer.ingest import Ingestor

        return Ingestor(
            self.store,
            self.config,
            self.redactor,
            self.indexer,
            notify=self._notify,
            progress=self._progress,
        )

    @cached_property
    def exchanges(self) -> "ExchangeLog":
        """The log by which the proxy stores requests to models and their answers."""
        from reservoir_cli.transfer.proxied.store_exchange import ExchangeLog

        return ExchangeLog(self._ingestor)


def _redactor(settings: Config) -> Redactor:
    return Redactor(lambda name: str(settings.lookup("redact", name)[0]))


def _redact(summary: ConversationSummary, redactor: Redactor) -> ConversationSummary:
    """Redact a conversation's summary; without a title it gets one from its first question."""
    metadata = redactor.conversation(summary.partition, summary.conversation)
    title = metadata.title or title_of(redactor.text(summary.partition, summary.question or ""))
    question = summary.question and redactor.text(summary.partition, summary.question)
    return summary._replace(conversation=replace(metadata, title=title), question=question)
