"""What scoring costs beside reading vectors and words, by the number of messages.

    python benchmarks/speed/ranking_cost.py [--sizes 10000 100000] [--json FILE]

Synthetic arrays: sessions of twenty messages, a question of five stems that stand in 0.1 to 5% of
them. Beside ``ranking.score`` stand the product of all vectors with the question's and the look-up
of its stems in a full-text index, both without anything around them. Medians in milliseconds.
"""

import argparse
import json
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from reservoir_cli.retrieval import ranking
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.candidates import Candidates, Posting

SIZES = (10_000, 100_000, 1_000_000)
DIMENSIONS, SESSION = 384, 20
#: In which share of the messages each stem of the question stands.
FREQUENCIES = (0.001, 0.003, 0.01, 0.02, 0.05)
#: Vectors are multiplied by so many at once, so that a million of them fit into memory.
_AT_ONCE = 100_000
_NOW = 1_800_000_000_000


def candidates(size: int) -> Candidates:
    """Messages a minute apart, in sessions of twenty."""
    random = np.random.default_rng(size)
    places = np.arange(size)
    return Candidates(
        ids=places + 1,
        created_at=_NOW - 60_000 * places[::-1],
        tokens=random.integers(5, 400, size).astype(np.int32),
        terms=random.integers(4, 300, size).astype(np.int32),
        asks=random.random(size) < 0.3,
        own=np.ones(size, bool),
        thread=places // SESSION,
        loose=np.zeros(size, bool),
        cosine=random.random(size).astype(np.float32),
        by_id=places,
        absent=0,
        passages=np.ones(size, np.int32),
        postings=tuple(
            Posting(
                np.sort(random.choice(size, max(1, int(share * size)), replace=False)),
                random.integers(1, 4, max(1, int(share * size))).astype(np.int32),
            )
            for share in FREQUENCIES
        ),
    )


def score(size: int) -> Callable[[], object]:
    """Ranking alone."""
    given, settings, dates = candidates(size), Settings(), np.zeros(size)
    return lambda: ranking.score(given, settings, _NOW, dates)


def scan(size: int) -> Callable[[], object]:
    """Return the products of all vectors with one."""
    random = np.random.default_rng(1)
    vectors = random.random((min(size, _AT_ONCE), DIMENSIONS), np.float32)
    question = random.random(DIMENSIONS, np.float32)
    return lambda: [vectors @ question for _ in range(max(1, size // _AT_ONCE))]


def look_up(size: int) -> Callable[[], object]:
    """Where the stems of a question stand, from a full-text index in memory."""
    index = sqlite3.connect(":memory:")
    index.execute("CREATE VIRTUAL TABLE t USING fts5(text, content='', detail='full')")
    index.execute("CREATE VIRTUAL TABLE places USING fts5vocab(t, instance)")
    random = np.random.default_rng(2)
    holds = random.random((size, len(FREQUENCIES))) < FREQUENCIES
    texts = (
        (place, " ".join(f"stem{each}" for each in np.flatnonzero(row)) + f" word{place % 5_000}")
        for place, row in enumerate(holds)
    )
    index.executemany("INSERT INTO t (rowid, text) VALUES (?, ?)", texts)
    stems = [f"stem{each}" for each in range(len(FREQUENCIES))]
    question = "SELECT doc FROM places WHERE term = ?"
    return lambda: [index.execute(question, [stem]).fetchall() for stem in stems]


MEASURED = {"ranking.score": score, "vector scan": scan, "full-text look-up": look_up}


def milliseconds(run: Callable[[], object], rounds: int) -> float:
    """Return the median of several runs, after one that is not counted."""
    run()
    times = []
    for _ in range(rounds):
        started = perf_counter()
        run()
        times.append(1000 * (perf_counter() - started))
    return median(times)


def measure(sizes: list[int]) -> Mapping[str, Any]:
    """Milliseconds by what is measured and by size."""
    return {
        name: {str(size): milliseconds(made(size), 25 if size < 1e6 else 7) for size in sizes}
        for name, made in MEASURED.items()
    }


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    options.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    options.add_argument("--json", type=Path, help="write the figures to this file too")
    given = options.parse_args()
    found = measure(given.sizes)
    print(f"{'milliseconds':<20}" + "".join(f"{size:>12,}" for size in given.sizes))
    for name, times in found.items():
        print(f"{name:<20}" + "".join(f"{each:>12.1f}" for each in times.values()))
    if given.json:
        _write_json(given.json, found)


def _write_json(path: Path, found: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
