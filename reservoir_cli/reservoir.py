"""The public object: a store, its settings, and one method a verb."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from reservoir_cli.errors import ModelUnavailableError, ReservoirError, UsageError
from reservoir_cli.messages import Key, Message, Scope, StoredMessage, clean_text, title_of
from reservoir_cli.redaction import Mode, Redactor
from reservoir_cli.settings import config, paths
from reservoir_cli.settings.config import Config
from reservoir_cli.settings.schema import Value
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.records import (
    ConversationSummary,
    Filter,
    IdField,
    LedgerEntry,
    PlaceSummary,
    ThreadName,
)

if TYPE_CHECKING:
    from reservoir_cli.context.recall import Recall, Skipped
    from reservoir_cli.context.render.window import ContextWindow
    from reservoir_cli.context.request import BudgetPlan, ContextOptions, Pieces
    from reservoir_cli.embedding import Embedder, Engine, Progress
    from reservoir_cli.maintenance.calibrate import Calibration
    from reservoir_cli.maintenance.database import EmbeddingState
    from reservoir_cli.maintenance.doctor import Check
    from reservoir_cli.retrieval.hits import Hit
    from reservoir_cli.retrieval.indexing import Indexer
    from reservoir_cli.settings.models import Model
    from reservoir_cli.storage.ledger import Ledger
    from reservoir_cli.storage.sqlite.salvage import Lost
    from reservoir_cli.transfer.exchanges import Exchange
    from reservoir_cli.transfer.importers import File
    from reservoir_cli.transfer.ingest import Ingestor
    from reservoir_cli.transfer.reports import ExportReport, ImportReport
    from reservoir_cli.transfer.summarize import Outcome
    from reservoir_cli.transfer.sync import Source, SyncReport

__all__ = ["ConversationSummary", "Filter", "IdField", "LedgerEntry", "PlaceSummary", "Reservoir"]

_EVERYTHING, _ALL = Scope(None), Filter()


def _ignore(*_: object) -> None:
    """Report to nobody."""


class Reservoir:
    """A store of messages and what can be asked of it.

    Use it as a context manager, or call :meth:`close`.
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
        progress: "Progress" = _ignore,
    ) -> None:
        self.store, self.config, self.offline = store, settings, offline
        self._ready_only = ready_only
        self._serving = False
        self.put_off: list[Callable[[], None]] | None = None
        self._notify, self._progress, self._embedder = notify, progress, embedder
        self.redactor = self._new_redactor()

    def _new_redactor(self) -> Redactor:
        return Redactor(lambda name: str(self.config.lookup("redact", name)[0]))

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
        progress: "Progress" = _ignore,
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
        from reservoir_cli.maintenance.store_access import open_for_use

        if known is None:
            known = config.load(config_file, settings)
            for warning in known.warnings:
                notify(warning)
        place = _location(location, known.database())
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

    @property
    def location(self) -> str:
        """The path of the store, or its URL without the password."""
        return self.store.location

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store."""
        self.write_records()
        self.store.close()

    def use(self, settings: Config) -> None:
        """Go on with other settings; the store and the model stay those that are open."""
        if settings is not self.config:
            self.config, self.redactor = settings, self._new_redactor()
            for made in ("masking_redactor", "_ingestor"):
                self.__dict__.pop(made, None)

    def serve(self) -> None:
        """Expect many questions: the first takes longer, each one after it less."""
        self._serving = True
        self.store.keep_warm()

    def put_off_records(self) -> None:
        """Record recalls when :meth:`write_records` is called: nobody waits for that."""
        self.put_off = []

    def write_records(self) -> None:
        """Record the recalls that were put off."""
        while self.put_off:
            self._record(self.put_off.pop(0))

    def scope(self, partition: str | None = None, instance: str | None = None) -> Scope:
        """Return a partition and an instance, the default ones if none is named."""
        partition = partition or str(self.config.lookup("partition")[0])
        return Scope(partition, instance or partition)

    # Messages in

    def ingest(
        self,
        messages: Sequence[Message],
        *,
        partition: str | None = None,
        instance: str | None = None,
        embed: bool = True,
        pair: bool = False,
    ) -> list[StoredMessage]:
        """Store messages; they are safe when this returns, and embedded unless ``embed=False``.

        :param pair: a reply without a trace id answers the newest open question.
        :returns: the new ones; a message whose source id is stored already is left out.
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
    ) -> "ImportReport":
        """Store the messages of files, folders and zips.

        All are opened before the first is stored: if one cannot be read, nothing is stored.

        :param form: a format; ``None`` to recognise it by the content.
        :param dry_run: find out what would be done, and store nothing.
        :param embed: embed the new messages, too.
        :raises UsageError: there is no format of that name.
        :raises ReservoirError: a source cannot be read, or is of no known format.
        """
        return self._ingestor.import_files(
            [Path(source) if isinstance(source, str) else source for source in sources],
            form=form,
            partition=partition,
            instance=instance,
            dry_run=dry_run,
            embed=embed,
        )

    def sync(
        self,
        sources: "Sequence[Source] | None" = None,
        *,
        embed: bool = True,
        whole: bool = False,
        now: datetime | None = None,
    ) -> "SyncReport":
        """Import what is new in the histories of other tools on this machine.

        While another process syncs the store, nothing is done.

        :param sources: those of the settings if ``None``; see :mod:`reservoir_cli.transfer.sync`.
        :param embed: embed the new messages, the newest first; without a model, only notify.
        :param whole: as an import by hand: with unfinished last turns, and with what other
            partitions have already.
        :param now: the wall clock.
        :raises UsageError: the settings name a source wrongly.
        """
        from reservoir_cli.transfer import sync

        wanted = sync.configured(self.config) if sources is None else sources
        report = sync.sync(self._ingestor, wanted, whole=whole, now=now, progress=self._progress)
        if embed and report.imported:
            self._indexer.embed_if_possible()
        return report

    def store_exchange(self, exchange: "Exchange", now: datetime | None = None) -> int:
        """Store what is new of a request to a model and its answer; return how many messages.

        See :mod:`reservoir_cli.transfer.exchanges`. :meth:`embed_added` embeds them.
        """
        from reservoir_cli.transfer import exchanges

        return exchanges.store(self._ingestor, exchange, now or datetime.now(UTC))

    def embed_added(self, scope: Scope, count: int) -> None:
        """Embed messages that were just stored, and a few older ones, if a model is there."""
        from reservoir_cli.retrieval.indexing import CATCH_UP

        self._indexer.embed_if_possible(scope, backlog=count + CATCH_UP)

    def continued(self, scope: Scope, messages: Sequence[Message]) -> str | None:
        """Return the conversation that a request to a model goes on with, if one is stored.

        :param messages: with the identities that the proxy gives them.
        """
        from reservoir_cli.transfer import exchanges

        return exchanges.continued(self._ingestor, scope, messages)

    @property
    def ledger(self) -> "Ledger":
        """What the proxy added to questions."""
        from reservoir_cli.storage.ledger import Ledger

        return Ledger(self.store)

    def save_question(self, window: "ContextWindow") -> list[StoredMessage]:
        """Store the question of a window as a user message with the window's trace id."""
        request = window.request
        if not request.query.strip():
            return []
        message = Message("user", request.query, trace_id=request.trace_id, source="cli")
        return self.ingest([message], partition=request.partition, instance=request.instance)

    # Embeddings

    def embed(
        self,
        scope: Scope = _EVERYTHING,
        newest: int | None = None,
        most: int | None = None,
        *,
        wait: bool = True,
    ) -> int:
        """Embed pending messages; see :meth:`reservoir_cli.retrieval.indexing.Indexer.embed`."""
        return self._indexer.embed(scope, newest, most, wait=wait)

    def embed_if_possible(
        self, scope: Scope = _EVERYTHING, backlog: int | None = None, *, most: int | None = None
    ) -> None:
        """Embed pending messages; without a model, only notify what is missing."""
        self._indexer.embed_if_possible(scope, backlog, most=most)

    def pending(self, scope: Scope = _EVERYTHING) -> int:
        """Return how many messages have no embedding yet."""
        return self.store.count_unembedded(scope)

    def rebuild(self) -> int:
        """Embed every message again, then compare the new embeddings; return how many."""
        return self._indexer.rebuild()

    def update_embeddings(self, model: str | None = None, *, rebuild: bool = False) -> int:
        """Embed what is pending, or everything when the model changed; return how many.

        :param model: change to this model, for as long as this object lives.
        :param rebuild: embed everything, even by the same model.
        :raises ModelUnavailableError: there is no such model.
        """
        if model:
            self.config = self.config.with_flags({"embedding_model": model})
        return self._indexer.update(rebuild=rebuild, named=bool(model))

    def embedding_state(self) -> "EmbeddingState":
        """Return by which models the store is embedded."""
        from reservoir_cli.maintenance.database import embedding_state

        return embedding_state(self.store)

    @property
    def engine(self) -> "Engine | None":
        """What runs the embedding model, and why; ``None`` until something needs it."""
        return self._embedder.engine if self._embedder else None

    def load_engine(self) -> "Engine | None":
        """Load the model, and return what runs it; ``None`` without a model."""
        with suppress(ModelUnavailableError):
            return self._load_embedder().engine
        return None

    # Messages out: all of them redacted

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

    def thread(self, message: StoredMessage) -> list[int]:
        """Return the ids of a message's conversation, in order of time.

        Outside of a conversation these are the messages of its instance that are in none.
        """
        scope = Scope(message.partition, message.instance)
        name = (message.partition, message.instance, message.conversation_id)
        return list(self.threads(scope, Filter(conversation_id=message.conversation_id))[name])

    def threads(self, scope: Scope, where: Filter = _ALL) -> "Mapping[ThreadName, Sequence[int]]":
        """Return the ids of messages by their conversation, in order of time."""
        return self.store.threads(scope, where)

    def ids_starting_with(self, field: IdField, beginning: str, scope: Scope) -> list[str]:
        """Return the trace or conversation ids of a scope that begin so."""
        return self.store.starting_with(field, beginning, scope)

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

        if mode not in searching.MODES:
            raise UsageError(
                f"unknown mode {mode!r}", hint=f"modes are {', '.join(searching.MODES)}"
            )
        if mode == "keyword" and threshold is not None:
            raise UsageError(
                "a threshold is of meaning: it does not go with a keyword search",
                hint="leave the threshold out, or search by meaning, too",
            )
        there = scope or Scope(partition or self.config.settings().partition, instance)
        embedder = None
        if mode != "keyword":
            embedder = self._embedder_for(there, required=mode == "semantic")
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
        from reservoir_cli.context.budget import Meter
        from reservoir_cli.context.builder import build_context
        from reservoir_cli.context.request import ContextOptions, older_flags, prepare
        from reservoir_cli.tokens import load_counter

        asked = prepare(
            self.config.with_flags((options or ContextOptions()).flags() | older_flags(older)),
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
        settings, scope = asked.settings, Scope(asked.request.partition)
        counter = load_counter(settings.token_counter, offline=self.offline)
        window = build_context(
            asked.request,
            settings,
            self.store,
            self._embedder_for(scope) if query.strip() else None,
            Meter.of(counter, settings.token_multiplier, settings.token_safety),
            window=asked.window,
            reserve=asked.reserve,
            mask=self.redactor,
            where=where,
            explain=explain,
            without=without,
        )
        if save:
            self.save_question(window)
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
    ) -> "Recall | Skipped":
        """Recall messages for whoever asks: an agent that has its own history.

        The same question gives the same text as long as the store is the same. Secrets are masked
        unless ``redact`` is off.

        :param budget: tokens of the text; ``None`` for 1,500.
        :param exclude_conversation: the id of the running session, which is not recalled.
        :param since: recall only messages from this time on, aware.
        :param now: the time of asking, aware; ``None`` for the wall clock.
        :raises UsageError: a budget that is not positive, or a time without a zone.
        """
        from reservoir_cli.context import recall as recalling
        from reservoir_cli.context import runs
        from reservoir_cli.context.budget import Meter
        from reservoir_cli.tokens import storing_counter

        prepared = recalling.prepare_recall(
            self.config,
            question,
            partition=partition,
            budget=recalling.BUDGET if budget is None else budget,
            exclude_conversation=exclude_conversation,
            now=now,
        )
        settings, scope = prepared.settings, Scope(prepared.request.partition)
        counter = storing_counter(settings.token_counter)
        outcome, window = recalling.recall(
            prepared,
            self.store,
            lambda: self._embedder_for(scope),
            Meter.of(counter, settings.token_multiplier, settings.token_safety),
            redactor=self.masking_redactor,
            where=Filter(since=since),
        )
        if not self.store.read_only:
            self._record_soon(lambda: runs.record_recall(self.store, prepared.request, window))
        return outcome

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

    # Partitions and conversations

    def conversations(self, scope: Scope = _EVERYTHING) -> list[ConversationSummary]:
        """Return the conversations of a scope, the oldest first."""
        return [_redacted(each, self.redactor) for each in self.store.conversations(scope)]

    def partitions(self) -> list[PlaceSummary]:
        """Return what each instance of each partition holds, in order of their names."""
        return self.store.place_summaries(_EVERYTHING)

    def places(self, where: Filter = _ALL) -> list[tuple[str, str, int]]:
        """Return (partition, instance, messages) wherever a filter lets messages through."""
        from reservoir_cli.transfer import forget

        return self.store.places() if where == _ALL else forget.places(self.store, where)

    def move_partition(self, old: str, new: str) -> tuple[int, int]:
        """Move all messages of a partition into another, new or not.

        :returns: how many were moved, and how many were in the other already and are gone.
        """
        self._progress("moving", 0, 0)
        return self.store.move_partition(old, new)

    # Changing messages

    def edit(self, message: int | Key, text: str, *, scope: Scope = _EVERYTHING) -> StoredMessage:
        """Replace the text of a message, and return the message.

        No word of the old text stays in the store's files; its embeddings and links are
        rebuilt, and a summary of its conversation is deleted.

        :param message: its id in the scope, or its key.
        :raises UsageError: the text is empty.
        :raises ReservoirError: there is no such message; or it is edited, but a reader keeps the
            old words in the files.
        """
        if not text.strip():
            raise UsageError("the new text is empty", hint="reservoir forget deletes a message")
        key = self._key(message, scope)
        self._ingestor.edit(self.store.by_key([key])[0], clean_text(text))
        return self.messages([key])[0]

    def tag(self, message: int | Key, *names: str, scope: Scope = _EVERYTHING) -> StoredMessage:
        """Give a message tags; return it with all that it has.

        :param message: its id in the scope, or its key.
        :raises UsageError: a name is empty or has control characters.
        :raises ReservoirError: there is no such message.
        """
        from reservoir_cli.storage.marks import Tags

        key = self._key(message, scope)
        Tags(self.store).add(key, names)
        return self.messages([key])[0]

    def untag(self, message: int | Key, *names: str, scope: Scope = _EVERYTHING) -> StoredMessage:
        """Take tags from a message; see :meth:`tag`."""
        from reservoir_cli.storage.marks import Tags

        key = self._key(message, scope)
        Tags(self.store).remove(key, names)
        return self.messages([key])[0]

    def pin(self, message: int | Key, *, scope: Scope = _EVERYTHING) -> StoredMessage:
        """Put a message into every context from now on; see :meth:`tag`."""
        from reservoir_cli.storage.marks import Pins

        key = self._key(message, scope)
        Pins(self.store).add(key, datetime.now(UTC))
        return self.messages([key])[0]

    def unpin(self, message: int | Key, *, scope: Scope = _EVERYTHING) -> StoredMessage:
        """Take a pin off a message; see :meth:`tag`."""
        from reservoir_cli.storage.marks import Pins

        key = self._key(message, scope)
        Pins(self.store).remove(key)
        return self.messages([key])[0]

    def _key(self, message: int | Key, scope: Scope) -> Key:
        if isinstance(message, Key):
            keys = [each.key for each in self.store.by_key([message])]
        else:
            keys = self.find_ids([message], scope)
        if not keys:
            number = message if isinstance(message, int) else message.id
            raise ReservoirError(f"no message {number} in {scope}")
        return keys[0]

    # Forgetting

    def find(self, scope: Scope, where: Filter = _ALL) -> Sequence[Key]:
        """Return the keys of messages, in order of time."""
        return self.store.find(scope, where)

    def find_expired(self, scope: Scope = _EVERYTHING) -> Sequence[Key] | None:
        """Return what is older than ``retention_days``; ``None`` if that is unset everywhere."""
        from reservoir_cli.transfer import forget

        now = datetime.now(UTC)
        targets = forget.expired(self.store, self.config, scope, now)
        return forget.find_expired(self.store, targets, now) if targets else None

    def find_ids(self, ids: Sequence[int], scope: Scope = _EVERYTHING) -> list[Key]:
        """Return the keys of messages in a scope that have these ids.

        :raises UsageError: on a server, several partitions of the scope have one of the ids.
        """
        from reservoir_cli.transfer import forget

        return forget.named(self.store, ids, scope)

    def forget(self, ids: Sequence[int] | Sequence[Key], scope: Scope = _EVERYTHING) -> None:
        """Delete messages for good; see :func:`reservoir_cli.transfer.forget.forget`.

        :param ids: ids of messages in the scope, or keys.
        :raises UsageError: on a server, several partitions of the scope have one of the ids.
        :raises ReservoirError: they are gone, but a reader keeps their words in the files.
        """
        from reservoir_cli.transfer import forget

        keys = [key for key in ids if isinstance(key, Key)]
        numbers = [number for number in ids if isinstance(number, int)]
        named = forget.named(self.store, numbers, scope) if numbers else []
        forget.forget(self.store, [*keys, *named], self._progress)

    def summarize(
        self, partition: str | None = None, *, command: str | None = None, dry_run: bool = False
    ) -> "Iterator[Outcome]":
        """Summarise the conversations of a partition that have no summary, or grew since.

        :param command: reads a conversation on stdin and prints its summary; split as a shell
            would, but run without one.
        :raises ModelUnavailableError: there is no embedding model.
        """
        from reservoir_cli.transfer.summarize import parse_command, summarize

        arguments = parse_command(command)
        return summarize(
            self.store,
            self._load_embedder(),
            self.redactor,
            Scope(partition or self.config.settings().partition),
            command=arguments,
            dry_run=dry_run,
            announce=lambda name: self._notify(f"conversations go to: {name}"),
        )

    # The store

    def backup(self, file: str | Path) -> None:
        """Copy the store to a file, which is replaced when the copy is whole.

        :raises ReservoirError: there is nothing to copy, or it cannot be written.
        """
        from reservoir_cli.maintenance.backup import back_up

        back_up(self.store, Path(file), self._progress)

    def status(self) -> dict[str, Any]:
        """Return what keeps the store, how large it is, and what it holds."""
        from reservoir_cli.maintenance import database

        return database.status(self.store)

    def migrate(self, *, rls: bool = False) -> str:
        """Guard the rows of a server by partition; return the engine and its schema's number.

        Opening a store with ``create`` brings its tables up to date.
        """
        from reservoir_cli.maintenance import database

        if rls:
            database.guard(self.store)
        return self.store.engine()

    def build_index(self, partition: str) -> float:
        """Build an approximate index on a server; return the share of the nearest it finds."""
        from reservoir_cli.maintenance import database

        return database.build_index(self.store, partition, self._progress)

    def drop_index(self, partition: str) -> bool:
        """Remove the index of a partition on a server; return whether there was one."""
        from reservoir_cli.maintenance import database

        return database.drop_index(self.store, partition)

    @staticmethod
    def copy(source: str, target: str, progress: "Progress" = _ignore) -> dict[str, int]:
        """Copy a whole store into an empty one; see :func:`maintenance.database.copy`."""
        from reservoir_cli.maintenance import database

        return database.copy(source, target, progress)

    @staticmethod
    def shard_statements() -> list[str]:
        """Return the statements that spread a store over the machines of a Citus cluster."""
        from reservoir_cli.maintenance import database

        return database.shard_statements()

    @classmethod
    def doctor(
        cls,
        location: str | Path | None = None,
        *,
        config_file: Path | None = None,
        repair: bool = False,
        progress: "Progress" = _ignore,
    ) -> "Iterator[Check]":
        """Check settings, store, model and speed, each as far as it can be reached.

        :param repair: first rebuild what is derived, and fix file permissions.
        """
        from reservoir_cli.maintenance.doctor import examine
        from reservoir_cli.storage.factory import open_store

        def open_it() -> Store:
            return open_store(_location(location, _database(config_file)), create=False)

        return examine(lambda: config.load(config_file), open_it, progress, repair=repair)

    @classmethod
    def salvage(
        cls, target: Path, location: str | Path | None = None, *, config_file: Path | None = None
    ) -> "Lost":
        """Write what can still be read of a damaged store to a file, which becomes a store.

        :raises ReservoirError: there is no store, or the file is there or cannot be written.
        """
        from reservoir_cli.maintenance.backup import salvage

        known = config.load(config_file)
        return salvage(_location(location, known.database()), target, known.synapse_threshold)

    def calibrate(self) -> "Calibration":
        """Measure the recall floor of the embedding model on this store, and keep it there.

        :raises ReservoirError: there are too few questions, or messages are not embedded yet.
        """
        from reservoir_cli.maintenance.calibrate import calibrate

        return calibrate(self.store, self.config, self._load_embedder(), self._progress)

    def is_damaged(self) -> bool:
        """Return whether something is wrong with the store or with what is derived from it."""
        return bool(self.store.problems())

    # Numbers

    def record_run(self, window: "ContextWindow") -> None:
        """Keep a record of a window that was printed, for ``stats`` and the log."""
        from reservoir_cli.context import runs

        def add() -> None:
            runs.log_truncation(window)
            if not self.store.read_only:
                runs.record(self.store, window)

        self._record(add)

    def record_answer(self, scope: Scope, model: str | None, tokens: int, cached: int) -> None:
        """Keep a record of the tokens that a provider reports of a request, for ``stats``.

        :param cached: those that it had in its cache.
        """
        from reservoir_cli.context import runs

        now = datetime.now(UTC)
        self._record(lambda: runs.record_answer(self.store, scope, model, tokens, cached, now))

    def _record_soon(self, add: Callable[[], None]) -> None:
        if self.put_off is None:
            self._record(add)
        else:
            self.put_off.append(add)

    def _record(self, add: Callable[[], None]) -> None:
        """Record a run; if that fails, only notify."""
        try:
            add()
        except (ReservoirError, OSError) as error:
            why = error.message if isinstance(error, ReservoirError) else error.strerror
            self._notify(f"this run is not recorded: {why}")

    def stats(self, since: datetime | None = None, partition: str | None = None) -> dict[str, Any]:
        """Return what contexts took over time, and what the store holds: ``stats --json``.

        :param partition: count this one alone.
        """
        from reservoir_cli.context import runs

        return runs.summarize(self.store.runs(since, partition), self.store.holdings(partition))

    def budget(self, **parts: Any) -> "BudgetPlan":
        """Plan the tokens of a context; see :func:`reservoir_cli.context.request.plan_budget`."""
        from reservoir_cli.context.request import plan_budget

        return plan_budget(self.config, **parts)

    def models(self, partition: str | None = None) -> "list[Model]":
        """Return the models that are known, with what the settings add and change."""
        return self.config.known_models(partition)

    def masking_command(self, partition: str | None) -> str:
        """Return what to type so that the secrets of a partition are hidden in what is printed."""
        from reservoir_cli.transfer.reports import masking_command

        return masking_command(self.config, partition)

    # Parts

    @cached_property
    def _indexer(self) -> "Indexer":
        from reservoir_cli.retrieval.indexing import Indexer

        return Indexer(
            self.store,
            self._load_embedder,
            link_threshold=lambda partition: self.config.synapse_threshold(partition),
            notify=self._notify,
            progress=self._progress,
        )

    def _embedder_for(self, scope: Scope, *, required: bool = False) -> "Embedder | None":
        """Return the model for a question, if it may be used; embed what is pending if allowed."""
        catch_up = not self._ready_only
        return self._indexer.embedder_for_question(scope, required=required, catch_up=catch_up)

    @cached_property
    def masking_redactor(self) -> Redactor:
        """Hide secrets in every mode but ``off``: agents send what they read to a provider."""
        mode_of = self.redactor.mode
        return Redactor(lambda name: _masking_mode(mode_of(name)))

    @cached_property
    def _ingestor(self) -> "Ingestor":
        from reservoir_cli.transfer.ingest import Ingestor

        return Ingestor(
            self.store,
            self.config,
            self.redactor,
            self._indexer,
            notify=self._notify,
            progress=self._progress,
        )

    def _load_embedder(self) -> "Embedder":
        if self._embedder is None:
            from reservoir_cli.embedding import load_embedder
            from reservoir_cli.embedding.questions import RememberedQuestions

            loaded = load_embedder(
                self.config.settings().embedding_model,
                offline=self.offline,
                progress=self._progress,
                notify=self._notify,
                ready_only=self._ready_only,
                serving=self._serving,
            )
            self._embedder = RememberedQuestions(loaded)
        return self._embedder


def _masking_mode(mode: Mode) -> Mode:
    return Mode.OFF if mode is Mode.OFF else Mode.MASK


def _location(location: str | Path | None, setting: str | None) -> str:
    return str(location) if location else paths.store_location(setting)


def _database(config_file: Path | None) -> str | None:
    """Return the store that the settings name, whatever else is wrong with them."""
    try:
        return config.load(config_file).database()
    except ReservoirError:  # the check of the settings reports it
        return None


def _redacted(found: ConversationSummary, redactor: Redactor) -> ConversationSummary:
    """Return a conversation as it may be printed; its first question stands for a title."""
    about = redactor.conversation(found.partition, found.conversation)
    title = about.title or title_of(redactor.text(found.partition, found.question or ""))
    question = found.question and redactor.text(found.partition, found.question)
    return replace(found, conversation=replace(about, title=title), question=question)
