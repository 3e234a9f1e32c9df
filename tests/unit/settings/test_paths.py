import os
from pathlib import Path

import pytest

from reservoir_cli.settings import paths


def test_home_moves_everything_together(home: Path) -> None:
    assert paths.config_file() == home / "reservoir.toml"
    assert paths.store_location() == str(home / "reservoir.db")
    assert paths.cache_dir() == home / "cache"
    assert paths.log_file() == home / "reservoir.log"


def test_config_and_db_move_one_file_each(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESERVOIR_CONFIG", "/elsewhere/mine.toml")
    monkeypatch.setenv("RESERVOIR_DB", "/elsewhere/mine.db")
    assert paths.config_file() == Path("/elsewhere/mine.toml")
    assert paths.store_location() == "/elsewhere/mine.db"
    assert paths.log_file() == home / "reservoir.log"


def test_a_tilde_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/mara")
    monkeypatch.setenv("RESERVOIR_HOME", "~/own")
    assert paths.config_file() == Path("/home/mara/own/reservoir.toml")
    monkeypatch.setenv("RESERVOIR_CONFIG", "~/mine.toml")
    assert paths.config_file() == Path("/home/mara/mine.toml")


@pytest.mark.skipif(os.name != "posix" or os.uname().sysname != "Linux", reason="XDG folders")
def test_the_platforms_folders_are_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RESERVOIR_HOME")
    for kind in ("CONFIG", "DATA", "CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind.lower()))
    assert paths.config_file() == tmp_path / "config" / "reservoir" / "reservoir.toml"
    assert paths.store_location() == str(tmp_path / "data" / "reservoir" / "reservoir.db")
    assert paths.cache_dir() == tmp_path / "cache" / "reservoir"
    assert paths.log_file().is_relative_to(tmp_path / "state" / "reservoir")


def test_an_empty_variable_counts_as_unset(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESERVOIR_CONFIG", "")
    monkeypatch.setenv("RESERVOIR_DB", "")
    assert paths.config_file() == home / "reservoir.toml"
    assert paths.store_location() == str(home / "reservoir.db")
