from pathlib import Path

import pytest
from running import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:  # type: ignore[override]
    """A person with an empty store and no embedding model."""
    return Home(tmp_path / "person")


@pytest.fixture
def home_with_model(tmp_path: Path, compiled_models: Path) -> Home:
    """A person with an empty store and the embedding model, which may go to the network."""
    return Home(tmp_path / "person-with-model", compiled_models)
