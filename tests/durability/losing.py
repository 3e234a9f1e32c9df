"""Interrupt the server while threads write to it: restarts, ended connections, failover.

Each kind of trial is a function ``(folder, seed, trials) → Tally``. In its note a tally says how
many commits were left in doubt, and how many acknowledged messages an asynchronous standby lacked.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pgbouncer
from pgbouncer import Pool
from postgres_server import PostgresServer, installed
from trials import PATIENCE, Home, Result, Tally, ended

from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Key, Message, Scope
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.postgres.server_errors import UncertainCommitError
from reservoir_cli.tokens import load_counter

_WRITERS = 4
#: Messages that each writer stores after the fault before a trial ends.
_AFTERWARDS = 3
_TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
)


@dataclass
class Writers:
    """Threads that store one message after another, each by its own store object.

    :param name: a unique name that is in each text.
    :param stored: the text of each acknowledged message.
    :param doubtful: texts whose commit was not confirmed.
    :param errors: errors that the store raised.
    """

    url: str
    name: str
    stored: dict[Key, str] = field(default_factory=dict)
    doubtful: set[str] = field(default_factory=set)
    errors: list[ReservoirError] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _since: Counter[int] = field(default_factory=Counter)
    _end: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Let the threads write while a block runs, and until each has stored more messages."""
        threads = [threading.Thread(target=self._run, args=(n,)) for n in range(_WRITERS)]
        for thread in threads:
            thread.start()
        try:
            self._await_more()
            yield
            self._await_more()
        finally:
            self._end.set()
            for thread in threads:
                thread.join()

    def _await_more(self) -> None:
        with self._lock:
            self._since.clear()
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and not self.crashes:
            with self._lock:
                counts = [self._since[number] for number in range(_WRITERS)]
            if min(counts) >= _AFTERWARDS:
                return
            time.sleep(0.01)
        self.crashes.append("the writers did not go on")

    def _run(self, number: int) -> None:
        try:
            self._write(number)
        except Exception as error:
            self.crashes.append(repr(error))

    def _write(self, number: int) -> None:
        scope, counter = Scope(f"p{number % 3}", "i"), load_counter("approximate")
        with closing(open_store(self.url)) as store:
            count = 0
            while not self._end.is_set():
                count += 1
                text = f"writer {number}, message {count}, {self.name}"
                message = Message("user", text, source="trial")
                try:
                    [added] = store.add(scope, [message], counter=counter, now=datetime.now(UTC))
                except UncertainCommitError as error:
                    self._note(error, text)
                except ReservoirError as error:
                    self._note(error)
                else:
                    with self._lock:
                        self.stored[added.key] = text
                        self._since[number] += 1

    def _note(self, error: ReservoirError, doubtful: str | None = None) -> None:
        with self._lock:
            self.errors.append(error)
            if doubtful:
                self.doubtful.add(doubtful)

    def check(self, url: str, tally: Tally, label: str) -> int:
        """Record faults; return how many acknowledged messages the server lacks."""
        tally.wrong += [f"{crash}, {label}" for crash in self.crashes]
        for error in self.errors:
            clear = error.exit_code == 3 and error.hint and "\n" not in error.message
            tally.hold(clear, f"{error.message!r}, {label}")
        with closing(open_store(url)) as store:
            stored = {message.key: message.content for message in store.last(Scope(None), 0)}
            tally.hold(store.problems() == [], f"a fault, {label}")
        tally.size += sum(map(len, self.stored.values()))
        texts = Counter(stored.values())
        twice = [text for text, count in texts.items() if count > 1]
        tally.hold(not twice, f"stored twice: {twice[:3]}, {label}")
        known = set(self.stored.values()) | self.doubtful
        own_texts = {text for text in texts if text.endswith(f", {self.name}")}
        tally.hold(
            own_texts <= known, f"stored without a word: {sorted(own_texts - known)[:3]}, {label}"
        )
        return sum(stored.get(key) != text for key, text in self.stored.items())


def _terminate(server: PostgresServer) -> None:
    server.sql(_TERMINATE)


def _kill(server: PostgresServer) -> None:
    server.kill()
    server.start()


#: Faults that are inflicted on the server.
_FAULTS: tuple[Callable[[PostgresServer], None], ...] = (
    _terminate,
    _kill,
    PostgresServer.restart,
    lambda server: server.restart("immediate"),
)


def connections(folder: Path, seed: int, trials: int) -> Tally:
    """End the connections of writers in turn by each fault, and run a command meanwhile."""
    return _connections("connection lost", folder, seed, trials, pool=False)


def pooled(folder: Path, seed: int, trials: int) -> Tally:
    """Do the same through pgbouncer in transaction mode."""
    return _connections("… behind pgbouncer", folder, seed, trials, pool=True)


def _connections(name: str, folder: Path, seed: int, trials: int, *, pool: bool) -> Tally:
    tally, rng, home = Tally(name), random.Random(seed), Home(folder / "lost")
    doubtful = failed = 0
    server = PostgresServer()
    bouncer = Pool(server.port) if pool else None
    try:
        direct = server.store_database()
        url = bouncer.url(direct) if bouncer else direct
        with tally.timed():
            for number in range(trials):
                label = f"seed {seed} at {number}"
                writers = Writers(url, label)
                with writers.writing():
                    text = f"{label}: said at the shell"
                    with _command(home, url, text) as answer:
                        time.sleep(rng.uniform(0, 0.8))
                        _FAULTS[(seed + number) % len(_FAULTS)](server)
                tally.hold(_is_right(answer[0], direct, text), f"{answer[0]}, {label}")
                tally.trials += 1
                tally.hit += bool(writers.errors)
                tally.lost += writers.check(direct, tally, label)
                doubtful += len(writers.doubtful)
                failed += len(writers.errors)
        tally.note = f"{failed} writes refused, {doubtful} of them in doubt"
    finally:
        if bouncer:
            bouncer.stop()
        server.remove()
    return tally


@contextmanager
def _command(home: Home, url: str, text: str) -> Iterator[list[Result]]:
    """Store a message by a command while a block runs; its output is available at the end."""
    process = home.start("--db", url, "ingest", "--no-embed", stdin=text)
    answer: list[Result] = []
    try:
        yield answer
    finally:
        answer.append(ended(process))


def _is_right(result: Result, url: str, text: str) -> bool:
    """Return whether a command stored its message once, or refused with a one-line error."""
    with closing(open_store(url)) as store:
        ids = [message.id for message in store.last(Scope(None), 0) if message.content == text]
    if result.code == 0:
        return ids == [int(result.out)]
    return (
        result.code == 3 and result.is_one_line_error and "hint: " in result.err and len(ids) <= 1
    )


def failover(folder: Path, seed: int, trials: int) -> Tally:
    """Kill the primary and promote a synchronous standby."""
    return _failover("failover, synchronous", seed, trials, synchronous=True)


def failover_asynchronous(folder: Path, seed: int, trials: int) -> Tally:
    """Kill the primary and promote an asynchronous standby."""
    return _failover("failover, asynchronous", seed, trials, synchronous=False)


def _failover(name: str, seed: int, trials: int, *, synchronous: bool) -> Tally:
    tally, rng = Tally(name), random.Random(seed)
    doubtful = failed = lacking = acknowledged = 0
    primary = PostgresServer()
    try:
        database = primary.empty_database().rpartition("/")[2]
        open_store(primary.url(database)).close()
        with tally.timed():
            for number in range(trials):
                label = f"seed {seed} at {number}"
                standby = PostgresServer(primary=primary)
                try:
                    _replicate(primary, synchronous=synchronous)
                    writers = Writers(_both(primary, standby, database), label)
                    with writers.writing():
                        time.sleep(rng.uniform(0, 0.6))
                        primary.kill()
                        standby.promote()
                    lost = writers.check(standby.url(database), tally, label)
                finally:
                    primary.remove()
                    primary = standby
                tally.trials += 1
                tally.hit += bool(writers.errors)
                tally.lost += lost if synchronous else 0
                lacking += lost
                doubtful += len(writers.doubtful)
                failed += len(writers.errors)
                acknowledged += len(writers.stored)
        tally.note = (
            f"{acknowledged:,} writes acknowledged, {lacking} of them not on the standby; "
            f"{failed} refused, {doubtful} of them in doubt"
        )
    finally:
        primary.remove()
    return tally


def _both(primary: PostgresServer, standby: PostgresServer, database: str) -> str:
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    return f"postgresql://postgres@{hosts}/{database}?target_session_attrs=read-write"


def _replicate(primary: PostgresServer, *, synchronous: bool) -> None:
    """Wait until the standby streams; if synchronous, make commits wait for it."""
    if synchronous:
        primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.sql("SELECT pg_reload_conf()")
    state = "sync" if synchronous else "async"
    streaming = f"SELECT 1 FROM pg_stat_replication WHERE sync_state = '{state}'"
    end = time.monotonic() + PATIENCE
    while not primary.sql(f"{streaming} AND state = 'streaming'"):
        if time.monotonic() > end:
            raise RuntimeError("the standby does not stream")
        time.sleep(0.05)


KINDS = {
    "connection": connections,
    "pool": pooled,
    "failover": failover,
    "failover-asynchronous": failover_asynchronous,
}


def possible() -> dict[str, Callable[[Path, int, int], Tally]]:
    """Return the kinds of trials whose programs are installed."""
    kinds = dict(KINDS) if installed("18") else {}
    if pgbouncer.program() is None:
        kinds.pop("pool", None)
    return kinds
