"""Folders with hostile messages and files, copied from one that is created once."""

from pathlib import Path

import pytest
import world as worlds


@pytest.fixture(scope="session")
def made_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return worlds.make(tmp_path_factory.mktemp("hostile") / "world")


@pytest.fixture
def world(made_world: Path, tmp_path: Path) -> Path:
    """Return a folder to run commands in, for one test only."""
    return worlds.copied(made_world, tmp_path / "world")
