"""The state that the parts of a running server share, and the threads that work on its store."""

import asyncio
import gc
import os
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from reservoir_cli.agents.warm_store import Opener, WarmStore
from reservoir_cli.embedding import Embedder
from reservoir_cli.errors import StoreError
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.server import limits
from reservoir_cli.server.background_work import StartReason, Traffic
from reservoir_cli.server.handshake import ServerIdentity
from reservoir_cli.settings import upstreams
from reservoir_cli.settings.config import Config
from reservoir_cli.settings.reload import LiveConfig
from reservoir_cli.settings.upstreams import Upstream
from reservoir_cli.util.programs import process_start_time
from reservoir_cli.util.timeouts import LOCKED_STORE

T = TypeVar("T")

#: How many objects to create between two garbage collections. Commands collect at 100,000, but
#: connections leave reference cycles behind, which would take 8 MB until then.
_MOST_GARBAGE = 20_000


class StoreThread:
    """Run functions one after the other in a thread that keeps the store open.

    :param patience: seconds that a write waits while others write; reads never wait.
    :param traffic: of the server; calls of :meth:`run` and :meth:`submit` count as questions.
    :param recorder: thread that stores the records of recalls, so that questions need not wait.
    """

    def __init__(
        self,
        open_reservoir: Opener,
        settings: LiveConfig,
        name: str,
        patience: float = LOCKED_STORE,
        traffic: Traffic | None = None,
        recorder: "StoreThread | None" = None,
    ) -> None:
        self._open_reservoir, self._settings, self._patience = open_reservoir, settings, patience
        self._store = WarmStore(self._open_store)
        self._traffic, self._recorder = traffic or Traffic(), recorder
        #: Records of recalls and answers that wait to be stored.
        self._records: deque[Mapping[str, Any]] = deque()
        self._batches: dict[Callable[[Reservoir], None], Future[None]] = {}
        self._pool = ThreadPoolExecutor(1, name)
        self._answers_questions = False
        #: The model of the thread that answers questions, which other threads share.
        self.model: Embedder | None = None
        self._model_setting: str | None = None

    async def run(self, function: Callable[[Reservoir], T]) -> T:
        """Run a function with the open store; if the caller is cancelled first, it never starts."""
        return await asyncio.wrap_future(self.submit(function))

    def submit(self, function: Callable[[Reservoir], T]) -> Future[T]:
        """Queue a function to be run with the open store."""
        return self._submit(self._call, function)

    def submit_in_pause(
        self, function: Callable[[Reservoir], T], due: float | None = None
    ) -> Future[T]:
        """Queue background work until no question is answered, at most until ``due`` or for 2 s."""
        if due is None:
            due = time.monotonic() + limits.MAX_DELAY
        return self._pool.submit(self._call_in_pause, function, due)

    def submit_batch_in_pause(self, function: Callable[[Reservoir], None]) -> Future[None]:
        """Queue background work, unless it waits already: one run handles everything until then."""
        future = self._batches.get(function)
        if future is None or future.running() or future.done():
            future = self._batches[function] = self.submit_in_pause(function)
        return future

    def give_way(self, due: float) -> None:
        """Let a question be answered first, at most until ``due``."""
        self._traffic.give_way(self, due)

    def submit_if_idle(self, function: Callable[[Reservoir], object]) -> None:
        """Run a function if no question is being answered; drop it otherwise."""
        if self._traffic.is_idle():
            with suppress(RuntimeError):  # the server is stopping
                self._pool.submit(self._call, function)

    def record(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Queue records of recalls and answers to be stored."""
        self._records.extend(records)
        with suppress(RuntimeError):  # the server is stopping
            self.submit_batch_in_pause(self._add_records)

    def _submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        self._traffic.begin(self)
        future = self._pool.submit(function, *arguments)
        future.add_done_callback(lambda _: self._traffic.end(self))
        return future

    def _call_in_pause(self, function: Callable[[Reservoir], T], due: float) -> T:
        if self._traffic.wait(self, due) is StartReason.URGENT:
            return self._call(function)
        with self._traffic.take_turn():
            return self._call(function)

    def _call(self, function: Callable[[Reservoir], T]) -> T:
        try:
            return function(self._current_store())
        except StoreError:
            self._store.release()  # the next call reconnects
            raise
        finally:
            reservoir = self._store.reservoir
            if self._recorder and reservoir and reservoir.runs.has_put_off:
                self._recorder.record(reservoir.runs.take_recalls())

    def _add_records(self, reservoir: Reservoir) -> None:
        records = [self._records.popleft() for _ in range(len(self._records))]
        reservoir.runs.add(records, wait=None)  # nobody waits for it

    def _open_store(self, create: bool) -> Reservoir:
        reservoir = self._open_reservoir(
            create=create,
            notify=lambda _: None,
            patience=self._patience,
            known=self._settings.current(),
        )
        if self._answers_questions:
            reservoir.serve()
            reservoir.runs.put_off_recalls()
            self._load_model(reservoir)
        return reservoir

    def _load_model(self, reservoir: Reservoir) -> None:
        setting = reservoir.config.settings().embedding_model
        if self.model and setting == self._model_setting:
            reservoir.indexer.share(self.model)
            return
        is_available = reservoir.indexer.load_engine() is not None
        self.model = reservoir.indexer.embedder() if is_available else None
        self._model_setting = setting

    def _current_store(self) -> Reservoir:
        reservoir = self._store.open(create=True)
        reservoir.use(self._settings.current())
        return reservoir

    def warm(self) -> Future[None]:
        """Open the store and load the model before the first question."""

        def load(reservoir: Reservoir) -> None:
            reservoir.context("", budget=1_000)  # imports the modules that build a context
            # Exempt long-lived objects from garbage collection, which takes 50 ms otherwise.
            gc.collect()
            gc.freeze()
            gc.set_threshold(_MOST_GARBAGE, 10, 10)

        self._answers_questions = True
        return self.submit(load)

    def close(self) -> None:
        """Finish the queued work, and close the store."""
        with suppress(TimeoutError, RuntimeError):
            self._submit(self._store.close).result(limits.LAST_WORK)
        self._pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """A running server's state; ``app.state.server`` and ``request.app.state.server``.

    :param settings: read again when their file changes.
    :param open_reservoir: opens another connection to the store; prefer ``reader`` and ``writer``.
    :param reader: the thread that answers questions. It passes its own
        :class:`~reservoir_cli.reservoir.Reservoir` to the functions it runs.
    :param writer: the thread for everything that writes or takes long.
    :param embedder: the thread that embeds new messages, so that storing never waits for the model.
    :param traffic: the questions that these threads are answering; background work waits for them.
    :param typed_upstreams: upstream URLs by name, for this run only.
    :param open_proxy: whether the proxy's routes work without the token.
    """

    settings: LiveConfig
    origin: str
    token: str
    open_reservoir: Opener
    reader: StoreThread
    writer: StoreThread
    embedder: StoreThread
    traffic: Traffic = field(default_factory=Traffic)
    typed_upstreams: Mapping[str, str] = field(default_factory=dict)
    open_proxy: bool = False
    hosts: frozenset[str] = frozenset()
    log: Callable[[str], None] = lambda _: None

    def new_thread(self, name: str, patience: float = LOCKED_STORE) -> StoreThread:
        """Return another thread with its own connection to the store."""
        return StoreThread(self.open_reservoir, self.settings, name, patience, self.traffic)

    @property
    def config(self) -> Config:
        """The current settings."""
        return self.settings.current()

    @property
    def upstreams(self) -> Mapping[str, Upstream]:
        """The upstreams by name."""
        return upstreams.resolve(self.config.upstreams, self.typed_upstreams)

    @property
    def identity(self) -> ServerIdentity:
        """The identity that this process proves to programs."""
        pid = os.getpid()
        return ServerIdentity(self.token, self.origin, pid, process_start_time(pid) or "")

    @property
    def base_url(self) -> str:
        """The URL of the OpenAI protocol, ready to paste into a client's settings."""
        return f"{self.origin}/k/{self.token}/v1"

    @property
    def page(self) -> str:
        """The URL of the page."""
        return f"{self.origin}/ui/"
