import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from reservoir_cli.util import private_files
from reservoir_cli.util.private_files import (
    exclusive_lock,
    make_private_dir,
    missing_folders,
    write_private,
)


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("open_umask")
def test_new_folders_are_private_under_any_umask(tmp_path):
    make_private_dir(tmp_path / "a" / "b" / "c")
    for folder in ("a", "a/b", "a/b/c"):
        assert mode(tmp_path / folder) == 0o700


def test_an_existing_folder_keeps_its_permissions(tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o755)
    make_private_dir(folder)
    make_private_dir(folder / "own")
    assert mode(folder) == 0o755
    assert mode(folder / "own") == 0o700


@pytest.mark.usefixtures("open_umask")
def test_a_replaced_file_is_private_and_leaves_no_temporary_file(tmp_path):
    file = tmp_path / "new" / "file.toml"
    write_private(file, "one\n")
    write_private(file, "zwei ü\r\n")
    assert file.read_bytes() == "zwei ü\r\n".encode()
    assert mode(file) == 0o600
    assert list(file.parent.iterdir()) == [file]


def test_writing_to_a_symlink_replaces_its_target(tmp_path):
    target, link = tmp_path / "dotfiles" / "real.toml", tmp_path / "link.toml"
    write_private(target, "old")
    link.symlink_to(target)
    write_private(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give links away"
)
def test_a_link_of_another_user_in_a_shared_folder_is_not_followed(tmp_path):
    shared, target = tmp_path / "shared", tmp_path / "mine"
    shared.mkdir()
    shared.chmod(0o1777)
    link = shared / "link"
    link.symlink_to(target)
    os.lchown(link, 65534, 65534)
    with pytest.raises(PermissionError):
        write_private(link, "new")
    assert not target.exists()
    os.lchown(link, os.geteuid(), os.getegid())
    write_private(link, "new")
    assert target.read_text() == "new"


def test_a_failed_write_leaves_the_old_file(tmp_path):
    file = tmp_path / "file.toml"
    write_private(file, "old")
    with pytest.raises(UnicodeEncodeError):
        write_private(file, "new\ud800")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_path_below_a_file_is_an_os_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="Not a directory"):
        write_private(tmp_path / "file" / "sub" / "x.toml", "text")


def lock_as_windows(descriptor: int, _mode: int, _bytes: int) -> None:
    """Lock as ``msvcrt.locking`` does, which raises PermissionError for a held lock."""
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise PermissionError(error.errno, "taken") from error


@pytest.fixture(params=["this system", "Windows"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run with the locks of this system, and with a simulation of those of Windows."""
    if request.param == "Windows" and os.name == "posix":
        msvcrt = SimpleNamespace(locking=lock_as_windows, LK_NBLCK=2)
        monkeypatch.setitem(sys.modules, "msvcrt", msvcrt)
        monkeypatch.setattr(sys, "platform", "win32")


@pytest.mark.usefixtures("system")
def test_a_lock_has_one_holder_at_a_time_and_is_released(tmp_path):
    path = tmp_path / "new" / "a.lock"
    with exclusive_lock(path, wait=False) as first, exclusive_lock(path, wait=False) as second:
        assert (first, second) == (True, False)
    with exclusive_lock(path, wait=False) as third:
        assert third


def test_locking_a_missing_folder_creates_nothing(tmp_path):
    with exclusive_lock(tmp_path / "missing") as acquired:
        assert acquired
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("system")
def test_a_waiter_gets_a_lock_when_it_is_released(tmp_path):
    path, order = tmp_path / "a.lock", []

    def wait() -> None:
        with exclusive_lock(path):
            order.append("second")

    waiter = threading.Thread(target=wait)
    with exclusive_lock(path):
        waiter.start()
        waiter.join(0.3)
        order.append("first")
    waiter.join(30)
    assert order == ["first", "second"]


@pytest.mark.skipif(sys.platform == "win32", reason="a signal ends the process at once there")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_a_module_loads_leaves_no_temporary_file(tmp_path, number):
    (tmp_path / "signalled.py").write_text(f"import os\nos.kill(os.getpid(), {number:d})\n")
    folder = tmp_path / "private"
    write_private(folder / "one.db", "old")
    program = f"""
import signal
from pathlib import Path
from reservoir_cli.cli import app
from reservoir_cli.util.private_files import replace_atomically, temporary_folder
signal.signal(signal.SIGTERM, app._terminated)
signal.signal(signal.SIGINT, app._interrupted)
folder = Path({str(folder)!r})
with replace_atomically(folder / "one.db"), temporary_folder(folder, ".one.db.") as inner:
    (inner / "copy.db").write_text("copied")
    print(len(list(folder.iterdir())), flush=True)
    import signalled
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (ended.stdout, ended.returncode) == ("3\n", 128 + number)
    assert [(file.name, file.read_text()) for file in folder.iterdir()] == [("one.db", "old")]


def test_a_folder_on_a_missing_drive_is_an_os_error(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "a" / "b"
    # As on Windows, where a drive such as Z: may be missing with everything on it.
    monkeypatch.setattr(Path, "exists", lambda _: False)
    assert missing_folders(folder)[0] == Path(folder.anchor)
    with pytest.raises(FileExistsError):
        make_private_dir(folder)


def test_windows_locks_a_file_in_place_of_its_folder(tmp_path, monkeypatch):
    msvcrt = SimpleNamespace(locking=lock_as_windows, LK_NBLCK=2)
    monkeypatch.setitem(sys.modules, "msvcrt", msvcrt)
    monkeypatch.setattr(sys, "platform", "win32")
    with exclusive_lock(tmp_path), exclusive_lock(tmp_path, wait=False) as second:
        assert not second
        assert [path.name for path in tmp_path.iterdir()] == [".reservoir.lock"]


@pytest.mark.parametrize("waits", [True, False], ids=["Windows", "elsewhere"])
def test_a_file_that_another_program_reads_is_replaced_when_it_is_closed(
    tmp_path, monkeypatch, waits
):
    file, replace, refusals = tmp_path / "settings", os.replace, iter([True, True, False])

    def replace_as_windows(source: Path, target: Path) -> None:
        if next(refusals):
            raise PermissionError(13, "The process cannot access the file")
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_as_windows)
    monkeypatch.setattr(private_files, "_WAITS_FOR_READERS", waits)
    if waits:
        write_private(file, "new")
        assert file.read_text() == "new"
    else:
        with pytest.raises(PermissionError):
            write_private(file, "new")
        assert list(tmp_path.iterdir()) == []
