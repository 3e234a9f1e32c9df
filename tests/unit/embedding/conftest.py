"""Small models, and the folder of compiled ones."""

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tiny_models import Exports, TinyModel, save

from reservoir_cli.embedding import compiler


@pytest.fixture(scope="session")
def exports(kept_exports: Path) -> Exports:
    return Exports(kept_exports)


@pytest.fixture(autouse=True)
def export_once(exports: Exports, monkeypatch: pytest.MonkeyPatch) -> None:
    """Export each small model once for all tests."""
    monkeypatch.setattr(compiler, "_export", exports.export)


@pytest.fixture
def models_folder() -> Path:
    """Return the folder of compiled models in the test's home, which does not exist yet."""
    return Path(os.environ["RESERVOIR_HOME"]) / "cache" / "models"


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    """Return a function that builds a model of one small layer once for each set of arguments."""
    folders: dict[str, Path] = {}

    def build(
        architecture: str = "Bert",
        pooling: str = "mean",
        prompts: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Path:
        key = repr((architecture, pooling, prompts, options))
        if key not in folders:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                folder = tmp_path_factory.mktemp("tiny")
                save(folder, architecture, pooling, prompts, options)
            folders[key] = folder
        return folders[key]

    return build
