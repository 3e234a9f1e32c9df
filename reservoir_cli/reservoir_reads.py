"""Open a store, and read, search and recall its messages, which are redacted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from reservoir_cli.check_arguments import checked
from reservoir_cli.messages import (
    EVERYTHING,
    EVERYWHERE,
    Filter,
    Key,
    Scope,
    StoredMessage,
    clean_text,
    title_of,
)
from reservoir_cli.redaction import Redactor
from reservoir_cli.settings import config
from reservoir_cli.settings.config import Config
from reservoir_cli.settings.schema import RECALL_BUDGET
from reservoir_cli.settings.setting import Value
from reservoir_cli.storage.open_store import open_for_use
from reservoir_cli.storage.store import Store
from reservoir_cli.storage.tables.conversations import ConversationSummary
from reservoir_cli.storage.tables.holdings import PlaceSummary
from reservoir_cli.util.progress import Progress
from reservoir_cli.util.timeouts import LOCKED_STORE

if TYPE_CHECKING:
    from reservoir_cli.api_types import (
        ContextOptions,
        ContextWindow,
        Embedder,
        ExportReport,
        Hit,
        Indexer,
        Ingestor,
        Lookup,
        Pieces,
        Recall,
        Runs,
        Skipped,
    )


def _ignore(*_: object) -> None:
    """Accept and discard a report."""


@checked
class ReservoirReads:
    """An open store with its read operations.

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
        place = known.store_location(location)
        store = open_for_use(place, create=create, patience=patience, notify=notify)
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
        found = self.store.by_key(keys) if keys else self.store.by_id(numbers, scope)
        return self.redactor.messages(found)

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

    def partitions(self) -> list[PlaceSummary]:
        """Return a summary of each instance of each partition, sorted by name."""
        return self.store.place_summaries(EVERYWHERE)

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

        See :class:`reservoir_cli.retrieval.search_hits.SearchCriteria`.

        :param mode: ``hybrid``, ``keyword`` or ``semantic``.
        :param scope: the messages to search; by default the partition, or the named instance.
        :param where: return only messages that match; scores are those of the whole scope.
        :param passages: add to each hit its best passage, the positions of the query's words, and
            the title of its conversation.
        :raises ModelUnavailableError: the mode is ``semantic``, and there is no model.
        """
        from reservoir_cli.retrieval import search, search_hits

        term = clean_text(term)
        scope = scope or Scope(partition or self.config.settings().partition, instance)
        criteria = search_hits.SearchCriteria(
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
        found = search.search(self.store, embedder, criteria, settings, now)
        hits = [hit.masked(self.redactor) for hit in found]
        return search.with_words(hits, term, mode) if passages else hits

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
        from reservoir_cli.context import builder, prepare_request

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
        window = builder.build_context(
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
            place = self.scope(window.request.partition, window.request.instance)
            self._ingestor.ingest(place, [question])
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


def _redactor(settings: Config) -> Redactor:
    return Redactor(lambda name: str(settings.lookup("redact", name)[0]))


def _redact(summary: ConversationSummary, redactor: Redactor) -> ConversationSummary:
    """Redact a conversation's summary; without a title it gets one from its first question."""
    metadata = redactor.conversation(summary.partition, summary.conversation)
    title = metadata.title or title_of(redactor.text(summary.partition, summary.question or ""))
    question = summary.question and redactor.text(summary.partition, summary.question)
    return summary._replace(conversation=replace(metadata, title=title), question=question)
