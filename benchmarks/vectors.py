"""Vectors kept between runs of a benchmark, so that only the first one waits for the model."""

import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.embedding import Embedder, load_embedder
from reservoir_cli.embedding.locate import locate, model_identity

Floats = NDArray[np.float32]


class CachedEmbedder:
    """An embedder that asks its model only for texts it has not seen.

    The model is loaded when the first such text comes. One file a model identity, so that vectors
    of different models, or of different rules for cutting messages, are never mixed.

    :param folder: where the vectors are kept; it is made.
    :param load: gives the model itself.
    """

    def __init__(
        self, name: str, model_id: str, folder: Path, load: Callable[[], Embedder]
    ) -> None:
        self.name, self.model_id, self.dimensions = name, model_id, 0
        self._load, self._model = load, None
        folder.mkdir(parents=True, exist_ok=True)
        self._kept = sqlite3.connect(folder / f"vectors-{model_id[:16]}.db", isolation_level=None)
        self._kept.execute("CREATE TABLE IF NOT EXISTS vectors (text PRIMARY KEY, vector)")

    def encode_query(self, text: str) -> Floats:
        """See :class:`~reservoir_cli.embedding.Embedder`."""
        return self._known("query", [text], lambda some: self.model.encode_query(some[0])[None])[0]

    def encode_documents(self, texts: Sequence[str]) -> Floats:
        """See :class:`~reservoir_cli.embedding.Embedder`."""
        return self._known("document", texts, lambda some: self.model.encode_documents(some))

    @property
    def model(self) -> Embedder:
        """The model itself."""
        if self._model is None:
            self._model = self._load()
        return self._model

    def _known(
        self, kind: str, texts: Sequence[str], encode: Callable[[Sequence[str]], Floats]
    ) -> Floats:
        keys = [hashlib.sha256(f"{kind}\0{each}".encode()).digest() for each in texts]
        found = {key: self._read(key) for key in keys}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if found[key] is None}
        if missing:
            fresh = dict(zip(missing, encode(list(missing.values())), strict=True))
            found |= fresh
            rows = [(key, vector.astype("<f4").tobytes()) for key, vector in fresh.items()]
            self._kept.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
        vectors = np.stack([found[key] for key in keys])  # type: ignore[misc]
        self.dimensions = vectors.shape[1]
        return vectors

    def _read(self, key: bytes) -> Floats | None:
        row = self._kept.execute("SELECT vector FROM vectors WHERE text = ?", [key]).fetchone()
        return np.frombuffer(row[0], "<f4") if row else None


def cached_embedder(name: str, folder: Path) -> CachedEmbedder:
    """The embedder of a model, by its name or folder, with vectors kept in another folder."""
    found = locate(name, offline=True, progress=_ignore)

    def load() -> Embedder:
        return load_embedder(name, offline=True, progress=_ignore)

    return CachedEmbedder(name, model_identity(found.folder), folder, load)


def _ignore(*_: object) -> None:
    """Tell nobody."""
