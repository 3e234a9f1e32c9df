"""Turning text into vectors: one protocol, and one implementation an engine."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Told what is being done, how much of it is done, and how much there is (0: unknown).
Progress = Callable[[str, int, int], None]


class Embedder(Protocol):
    """A model that gives texts vectors of length 1.

    :param name: as in setting ``embedding_model``.
    :param model_id: identity of its vectors; those of different ids are never compared.
    :param dimensions: length of a vector.
    """

    name: str
    model_id: str
    dimensions: int

    def encode_query(self, text: str) -> "NDArray[np.float32]":
        """The vector of a question, shape (dimensions,)."""

    def encode_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """The vectors of messages, shape (len(texts), dimensions)."""


def load_embedder(name: str, *, offline: bool, progress: Progress) -> Embedder:
    """Find a model on this machine, or fetch it, and make it ready.

    :param name: a sentence-transformers name, or a folder.
    :param offline: never touch the network.
    :raises ModelUnavailableError: it is not here and cannot be fetched, or is damaged.
    """
    from reservoir_cli.embedding.locate import locate
    from reservoir_cli.embedding.reference import ReferenceEmbedder

    found = locate(name, offline=offline, progress=progress)
    progress("loading the embedding model", 0, 0)
    return ReferenceEmbedder(name, found)
