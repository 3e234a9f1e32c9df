"""What a question costs on a PostgreSQL server, beside the same store in a file.

    python benchmarks/speed/postgres.py URL [--runs 9] [--folder F] [--json FILE]

URL names an empty database, or the one of an earlier run. 100,000 messages lie in 224 partitions
of 100 to 40,000. The commands take turns as whole cold processes, so that a noisy minute hits
both. Beside the medians stands what of it is reading the scope.
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
from reservoir_cli.settings.schema import DEFAULT_MODEL_NAME
from reservoir_cli.storage import replicate
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.factory import open_store
from reservoir_cli.tokens import load_counter

#: Messages in each partition.
_SOME = (40_000, 10_000, 5_000, 5_000, *[1_000] * 10, *(100 + each % 87 for each in range(209)))
SIZES = (*_SOME, 100_000 - sum(_SOME))
_SHOWN = {"part-200": "about 140", "part-4": "1,000", "part-2": "5,000", "part-1": "10,000"}
_SHOWN |= {"part-0": "40,000"}
_BATCH = 1_000


def fill(store: Store) -> None:
    """Write the messages and their vectors."""
    writer, counter, now = synthetic.Writer(), load_counter("approximate"), datetime.now(UTC)
    for part, size in enumerate(SIZES):
        messages = list(writer.messages(size, part))
        for start in range(0, size, _BATCH):
            scope = Scope(f"part-{part}", "tool")
            store.add(scope, messages[start : start + _BATCH], counter=counter, now=now)
    synthetic.embed(store)


def build(folder: Path) -> Path:
    """Make the store in a file, unless the folder has it."""
    path = folder / "100000-in-224.db"
    if not path.exists():
        unfinished = path.with_suffix(".unfinished")
        unfinished.unlink(missing_ok=True)
        with closing(open_store(str(unfinished))) as store:
            fill(store)
        unfinished.rename(path)
    return path


def reading(store: Store, partition: str, runs: int) -> float:
    """Milliseconds to read a scope for ranking, once the program runs."""
    [vector] = synthetic.vectors(1, seed=9)
    taken = []
    for _ in range(runs):
        begun = perf_counter()
        store.candidates(Scope(partition), None, synthetic.QUESTIONS[0], vector)
        taken.append(1000 * (perf_counter() - begun))
    return median(taken)


def main() -> None:
    """Fill both, ask both, print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/reservoir-benchmarks"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    file = build(options.folder)
    begun = perf_counter()
    with closing(open_store(str(file))) as old, closing(open_store(options.url)) as new:
        try:
            replicate.copy(old, new, lambda *_: None)
            print(f"copied in {perf_counter() - begun:.0f} s")
        except UsageError:
            print("copied before")
        engine = new.engine()
    lines = {
        f"{kind} {partition}": (
            [
                *(str(RESERVOIR), "--db", place, "context", synthetic.QUESTIONS[0]),
                *("-p", partition, "--budget", "2000"),
            ],
            "",
        )
        for partition in _SHOWN
        for kind, place in (("file", str(file)), ("server", options.url))
    }
    runs: dict[str, list[Run]] = {name: [] for name in lines}
    for _ in range(options.runs + 1):
        for name, (command, stdin) in lines.items():
            runs[name].append(run(command, stdin))
    # The first of each fills the page cache.
    found = {name: medians(some[1:]).seconds for name, some in runs.items()}
    rows = []
    with closing(open_store(str(file))) as old, closing(open_store(options.url)) as new:
        for partition, size in _SHOWN.items():
            ours, theirs = found[f"file {partition}"], found[f"server {partition}"]
            read = [reading(each, partition, options.runs) for each in (old, new)]
            rows.append((size, ours, theirs, theirs / ours, *read))
    print(f"{machine()}; {engine}; {DEFAULT_MODEL_NAME}")
    print("messages   file s  server s  ratio   reading: file ms  server ms")
    for size, ours, theirs, ratio, one, two in rows:
        print(f"{size:>9}  {ours:7.3f}  {theirs:8.3f}  {ratio:5.2f}  {one:16.1f}  {two:9.1f}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
