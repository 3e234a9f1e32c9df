import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from reservoir_cli.util.private import make_private_dir, write_private


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("open_umask")
def test_new_folders_are_private_under_any_umask(tmp_path: Path) -> None:
    make_private_dir(tmp_path / "a" / "b" / "c")
    for folder in ("a", "a/b", "a/b/c"):
        assert mode(tmp_path / folder) == 0o700


def test_an_existing_folder_keeps_its_permissions(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o755)
    make_private_dir(folder)
    make_private_dir(folder / "own")
    assert mode(folder) == 0o755
    assert mode(folder / "own") == 0o700


@pytest.mark.usefixtures("open_umask")
def test_a_replaced_file_is_private_and_leaves_no_temporary_file(tmp_path: Path) -> None:
    file = tmp_path / "new" / "file.toml"
    write_private(file, "one\n")
    write_private(file, "zwei ü\r\n")
    assert file.read_bytes() == "zwei ü\r\n".encode()
    assert mode(file) == 0o600
    assert list(file.parent.iterdir()) == [file]


def test_writing_to_a_symlink_replaces_its_target(tmp_path: Path) -> None:
    target, link = tmp_path / "dotfiles" / "real.toml", tmp_path / "link.toml"
    write_private(target, "old")
    link.symlink_to(target)
    write_private(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "file.toml"
    write_private(file, "old")
    with pytest.raises(UnicodeEncodeError):
        write_private(file, "new\ud800")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_path_below_a_file_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="Not a directory"):
        write_private(tmp_path / "file" / "sub" / "x.toml", "text")
