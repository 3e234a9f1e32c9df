"""Turn text into embeddings: one protocol, and one implementation per engine."""

from collections.abc import Callable

from reservoir_cli.embedding.embedder import Embedder, Engine
from reservoir_cli.util.progress import Progress

__all__ = ["Embedder", "Engine", "load_embedder"]


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
    :param serving: prepare the model for many questions.
    :raises ModelUnavailableError: the model is damaged, or is not on this machine and cannot be
        downloaded.
    """
    from reservoir_cli.embedding.load import load

    embedder = load(
        name, offline=offline, progress=progress, ready_only=ready_only, serving=serving
    )
    if embedder.engine.kind == "reference":
        reason = embedder.engine.reason
        notify(f"the embedding model runs on sentence-transformers, which is slower: {reason}")
    return embedder
