"""Compare the cost of scoring with that of reading vectors and words, by number of messages.

    python benchmarks/speed/ranking_cost.py [--sizes 10000 100000] [--json FILE]

The arrays are synthetic: sessions of twenty messages, and a question of five stems that occur in
0.1 to 5% of them. ``ranking.score`` is compared with the product of all vectors with the
question's, and with a bare look-up of its stems in a full-text index. Figures are medians in
milliseconds.
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
from reservoir_cli.storage.search.candidates import Candidates, Posting

SIZES = (10_000, 100_000, 1_000_000)
DIMENSIONS, SESSION = 384, 20
#: The share of messages that contain each stem of the question.
FREQUENCIES = (0.001, 0.003, 0.01, 0.02, 0.05)
#: Vectors per multiplication, so that a million of them need not be in memory.
_BATCH = 100_000
_NOW = 1_800_000_000_000


def candidates(size: int) -> Candidates:
    """Return synthetic messages a minute apart, in sessions of twenty."""
    random = np.random.default_rng(size)
    positions = np.arange(size)
    return Candidates(
        ids=positions + 1,
        created_at=_NOW - 60_000 * positions[::-1],
        tokens=random.integers(5, 400, size).astype(np.int32),
        terms=random.integers(4, 300, size).astype(np.int32),
        asks=random.random(size) < 0.3,
        own=np.ones(size, bool),
        thread=positions // SESSION,
        loose=np.zeros(size, bool),
        cosine=random.random(size).astype(np.float32),
        by_id=positions,
        absent=(),
        passages=np.ones(size, np.int32),
        cache={},
        postings=tuple(
            Posting(
                np.sort(random.choice(size, max(1, int(share * size)), replace=False)),
                random.integers(1, 4, max(1, int(share * size))).astype(np.int32),
            )
            for share in FREQUENCIES
        ),
    )


def score(size: int) -> Callable[[], object]:
    """Return a function that scores the candidates."""
    scored, settings, dates = candidates(size), Settings(), np.zeros(size)
    return lambda: ranking.score(scored, settings, _NOW, dates)


def scan(size: int) -> Callable[[], object]:
    """Return a function that multiplies all vectors with the question's."""
    random = np.random.default_rng(1)
    vectors = random.random((min(size, _BATCH), DIMENSIONS), np.float32)
    question = random.random(DIMENSIONS, np.float32)
    return lambda: [vectors @ question for _ in range(max(1, size // _BATCH))]


def look_up(size: int) -> Callable[[], object]:
    """Return a function that looks up the question's stems in a full-text index in memory."""
    index = sqlite3.connect(":memory:")
    index.execute("CREATE VIRTUAL TABLE t USING fts5(text, content='', detail='full')")
    index.execute("CREATE VIRTUAL TABLE positions USING fts5vocab(t, instance)")
    random = np.random.default_rng(2)
    contains = random.random((size, len(FREQUENCIES))) < FREQUENCIES
    texts = (
        (number, " ".join(f"stem{stem}" for stem in np.flatnonzero(row)) + f" word{number % 5_000}")
        for number, row in enumerate(contains)
    )
    index.executemany("INSERT INTO t (rowid, text) VALUES (?, ?)", texts)
    stems = [f"stem{number}" for number in range(len(FREQUENCIES))]
    query = "SELECT doc FROM positions WHERE term = ?"
    return lambda: [index.execute(query, [stem]).fetchall() for stem in stems]


MEASURED = {"ranking.score": score, "vector scan": scan, "full-text look-up": look_up}


def milliseconds(run: Callable[[], object], rounds: int) -> float:
    """Return the median time of several runs, after a warm-up run."""
    run()
    times = []
    for _ in range(rounds):
        started = perf_counter()
        run()
        times.append(1000 * (perf_counter() - started))
    return median(times)


def measure(sizes: list[int]) -> Mapping[str, Any]:
    """Return the milliseconds by measurement and by size."""
    return {
        name: {str(size): milliseconds(prepare(size), 25 if size < 1e6 else 7) for size in sizes}
        for name, prepare in MEASURED.items()
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    options = parser.parse_args()
    results = measure(options.sizes)
    print(f"{'milliseconds':<20}" + "".join(f"{size:>12,}" for size in options.sizes))
    for name, times in results.items():
        print(f"{name:<20}" + "".join(f"{time:>12.1f}" for time in times.values()))
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
