"""Small models, and the folder that compiled ones go to."""

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tiny_models import TinyModel, save


@pytest.fixture
def models_folder() -> Path:
    """Where this test's home keeps compiled models; it is not there yet."""
    return Path(os.environ["RESERVOIR_HOME"]) / "cache" / "models"


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    """Build a model of two small layers, once for each set of arguments; its folder."""
    built: dict[str, Path] = {}

    def build(
        architecture: str = "Bert",
        pooling: str = "mean",
        prompts: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Path:
        key = repr((architecture, pooling, prompts, more))
        if key not in built:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                folder = tmp_path_factory.mktemp("tiny")
                save(folder, architecture, pooling, prompts, more)
            built[key] = folder
        return built[key]

    return build
