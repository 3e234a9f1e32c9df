"""The protocol of embedding models, and the engine that runs one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Engine(NamedTuple):
    """The engine that runs a model.

    :param kind: ``compiled`` (ONNX Runtime) or ``reference`` (sentence-transformers).
    :param origin: where the weights came from: ``folder``, ``package``, ``cache`` or ``download``.
    """

    kind: str
    reason: str
    origin: str


class Embedder(Protocol):
    """A model that computes embeddings, which are vectors of length 1.

    :param model_id: the identity of its vectors; vectors of different ids are never compared.
    """

    name: str
    model_id: str
    dimensions: int
    engine: Engine

    def encode_query(self, text: str) -> "NDArray[np.float32]":
        """Return the embedding of a question, shape (dimensions,). Callers never change it."""

    def encode_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return the embeddings of passages, in order, shape (len(texts), dimensions)."""

    def passages(self, text: str) -> Sequence[tuple[int, int]]:
        """Return the character spans that a text is embedded as; a short text is one span."""

    def knows(self, word: str) -> bool:
        """Return whether a word is in the model's vocabulary; misspelt words are not."""
