"""The reference engine: sentence-transformers, as the model's authors run it."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from reservoir_cli.embedding.locate import Located, model_identity
from reservoir_cli.errors import ModelUnavailableError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: The model reads 256 word pieces; what lies far beyond them need not be tokenized.
_READ_AT_MOST = 4_000


class ReferenceEmbedder:
    """An :class:`~reservoir_cli.embedding.Embedder` on torch."""

    def __init__(self, name: str, found: Located) -> None:
        self.name = name
        self.model_id = model_identity(found.folder)
        # The weights are here: nothing in the library may look for more of them elsewhere.
        os.environ["HF_HUB_OFFLINE"] = "1"
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        self._model = _load(name, str(found.folder))
        self.dimensions = int(self._model.get_embedding_dimension())

    def encode_query(self, text: str) -> "NDArray[np.float32]":
        """See :class:`~reservoir_cli.embedding.Embedder`."""
        return self._encoded(self._model.encode_query, [text]).reshape(-1)

    def encode_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """See :class:`~reservoir_cli.embedding.Embedder`."""
        return self._encoded(self._model.encode_document, texts)

    def _encoded(self, encode: Any, texts: Sequence[str]) -> "NDArray[np.float32]":
        import numpy as np

        vectors = encode(
            [text[:_READ_AT_MOST] for text in texts],
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return np.asarray(vectors, np.float32)


def _load(name: str, folder: str) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        logging.set_verbosity_error()  # type: ignore[no-untyped-call]
        return SentenceTransformer(
            folder, device="cpu", local_files_only=True, trust_remote_code=False
        )
    except (ImportError, OSError, ValueError, KeyError, RuntimeError) as error:
        raise ModelUnavailableError(
            f"the embedding model {name} cannot be loaded: {type(error).__name__}",
            "set embedding_model to a folder that sentence-transformers can read",
        ) from error
