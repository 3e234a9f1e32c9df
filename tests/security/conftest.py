"""A world of hostile messages and files, made once, and copies of it."""

from pathlib import Path

import pytest
import world as worlds


@pytest.fixture(scope="session")
def made_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return worlds.make(tmp_path_factory.mktemp("hostile") / "world")


@pytest.fixture
def world(made_world: Path, tmp_path: Path) -> Path:
    """A folder to run commands in; what they do to it is nobody else's."""
    return worlds.copied(made_world, tmp_path / "world")
