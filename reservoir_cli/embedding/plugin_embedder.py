"""An embedding model of a plugin: ``embedding_model = "SCHEME:ARGUMENT"``."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from reservoir_cli.embedding.embedder import Embedder, Engine
from reservoir_cli.embedding.split_passages import QUESTION, Span, cut, words
from reservoir_cli.util import installed_plugins
from reservoir_cli.util.installed_plugins import Plugin

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class PluginEmbedder(Embedder):
    """An :class:`~reservoir_cli.embedding.Embedder` that calls a plugin.

    Its model has ``model_id``, ``dimensions``, ``encode_query(text)`` and
    ``encode_documents(texts)``, which return vectors of any length.

    :param argument: what follows the plugin's scheme in the name.
    """

    def __init__(self, name: str, plugin: Plugin, argument: str) -> None:
        model: Any = installed_plugins.run(plugin, lambda: installed_plugins.load(plugin)(argument))
        self.name, self._plugin, self._model = name, plugin, model
        self.model_id, self.dimensions = installed_plugins.run(
            plugin, lambda: (f"{plugin.name}:{model.model_id}", int(model.dimensions))
        )
        self.engine = Engine("plugin", str(plugin), "plugin")

    def encode_query(self, text: str) -> "NDArray[np.float32]":
        vectors = self._encode(1, lambda: [self._model.encode_query(text[:QUESTION])])
        return vectors.reshape(-1)

    def encode_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        return self._encode(len(texts), lambda: self._model.encode_documents(list(texts)))

    def passages(self, text: str) -> list[Span]:
        return cut(text, words(text))  # the tokenizer of the model is unknown

    def knows(self, word: str) -> bool:
        return True  # the vocabulary is unknown

    def _encode(self, count: int, compute: Callable[[], Any]) -> "NDArray[np.float32]":
        import numpy as np

        vectors = installed_plugins.run(self._plugin, lambda: np.array(compute(), np.float32))
        vectors = vectors.reshape(0, self.dimensions) if not count else vectors
        if vectors.shape != (count, self.dimensions) or not np.isfinite(vectors).all():
            raise installed_plugins.failure(
                self._plugin, f"no {count} vectors of {self.dimensions} numbers"
            )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        result: NDArray[np.float32] = vectors / np.where(lengths, lengths, 1)
        return result
