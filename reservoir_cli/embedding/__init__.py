"""Turning text into vectors: one protocol, and one implementation an engine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Told what is being done, how much of it is done, and how much there is (0: unknown).
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Engine:
    """What runs a model.

    :param kind: ``compiled`` (ONNX Runtime) or ``reference`` (sentence-transformers).
    :param reason: why it is this one.
    :param origin: where the weights were: ``folder``, ``package``, ``cache`` or ``download``.
    """

    kind: str
    reason: str
    origin: str


class Embedder(Protocol):
    """A model that gives texts vectors of length 1.

    :param name: as in setting ``embedding_model``.
    :param model_id: identity of its vectors; those of different ids are never compared.
    :param dimensions: length of a vector.
    """

    name: str
    model_id: str
    dimensions: int
    engine: Engine

    def encode_query(self, text: str) -> "NDArray[np.float32]":
        """The vector of a question, shape (dimensions,)."""

    def encode_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """The vectors of passages in their order, shape (len(texts), dimensions)."""

    def passages(self, text: str) -> Sequence[tuple[int, int]]:
        """The spans of characters that a text is embedded as; the whole of a short one."""


def _ignore(_: str) -> None:
    """Tell nobody."""


def load_embedder(
    name: str, *, offline: bool, progress: Progress, notify: Callable[[str], None] = _ignore
) -> Embedder:
    """Find a model on this machine, or fetch it, and make it ready.

    The first use of a model compiles it; later ones open what was compiled.

    :param name: a sentence-transformers name, or a folder.
    :param offline: never touch the network.
    :param notify: told why the slower engine runs, if it does.
    :raises ModelUnavailableError: it is not here and cannot be fetched, or is damaged.
    """
    from reservoir_cli.embedding.load import load

    embedder = load(name, offline=offline, progress=progress)
    if embedder.engine.kind == "reference":
        notify(f"the embedding model runs by sentence-transformers: {embedder.engine.reason}")
    return embedder


def compiled_is_damaged(name: str, *, remove: bool) -> bool:
    """Whether a byte of a model's compiled form changed on the disk; every one is read.

    :param remove: take it away then, so that the next use compiles it anew.
    :raises ModelUnavailableError: the model is not on this machine.
    """
    from reservoir_cli.embedding.load import damaged

    return damaged(name, remove=remove)
