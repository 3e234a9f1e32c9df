"""Cache vectors between runs of a benchmark, so that only the first run needs the model."""

import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.embedding import Embedder
from reservoir_cli.embedding.load_model import load_embedder

Floats = NDArray[np.float32]


class CachedEmbedder:
    """An embedder that computes each vector once, and stores it in a file per model.

    :param folder: folder of the files; created if missing.
    """

    def __init__(self, model: Embedder, folder: Path) -> None:
        self._model = model
        self.name, self.model_id = model.name, model.model_id
        self.dimensions, self.engine = model.dimensions, model.engine
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / f"vectors-{self.model_id[:16]}.db"
        with self._connect() as cache:
            cache.execute("CREATE TABLE IF NOT EXISTS vectors (text PRIMARY KEY, vector)")

    def encode_query(self, text: str) -> Floats:
        """See :class:`~reservoir_cli.embedding.Embedder`."""
        vectors = self._look_up(
            "query", [text], lambda texts: self._model.encode_query(texts[0])[None]
        )
        return vectors.reshape(-1)

    def encode_documents(self, texts: Sequence[str]) -> Floats:
        """See :class:`~reservoir_cli.embedding.Embedder`."""
        return self._look_up("document", texts, self._model.encode_documents)

    def passages(self, text: str) -> Sequence[tuple[int, int]]:
        """See :class:`~reservoir_cli.embedding.Embedder`."""
        return self._model.passages(text)

    def knows(self, word: str) -> bool:
        """See :class:`~reservoir_cli.embedding.Embedder`."""
        return self._model.knows(word)

    def _look_up(
        self, kind: str, texts: Sequence[str], encode: Callable[[Sequence[str]], Floats]
    ) -> Floats:
        keys = [hashlib.sha256(f"{kind}\0{text}".encode()).digest() for text in texts]
        with self._connect() as cache:
            vectors = {key: vector for key in keys if (vector := _read(cache, key)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        if missing:
            new = dict(zip(missing, encode(list(missing.values())), strict=True))
            rows = [(key, vector.astype("<f4").tobytes()) for key, vector in new.items()]
            with self._connect() as cache, cache:
                cache.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
            vectors |= new
        return np.stack([vectors[key] for key in keys])

    def _connect(self) -> "closing[sqlite3.Connection]":
        return closing(sqlite3.connect(self._file, timeout=60))


def _read(cache: sqlite3.Connection, key: bytes) -> Floats | None:
    row = cache.execute("SELECT vector FROM vectors WHERE text = ?", [key]).fetchone()
    return np.frombuffer(row[0], "<f4") if row else None


def cached_embedder(name: str, folder: Path) -> CachedEmbedder:
    """Return the embedder of a model, by name or folder, with its vectors cached in a folder."""
    return CachedEmbedder(load_embedder(name, offline=True, progress=_ignore), folder)


def _ignore(*_: object) -> None:
    """Ignore progress."""
