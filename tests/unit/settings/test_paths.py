import os
from pathlib import Path

import pytest

from reservoir_cli.settings import paths


def test_home_moves_all_paths(home):
    assert paths.config_file() == home / "reservoir.toml"
    assert paths.store_location() == str(home / "reservoir.db")
    assert paths.cache_dir() == home / "cache"
    assert paths.log_file() == home / "reservoir.log"


def test_config_and_db_each_move_one_file(home, monkeypatch):
    monkeypatch.setenv("RESERVOIR_CONFIG", "/elsewhere/mine.toml")
    monkeypatch.setenv("RESERVOIR_DB", "/elsewhere/mine.db")
    assert paths.config_file() == Path("/elsewhere/mine.toml")
    assert paths.store_location() == "/elsewhere/mine.db"
    assert paths.log_file() == home / "reservoir.log"


def test_a_tilde_is_expanded(monkeypatch):
    monkeypatch.setenv("HOME", "/home/mara")
    monkeypatch.setenv("RESERVOIR_HOME", "~/own")
    assert paths.config_file() == Path("/home/mara/own/reservoir.toml")
    monkeypatch.setenv("RESERVOIR_CONFIG", "~/mine.toml")
    assert paths.config_file() == Path("/home/mara/mine.toml")


@pytest.mark.skipif(os.name != "posix" or os.uname().sysname != "Linux", reason="XDG folders")
def test_the_platforms_folders_are_the_default(tmp_path, monkeypatch):
    monkeypatch.delenv("RESERVOIR_HOME")
    for kind in ("CONFIG", "DATA", "CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind.lower()))
    assert paths.config_file() == tmp_path / "config" / "reservoir" / "reservoir.toml"
    assert paths.store_location() == str(tmp_path / "data" / "reservoir" / "reservoir.db")
    assert paths.cache_dir() == tmp_path / "cache" / "reservoir"
    assert paths.log_file().is_relative_to(tmp_path / "state" / "reservoir")


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of compiled models that all homes of a user share."""
    monkeypatch.delenv("RESERVOIR_MODEL_CACHE")
    monkeypatch.setattr(paths, "_platform_dir", lambda kind: tmp_path / kind / "reservoir")
    return tmp_path / "cache" / "reservoir" / "models"


def test_homes_share_compiled_models(shared, monkeypatch):
    for home in ("one", "two"):
        monkeypatch.setenv("RESERVOIR_HOME", home)
        assert paths.models_dir() == shared


def test_a_home_with_models_of_its_own_keeps_them(shared, home):
    (home / "cache" / "models").mkdir(parents=True)
    assert paths.models_dir() == home / "cache" / "models"


def test_models_go_to_the_home_if_the_shared_folder_cannot_be_made(shared, home):
    shared.parent.parent.write_text("a file is in the way")
    assert paths.models_dir() == home / "cache" / "models"


def test_models_are_shared_if_neither_folder_can_be_written(shared, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert paths.models_dir() == shared


def test_a_variable_moves_the_models(shared, monkeypatch):
    monkeypatch.setenv("HOME", "/home/mara")
    monkeypatch.setenv("RESERVOIR_MODEL_CACHE", "~/models")
    assert paths.models_dir() == Path("/home/mara/models")


def test_an_empty_variable_counts_as_unset(home, monkeypatch):
    monkeypatch.setenv("RESERVOIR_CONFIG", "")
    monkeypatch.setenv("RESERVOIR_DB", "")
    assert paths.config_file() == home / "reservoir.toml"
    assert paths.store_location() == str(home / "reservoir.db")
