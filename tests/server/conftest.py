"""A proxy in front of a provider, and a store without a model."""

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import pytest
import upstream
from upstream import Upstream

from reservoir_cli.messages import Message
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.server import limits
from reservoir_cli.util import time_limits

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
    monkeypatch.setattr(time_limits, "RECALL_OF_REQUEST", 60.0)  # generous for a loaded machine
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
def served(store_path: Path, provider: Upstream) -> "Iterator[Served]":
    """Run a server with the provider as each of its upstreams."""
    urls = dict.fromkeys(("openai", "anthropic", "ollama"), provider.url)
    with proxied.serving(store_path, urls) as server:
        yield server


@pytest.fixture
def older(store_path: Path) -> None:
    """Store an older message."""
    spring = datetime(2026, 3, 5, 12, tzinfo=UTC)
    with Reservoir.open(store_path) as reservoir:
        reservoir.ingest([Message("user", dialogue.OLDER, created_at=spring)], embed=False)


@pytest.fixture
def client() -> "Iterator[httpx2.Client]":
    with plain_http.client(timeout=60) as opened:
        yield opened
