"""Measure the recall of the quantised vectors against an exact float32 search.

    python benchmarks/quality/recall.py STORE [--questions 200] [--json FILE]

Each question is the vector of a random message of the store with a little noise. Recall@50 is the
share of the fifty nearest messages, by float32, that are among the fifty nearest found by the
store: compared by int8 codes, and the best 200 again by their float32 vectors.
"""

import argparse
import json
import sqlite3
import sys
from pathlib import Path

import numpy as np

from reservoir_cli.messages import Scope
from reservoir_cli.storage.open_store import open_store

_NEAREST = 50


def exact(path: Path, partition: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids of a partition's messages and the vectors of their first passages."""
    rows = (
        sqlite3.connect(path)
        .execute(
            """
        SELECT e.message_id, e.vector FROM embeddings e JOIN messages m ON m.id = e.message_id
        WHERE e.passage = 0 AND m.partition = ? ORDER BY e.message_id
        """,
            [partition],
        )
        .fetchall()
    )
    ids = np.array([row[0] for row in rows])
    return ids, np.frombuffer(b"".join(row[1] for row in rows), "<f4").reshape(len(rows), -1)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("store", type=Path)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    options = parser.parse_args()
    store = open_store(str(options.store), create=False)
    partition = store.places()[0][0]
    ids, vectors = exact(options.store, partition)
    random = np.random.default_rng(1)
    shares, errors = [], []
    for position in random.integers(0, len(ids), options.questions):
        noisy = vectors[position] + 0.02 * random.standard_normal(vectors.shape[1])
        question = (noisy / np.linalg.norm(noisy)).astype(np.float32)
        expected = vectors @ question
        candidates = store.candidates(Scope(partition), None, "", question)
        actual = candidates.cosine[candidates.places(ids)[0]]
        nearest = [set(np.argsort(-cosine)[:_NEAREST].tolist()) for cosine in (expected, actual)]
        shares.append(len(nearest[0] & nearest[1]) / _NEAREST)
        errors.append(float(np.abs(actual - expected).max()))
    figures = {
        "messages": len(ids),
        "questions": options.questions,
        "recall_at_50": float(np.mean(shares)),
        "worst_recall_at_50": float(np.min(shares)),
        "worst_error_of_a_cosine": float(np.max(errors)),
    }
    for name, value in figures.items():
        print(f"{name.replace('_', ' '):<26}{value:>12,.5g}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
