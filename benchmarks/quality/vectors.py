"""Vectors kept between runs of a benchmark, so that only the first one waits for the model."""

import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.embedding import Embedder, load_embedder

Floats = NDArray[np.float32]


class CachedEmbedder:
    """An embedder that asks its model only for texts it has not seen.

    One file a model identity, so that vectors of different models are never mixed.

    :param folder: where the vectors are kept; it is made.
    """

    def __init__(self, model: Embedder, folder: Path) -> None:
        self._model = model
        self.name, self.model_id = model.name, model.model_id
        self.dimensions, self.engine = model.dimensions, model.engine
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / f"vectors-{self.model_id[:16]}.db"
        with self._opened() as kept:
            kept.execute("CREATE TABLE IF NOT EXISTS vectors (text PRIMARY KEY, vector)")

    def encode_query(self, text: str) -> Floats:
        """See :class:`~reservoir_cli.embedding.Embedder`."""
        found = self._known("query", [text], lambda some: self._model.encode_query(some[0])[None])
        return found.reshape(-1)

    def encode_documents(self, texts: Sequence[str]) -> Floats:
        """See :class:`~reservoir_cli.embedding.Embedder`."""
        return self._known("document", texts, self._model.encode_documents)

    def passages(self, text: str) -> Sequence[tuple[int, int]]:
        """See :class:`~reservoir_cli.embedding.Embedder`."""
        return self._model.passages(text)

    def knows(self, word: str) -> bool:
        """See :class:`~reservoir_cli.embedding.Embedder`."""
        return self._model.knows(word)

    def _known(
        self, kind: str, texts: Sequence[str], encode: Callable[[Sequence[str]], Floats]
    ) -> Floats:
        keys = [hashlib.sha256(f"{kind}\0{each}".encode()).digest() for each in texts]
        with self._opened() as kept:
            found = {key: vector for key in keys if (vector := _read(kept, key)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            fresh = dict(zip(missing, encode(list(missing.values())), strict=True))
            rows = [(key, vector.astype("<f4").tobytes()) for key, vector in fresh.items()]
            with self._opened() as kept, kept:
                kept.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
            found |= fresh
        return np.stack([found[key] for key in keys])

    def _opened(self) -> "closing[sqlite3.Connection]":
        return closing(sqlite3.connect(self._file, timeout=60))


def _read(kept: sqlite3.Connection, key: bytes) -> Floats | None:
    row = kept.execute("SELECT vector FROM vectors WHERE text = ?", [key]).fetchone()
    return np.frombuffer(row[0], "<f4") if row else None


def cached_embedder(name: str, folder: Path) -> CachedEmbedder:
    """Return the embedder of a model, by name or folder, with vectors kept in another folder."""
    return CachedEmbedder(load_embedder(name, offline=True, progress=_ignore), folder)


def _ignore(*_: object) -> None:
    """Tell nobody."""
