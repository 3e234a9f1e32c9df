"""A model with all its modules as one torch module."""

from collections.abc import Sequence
from typing import Any

import torch


class Whole(torch.nn.Module):
    """All modules of a ``SentenceTransformer``, followed by normalisation.

    :param names: the names of its inputs, in order.
    """

    def __init__(self, model: Any, names: Sequence[str]) -> None:
        super().__init__()
        self.stages = torch.nn.ModuleList(list(model))
        self.names = names

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Map inputs of shape (batch, pieces) to vectors of shape (batch, dimensions)."""
        features: dict[str, Any] = dict(zip(self.names, inputs, strict=True))
        for stage in self.stages:
            features = stage(features)
        vectors: torch.Tensor = features["sentence_embedding"]
        return torch.nn.functional.normalize(vectors, p=2, dim=1)
