"""Embed stored messages, each batch in its own transaction, and change the embedding model."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from copy import copy
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from reservoir_cli.embedding import Embedder, Engine
from reservoir_cli.errors import ModelUnavailableError, ReservoirError, StoreLockedError
from reservoir_cli.messages import EVERYWHERE, Key, Scope, StoredMessage, plain_text
from reservoir_cli.retrieval.embed_summaries import embed_summaries
from reservoir_cli.retrieval.text_worth_embedding import (
    MOST_PASSAGES,
    choose_passages,
    estimate_passages,
)
from reservoir_cli.settings import paths
from reservoir_cli.settings.config import Config
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.store import Store
from reservoir_cli.util.private_files import exclusive_lock
from reservoir_cli.util.progress import Progress, counted, explain_interrupt, no_progress

#: Messages and characters of a batch, which take about five seconds; it is sorted by length.
BATCH, _BATCH_CHARACTERS = 512, 200_000
LONGEST = 1_000_000  # characters of a message that are embedded, which take 160 MB
#: Passages embedded for a question or with a new message, and characters divided into such.
_CATCH_UP_PASSAGES, _CATCH_UP_CHARACTERS = 64, 100_000

_CACHED_QUESTIONS = 16  # how many of the latest questions keep their embeddings in memory

#: Printed when Ctrl-C ends embedding after messages were stored.
_INTERRUPTED = "interrupted; stored messages are kept, and reservoir embed embeds the rest"


class EmbeddingModel(NamedTuple):
    """A model whose embeddings a store accepts from a file."""

    model_id: str
    name: str
    dimensions: int


class EmbeddingState(NamedTuple):
    """The models of a store's embeddings."""

    active: str | None
    next: str | None = None  # name of the model whose embeddings are being built to replace these
    missing: int = 0  # how many messages have no embedding of the next model


class Indexer:
    """Embeds the messages of a store; models loaded when ``serving`` suit many questions."""

    def __init__(
        self,
        store: Store,
        config: Config,
        *,
        embedder: Embedder | None = None,
        offline: bool = False,
        ready_only: bool = False,
        notify: Callable[[str], None] = lambda _: None,
        progress: Progress = no_progress,
    ) -> None:
        """Create an indexer with a model, or with the configured one.

        :param offline: never use the network.
        :param ready_only: neither download nor compile a model, and embed no messages before a
            question.
        """
        self.config, self.serving = config, False
        self._store, self._embedder = store, embedder
        self._offline, self._ready_only = offline, ready_only
        self._notify, self._progress = notify, progress

    def embedder(self) -> Embedder:
        """Return the model, loading it on the first call; raises ModelUnavailableError."""
        if self._embedder is None:
            from reservoir_cli.embedding.load_model import load_embedder  # imports all engines

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

    def pending(self, scope: Scope = EVERYWHERE) -> int:
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
        scope: Scope = EVERYWHERE,
        newest: int | None = None,
        most: int | None = None,
        *,
        wait: bool = True,
        long: bool = True,
    ) -> int:
        """Embed pending messages, and return how many.

        :param newest: embed at most this many, those added last.
        :param most: embed at most this many, newest first by date; ``None`` for all,
            including those that other processes add in the meantime.
        :param wait: wait for another process that is embedding, instead of embedding nothing.
        :param long: also messages of more than 128 passages.
        :raises ModelUnavailableError: no model is available.
        """
        if not self._store.count_unembedded(scope):
            return 0
        self.embedder()  # not under the lock: a download takes long
        with self._lock(wait=wait) as acquired:
            if not acquired:
                return 0
            if newest is None:
                return self._embed_pending(scope, most, long=long)
            return self._embed_pending(scope, newest, newest=True, long=long)

    def embed_if_possible(
        self, scope: Scope = EVERYWHERE, newest: int | None = None, *, most: int | None = None
    ) -> None:
        """Embed pending messages but the long ones; without a model, only report what is missing.

        :param newest: embed this many, those added last, and of the others only as many as for a
            question.
        :param most: embed at most this many, newest first by date, without reporting the rest.
        """
        try:
            with explain_interrupt(self._notify, _INTERRUPTED):
                pending = self._store.count_unembedded(scope)
                if newest is None:
                    # A fixed number, as other processes may keep adding messages.
                    self.embed(scope, most=pending if most is None else most, long=False)
                    if most is not None:
                        return
                else:
                    self.embed(scope, newest=newest, wait=False, long=False)
                    if pending > newest:
                        self._catch_up(scope)
                if remaining := self._store.count_unembedded(scope):
                    self._notify(describe_backlog(remaining))
        except ReservoirError as error:
            # The messages are safe; they can be embedded later.
            self._notify(f"stored, but not embedded: {error.message}")

    def update(self, *, rebuild: bool = False, named: bool = False) -> int:
        """Embed all messages with the configured model, and return how many.

        :param rebuild: also those that the same model embedded before.
        :param named: the user named the model; abandons a change to another one.
        """
        if named and not rebuild:
            model_id, active = self.embedder().model_id, self._store.active_model()
            rebuild = active is not None and active[0] != model_id
        if rebuild:
            return self.rebuild()
        if named:
            self._store.give_up_model()
        count = self.embed()
        self._clear_former_model()
        return count

    def rebuild(self) -> int:
        """Embed every message again, use the new embeddings from then on, and return how many.

        An interrupted run is resumed by the next one. Until the switch, other processes read and
        write as before. Messages added at the last moment are pending after it.

        :raises ReservoirError: another process began to change to yet another model.
        """
        store, embedder = self._store, self.embedder()
        if store.active_model() is None:  # there are no embeddings to use in the meantime
            store.activate_model(embedder.model_id, embedder.name)
            return self._embed_pending(EVERYWHERE)
        stored_id = store.begin_model(embedder.model_id, embedder.name)
        count, total = 0, store.count_unembedded(model=stored_id)
        while batch := first_batch(store.unembedded(BATCH, model=stored_id)):
            passages = embed_messages(batch, embedder)
            store.add_passages(stored_id, passages, embedded=batch)
            count += len(batch)
            self._progress(f"embedding with {embedder.name}", count, max(total, count))
        self._progress("switching to the new embeddings", 0, 0)
        store.switch_model(stored_id)
        embed_summaries(store, embedder, EVERYWHERE)
        self._clear_former_model()
        return count

    def importable_model(self) -> EmbeddingModel | None:
        """Return the model that imported embeddings must be from: the store's, else our own."""
        active, dimensions = self._store.active_model(), self._store.dimensions()
        if active and dimensions:
            return EmbeddingModel(*active, dimensions)
        try:
            embedder = self.embedder()
        except ModelUnavailableError:
            return None
        if active and active[0] != embedder.model_id:
            return None
        return EmbeddingModel(embedder.model_id, embedder.name, embedder.dimensions)

    def embedder_for_question(self, scope: Scope, *, required: bool = False) -> Embedder | None:
        """Return the model if the store has messages to compare, after embedding a few pending.

        :param required: raise ModelUnavailableError without a model, instead of reporting it.
        """
        embedder = self.usable_embedder(scope, required=required)
        if embedder is None:
            return None
        pending = self._store.count_unembedded(scope)
        if pending and not self._ready_only and not self._store.read_only:
            self._catch_up(scope)
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
                raise ModelUnavailableError(*describe_other_model(embedder, active[1]))
        except ModelUnavailableError as error:
            if required:
                raise
            self._notify(f"ranked by full text and recency only: {error.message}")
            return None
        return embedder

    def _catch_up(self, scope: Scope) -> None:
        """Embed the pending messages added last, at most 64 passages, without waiting for a lock.

        If another process is embedding or writing, they are found by full text only.

        :raises ReservoirError: the store's embeddings are from another model.
        """
        with suppress(StoreLockedError), self._lock(wait=False) as acquired:
            if acquired:
                self._require_same_model()
                pending = self._store.unembedded(_CATCH_UP_PASSAGES, scope, newest=True)
                if batch := _choose_short(pending, self.embedder()):
                    self._embed_batch(batch, wait=0)

    def _embed_pending(
        self, scope: Scope, limit: int | None = None, *, newest: bool = False, long: bool = True
    ) -> int:
        """Embed pending messages, batch by batch, newest first by date; return how many.

        :param newest: embed those added last, which avoids sorting a long backlog.
        :param long: also messages of more than 128 passages; required without a limit.
        :raises ReservoirError: the store's embeddings are from another model.
        """
        self._require_same_model()
        total = self._store.count_unembedded(scope) if limit is None else limit
        count = 0
        if total:
            self._progress("embedding", 0, total)
        for batch in (
            self._batches_by_arrival(scope, total)
            if newest
            else self._batches_by_time(scope, limit)
        ):
            chosen = batch if long else [message for message in batch if not _is_long(message)]
            if chosen:
                self._embed_batch(chosen)
            count += len(chosen)
            self._progress("embedding", count, max(total, count))
        return count

    def _embed_batch(self, batch: list[StoredMessage], wait: float | None = None) -> None:
        """Embed messages; without an active model, make this one active."""
        store, embedder = self._store, self.embedder()
        passages = embed_messages(batch, embedder)
        if store.active_model() is None:
            with store.write(wait):
                if store.active_model() is None:
                    store.activate_model(embedder.model_id, embedder.name)
            self._require_same_model()  # another process may have been first
        store.add_passages(embedder.model_id, passages, wait, embedded=batch)

    def _batches_by_arrival(self, scope: Scope, limit: int) -> Iterator[list[StoredMessage]]:
        left_out = set[Key]()  # by the consumer, so still pending
        while limit > 0:
            count = min(BATCH, limit) + len(left_out)
            pending = self._store.unembedded(count, scope, newest=True)
            batch = first_batch([message for message in pending if message.key not in left_out])
            if not batch:
                return
            yield batch
            limit -= len(batch)
            left_out.update(message.key for message in batch if _is_long(message))

    def _batches_by_time(self, scope: Scope, limit: int | None) -> Iterator[list[StoredMessage]]:
        """Yield batches of pending messages, newest first by date; also those added meanwhile."""
        while keys := self._store.unembedded_keys(scope)[:limit]:
            start = 0
            while start < len(keys):
                chunk = keys[start : start + BATCH]
                batch = first_batch(self._store.by_key(chunk)[::-1])
                if batch:
                    yield batch
                # Messages deleted in the meantime are missing from the batch.
                start += chunk.index(batch[-1].key) + 1 if batch else len(chunk)
            if limit is not None:
                return

    def _require_same_model(self) -> None:
        active = self._store.active_model()
        if active is not None and active[0] != self.embedder().model_id:
            raise ReservoirError(*describe_other_model(self.embedder(), active[1]))

    def _clear_former_model(self) -> None:
        """Remove the former model's embeddings, in batches so that others need not wait."""
        while self._store.clear_former_model():
            pass

    def _lock(self, *, wait: bool) -> AbstractContextManager[bool]:
        """Return the lock that allows only one process to embed, so that no work is duplicated."""
        return exclusive_lock(paths.embedding_lock(self._store.location), wait=wait)


def _choose_short(messages: list[StoredMessage], embedder: Embedder) -> list[StoredMessage]:
    """Return the messages that fit, in this order, into the passages for one question."""
    passages, characters = _CATCH_UP_PASSAGES, _CATCH_UP_CHARACTERS
    chosen = []
    for message in messages:
        text = plain_text(message)
        if len(text) > characters:
            continue
        characters -= len(text)
        count = 0
        if text.strip() and estimate_passages(text):
            count = len(choose_passages(text, embedder.passages(text)))
        if count <= passages:
            passages -= count
            chosen.append(message)
    return chosen


def _is_long(message: StoredMessage) -> bool:
    return estimate_passages(plain_text(message)[:LONGEST]) > MOST_PASSAGES


def first_batch(messages: list[StoredMessage]) -> list[StoredMessage]:
    """Return the first messages that make up a batch: at least one, however long."""
    lengths = accumulate(len(plain_text(message)) for message in messages)
    count = sum(1 for length in lengths if length <= _BATCH_CHARACTERS)
    return messages[: max(1, count)]


def embed_messages(messages: list[StoredMessage], embedder: Embedder) -> dict[Key, list[Passage]]:
    """Return the passages of messages with their embeddings."""
    # A message without words gets no embedding, but is no longer pending.
    contents = ((message.key, plain_text(message)[:LONGEST]) for message in messages)
    texts = [(key, text) for key, text in contents if text.strip() and estimate_passages(text)]
    spans = [
        (key, number, start, end, text[start:end])
        for key, text in texts
        for number, (start, end) in enumerate(choose_passages(text, embedder.passages(text)))
    ]
    vectors = embedder.encode_documents([passage for *_, passage in spans])
    passages: dict[Key, list[Passage]] = {message.key: [] for message in messages}
    for (key, number, start, end, _), vector in zip(spans, vectors, strict=True):
        passages[key].append(Passage(key.id, number, start, end, vector))
    return passages


def describe_other_model(embedder: Embedder, active: str) -> tuple[str, str]:
    """Return the message and hint for a store whose embeddings are from another model."""
    if active == embedder.name:
        return (
            f"the embeddings of this store are from another version of {active}",
            "reservoir embed --rebuild",
        )
    assignment = shlex.quote(f"embedding_model={active}")
    return (
        f"the embeddings of this store are from a model other than {embedder.name}",
        f"reservoir embed --rebuild, or reservoir config set {assignment}",
    )


def _cache_questions(embedder: Embedder) -> Embedder:
    # A copy: an object that held a cache of its own method would not be freed without the
    # garbage collector, which a server exempts its model from.
    cached = copy(embedder)
    cached.encode_query = lru_cache(_CACHED_QUESTIONS)(embedder.encode_query)  # type: ignore[method-assign]
    return cached


def describe_backlog(count: int) -> str:
    """Say how many messages are not embedded yet, and name the command that embeds them."""
    return f"{counted(count, 'message')} not embedded yet: reservoir embed"
