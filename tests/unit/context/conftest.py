"""Contexts from a real store."""

import pytest
from builders import Compass
from memories import Memory

from reservoir_cli.settings import config


@pytest.fixture
def memory(store, monkeypatch):
    monkeypatch.setattr("reservoir_cli.embedding.load.load_embedder", lambda *_, **__: Compass())
    return Memory(store)


@pytest.fixture
def write(home):
    """Return a function that writes the settings file."""

    def write_settings(toml):
        file = config.load().path
        assert file.is_relative_to(home)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(toml)

    return write_settings
