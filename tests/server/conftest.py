"""A proxy in front of a provider, and a store without a model."""

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest
import upstream
from upstream import Upstream

from reservoir_cli.messages import Message
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.server import limits
from reservoir_cli.util import timeouts

if any(find_spec(name) is None for name in ("starlette", "uvicorn", "httpx2", "mcp_types")):
    collect_ignore_glob = ["test_*.py"]  # the extra serve is not installed
else:
    import dialogue
    import httpx2
    import plain_http
    import proxied
    from proxied import Served


@pytest.fixture(autouse=True)
def without_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESERVOIR_EMBEDDING_MODEL", "nobody/absent-model")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setattr(timeouts, "RECALL_OF_REQUEST", 60.0)  # generous for a loaded machine
    monkeypatch.setattr(limits, "PAUSE", 0.01)  # a server that ends waits for one, too


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    """Return the path of the store."""
    return tmp_path / "reservoir.db"


@pytest.fixture
def provider() -> Iterator[Upstream]:
    with upstream.running() as server:
        yield server


@pytest.fixture
def served(store_path: Path, empty_file: Path, provider: Upstream) -> "Iterator[Served]":
    """Run a server with the provider as each of its upstreams, perhaps with an empty store."""
    if not store_path.exists():
        shutil.copy(empty_file, store_path)
    urls = dict.fromkeys(("openai", "anthropic", "ollama"), provider.url)
    with proxied.serving(store_path, urls) as server:
        yield server


@pytest.fixture
def older(store_path: Path) -> None:
    """Store an older message."""
    _store_older(store_path)


@pytest.fixture
def new_partition(served: "Served") -> Callable[[], str]:
    """Return a function that stores the older message in a new partition, and names that."""
    numbers = count()

    def new() -> str:
        partition = f"p{next(numbers)}"
        _store_older(served.store, partition)
        return partition

    return new


def _store_older(store: Path | str, partition: str = "default") -> None:
    spring = datetime(2026, 3, 5, 12, tzinfo=UTC)
    with Reservoir.open(store) as reservoir:
        message = Message("user", dialogue.OLDER, created_at=spring)
        reservoir.ingest([message], partition=partition, embed=False)


@pytest.fixture
def client() -> "Iterator[httpx2.Client]":
    with plain_http.client(timeout=60) as opened:
        yield opened
