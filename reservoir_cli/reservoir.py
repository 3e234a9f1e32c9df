"""The public object: a store, its settings, and one method a verb."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self

from reservoir_cli.errors import ModelUnavailableError, ReservoirError, StoreError, UsageError
from reservoir_cli.messages import Message, Scope, StoredMessage
from reservoir_cli.redaction import Mask, Mode, inspected, told
from reservoir_cli.settings import config, paths
from reservoir_cli.settings import file as settings_file
from reservoir_cli.settings.config import Config, recommended_budget, required_window
from reservoir_cli.settings.schema import Value
from reservoir_cli.storage import unfinished
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.factory import open_store
from reservoir_cli.storage.records import Filter
from reservoir_cli.transfer.echoes import without_contexts
from reservoir_cli.util.private import exclusive_lock, restrict_permissions
from reservoir_cli.util.times import is_far_ahead

if TYPE_CHECKING:
    from reservoir_cli.context.render import ContextWindow
    from reservoir_cli.embedding import Embedder, Engine, Progress
    from reservoir_cli.retrieval.search import Hit
    from reservoir_cli.tokens import TokenCounter
    from reservoir_cli.transfer.importers import File, Found
    from reservoir_cli.transfer.ingest import Destination, Model, Totals
    from reservoir_cli.transfer.summarize import Outcome

#: How many pending messages a question embeds on its way.
_CATCH_UP = 64


#: What was done about the secrets that were found.
_DONE_ABOUT = {
    Mode.MASK: "masked in what is printed",
    Mode.REMOVE: "removed before they are stored",
}


#: Named texts: (name, text) pairs, or a mapping.
Pieces = Mapping[str, str] | Sequence[tuple[str, str]]


def _ignore(*_: object) -> None:
    """Tell nobody."""


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
        notify: Callable[[str], None] = _ignore,
        progress: "Progress" = _ignore,
    ) -> None:
        self.store = store
        self.config = settings
        self.offline = offline
        self._notify = notify
        self._progress = progress
        self._embedder = embedder
        self._counters: dict[str, TokenCounter] = {}
        self.mask = Mask(self._redact)

    @classmethod
    def open(
        cls,
        location: str | Path | None = None,
        *,
        settings: Mapping[str, Value] | None = None,
        config_file: Path | None = None,
        create: bool = True,
        embedder: "Embedder | None" = None,
        offline: bool = False,
        notify: Callable[[str], None] = _ignore,
        progress: "Progress" = _ignore,
    ) -> Self:
        """Open a store, and the settings that go with it.

        :param location: a file, or the URL of a server; ``None`` for the user's own store.
        :param settings: settings above all others, such as ``{"recency_weight": 0.0}``.
        :param create: make the file when it is not there.
        :param embedder: what gives vectors, instead of the model that the settings name.
        :param notify: told what a person should know, a sentence each.
        :param progress: told how far long work has come.
        :raises UsageError: a wrong setting.
        :raises StoreError: the store cannot be opened, or is to be written to (``create``) and
            is a copy that is not finished.
        """
        known = config.load(config_file, settings)
        place = str(location) if location is not None else None
        place = place or paths.store_location(known.database())
        for warning in known.warnings:
            notify(warning)
        store = _opened(place, create, notify)
        if opened := restrict_permissions(paths.private_files(store.files())):
            # What lies beside a store goes without saying.
            beside = ("-wal", "-shm", "-journal")
            names = ", ".join(each.name for each in opened if not each.name.endswith(beside))
            names = names or opened[0].name
            notify(f"others could read {names}: now nobody but you can")
        return cls(
            store, known, embedder=embedder, offline=offline, notify=notify, progress=progress
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    # Scope

    def scope(self, partition: str | None = None, instance: str | None = None) -> Scope:
        """A partition and an instance, the usual ones where none is named."""
        there = partition or str(self.config.lookup("partition")[0])
        return Scope(there, instance or there)

    @property
    def engine(self) -> "Engine | None":
        """What runs the embedding model, and why; ``None`` until something needs it."""
        return self._embedder.engine if self._embedder else None

    def load_engine(self) -> "Engine | None":
        """What runs the embedding model, made ready for it; ``None`` where there is no model."""
        try:
            return self._load_embedder().engine
        except ModelUnavailableError:
            return None

    # Verbs

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
        :returns: the stored messages, without those whose source id was there already.
        """
        scope = self.scope(partition, instance)
        mode = Mode(self._redact(scope.partition))
        now = datetime.now(UTC)
        cleaned = [without_contexts(each) for each in messages]
        if contexts := sum(each.contexts for each in cleaned):
            self._notify(f"contexts taken out, their questions kept: {contexts:,}")
        checked = [inspected(each.message, mode) for each in cleaned if each.message]
        added = self.store.add(
            scope,
            [message for message, _ in checked],
            counter=self._counter(scope),
            now=now,
            pair=pair,
        )
        self._tell_ahead(sum(is_far_ahead(each.created_at, now) for each in added if each))
        found: Counter[str] = Counter()
        for (_, kinds), each in zip(checked, added, strict=True):
            found += kinds if each else Counter()
        self._tell_secrets(found, {mode}, scope.partition)
        if embed:
            self.embed_if_possible(scope, backlog=len(added) + _CATCH_UP)
        return [each for each in added if each is not None]

    def import_files(
        self,
        *sources: "str | Path | File",
        form: str | None = None,
        partition: str | None = None,
        instance: str | None = None,
        dry_run: bool = False,
    ) -> "Totals":
        """Store the messages of files, folders and zips; nothing is embedded yet.

        All are looked at before the first is stored: where one cannot be read, nothing is.

        :param form: a format; ``None`` to go by the content.
        :param dry_run: find out what would be done, and store nothing.
        :raises UsageError: there is no format of that name.
        :raises ReservoirError: a source cannot be read, or is of no format that is known.
        """
        from reservoir_cli.transfer import importers
        from reservoir_cli.transfer import ingest as ingesting

        totals = ingesting.Totals()
        with ExitStack() as open_files:
            found = [importers.find(each, form, open_files) for each in map(_source, sources)]
            usual = self.config.settings().partition
            for source, (files, passed_over) in zip(sources, found, strict=True):
                done = ingesting.Totals(passed_over=passed_over)
                for each in files:
                    home = each.importer.instance
                    destination = ingesting.Destination(partition, instance, usual, home)
                    done.add(self._load(each, destination, dry_run))
                if (
                    done.skipped
                    and not done.imported + done.already + done.forgotten + done.contexts
                ):
                    done.unreadable.append(_name(source))
                totals.add(done)
        self._tell_ahead(totals.ahead)
        self._tell_secrets(totals.secrets, set() if dry_run else totals.modes, partition)
        return totals

    def _load(self, found: "Found", destination: "Destination", dry_run: bool) -> "Totals":
        from reservoir_cli.transfer import ingest as ingesting

        file = found.file
        scope = Scope(destination.partition or destination.default_partition)
        return ingesting.load(
            self.store,
            found.records(),
            destination,
            where=file.name,
            counter=self._counter(scope),
            now=datetime.now(UTC),
            redact=self._redact,
            dry_run=dry_run,
            after_batch=lambda: self._progress("MB read", file.done >> 20, file.size >> 20),
            model=self._import_model,
        )

    def _import_model(self) -> "Model | None":
        """The model whose vectors an import may bring: the store's, else the one that is set."""
        from reservoir_cli.transfer.ingest import Model

        threshold = self.config.synapse_threshold
        active, dimensions = self.store.active_model(), self.store.dimensions()
        if active and dimensions:
            return Model(*active, dimensions, threshold)
        try:
            embedder = self._load_embedder()
        except ModelUnavailableError:
            return None
        if active and active[0] != embedder.model_id:
            return None
        return Model(embedder.model_id, embedder.name, embedder.dimensions, threshold)

    def embed(
        self,
        scope: Scope = Scope(None),  # noqa: B008 - it is frozen
        newest: int | None = None,
        most: int | None = None,
        *,
        wait: bool = True,
    ) -> int:
        """Give every pending message its vector.

        :param newest: only so many, the newest ones.
        :param most: only so many, as they came in; else also what others bring in meanwhile.
        :param wait: for another process that is embedding; else nothing is done then, for two
            would make the same vectors.
        :returns: how many got one.
        :raises ModelUnavailableError: there is no model.
        """
        from reservoir_cli.retrieval import indexing

        if not self.store.count_unembedded(scope):
            return 0
        embedder = self._load_embedder()
        with exclusive_lock(paths.embedding_lock(self.store.location), wait=wait) as free:
            if not free:
                return 0
            return indexing.embed_pending(
                self.store,
                embedder,
                scope,
                synapse_threshold=self.config.synapse_threshold,
                progress=self._progress,
                limit=most if newest is None else newest,
                newest=newest is not None,
            )

    def rebuild(self) -> int:
        """Make vectors of every message by the model that is set, then compare those.

        Until it is complete others go on with the old ones; broken off, it goes on where it was.

        :returns: how many messages were embedded by this run.
        :raises ModelUnavailableError: there is no such model.
        """
        from reservoir_cli.retrieval import rebuild as rebuilding

        return rebuilding.rebuild(
            self.store,
            self._load_embedder(),
            synapse_threshold=self.config.synapse_threshold,
            progress=self._progress,
        )

    def needs_rebuilding(self) -> bool:
        """Whether the vectors of the store are of another model than the one that is set."""
        wanted, active = self._load_embedder().model_id, self.store.active_model()
        return active is not None and active[0] != wanted

    def view(
        self,
        scope: Scope,
        count: int = 10,
        where: Filter = Filter(),  # noqa: B008 - it is frozen
    ) -> list[StoredMessage]:
        """The last messages of a scope, oldest first; all of them when ``count`` is 0."""
        return self.mask.messages(self.store.last(scope, count, where))

    def messages(
        self,
        ids: Sequence[int],
        scope: Scope = Scope(None),  # noqa: B008 - it is frozen
    ) -> list[StoredMessage]:
        """These messages, where they are in the scope, oldest first."""
        return self.mask.messages(self.store.by_id(ids, scope))

    def thread(self, message: StoredMessage) -> list[int]:
        """Return the ids of a message's conversation, in order of time.

        Outside of a conversation these are the messages of its instance that are in none.
        """
        scope = Scope(message.partition, message.instance)
        name = (message.partition, message.instance, message.conversation_id)
        where = Filter(conversation_id=message.conversation_id)
        return list(self.store.threads(scope, where)[name])

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
        where: Filter = Filter(),  # noqa: B008 - it is frozen
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
            embedder = self._embedder_for_question(there, required=mode == "semantic")
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
        )
        hits = [hit.masked(self.mask) for hit in found]
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
        procedure: Pieces = (),
        knowledge: Pieces = (),
        episode: Sequence[str] = (),
        reserve: int | None = None,
        output_reserve: int | None = None,
        recent: int | None = None,
        similar: int | None = None,
        threshold: float | None = None,
        recall_scope: str | None = None,
        fill: bool | None = None,
        order: str | None = None,
        excerpts: str | None = None,
        profile: str | None = None,
        follow: bool | None = None,
        floor: float | None = None,
        enough: bool | None = None,
        save: bool = False,
        trace_id: str | None = None,
        where: Filter = Filter(),  # noqa: B008 - it is frozen
        now: datetime | None = None,
    ) -> "ContextWindow":
        """Build the best context for a question that a token budget can buy.

        :param budget: tokens for everything, or ``recommended``; without it the model's limit.
        :param format: what ``.to()`` gives by default, and what is counted.
        :param procedure: (name, text) pairs, or a mapping; so is ``knowledge`` by its source.
        :param reserve: tokens kept for the answer; ``output_reserve`` is its older name.
        :param threshold: (1 + cosine)/2 above which a message counts as similar.
        :param follow: let the question follow up on a running session.
        :param floor: recall nothing when no message fits the question this well; 0 is off.
        :param enough: recall only what is similar enough, even if there is room.
        :param save: store the question afterwards, as a user message with ``trace_id``.
        :param where: print only stored messages that pass; scores are those of the whole scope.
        :param now: the moment of asking, aware; the present one by default.
        :raises UsageError: an unknown model or format, or a budget that does not fit.
        """
        import uuid

        from reservoir_cli.context.budget import Meter
        from reservoir_cli.context.builder import build_context
        from reservoir_cli.context.render import parse_format
        from reservoir_cli.context.types import ContextRequest, Piece
        from reservoir_cli.tokens import load_counter

        config = self.config.with_flags(
            {
                "reserve_tokens": reserve,
                "output_reserve": output_reserve,
                "recent_context_size": recent,
                "semantic_context_size": similar,
                "similarity_threshold": threshold,
                "recall_scope": recall_scope,
                "fill": fill,
                "order": order,
                "excerpts": excerpts,
                "profile": profile,
                "follow": follow,
                "recall_floor": floor,
                "enough": enough,
            }
        )
        there = partition or config.settings().partition
        model = model or config.settings(there).model
        known = config.settings(there, model)
        window = required_window(config, model, known)
        kept = config.reserve(model, known)
        limit = known.max_context_tokens or window
        request = ContextRequest(
            query=query,
            partition=there,
            instance=instance,
            model=model,
            budget=recommended_budget(model, budget, min(window - kept, limit)),
            format=parse_format(format),
            trace_id=trace_id or str(uuid.uuid4()),
            now=_moment(now),
            system=system if system is not None else known.system_prompt,
            procedures=tuple(Piece(text, name) for name, text in _pairs(procedure)),
            knowledge=tuple(Piece(text, name) for name, text in _pairs(knowledge)),
            episodes=tuple(Piece(text) for text in episode),
            recalled_role=known.recalled_role,
        )
        counter = load_counter(known.token_counter, offline=self.offline)
        embedder = self._embedder_for_question(Scope(there)) if query.strip() else None
        meter = Meter.of(counter, known.token_multiplier, known.token_safety)
        built = build_context(
            request,
            known,
            self.store,
            embedder,
            meter,
            window=window,
            reserve=kept,
            mask=self.mask,
            where=where,
        )
        if save:
            self.save_question(built)
        return built

    def forget(
        self,
        ids: Sequence[int],
        scope: Scope = Scope(None),  # noqa: B008 - it is frozen
    ) -> None:
        """Delete messages for good; see :func:`reservoir_cli.transfer.forget.forget`.

        :raises UsageError: on a server, several partitions of the scope have one of the ids.
        :raises ReservoirError: they are gone, but a reader keeps their words in the files.
        """
        from reservoir_cli.transfer.forget import forget, named

        forget(self.store, named(self.store, ids, scope), self._progress)

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
            self.mask,
            Scope(partition or self.config.settings().partition),
            command=arguments,
            dry_run=dry_run,
            announce=lambda name: self._notify(f"conversations go to: {name}"),
        )

    def backup(self, file: str | Path) -> None:
        """Copy the store to a file, which is replaced when the copy is whole.

        :raises ReservoirError: there is nothing to copy, or it cannot be written.
        """
        from reservoir_cli.maintenance.doctor import back_up

        back_up(self.store, Path(file), self._progress)

    def save_question(self, window: "ContextWindow") -> list[StoredMessage]:
        """Store the question of a window as a user message with the window's trace id."""
        request = window.request
        if not request.query.strip():
            return []
        message = Message("user", request.query, trace_id=request.trace_id, source="cli")
        return self.ingest([message], partition=request.partition, instance=request.instance)

    def record_run(self, window: "ContextWindow") -> None:
        """Keep a record of a window that was printed, for ``stats`` and the log."""
        from reservoir_cli.context import runs

        try:
            runs.log_truncation(window)
            if not self.store.read_only:
                runs.record(self.store, window)
        except (ReservoirError, OSError) as error:
            why = error.message if isinstance(error, ReservoirError) else error.strerror
            self._notify(f"this run is not recorded: {why}")

    # Parts

    def _redact(self, partition: str | None) -> str:
        return str(self.config.lookup("redact", partition)[0])

    def way_to_mask(self, partition: str | None) -> str:
        """What to type so that the secrets of a partition are hidden in what is printed."""
        _, origin = self.config.lookup("redact", partition)
        key = "redact"
        if origin == "partition":
            key = settings_file.dotted_key("partitions", partition or "", key)
        return f"config --set {shlex.quote(f'{key}=mask')}"

    def _tell_ahead(self, count: int) -> None:
        if count:
            noun = "message" if count == 1 else "messages"
            self._notify(f"{count:,} {noun} with a time more than a day ahead, kept as given")

    def _tell_secrets(self, found: "Counter[str]", modes: set[Mode], partition: str | None) -> None:
        """Say what was found, and what was done about it; nothing yet without ``modes``."""
        if not found:
            return
        modes = modes - {Mode.OFF}
        done = "found"
        if modes == {Mode.MARK}:
            done = f"marked; {self.way_to_mask(partition)} hides them in what is printed"
        elif len(modes) == 1:
            done = _DONE_ABOUT[min(modes)]
        elif modes:
            done = "found; reservoir config tells of each partition what is done about them"
        self._notify(f"{told(found)} {done}")

    def _counter(self, scope: Scope) -> "TokenCounter":
        """The counter for messages that are stored; they are stored without it, too."""
        from reservoir_cli.tokens import ApproximateCounter, storing_counter

        name = str(self.config.lookup("token_counter", scope.partition)[0])
        if name not in self._counters:
            try:
                self._counters[name] = storing_counter(name)
            except ReservoirError as error:
                self._notify(f"tokens are counted approximately: {error.message}")
                self._counters[name] = ApproximateCounter()
        return self._counters[name]

    def _load_embedder(self) -> "Embedder":
        if self._embedder is None:
            from reservoir_cli.embedding import load_embedder

            self._embedder = load_embedder(
                self.config.settings().embedding_model,
                offline=self.offline,
                progress=self._progress,
                notify=self._notify,
            )
        return self._embedder

    def embed_if_possible(
        self,
        scope: Scope = Scope(None),  # noqa: B008 - it is frozen
        backlog: int | None = None,
    ) -> None:
        """As :meth:`embed`, but without a model it only says what is missing.

        :param backlog: how much may be caught up on the way; more is left to ``embed``, but for
            the newest messages.
        """
        try:
            pending = self.store.count_unembedded(scope)
            if backlog is None:
                # No more than that: while others bring messages in, there is no end of them.
                self.embed(scope, most=pending)
            elif pending <= backlog:
                self.embed(scope, most=pending, wait=False)
            else:
                self.embed(scope, newest=backlog, wait=False)
                self._notify(_not_embedded(pending - backlog))
        except KeyboardInterrupt:
            self._notify("broken off; what is stored stays, and reservoir embed goes on")
            raise
        except ReservoirError as error:
            # The messages are safe; what is missing can be caught up.
            self._notify(f"stored, but not embedded: {error.message}")

    def _embedder_for_question(self, scope: Scope, *, required: bool = False) -> "Embedder | None":
        """The model, if the store has anything to compare; what is pending is caught up."""
        active, pending = self.store.active_model(), self.store.count_unembedded(scope)
        if active is None and not pending:
            return None
        try:
            embedder = self._load_embedder()
            if active is not None and active[0] != embedder.model_id:
                raise ModelUnavailableError(
                    f"the vectors of this store are of another model than {embedder.name}",
                    f"reservoir embed --rebuild, or config --set embedding_model={active[1]}",
                )
        except ModelUnavailableError as error:
            if required:
                raise
            self._notify(f"by full text and recency only: {error.message}")
            return None
        if pending and not self.store.read_only:
            self._catch_up(embedder, scope)
        if left := self.store.count_unembedded(scope):
            self._notify(_not_embedded(left))
        return embedder

    def _catch_up(self, embedder: "Embedder", scope: Scope) -> None:
        from reservoir_cli.errors import StoreLockedError
        from reservoir_cli.retrieval import indexing

        # Where somebody else embeds or writes, these messages take part by their words.
        lock = paths.embedding_lock(self.store.location)
        with suppress(StoreLockedError), exclusive_lock(lock, wait=False) as free:
            if free:
                indexing.embed_pending(
                    self.store,
                    embedder,
                    scope,
                    synapse_threshold=self.config.synapse_threshold,
                    progress=_ignore,
                    limit=_CATCH_UP,
                    newest=True,
                    wait=0,
                )


def _opened(place: str, create: bool, notify: Callable[[str], None]) -> Store:
    """Open a store; a copy that is not finished is for reading only, and says so."""
    store = open_store(place, create=create)
    mark = None
    with suppress(StoreError):  # what is damaged is found by who needs it
        mark = store.get_property(unfinished.UNFINISHED_COPY)
    if mark is not None:
        told = unfinished.told(mark, store.location)
        if create:
            store.close()
            raise told
        store.read_only = True
        notify(f"{told.message}: {told.hint}")
    return store


def _moment(now: datetime | None) -> datetime:
    """Check the moment of asking.

    :raises UsageError: it has no time zone.
    """
    if now is not None and now.utcoffset() is None:
        raise UsageError("now has no time zone", hint="datetime.now(UTC)")
    return now or datetime.now(UTC)


def _source(given: "str | Path | File") -> "Path | File":
    return Path(given) if isinstance(given, str) else given


def _name(given: "str | Path | File") -> str:
    return str(given) if isinstance(given, str | Path) else given.name


def _not_embedded(count: int) -> str:
    noun = "message" if count == 1 else "messages"
    return f"{count:,} {noun} not embedded yet: reservoir embed"


def _pairs(pieces: Pieces) -> Iterable[tuple[str, str]]:
    return pieces.items() if isinstance(pieces, Mapping) else pieces
