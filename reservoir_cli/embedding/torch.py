"""The reference engine: sentence-transformers, as the model's authors run it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from reservoir_cli.embedding.embedder import Embedder, Engine
from reservoir_cli.embedding.find_model import ModelSource, model_identity
from reservoir_cli.embedding.prompts import prompts_of
from reservoir_cli.embedding.split_passages import (
    QUESTION,
    Span,
    cut,
    limit_for,
    pieces,
    without_padding,
    words,
)
from reservoir_cli.errors import ModelUnavailableError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NO_LIMIT = 1_000_000  #: Tokenizers without a limit report a maximal length above this number.


class ReferenceEmbedder(Embedder):
    """An :class:`~reservoir_cli.embedding.Embedder` on torch.

    :ivar prompts: the prompts before questions and stored texts.
    :ivar model: the ``SentenceTransformer``.
    :ivar tokenizer: its fast tokenizer, or ``None``.
    :ivar max_length: the most word pieces the model reads; 0 if unlimited.
    """

    def __init__(
        self, name: str, source: ModelSource, reason: str, model_id: str | None = None
    ) -> None:
        self.name = name
        self.prompts = prompts_of(name, source.folder)
        self.model_id = model_id or model_identity(source.folder, self.prompts)
        self.engine = Engine("reference", reason, source.origin)
        self.model = _load(name, str(source.folder))
        self.dimensions = int(self.model.get_embedding_dimension())
        length = self.model.max_seq_length or 0
        self.max_length = 0 if length > _NO_LIMIT else int(length)
        fast = getattr(self.model.tokenizer, "backend_tokenizer", None)
        self.tokenizer = None
        if fast is not None:
            self.tokenizer = without_padding(fast.to_str(), self.max_length)

    @property
    def passage_pieces(self) -> int:
        """The most word pieces of a passage."""
        if self.tokenizer is None or not self.max_length:
            return limit_for(self.max_length, 0)
        prompt = self.tokenizer.encode(self.prompts.document)
        return limit_for(self.max_length, len(prompt.ids))

    def encode_query(self, text: str) -> "NDArray[np.float32]":
        question = [text[:QUESTION]]
        return self._encode(self.model.encode_query, question, self.prompts.query).reshape(-1)

    def encode_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        return self._encode(self.model.encode_document, texts, self.prompts.document)

    def passages(self, text: str) -> list[Span]:
        spans = pieces(self.tokenizer, text) if self.tokenizer else words(text)
        return cut(text, spans, self.passage_pieces)

    def _encode(self, encode: Any, texts: Sequence[str], prompt: str) -> "NDArray[np.float32]":
        import numpy as np

        vectors = encode(
            list(texts),
            prompt=prompt,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return np.asarray(vectors, np.float32).reshape(len(texts), self.dimensions)

    def knows(self, word: str) -> bool:
        return self.tokenizer is not None and len(pieces(self.tokenizer, word)) == 1


def _load(name: str, folder: str) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging

        logging.disable_progress_bar()
        logging.set_verbosity_error()
        model = SentenceTransformer(
            folder,
            device="cpu",
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
        )
        return model.float().eval()
    except (ImportError, OSError, ValueError, KeyError, RuntimeError) as error:
        raise ModelUnavailableError(
            f"the embedding model {name} cannot be loaded: {type(error).__name__}",
            "set embedding_model to a folder that sentence-transformers can read",
        ) from error
