"""Turn text into embeddings: one protocol, and one implementation per engine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Called with the current task, the work done and the total (0 if unknown).
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Engine:
    """The engine that runs a model.

    :param kind: ``compiled`` (ONNX Runtime) or ``reference`` (sentence-transformers).
    :param reason: why this engine is used.
    :param origin: where the weights came from: ``folder``, ``package``, ``cache`` or ``download``.
    """

    kind: str
    reason: str
    origin: str


class Embedder(Protocol):
    """A model that computes embeddings, which are vectors of length 1.

    :param name: the value of the setting ``embedding_model``.
    :param model_id: the identity of its vectors; vectors of different ids are never compared.
    :param dimensions: the number of components of a vector.
    """

    name: str
    model_id: str
    dimensions: int
    engine: Engine

    def encode_query(self, text: str) -> "NDArray[np.float32]":
        """Return the embedding of a question, shape (dimensions,)."""

    def encode_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return the embeddings of passages, in order, shape (len(texts), dimensions)."""

    def passages(self, text: str) -> Sequence[tuple[int, int]]:
        """Return the character spans a text is embedded as; a short text is one span."""

    def knows(self, word: str) -> bool:
        """Return whether a word is in the model's vocabulary; misspelt words are not."""


def _ignore(_: str) -> None:
    """Do nothing."""


def load_embedder(
    name: str,
    *,
    offline: bool,
    progress: Progress,
    notify: Callable[[str], None] = _ignore,
    ready_only: bool = False,
    serving: bool = False,
) -> Embedder:
    """Find or download a model, and load it.

    The first use of a model compiles it; later uses load the compiled form.

    :param name: a sentence-transformers name, or a folder.
    :param offline: never use the network.
    :param notify: called with a message if the slower engine is used.
    :param ready_only: neither download nor compile a model.
    :param serving: prepare for many questions.
    :raises ModelUnavailableError: it is not on this machine and cannot be downloaded, or is
        damaged.
    """
    from reservoir_cli.embedding.load import load

    embedder = load(
        name, offline=offline, progress=progress, ready_only=ready_only, serving=serving
    )
    if embedder.engine.kind == "reference":
        reason = embedder.engine.reason
        notify(f"the embedding model runs on sentence-transformers, which is slower: {reason}")
    return embedder


def compiled_is_damaged(name: str, *, remove: bool) -> bool:
    """Return whether a model's compiled form has changed on disk, by reading all of it.

    :param remove: delete a damaged one, so that the next use compiles the model again.
    :raises ModelUnavailableError: the model is not on this machine.
    """
    from reservoir_cli.embedding.load import damaged

    return damaged(name, remove=remove)
