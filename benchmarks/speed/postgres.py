"""Compare the time of a context on a PostgreSQL server with that of the same store in a file.

    python benchmarks/speed/postgres.py URL [--runs 9] [--folder F] [--json FILE]

URL is an empty database, or the one of an earlier run. It gets 100,000 messages in 224 partitions
of 100 to 40,000. The commands take turns as whole processes, so that other load affects both. The
table has the medians, and the part of them that is reading the scope.
"""

import argparse
import json
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter

import synthetic
from processes import RESERVOIR, Run, machine, medians, run

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import Scope
from reservoir_cli.settings.schema import DEFAULT_MODEL
from reservoir_cli.storage.copying import copy_store
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.store import Store
from reservoir_cli.tokens import load_counter

#: Messages in each partition.
_FIRST = (40_000, 10_000, 5_000, 5_000, *[1_000] * 10, *(100 + n % 87 for n in range(209)))
SIZES = (*_FIRST, 100_000 - sum(_FIRST))
_SHOWN = {"part-200": "about 140", "part-4": "1,000", "part-2": "5,000", "part-1": "10,000"}
_SHOWN |= {"part-0": "40,000"}
_BATCH = 1_000


def fill(store: Store) -> None:
    """Store the messages and their vectors."""
    writer, counter, now = synthetic.Writer(), load_counter("approximate"), datetime.now(UTC)
    for part, size in enumerate(SIZES):
        messages = list(writer.messages(size, part))
        for start in range(0, size, _BATCH):
            scope = Scope(f"part-{part}", "tool")
            store.add(scope, messages[start : start + _BATCH], counter=counter, now=now)
    synthetic.embed(store)


def build(folder: Path) -> Path:
    """Build the store in a file, unless the folder already has it; return its path."""
    path = folder / "100000-in-224.db"
    if not path.exists():
        unfinished = path.with_suffix(".unfinished")
        unfinished.unlink(missing_ok=True)
        with closing(open_store(str(unfinished))) as store:
            fill(store)
        unfinished.rename(path)
    return path


def time_reading(store: Store, partition: str, runs: int) -> float:
    """Return the milliseconds to read a scope for ranking in a running program."""
    [vector] = synthetic.vectors(1, seed=9)
    times = []
    for _ in range(runs):
        started = perf_counter()
        store.candidates(Scope(partition), None, synthetic.QUESTIONS[0], vector)
        times.append(1000 * (perf_counter() - started))
    return median(times)


def main() -> None:
    """Fill both stores, ask both, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/reservoir-benchmarks"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    file = build(options.folder)
    started = perf_counter()
    with closing(open_store(str(file))) as source, closing(open_store(options.url)) as target:
        try:
            copy_store.copy(source, target, lambda *_: None)
            print(f"copied in {perf_counter() - started:.0f} s")
        except UsageError:
            print("copied before")
        engine = target.engine()
    lines = {
        f"{kind} {partition}": (
            [
                *(str(RESERVOIR), "--db", location, "context", synthetic.QUESTIONS[0]),
                *("-p", partition, "--budget", "2000"),
            ],
            "",
        )
        for partition in _SHOWN
        for kind, location in (("file", str(file)), ("server", options.url))
    }
    runs: dict[str, list[Run]] = {name: [] for name in lines}
    for _ in range(options.runs + 1):
        for name, (command, stdin) in lines.items():
            runs[name].append(run(command, stdin))
    # The first run of each fills the page cache.
    seconds = {name: medians(results[1:]).seconds for name, results in runs.items()}
    rows = []
    with closing(open_store(str(file))) as source, closing(open_store(options.url)) as target:
        for partition, size in _SHOWN.items():
            local, remote = seconds[f"file {partition}"], seconds[f"server {partition}"]
            reads = [time_reading(store, partition, options.runs) for store in (source, target)]
            rows.append((size, local, remote, remote / local, *reads))
    print(f"{machine()}; {engine}; {DEFAULT_MODEL}")
    print("messages   file s  server s  ratio   reading: file ms  server ms")
    for size, *figures in rows:
        print("{:>9}  {:7.3f}  {:8.3f}  {:5.2f}  {:16.1f}  {:9.1f}".format(size, *figures))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
