"""Fixtures for imports, and for syncing sessions."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sessions import Machine

from reservoir_cli.reservoir import Reservoir
from reservoir_cli.storage.store import Store


@pytest.fixture
def reservoir(location: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reservoir]:
    """Open an empty store without a model."""
    monkeypatch.setenv("RESERVOIR_EMBEDDING_MODEL", "nobody/absent-model")
    with Reservoir.open(location) as opened:
        yield opened


@pytest.fixture
def machine(store: Store, tmp_path: Path) -> Machine:
    return Machine(store, tmp_path / "projects")


@pytest.fixture
def now() -> datetime:
    """Return a time at which new files are not old yet."""
    return datetime.now(UTC)
