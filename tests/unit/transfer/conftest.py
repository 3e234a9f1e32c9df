"""A machine whose sessions are read."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from sessions import Machine

from reservoir_cli.storage.base import Store


@pytest.fixture
def machine(store: Store, tmp_path: Path) -> Machine:
    return Machine(store, tmp_path / "projects")


@pytest.fixture
def now() -> datetime:
    """A time at which what was just written is not old."""
    return datetime.now(UTC)
