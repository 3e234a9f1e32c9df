"""Open a store and ask it: every message that comes out here is redacted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from reservoir_cli.maintenance.store_access import open_for_use
from reservoir_cli.messages import Key, Scope, StoredMessage, title_of
from reservoir_cli.redaction import Redactor
from reservoir_cli.retrieval.lookup import Lookup
from reservoir_cli.settings import config
from reservoir_cli.settings.config import Config
from reservoir_cli.settings.schema import Value
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.records import ConversationSummary, Filter, PlaceSummary
from reservoir_cli.util.progress import Progress

if TYPE_CHECKING:
    from reservoir_cli.api_types import (
        BudgetPlan,
        ContextOptions,
        ContextWindow,
        Embedder,
        ExportReport,
        Hit,
        Indexer,
        Ingestor,
        Model,
        Pieces,
        Recall,
        Runs,
        Skipped,
    )

_EVERYTHING, _ALL = Scope(None), Filter()


def _ignore(*_: object) -> None:
    """Report to nobody."""


class Reader:
    """An open store, and what can be asked of it.

    Use it as a context manager, or call :meth:`close`.

    :ivar location: the path of the store, or its URL without the password.
    :ivar config: the settings; :meth:`use` changes them.
    :ivar redactor: redacts all messages that are returned.
    :ivar lookup: finds messages by their ids and conversations.
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
        self.store, self.location, self.lookup = store, store.location, Lookup(store)
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
        patience: float = 30.0,
        notify: Callable[[str], None] = _ignore,
        progress: Progress = _ignore,
    ) -> Self:
        """Open a store and its settings.

        :param location: a file, or the URL of a server; ``None`` for the user's own store.
        :param settings: settings above all others, such as ``{"recency_weight": 0.0}``.
        :param known: settings that were read before, in place of ``settings`` and ``config_file``.
        :param create: create the file if it does not exist.
        :param embedder: use this instead of the model that the settings name.
        :param ready_only: neither download nor compile a model, and embed nothing to answer a
            question: for callers that cannot wait.
        :param patience: seconds to wait while others write.
        :param notify: called with each user-facing message, one sentence.
        :param progress: called during long work with what is done, how much, and of how much.
        :raises UsageError: a wrong setting.
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
        """Go on with other settings; the store and the model stay those that are open."""
        if settings is not self.config:
            self.config, self.redactor = settings, _redactor(settings)
            self.__dict__.pop("_ingestor", None)
            if "indexer" in self.__dict__:
                self.indexer.config = settings

    def serve(self) -> None:
        """Expect many questions: the first takes longer, each one after it less."""
        self.indexer.serving = True
        self.store.keep_warm()

    def scope(self, partition: str | None = None, instance: str | None = None) -> Scope:
        """Return a partition and an instance, the default ones if none is named."""
        partition = partition or str(self.config.lookup("partition")[0])
        return Scope(partition, instance or partition)

    # Read

    def view(
        self, scope: Scope | None = None, count: int = 10, where: Filter = _ALL
    ) -> list[StoredMessage]:
        """Return the last messages of a scope, oldest first; all of them if ``count`` is 0."""
        return self.redactor.messages(self.store.last(scope or self.scope(), count, where))

    def messages(
        self, ids: Sequence[int] | Sequence[Key], scope: Scope = _EVERYTHING
    ) -> list[StoredMessage]:
        """Return messages by their ids if they are in the scope, or by their keys, oldest first."""
        keys = [key for key in ids if isinstance(key, Key)]
        numbers = [number for number in ids if isinstance(number, int)]
        found = self.store.by_key(keys) if keys else self.store.by_id(numbers, scope)
        return self.redactor.messages(found)

    def find(self, scope: Scope, where: Filter = _ALL) -> Sequence[Key]:
        """Return the keys of messages, in order of time."""
        return self.store.find(scope, where)

    def conversations(self, scope: Scope = _EVERYTHING) -> list[ConversationSummary]:
        """Return the conversations of a scope, the oldest first."""
        return [_redacted(each, self.redactor) for each in self.store.conversations(scope)]

    def partitions(self) -> list[PlaceSummary]:
        """Return what each instance of each partition holds, in order of their names."""
        return self.store.place_summaries(_EVERYTHING)

    def export(
        self,
        out: Path | Callable[[str], object],
        scope: Scope | None = None,
        *,
        format: str = "jsonl",
        where: Filter = _ALL,
        embeddings: bool = False,
        explain_empty: Callable[[], str] = str,
    ) -> "ExportReport":
        """Write the messages of a scope to a file, whole or not at all, or piece by piece.

        :param out: a file, or called with each piece of the text.
        :param embeddings: with the embeddings; formats ``jsonl`` and ``json`` only.
        :param explain_empty: gives the hint if nothing matches and the file has something in it.
        :raises UsageError: an unknown format, or one that has no place for embeddings.
        :raises ReservoirError: the file cannot be written.
        """
        from reservoir_cli.transfer import exporters

        return exporters.export_to(
            out,
            self.store,
            scope or self.scope(),
            where,
            format,
            redactor=self.redactor,
            embeddings=embeddings,
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
        where: Filter = _ALL,
        passages: bool = False,
    ) -> "list[Hit]":
        """Find messages by meaning and words; see :func:`reservoir_cli.retrieval.search.search`.

        :param mode: ``hybrid``, ``keyword`` or ``semantic``.
        :param scope: where to look; without it the partition, or the instance if it is named.
        :param where: list only messages that pass; scores are those of the whole scope.
        :param passages: add to each hit its best passage, the places of the words that were asked
            for, and the title of its conversation.
        :raises ModelUnavailableError: ``semantic``, and there is no model.
        """
        from reservoir_cli.retrieval import search as searching

        searching.check_mode(mode, threshold)
        there = scope or Scope(partition or self.config.settings().partition, instance)
        embedder = None
        if mode != "keyword":
            embedder = self.indexer.embedder_for_question(there, required=mode == "semantic")
        found = searching.search(
            self.store,
            embedder,
            term,
            there,
            self.config.settings(there.partition),
            datetime.now().astimezone(),
            mode=mode,  # type: ignore[arg-type]
            limit=limit,
            threshold=threshold,
            link=link,
            deduplicate=deduplicate,
            where=where,
            passages=passages,
            redactor=self.redactor,
        )
        hits = [hit.masked(self.redactor) for hit in found]
        return searching.with_words(hits, term, mode) if passages else hits  # type: ignore[arg-type]

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
        where: Filter = _ALL,
        now: datetime | None = None,
        explain: bool = False,
        without: Sequence[int] = (),
        **older: Value,
    ) -> "ContextWindow":
        """Build the best context for a question that a token budget can buy.

        :param budget: tokens for everything, or ``recommended``; without it the model's limit.
        :param format: what ``.to()`` gives by default, and what is counted.
        :param procedure: (name, text) pairs, or a mapping; so is ``knowledge`` by its source.
        :param options: settings for this context alone.
        :param save: store the question afterwards, as a user message with ``trace_id``.
        :param where: print only stored messages that pass; scores are those of the whole scope.
        :param now: the time of asking, aware; ``None`` for the wall clock.
        :param explain: tell what each similarity is made of, too.
        :param without: ids of messages to leave out; the scores of others stay as they are.
        :param older: ``recent``, ``similar``, ``threshold``, ``reserve`` and ``output_reserve``,
            which are fields of ``options`` now; and those fields themselves.
        :raises UsageError: an unknown model or format, or a budget that does not fit.
        """
        from reservoir_cli.context import builder, request

        flags = (options or request.ContextOptions()).flags() | request.older_flags(older)
        asked = request.prepare(
            self.config.with_flags(flags),
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
        scope, meter = Scope(asked.request.partition), asked.meter(offline=self.offline)
        window = builder.build_context(
            asked.request,
            asked.settings,
            self.store,
            self.indexer.embedder_for_question(scope) if query.strip() else None,
            meter,
            window=asked.window,
            reserve=asked.reserve,
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
        now: datetime | None = None,
        recorded: bool = True,
    ) -> "Recall | Skipped":
        """Recall messages for whoever asks: an agent that has its own history.

        The same question gives the same text as long as the store is the same. Secrets are masked
        unless ``redact`` is off.

        :param budget: tokens of the text; ``None`` for 1,500.
        :param exclude_conversation: the id of the running session, which is not recalled.
        :param since: recall only messages from this time on, aware.
        :param now: the time of asking, aware; ``None`` for the wall clock.
        :param recorded: count it in the statistics.
        :raises UsageError: a budget that is not positive, or a time without a zone.
        """
        from reservoir_cli.context import recall as recalling

        prepared = recalling.prepare_recall(
            self.config,
            question,
            partition=partition,
            budget=recalling.BUDGET if budget is None else budget,
            exclude_conversation=exclude_conversation,
            now=now,
        )
        scope = Scope(prepared.request.partition)
        outcome, window = recalling.recall(
            prepared,
            self.store,
            lambda: self.indexer.embedder_for_question(scope),
            redactor=self.redactor.for_agents,
            where=Filter(since=since),
        )
        if recorded:
            self.runs.record_recall(prepared.request, window)
        return outcome

    # Count

    def stats(self, since: datetime | None = None, partition: str | None = None) -> dict[str, Any]:
        """Return what contexts took over time, and what the store holds: ``stats --json``.

        :param partition: count this one alone.
        """
        return self.runs.summary(since, partition)

    def budget(self, **parts: Any) -> "BudgetPlan":
        """Plan the tokens of a context; see :func:`reservoir_cli.context.request.plan_budget`."""
        from reservoir_cli.context.request import plan_budget

        return plan_budget(self.config, **parts)

    def models(self, partition: str | None = None) -> "list[Model]":
        """Return the models that are known, with what the settings add and change."""
        return self.config.known_models(partition)

    # Parts

    @cached_property
    def indexer(self) -> "Indexer":
        """Embeds messages."""
        from reservoir_cli.retrieval.indexing import Indexer

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
        from reservoir_cli.context.run_log import Runs

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


def _redacted(found: ConversationSummary, redactor: Redactor) -> ConversationSummary:
    """Return a conversation as it may be printed; its first question stands for a title."""
    about = redactor.conversation(found.partition, found.conversation)
    title = about.title or title_of(redactor.text(found.partition, found.question or ""))
    question = found.question and redactor.text(found.partition, found.question)
    return replace(found, conversation=replace(about, title=title), question=question)
