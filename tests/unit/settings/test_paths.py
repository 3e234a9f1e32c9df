import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from reservoir_cli.settings import paths


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


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


def test_a_tilde_is_the_users_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/mara")
    monkeypatch.setenv("RESERVOIR_HOME", "~/own")
    assert paths.config_file() == Path("/home/mara/own/reservoir.toml")
    monkeypatch.setenv("RESERVOIR_CONFIG", "~/mine.toml")
    assert paths.config_file() == Path("/home/mara/mine.toml")


@pytest.mark.skipif(os.name != "posix" or os.uname().sysname != "Linux", reason="XDG folders")
def test_without_a_home_the_platforms_own_places_are_used(
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


@pytest.mark.usefixtures("open_umask")
def test_new_folders_are_private_whatever_the_umask(tmp_path: Path) -> None:
    paths.make_private_dir(tmp_path / "a" / "b" / "c")
    for folder in ("a", "a/b", "a/b/c"):
        assert mode(tmp_path / folder) == 0o700


def test_a_folder_that_is_there_is_not_touched(tmp_path: Path) -> None:
    there = tmp_path / "shared"
    there.mkdir()
    there.chmod(0o755)
    paths.make_private_dir(there)
    paths.make_private_dir(there / "own")
    assert mode(there) == 0o755
    assert mode(there / "own") == 0o700


@pytest.mark.usefixtures("open_umask")
def test_a_replaced_file_is_private_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "new" / "file.toml"
    paths.replace_private(file, "one\n")
    paths.replace_private(file, "zwei ü\r\n")
    assert file.read_bytes() == "zwei ü\r\n".encode()
    assert mode(file) == 0o600
    assert list(file.parent.iterdir()) == [file]


def test_a_link_stays_a_link_and_its_target_is_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "dotfiles" / "real.toml", tmp_path / "link.toml"
    paths.replace_private(target, "old")
    link.symlink_to(target)
    paths.replace_private(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_file_that_cannot_be_written_whole_stays_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "file.toml"
    paths.replace_private(file, "old")
    with pytest.raises(UnicodeEncodeError):
        paths.replace_private(file, "new\ud800")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_place_that_cannot_be_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="Not a directory"):
        paths.replace_private(tmp_path / "file" / "sub" / "x.toml", "text")
