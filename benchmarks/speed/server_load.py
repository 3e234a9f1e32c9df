"""Put load on a PostgreSQL server: concurrent writers in 64 partitions, and readers.

    python benchmarks/speed/server_load.py [--url URL] [--seconds 300] [--writers 8 32 64]
                                           [--readers 4]

Without a URL a temporary server is started, which syncs each commit to disk. URL is an empty
database. Each writer stores one message per transaction in a random partition, and embeds every
twenty messages with synthetic vectors. Readers search by words, rank by vectors, and read the last
messages. At the end every message whose id was returned must be in the store. ``--seconds 3600`` is
the long form. Prints Markdown; exits with 1 if a message is lost or duplicated, or a command
failed.
"""

import argparse
import multiprocessing
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import quantiles
from typing import Any

import synthetic
from processes import machine

from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Key, Message, Scope, StoredMessage
from reservoir_cli.settings.schema import DEFAULT_MODEL
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.store import Store
from reservoir_cli.tokens import load_counter

sys.path.append(str(Path(__file__).parents[2] / "tests" / "support"))
from postgres_server import PostgresServer

PARTITIONS = 64
_TOGETHER = 20  # messages that are embedded in one batch
_VECTORS = 2_000
_LINKED = 0.85
_KINDS = ("write", "embed 20", "search by words", "rank by vectors", "last ten")
#: Settings of the test server: commits wait for the disk, and autovacuum runs.
_SETTINGS = {
    "fsync": "on",
    "autovacuum": "on",
    "max_connections": "150",
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
}


@dataclass
class Work:
    """The results of one process.

    :param times: seconds by kind of work.
    :param stored: the text of each acknowledged message.
    :param failures: one line per error.
    """

    times: dict[str, list[float]] = field(default_factory=dict)
    stored: dict[Key, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    @contextmanager
    def timed(self, kind: str) -> Iterator[None]:
        """Record the duration of a block, or its failure."""
        started = time.perf_counter()
        try:
            yield
        except ReservoirError as error:
            self.failures.append(f"{kind}: {error}")
        else:
            self.times.setdefault(kind, []).append(time.perf_counter() - started)


def write(url: str, number: int, end: float, vectors: Any) -> Work:
    """Store one message after another until the end time."""
    work, rng = Work(), random.Random(number)
    writer, counter = synthetic.Writer(number), load_counter("approximate")
    with closing(open_store(url)) as store:
        fresh: list[StoredMessage] = []
        while time.time() < end:
            scope = Scope(f"part-{rng.randrange(PARTITIONS)}", f"writer-{number}")
            message = Message("user", writer.text(), source="load")
            with work.timed("write"):
                [stored] = store.add(scope, [message], counter=counter, now=datetime.now(UTC))
                if stored:
                    work.stored[stored.key] = message.content
                    fresh.append(stored)
            if len(fresh) == _TOGETHER:
                with work.timed("embed 20"):
                    _embed(store, fresh, vectors, rng)
                fresh.clear()
    return work


def _embed(
    store: Store, messages: Sequence[StoredMessage], vectors: Any, rng: random.Random
) -> None:
    passages = {
        message.key: [Passage(message.id, 0, 0, len(message.content), rng.choice(vectors))]
        for message in messages
    }
    active = store.active_model()
    assert active is not None
    store.add_passages(active[0], passages)


def read(url: str, number: int, end: float, vectors: Any) -> Work:
    """Ask one question after another until the end time."""
    work, rng = Work(), random.Random(-number - 1)
    with closing(open_store(url)) as store:
        while time.time() < end:
            scope = Scope(f"part-{rng.randrange(PARTITIONS)}")
            question = rng.choice(synthetic.QUESTIONS)
            with work.timed("search by words"):
                store.keyword(question, scope, 10)
            with work.timed("rank by vectors"):
                store.candidates(scope, None, question, rng.choice(vectors))
            with work.timed("last ten"):
                store.last(scope, 10)
    return work


def _worker(
    do: Callable[..., Work], queue: Any, url: str, number: int, end: float, vectors: Any
) -> None:
    work = Work()
    try:
        work = do(url, number, end, vectors)
    except Exception as error:
        work.failures.append(f"process ended: {error!r}")
    queue.put(work)


def load(url: str, writers: int, readers: int, seconds: float) -> list[Work]:
    """Run processes that write and read for a number of seconds; return the work of each."""
    vectors = synthetic.vectors(_VECTORS)
    with closing(open_store(url)) as store:
        store.activate_model("synthetic", DEFAULT_MODEL)
    queue: Any = multiprocessing.Queue()
    end = time.time() + seconds
    processes = [
        multiprocessing.Process(target=_worker, args=(do, queue, url, number, end, vectors))
        for do, count in ((write, writers), (read, readers))
        for number in range(count)
    ]
    for process in processes:
        process.start()
    results = [queue.get() for _ in processes]
    for process in processes:
        process.join()
    return results


def check(url: str, results: Sequence[Work]) -> tuple[int, int]:
    """Return how many acknowledged messages are lost, and how many texts are stored twice."""
    lost, texts = 0, Counter[str]()
    acknowledged: dict[str, dict[int, str]] = {}
    for work in results:
        for key, text in work.stored.items():
            acknowledged.setdefault(key.partition, {})[key.id] = text
    with closing(open_store(url)) as store:
        for partition, by_id in acknowledged.items():
            stored = {message.id: message.content for message in store.last(Scope(partition), 0)}
            lost += sum(stored.get(number) != text for number, text in by_id.items())
            texts.update(f"{partition} {text}" for text in stored.values())
            texts.subtract(f"{partition} {text}" for text in by_id.values())
    return lost, sum(count for count in texts.values() if count > 0)


def row(writers: int, seconds: float, results: Sequence[Work], lost: int, doubled: int) -> str:
    """Return a row of the table."""
    times: dict[str, list[float]] = {}
    for work in results:
        for kind, durations in work.times.items():
            times.setdefault(kind, []).extend(durations)
    failures = sum(len(work.failures) for work in results)
    count = len(times.get("write", []))
    cells = [writers, f"{seconds:,.0f}", f"{count:,}", f"{count / seconds:,.0f}"]
    cells += [_percentiles(times.get(kind, [])) for kind in _KINDS]
    return f"| {' | '.join(map(str, [*cells, failures, lost, doubled]))} |"


def _percentiles(times: Sequence[float]) -> str:
    if len(times) < 2:
        return "–"
    cuts = quantiles(times, n=100, method="inclusive")
    return f"{1000 * cuts[49]:,.0f} / {1000 * cuts[98]:,.0f}"


HEAD = """\
| writers | seconds | messages | a second | write ms, p50 / p99 | embed 20 | search by words \
| rank by vectors | last ten | failed | lost | doubled |
|---|---|---|---|---|---|---|---|---|---|---|---|"""


def main() -> int:
    """Run each number of writers on a new database, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--url", help="an empty database; then with one number of writers")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--writers", type=int, nargs="+", default=[8, 32, 64])
    parser.add_argument("--readers", type=int, default=4)
    options = parser.parse_args()
    server = None if options.url else PostgresServer(settings=_SETTINGS)
    rows, clean = [], True
    try:
        for writers in options.writers:
            url = options.url or server.empty_database()
            print(f"{writers} writers, {options.readers} readers; {machine()}", flush=True)
            results = load(url, writers, options.readers, options.seconds)
            lost, doubled = check(url, results)
            failures = [failure for work in results for failure in work.failures]
            rows.append(row(writers, options.seconds, results, lost, doubled))
            print("\n".join([*failures[:20], rows[-1]]), flush=True)
            clean &= not (lost or doubled or failures)
            with closing(open_store(url)) as store:
                print(f"{store.engine()}, {(store.size() or 0) / 1e6:,.0f} MB; {machine()}")
    finally:
        if server:
            server.remove()
    print(f"\n{HEAD}\n" + "\n".join(rows))
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
