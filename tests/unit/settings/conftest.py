"""A home for a settings file."""

from pathlib import Path

import pytest


@pytest.fixture
def file(home: Path) -> Path:
    home.mkdir()
    return home / "reservoir.toml"
