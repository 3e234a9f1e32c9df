"""Embed stored messages, and change the embedding model.

Messages are embedded in batches. Each batch is committed by itself, so an interrupted run loses
nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from itertools import accumulate
from typing import NamedTuple

from reservoir_cli.embedding import Embedder, Engine, load_embedder
from reservoir_cli.embedding.question_cache import RememberedQuestions
from reservoir_cli.errors import ModelUnavailableError, ReservoirError, StoreLockedError
from reservoir_cli.messages import Key, Scope, StoredMessage, plain_text
from reservoir_cli.settings import paths
from reservoir_cli.settings.config import Config
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.links import LinkThreshold
from reservoir_cli.storage.records import Passage
from reservoir_cli.util.private_files import exclusive_lock
from reservoir_cli.util.progress import Progress

#: A batch has so many messages, or fewer if they have so many characters, which take about five
#: seconds. It is sorted by length.
GROUP, _GROUP_CHARACTERS = 512, 200_000
#: Only so many characters of a message are embedded, which take 160 MB; full text covers all.
LONGEST = 1_000_000
#: How many pending messages are embedded on the way, when a message or a question comes in.
_CATCH_UP = 64

_EVERYTHING = Scope(None)


class Model(NamedTuple):
    """The model whose embeddings a store takes from a file.

    :param link_threshold: messages are linked from this similarity on.
    """

    model_id: str
    name: str
    dimensions: int
    link_threshold: LinkThreshold


class EmbeddingState(NamedTuple):
    """By which models a store is embedded.

    :param active: name of the model whose embeddings are compared.
    :param next: name of the model that is being built beside it.
    :param missing: messages without embeddings of the next model.
    """

    active: str | None
    next: str | None = None
    missing: int = 0


class Indexer:
    """Embeds the messages of a store by the model of the settings.

    :ivar config: may be replaced; a model that is loaded stays.
    :ivar serving: a model that is loaded from now on is prepared for many questions.
    """

    def __init__(
        self,
        store: Store,
        config: Config,
        *,
        embedder: Embedder | None = None,
        offline: bool = False,
        ready_only: bool = False,
        notify: Callable[[str], None] = lambda _: None,
        progress: Progress = lambda *_: None,
    ) -> None:
        """Make an indexer.

        :param embedder: use this instead of the model that the settings name.
        :param offline: never use the network.
        :param ready_only: neither download nor compile a model, and embed nothing to answer a
            question.
        """
        self.config, self.serving = config, False
        self._store, self._embedder = store, embedder
        self._offline, self._ready_only = offline, ready_only
        self._notify, self._progress = notify, progress

    def embedder(self) -> Embedder:
        """Return the model, which the first call loads.

        :raises ModelUnavailableError: there is none.
        """
        if self._embedder is None:
            loaded = load_embedder(
                self.config.settings().embedding_model,
                offline=self._offline,
                progress=self._progress,
                notify=self._notify,
                ready_only=self._ready_only,
                serving=self.serving,
            )
            self._embedder = RememberedQuestions(loaded)
        return self._embedder

    def share(self, embedder: Embedder) -> None:
        """Use a model that is loaded already."""
        self._embedder = embedder

    @property
    def engine(self) -> Engine | None:
        """What runs the model, and why; ``None`` until something needs it."""
        return self._embedder.engine if self._embedder else None

    def load_engine(self) -> Engine | None:
        """Load the model, and return what runs it; ``None`` without a model."""
        with suppress(ModelUnavailableError):
            return self.embedder().engine
        return None

    def pending(self, scope: Scope = _EVERYTHING) -> int:
        """Return how many messages have no embedding yet."""
        return self._store.count_unembedded(scope)

    def state(self) -> EmbeddingState:
        """Return by which models the store is embedded."""
        with self._store.snapshot():
            active, begun = self._store.active_model(), self._store.next_model()
            name = active[1] if active else None
            if begun is None:
                return EmbeddingState(name)
            return EmbeddingState(name, begun[1], self._store.count_unembedded(model=begun[0]))

    def embed(
        self,
        scope: Scope = _EVERYTHING,
        newest: int | None = None,
        most: int | None = None,
        *,
        wait: bool = True,
    ) -> int:
        """Embed pending messages.

        :param newest: only so many, those that came in last.
        :param most: only so many, the newest in time first; ``None`` for all, those included
            that other processes add meanwhile.
        :param wait: wait for another process that is embedding; without it nothing is done then.
        :returns: how many messages were embedded.
        :raises ModelUnavailableError: there is no model.
        """
        if not self._store.count_unembedded(scope):
            return 0
        embedder = self.embedder()
        with self._lock(wait=wait) as acquired:
            if not acquired:
                return 0
            return embed_pending(
                self._store,
                embedder,
                scope,
                synapse_threshold=self.config.synapse_threshold,
                progress=self._progress,
                limit=most if newest is None else newest,
                newest=newest is not None,
            )

    def embed_if_possible(
        self, scope: Scope = _EVERYTHING, backlog: int | None = None, *, most: int | None = None
    ) -> None:
        """Embed pending messages; without a model, only say what is missing.

        :param backlog: embed at most so many, those that came in last, and leave the rest to
            ``embed``.
        :param most: embed at most so many, the newest in time first, and say nothing of the rest.
        """
        try:
            pending = self._store.count_unembedded(scope)
            if backlog is None:
                # A fixed number: while others add messages, there is no end of them.
                self.embed(scope, most=pending if most is None else most)
            elif pending <= backlog:
                self.embed(scope, most=pending, wait=False)
            else:
                self.embed(scope, newest=backlog, wait=False)
                self._notify(_not_embedded(pending - backlog))
        except KeyboardInterrupt:
            self._notify("broken off; what is stored stays, and reservoir embed goes on")
            raise
        except ReservoirError as error:
            # The messages are safe; they can be embedded later.
            self._notify(f"stored, but not embedded: {error.message}")

    def embed_added(self, scope: Scope, count: int) -> None:
        """Embed messages that were just stored, and a few older ones, if a model is there.

        :param count: how many were stored.
        """
        self.embed_if_possible(scope, backlog=count + _CATCH_UP)

    def update(self, *, rebuild: bool = False, named: bool = False) -> int:
        """Embed everything by the model of the settings.

        :param rebuild: even what the same model embedded before.
        :param named: the model was named by hand; a change to another one is given up.
        :returns: how many messages were embedded.
        """
        if rebuild or (named and self.needs_rebuilding()):
            return self.rebuild()
        if named:
            self._store.give_up_model()
        done = self.embed()
        clear_away(self._store)
        return done

    def rebuild(self) -> int:
        """Embed every message again, then switch to the new embeddings; see :func:`rebuild`."""
        return rebuild(
            self._store,
            self.embedder(),
            synapse_threshold=self.config.synapse_threshold,
            progress=self._progress,
        )

    def needs_rebuilding(self) -> bool:
        """Return whether the store's embeddings are of another model than the settings name."""
        wanted, active = self.embedder().model_id, self._store.active_model()
        return active is not None and active[0] != wanted

    def importable_model(self) -> Model | None:
        """Return the model whose embeddings an import may bring: the store's, else that set."""
        active, dimensions = self._store.active_model(), self._store.dimensions()
        if active and dimensions:
            return Model(*active, dimensions, self.config.synapse_threshold)
        try:
            embedder = self.embedder()
        except ModelUnavailableError:
            return None
        if active and active[0] != embedder.model_id:
            return None
        return Model(
            embedder.model_id, embedder.name, embedder.dimensions, self.config.synapse_threshold
        )

    def embedder_for_question(self, scope: Scope, *, required: bool = False) -> Embedder | None:
        """Return the model if the store has anything to compare; embed some of what is pending.

        :param required: without it a model that cannot be used is only reported.
        :raises ModelUnavailableError: it is required.
        """
        embedder = self.usable_embedder(scope, required=required)
        if embedder is None:
            return None
        pending = self._store.count_unembedded(scope)
        if pending and not self._ready_only and not self._store.read_only:
            self._catch_up(embedder, scope)
        if left := self._store.count_unembedded(scope):
            self._notify(_not_embedded(left))
        return embedder

    def usable_embedder(self, scope: Scope, *, required: bool = False) -> Embedder | None:
        """Return the model if the store has anything to compare; see `embedder_for_question`."""
        active = self._store.active_model()
        if active is None and not self._store.count_unembedded(scope):
            return None
        try:
            embedder = self.embedder()
            if active is not None and active[0] != embedder.model_id:
                raise ModelUnavailableError(*_another_model(embedder, active[1]))
        except ModelUnavailableError as error:
            if required:
                raise
            self._notify(f"by full text and recency only: {error.message}")
            return None
        return embedder

    def _catch_up(self, embedder: Embedder, scope: Scope) -> None:
        # When another process embeds or writes, these messages are found by full text only.
        with suppress(StoreLockedError), self._lock(wait=False) as acquired:
            if acquired:
                embed_pending(
                    self._store,
                    embedder,
                    scope,
                    synapse_threshold=self.config.synapse_threshold,
                    progress=lambda *_: None,
                    limit=_CATCH_UP,
                    newest=True,
                    wait=0,
                )

    def _lock(self, *, wait: bool) -> AbstractContextManager[bool]:
        """Return the lock that lets one process embed: two would make the same embeddings."""
        return exclusive_lock(paths.embedding_lock(self._store.location), wait=wait)


def embed_pending(
    store: Store,
    embedder: Embedder,
    scope: Scope,
    *,
    synapse_threshold: LinkThreshold,
    progress: Progress,
    limit: int | None = None,
    newest: bool = False,
    wait: float | None = None,
) -> int:
    """Embed pending messages, batch by batch, the newest in time first.

    :param synapse_threshold: messages are linked from this similarity on.
    :param limit: at most so many messages; ``None`` for all.
    :param newest: those that came in last, which needs no sorting of a long backlog.
    :param wait: seconds to wait for the write lock.
    :returns: how many messages were embedded.
    :raises ReservoirError: the store's embeddings are of another model.
    """
    _require_same_model(store, embedder)
    total = store.count_unembedded(scope) if limit is None else limit
    done = 0
    if total:
        progress("embedding", 0, total)
    for batch in _last_added(store, scope, total) if newest else _in_time(store, scope, limit):
        passages = embedded(batch, embedder)
        if store.active_model() is None:
            _activate(store, embedder, wait)
        store.add_passages(embedder.model_id, passages, synapse_threshold, wait)
        done += len(batch)
        progress("embedding", done, max(total, done))
    return done


def _last_added(store: Store, scope: Scope, limit: int) -> Iterator[list[StoredMessage]]:
    """Yield batches of pending messages, those that came in last first."""
    while limit > 0:
        batch = first_group(store.unembedded(min(GROUP, limit), scope, newest=True))
        if not batch:
            return
        yield batch
        limit -= len(batch)


def _in_time(store: Store, scope: Scope, limit: int | None) -> Iterator[list[StoredMessage]]:
    """Yield batches of pending messages, the newest in time first.

    :param limit: at most so many; ``None`` for all, those included that are added meanwhile.
    """
    while keys := store.unembedded_keys(scope)[:limit]:
        at = 0
        while at < len(keys):
            wanted = keys[at : at + GROUP]
            batch = first_group(store.by_key(wanted)[::-1])
            if batch:
                yield batch
            # A message that was forgotten meanwhile is in no batch.
            at += wanted.index(batch[-1].key) + 1 if batch else len(wanted)
        if limit is not None:
            return


def rebuild(
    store: Store, embedder: Embedder, *, synapse_threshold: LinkThreshold, progress: Progress
) -> int:
    """Embed every message by a model, then compare those embeddings from there on.

    An interrupted run is resumed by the next one. Until the switch, other processes read and
    write as before. Messages that are added at the last moment are pending after it.

    :param synapse_threshold: messages are linked from this similarity on.
    :returns: how many messages were embedded by this run.
    :raises ReservoirError: another process began to build yet another model meanwhile.
    """
    if store.active_model() is None:  # there is nothing to go on with meanwhile
        store.activate_model(embedder.model_id, embedder.name)
        return embed_pending(
            store, embedder, _EVERYTHING, synapse_threshold=synapse_threshold, progress=progress
        )
    kept_as = store.begin_model(embedder.model_id, embedder.name)
    done, total = 0, store.count_unembedded(model=kept_as)
    while batch := first_group(store.unembedded(GROUP, model=kept_as)):
        store.add_passages(kept_as, embedded(batch, embedder), synapse_threshold)
        done += len(batch)
        progress(f"embedding by {embedder.name}", done, max(total, done))
    progress("changing over", 0, 0)
    store.switch_model(kept_as)
    clear_away(store)
    return done


def clear_away(store: Store) -> None:
    """Remove the embeddings of the former model, in batches that keep nobody waiting."""
    while store.clear_former_model():
        pass


def first_group(messages: list[StoredMessage]) -> list[StoredMessage]:
    """Return the first messages that make up a batch; one, however long it is."""
    lengths = accumulate(len(plain_text(message)) for message in messages)
    count = sum(1 for length in lengths if length <= _GROUP_CHARACTERS)
    return messages[: max(1, count)]


def embedded(messages: list[StoredMessage], embedder: Embedder) -> dict[Key, list[Passage]]:
    """Return the passages of messages with their embeddings."""
    # A message without any text keeps no embedding, and is no longer pending.
    contents = ((message.key, plain_text(message)[:LONGEST]) for message in messages)
    texts = [(key, text) for key, text in contents if text.strip()]
    spans = [
        (key, number, start, end, text[start:end])
        for key, text in texts
        for number, (start, end) in enumerate(embedder.passages(text))
    ]
    vectors = embedder.encode_documents([passage for *_, passage in spans])
    passages: dict[Key, list[Passage]] = {message.key: [] for message in messages}
    for (key, number, start, end, _), vector in zip(spans, vectors, strict=True):
        passages[key].append(Passage(key.id, number, start, end, vector))
    return passages


def _activate(store: Store, embedder: Embedder, wait: float | None) -> None:
    """Make this the model of the store, unless another process was faster."""
    with store.write(wait):
        if store.active_model() is None:
            store.activate_model(embedder.model_id, embedder.name)
    _require_same_model(store, embedder)


def _require_same_model(store: Store, embedder: Embedder) -> None:
    active = store.active_model()
    if active is not None and active[0] != embedder.model_id:
        raise ReservoirError(*_another_model(embedder, active[1]))


def _another_model(embedder: Embedder, active: str) -> tuple[str, str]:
    """Return message and hint for a store whose embeddings are of another model."""
    return (
        f"the vectors of this store are of another model than {embedder.name}",
        f"reservoir embed --rebuild, or reservoir config set embedding_model={active}",
    )


def _not_embedded(count: int) -> str:
    noun = "message" if count == 1 else "messages"
    return f"{count:,} {noun} not embedded yet: reservoir embed"
