"""Fixtures for syncing sessions."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from sessions import Machine

from reservoir_cli.storage.store import Store


@pytest.fixture
def machine(store: Store, tmp_path: Path) -> Machine:
    return Machine(store, tmp_path / "projects")


@pytest.fixture
def now() -> datetime:
    """Return a time at which new files are not old yet."""
    return datetime.now(UTC)
