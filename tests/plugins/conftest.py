"""A home of a user."""

from pathlib import Path

import pytest
from command_line import Cli


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """Return a home with an empty store and no embedding model."""
    return Cli(tmp_path / "home")
