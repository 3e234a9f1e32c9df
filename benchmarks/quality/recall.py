"""How much the packed vectors lose against comparing every float32 vector.

    python benchmarks/quality/recall.py STORE [--questions 200] [--json FILE]

Each question is the vector of a random message of the store, turned a little. Recall@50 is the
share of the fifty nearest messages, by float32, that are among the fifty nearest as ranking sees
them: compared by int8 codes, the best 200 a second time by their whole vectors.
"""

import argparse
import json
import sqlite3
import sys
from pathlib import Path

import numpy as np

from reservoir_cli.messages import Scope
from reservoir_cli.storage.factory import open_store

_NEAREST = 50


def exact(path: Path, partition: str) -> tuple[np.ndarray, np.ndarray]:
    """Ids and vectors of a partition's messages, of each its first passage's."""
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
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("store", type=Path)
    options.add_argument("--questions", type=int, default=200)
    options.add_argument("--json", type=Path, help="write the figures to this file too")
    given = options.parse_args()
    store = open_store(str(given.store), create=False)
    partition = store.places()[0][0]
    ids, vectors = exact(given.store, partition)
    chance = np.random.default_rng(1)
    shares, errors = [], []
    for place in chance.integers(0, len(ids), given.questions):
        turned = vectors[place] + 0.02 * chance.standard_normal(vectors.shape[1])
        question = (turned / np.linalg.norm(turned)).astype(np.float32)
        wanted = vectors @ question
        found = store.candidates(Scope(partition), None, "", question)
        seen = found.cosine[found.places(ids)[0]]
        nearest = [set(np.argsort(-each)[:_NEAREST].tolist()) for each in (wanted, seen)]
        shares.append(len(nearest[0] & nearest[1]) / _NEAREST)
        errors.append(float(np.abs(seen - wanted).max()))
    figures = {
        "messages": len(ids),
        "questions": given.questions,
        "recall_at_50": float(np.mean(shares)),
        "worst_recall_at_50": float(np.min(shares)),
        "worst_error_of_a_cosine": float(np.max(errors)),
    }
    for name, value in figures.items():
        print(f"{name.replace('_', ' '):<26}{value:>12,.5g}")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
