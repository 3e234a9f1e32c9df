"""Embed stored messages, and change the embedding model.

Messages are embedded in batches. Each batch is committed separately, so an interrupted run loses
nothing.
"""

import shlex
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from copy import copy
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from reservoir_cli.embedding import Embedder, Engine
from reservoir_cli.errors import ModelUnavailableError, ReservoirError, StoreLockedError
from reservoir_cli.messages import Key, Scope, StoredMessage, plain_text
from reservoir_cli.retrieval.embed_summaries import embed_summaries
from reservoir_cli.settings import paths
from reservoir_cli.settings.config import Config
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.store import Store
from reservoir_cli.util.interrupts import explain_interrupt
from reservoir_cli.util.private_files import exclusive_lock
from reservoir_cli.util.progress import Progress

#: The most messages of a batch, and the most characters, which take about five seconds. A batch is
#: sorted by length.
BATCH, _BATCH_CHARACTERS = 512, 200_000
#: Only this many characters of a message are embedded, which take 160 MB; full text covers all.
LONGEST = 1_000_000
#: How many passages of pending messages are embedded for a question, or with a new message, and
#: from how many characters, which only need to be divided into passages.
_CATCH_UP_PASSAGES, _CATCH_UP_CHARACTERS = 64, 100_000

#: How many of the latest questions keep their embeddings in memory.
_CACHED_QUESTIONS = 16

#: Printed when Ctrl-C ends embedding after messages were stored.
_INTERRUPTED = "interrupted; stored messages are kept, and reservoir embed embeds the rest"

_EVERYTHING = Scope(None)


class Model(NamedTuple):
    """A model whose embeddings a store accepts from a file.

    :param link_threshold: returns the least similarity of linked messages of a partition.
    """

    model_id: str
    name: str
    dimensions: int
    link_threshold: Callable[[str], float]


class EmbeddingState(NamedTuple):
    """The models of a store's embeddings.

    :param active: name of the model whose embeddings are compared.
    :param next: name of the model whose embeddings are being built to replace it.
    :param missing: how many messages have no embedding of the next model.
    """

    active: str | None
    next: str | None = None
    missing: int = 0


class Indexer:
    """Embeds the messages of a store with the configured model.

    :ivar config: may be replaced; a loaded model is kept.
    :ivar serving: whether models loaded from now on are prepared for many questions.
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
        """Create an indexer.

        :param embedder: the model to use instead of the configured one.
        :param offline: never use the network.
        :param ready_only: neither download nor compile a model, and embed no messages before a
            question.
        """
        self.config, self.serving = config, False
        self._store, self._embedder = store, embedder
        self._offline, self._ready_only = offline, ready_only
        self._notify, self._progress = notify, progress

    def embedder(self) -> Embedder:
        """Return the model, loading it on the first call.

        :raises ModelUnavailableError: no model is available.
        """
        if self._embedder is None:
            from reservoir_cli.embedding.load import load_embedder  # imports all engines

            loaded = load_embedder(
                self.config.settings().embedding_model,
                offline=self._offline,
                progress=self._progress,
                notify=self._notify,
                ready_only=self._ready_only,
                serving=self.serving,
            )
            self._embedder = _cache_questions(loaded)
        return self._embedder

    def share(self, embedder: Embedder) -> None:
        """Use a model that is already loaded."""
        self._embedder = embedder

    @property
    def engine(self) -> Engine | None:
        """The engine that runs the model, and the reason; ``None`` until a model is loaded."""
        return self._embedder.engine if self._embedder else None

    def load_engine(self) -> Engine | None:
        """Load the model and return its engine; ``None`` without a model."""
        with suppress(ModelUnavailableError):
            return self.embedder().engine
        return None

    def pending(self, scope: Scope = _EVERYTHING) -> int:
        """Return how many messages have no embedding yet."""
        return self._store.count_unembedded(scope)

    def state(self) -> EmbeddingState:
        """Return the models of the store's embeddings."""
        with self._store.snapshot():
            active, building = self._store.active_model(), self._store.next_model()
            name = active[1] if active else None
            if building is None:
                return EmbeddingState(name)
            return EmbeddingState(
                name, building[1], self._store.count_unembedded(model=building[0])
            )

    def embed(
        self,
        scope: Scope = _EVERYTHING,
        newest: int | None = None,
        most: int | None = None,
        *,
        wait: bool = True,
    ) -> int:
        """Embed pending messages.

        :param newest: embed at most this many, those added last.
        :param most: embed at most this many, newest first by date; ``None`` for all,
            including those that other processes add in the meantime.
        :param wait: wait for another process that is embedding, instead of embedding nothing.
        :returns: how many messages were embedded.
        :raises ModelUnavailableError: no model is available.
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
                link_threshold=self.config.link_threshold,
                progress=self._progress,
                limit=most if newest is None else newest,
                newest=newest is not None,
            )

    def embed_if_possible(
        self, scope: Scope = _EVERYTHING, newest: int | None = None, *, most: int | None = None
    ) -> None:
        """Embed pending messages; without a model, only report what is missing.

        :param newest: embed this many, those added last, and of the others only as many as for a
            question.
        :param most: embed at most this many, newest first by date, without reporting the rest.
        """
        try:
            with explain_interrupt(self._notify, _INTERRUPTED):
                pending = self._store.count_unembedded(scope)
                if newest is None:
                    # A fixed number, as other processes may keep adding messages.
                    self.embed(scope, most=pending if most is None else most)
                    return
                self.embed(scope, newest=newest, wait=False)
                if pending > newest:
                    self._catch_up(self.embedder(), scope)
                    if remaining := self._store.count_unembedded(scope):
                        self._notify(describe_backlog(remaining))
        except ReservoirError as error:
            # The messages are safe; they can be embedded later.
            self._notify(f"stored, but not embedded: {error.message}")

    def embed_added(self, scope: Scope, count: int) -> None:
        """Embed messages that were just stored, and a few older ones, if a model is available.

        :param count: how many were stored.
        """
        self.embed_if_possible(scope, newest=count)

    def update(self, *, rebuild: bool = False, named: bool = False) -> int:
        """Embed all messages with the configured model.

        :param rebuild: also those that the same model embedded before.
        :param named: the user named the model; abandons a change to another one.
        :returns: how many messages were embedded.
        """
        if rebuild or (named and self.needs_rebuilding()):
            return self.rebuild()
        if named:
            self._store.give_up_model()
        count = self.embed()
        clear_former_model(self._store)
        return count

    def rebuild(self) -> int:
        """Embed every message again, then switch to the new embeddings; see :func:`rebuild`."""
        return rebuild(
            self._store,
            self.embedder(),
            link_threshold=self.config.link_threshold,
            progress=self._progress,
        )

    def needs_rebuilding(self) -> bool:
        """Return whether the store's embeddings are from a model other than the configured one."""
        wanted, active = self.embedder().model_id, self._store.active_model()
        return active is not None and active[0] != wanted

    def importable_model(self) -> Model | None:
        """Return the model that imported embeddings must be from: the store's, else our own."""
        active, dimensions = self._store.active_model(), self._store.dimensions()
        if active and dimensions:
            return Model(*active, dimensions, self.config.link_threshold)
        try:
            embedder = self.embedder()
        except ModelUnavailableError:
            return None
        if active and active[0] != embedder.model_id:
            return None
        return Model(
            embedder.model_id, embedder.name, embedder.dimensions, self.config.link_threshold
        )

    def embedder_for_question(self, scope: Scope, *, required: bool = False) -> Embedder | None:
        """Return the model if the store has messages to compare, after embedding a few pending.

        :param required: raise an error if the model cannot be used, instead of reporting it.
        :raises ModelUnavailableError: it is required.
        """
        embedder = self.usable_embedder(scope, required=required)
        if embedder is None:
            return None
        pending = self._store.count_unembedded(scope)
        if pending and not self._ready_only and not self._store.read_only:
            self._catch_up(embedder, scope)
        if remaining := self._store.count_unembedded(scope):
            self._notify(describe_backlog(remaining))
        return embedder

    def usable_embedder(self, scope: Scope, *, required: bool = False) -> Embedder | None:
        """Return the model if the store has messages to compare; see `embedder_for_question`."""
        active = self._store.active_model()
        if active is None and not self._store.count_unembedded(scope):
            return None
        try:
            embedder = self.embedder()
            if active is not None and active[0] != embedder.model_id:
                raise ModelUnavailableError(*_describe_other_model(embedder, active[1]))
        except ModelUnavailableError as error:
            if required:
                raise
            self._notify(f"ranked by full text and recency only: {error.message}")
            return None
        return embedder

    def _catch_up(self, embedder: Embedder, scope: Scope) -> None:
        # If another process is embedding or writing, these messages are found by full text only.
        with suppress(StoreLockedError), self._lock(wait=False) as acquired:
            if acquired:
                embed_newest(
                    self._store, embedder, scope, link_threshold=self.config.link_threshold
                )

    def _lock(self, *, wait: bool) -> AbstractContextManager[bool]:
        """Return the lock that allows only one process to embed, so that no work is duplicated."""
        return exclusive_lock(paths.embedding_lock(self._store.location), wait=wait)


def embed_pending(
    store: Store,
    embedder: Embedder,
    scope: Scope,
    *,
    link_threshold: Callable[[str], float],
    progress: Progress,
    limit: int | None = None,
    newest: bool = False,
    wait: float | None = None,
) -> int:
    """Embed pending messages, batch by batch, newest first by date.

    :param link_threshold: returns the least similarity of linked messages of a partition.
    :param limit: at most this many messages; ``None`` for all.
    :param newest: embed those added last, which avoids sorting a long backlog.
    :param wait: seconds to wait for the write lock.
    :returns: how many messages were embedded.
    :raises ReservoirError: the store's embeddings are from another model.
    """
    _require_same_model(store, embedder)
    total = store.count_unembedded(scope) if limit is None else limit
    count = 0
    if total:
        progress("embedding", 0, total)
    for batch in (
        _batches_by_arrival(store, scope, total)
        if newest
        else _batches_by_time(store, scope, limit)
    ):
        _embed_batch(store, embedder, batch, link_threshold, wait)
        count += len(batch)
        progress("embedding", count, max(total, count))
    return count


def embed_newest(
    store: Store, embedder: Embedder, scope: Scope, *, link_threshold: Callable[[str], float]
) -> None:
    """Embed the pending messages added last, at most 64 passages, without waiting for a lock.

    A question has to wait for this, so a message that is too long is left to ``embed``.

    :raises ReservoirError: the store's embeddings are from another model.
    :raises StoreLockedError: another process is writing.
    """
    _require_same_model(store, embedder)
    pending = store.unembedded(_CATCH_UP_PASSAGES, scope, newest=True)
    if batch := _choose_short(pending, embedder):
        _embed_batch(store, embedder, batch, link_threshold, wait=0)


def _choose_short(messages: list[StoredMessage], embedder: Embedder) -> list[StoredMessage]:
    """Return the messages that fit, in this order, into the passages for one question."""
    passages, characters = _CATCH_UP_PASSAGES, _CATCH_UP_CHARACTERS
    chosen = []
    for message in messages:
        text = plain_text(message)
        if len(text) > characters:
            continue
        characters -= len(text)
        count = len(embedder.passages(text)) if text.strip() else 0
        if count <= passages:
            passages -= count
            chosen.append(message)
    return chosen


def _embed_batch(
    store: Store,
    embedder: Embedder,
    batch: list[StoredMessage],
    link_threshold: Callable[[str], float],
    wait: float | None,
) -> None:
    passages = embed_messages(batch, embedder)
    if store.active_model() is None:
        _activate(store, embedder, wait)
    store.add_passages(embedder.model_id, passages, link_threshold, wait, embedded=batch)


def _batches_by_arrival(store: Store, scope: Scope, limit: int) -> Iterator[list[StoredMessage]]:
    """Yield batches of pending messages, those added last first."""
    while limit > 0:
        batch = first_batch(store.unembedded(min(BATCH, limit), scope, newest=True))
        if not batch:
            return
        yield batch
        limit -= len(batch)


def _batches_by_time(
    store: Store, scope: Scope, limit: int | None
) -> Iterator[list[StoredMessage]]:
    """Yield batches of pending messages, newest first by date.

    :param limit: at most this many; ``None`` for all, including those added in the meantime.
    """
    while keys := store.unembedded_keys(scope)[:limit]:
        start = 0
        while start < len(keys):
            chunk = keys[start : start + BATCH]
            batch = first_batch(store.by_key(chunk)[::-1])
            if batch:
                yield batch
            # Messages deleted in the meantime are missing from the batch.
            start += chunk.index(batch[-1].key) + 1 if batch else len(chunk)
        if limit is not None:
            return


def rebuild(
    store: Store, embedder: Embedder, *, link_threshold: Callable[[str], float], progress: Progress
) -> int:
    """Embed every message with a model, then use those embeddings from then on.

    An interrupted run is resumed by the next one. Until the switch, other processes read and
    write as before. Messages added at the last moment are pending after it.

    :param link_threshold: returns the least similarity of linked messages of a partition.
    :returns: how many messages were embedded by this run.
    :raises ReservoirError: another process began to change to yet another model.
    """
    if store.active_model() is None:  # there are no embeddings to use in the meantime
        store.activate_model(embedder.model_id, embedder.name)
        return embed_pending(
            store, embedder, _EVERYTHING, link_threshold=link_threshold, progress=progress
        )
    stored_id = store.begin_model(embedder.model_id, embedder.name)
    count, total = 0, store.count_unembedded(model=stored_id)
    while batch := first_batch(store.unembedded(BATCH, model=stored_id)):
        passages = embed_messages(batch, embedder)
        store.add_passages(stored_id, passages, link_threshold, embedded=batch)
        count += len(batch)
        progress(f"embedding with {embedder.name}", count, max(total, count))
    progress("switching to the new embeddings", 0, 0)
    store.switch_model(stored_id)
    embed_summaries(store, embedder, _EVERYTHING)
    clear_former_model(store)
    return count


def clear_former_model(store: Store) -> None:
    """Remove the former model's embeddings, in batches so that other processes need not wait."""
    while store.clear_former_model():
        pass


def first_batch(messages: list[StoredMessage]) -> list[StoredMessage]:
    """Return the first messages that make up a batch: at least one, however long."""
    lengths = accumulate(len(plain_text(message)) for message in messages)
    count = sum(1 for length in lengths if length <= _BATCH_CHARACTERS)
    return messages[: max(1, count)]


def embed_messages(messages: list[StoredMessage], embedder: Embedder) -> dict[Key, list[Passage]]:
    """Return the passages of messages with their embeddings."""
    # A message without text gets no embedding, but is no longer pending.
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
    """Make this the store's active model, unless another process activated one first."""
    with store.write(wait):
        if store.active_model() is None:
            store.activate_model(embedder.model_id, embedder.name)
    _require_same_model(store, embedder)


def _require_same_model(store: Store, embedder: Embedder) -> None:
    active = store.active_model()
    if active is not None and active[0] != embedder.model_id:
        raise ReservoirError(*_describe_other_model(embedder, active[1]))


def _describe_other_model(embedder: Embedder, active: str) -> tuple[str, str]:
    """Return the message and hint for a store whose embeddings are from another model."""
    assignment = shlex.quote(f"embedding_model={active}")
    return (
        f"the embeddings of this store are from a model other than {embedder.name}",
        f"reservoir embed --rebuild, or reservoir config set {assignment}",
    )


def _cache_questions(embedder: Embedder) -> Embedder:
    """Return a model that does not embed the latest questions again."""
    # A copy: an object that held a cache of its own method would not be freed without the
    # garbage collector, which a server exempts its model from.
    cached = copy(embedder)
    cached.encode_query = lru_cache(_CACHED_QUESTIONS)(embedder.encode_query)  # type: ignore[method-assign]
    return cached


def describe_backlog(count: int) -> str:
    """Say how many messages are not embedded yet, and name the command that embeds them."""
    noun = "message" if count == 1 else "messages"
    return f"{count:,} {noun} not embedded yet: reservoir embed"
