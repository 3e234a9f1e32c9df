"""A model and all that follows its transformer, as one function of word pieces."""

from collections.abc import Sequence
from typing import Any

import torch


class Whole(torch.nn.Module):
    """Every module of a ``SentenceTransformer``, and at the end length 1.

    :param names: what its inputs are called, in order.
    """

    def __init__(self, model: Any, names: Sequence[str]) -> None:
        super().__init__()
        self.parts = torch.nn.ModuleList(list(model))
        self.names = names

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Shapes (batch, pieces) to (batch, dimensions)."""
        features: dict[str, Any] = dict(zip(self.names, inputs, strict=True))
        for part in self.parts:
            features = part(features)
        vectors: torch.Tensor = features["sentence_embedding"]
        return torch.nn.functional.normalize(vectors, p=2, dim=1)
