from pathlib import Path

import pytest
from running import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:  # type: ignore[override]
    """Return a home with an empty store and no embedding model."""
    return Home(tmp_path / "person")


@pytest.fixture
def home_with_model(tmp_path: Path, compiled_models: Path) -> Home:
    """Return a home with an empty store and the embedding model, and with network access."""
    return Home(tmp_path / "person-with-model", compiled_models)
