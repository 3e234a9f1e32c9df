"""Create and replace files that only the user can read; lock and clean them up."""

import errno
import os
import re
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path

from reservoir_cli.util.clock import unix_time
from reservoir_cli.util.timeouts import FILE_IN_USE

#: The suffix of a temporary file's name; a temporary store may have a write-ahead log beside it.
_TEMPORARY = r"\.\w{8}(-wal|-shm|-journal)?$"
_ABANDONED = 24 * 3_600  #: Seconds after which a temporary file is considered abandoned.
#: Seconds between two attempts to take a lock, where the system cannot wait for one.
_LOCK_PAUSE = 0.05
#: Windows does not replace a file while another process, such as a virus scanner, reads it.
_WAITS_FOR_READERS = os.name == "nt"
#: The file that is locked instead of its folder on Windows, which cannot open folders.
_FOLDER_LOCK = ".reservoir.lock"
#: The ending of files that are only locked; a folder's name is never created as a file.
_LOCK_SUFFIX = ".lock"
_in_use: set[Path] = set()  #: The temporary files and folders of this process.


def make_private_dir(folder: Path) -> None:
    """Create a folder and its missing parents, accessible to the user only."""
    for missing in missing_folders(folder):
        missing.mkdir(mode=0o700, exist_ok=True)


def missing_folders(folder: Path) -> list[Path]:
    """Return a folder and its parents as far as they do not exist, the innermost last."""
    missing = takewhile(lambda path: not path.exists(), (folder, *folder.parents))
    return list(missing)[::-1]


def write_private(path: Path, text: str) -> None:
    """Write a text file atomically, readable by the user only."""
    make_private_dir(resolve_path(path).parent)
    with (
        replace_atomically(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as file,
    ):
        file.write(text)


@contextmanager
def replace_atomically(path: Path) -> Iterator[Path]:
    """Yield an empty private file that replaces ``path`` if the block succeeds.

    The file is created beside the path and synced to disk before it is renamed.

    :raises OSError: the folder cannot be written; the old file is untouched.
    """
    path = resolve_path(path)  # replace the target of a symbolic link, not the link
    if path.is_symlink():  # a loop, which has no target
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if path.exists() and not path.is_file():  # never replace a device such as /dev/null
        raise OSError(errno.EINVAL, "not a regular file")
    remove_leftovers(path)
    with _temporary_path(path.parent, f".{path.name}.") as temporary:
        os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        yield temporary
        _sync(temporary, os.O_RDWR)
        _replace(temporary, path)
    if os.name == "posix":
        with suppress(OSError):  # some file systems cannot sync a folder
            _sync(path.parent, os.O_RDONLY)  # so that the rename survives a power failure


def _replace(temporary: Path, path: Path) -> None:
    deadline = time.monotonic() + FILE_IN_USE
    while True:
        try:
            os.replace(temporary, path)
        except PermissionError:
            if not _WAITS_FOR_READERS or time.monotonic() > deadline:
                raise
            time.sleep(_LOCK_PAUSE)
        else:
            return


@contextmanager
def temporary_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Yield an empty private folder that is removed with its contents after the block."""
    with _temporary_path(parent, prefix) as folder:
        folder.mkdir(mode=0o700)
        yield folder


@contextmanager
def _temporary_path(parent: Path, prefix: str) -> Iterator[Path]:
    import secrets

    # Choose the name first, so that a signal at any moment leaves a known file to remove.
    path = parent / f"{prefix}{secrets.token_hex(4)}"
    _in_use.add(path)
    try:
        yield path
    finally:
        _remove(path)
        _in_use.discard(path)


def remove_temporary() -> None:
    """Remove all temporary files and folders of this process, just before it exits abruptly."""
    for path in list(_in_use):
        _remove(path)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir():
            from shutil import rmtree

            rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def remove_leftovers(path: Path) -> None:
    """Remove temporary files that killed processes left beside ``path``."""
    from glob import escape

    siblings = path.parent.glob(f".{escape(path.name)}.????????*")
    for leftover in (sibling for sibling in siblings if re.search(_TEMPORARY, sibling.name)):
        with suppress(OSError):
            if unix_time() - leftover.lstat().st_mtime > _ABANDONED:
                _remove(leftover)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def exclusive_lock(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold a lock that one process can hold at a time; it is released if the process dies.

    :param path: a folder, or a file with the ending ``.lock``, which is created with its folder if
        it is missing. Never the store: closing it would release SQLite's own locks.
    :param wait: block until the lock is free; otherwise yield ``False`` if it is taken.
    """
    descriptor, acquired = None, True
    if sys.platform == "win32" and path.is_dir():
        path /= _FOLDER_LOCK
    # Continue without a lock if the file cannot be opened, or if the file system has no locks.
    with suppress(OSError):
        flags = os.O_RDONLY
        if path.suffix == _LOCK_SUFFIX and not path.is_dir():
            make_private_dir(path.parent)
            flags = os.O_RDWR | os.O_CREAT
        descriptor = os.open(path, flags, 0o600)
        acquired = _lock(descriptor, wait=wait)
    try:
        yield acquired
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _lock(descriptor: int, *, wait: bool) -> bool:
    """Lock an open file; return ``False`` if another process holds the lock and we do not wait."""
    if sys.platform == "win32":
        import msvcrt

        # LK_LOCK, which waits, fails after ten seconds.
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            except PermissionError:
                if not wait:
                    return False
                time.sleep(_LOCK_PAUSE)
            else:
                return True
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def resolve_path(path: Path) -> Path:
    """Return the absolute path without symbolic links; links that form a loop are kept.

    In a folder such as ``/tmp``, others could lay a link at a path before it is written. Many
    systems do not follow it then, but reading its target gets around that.

    :raises OSError: the path is relative and the current folder no longer exists, or the path is
        another user's link in a folder that everyone may write to.
    """
    if path.is_symlink() and path.parent.stat().st_mode & stat.S_IWOTH:
        if path.lstat().st_uid not in (user_id(), path.parent.stat().st_uid):
            raise PermissionError(errno.EACCES, "another user's link in a shared folder")
    return Path(os.path.realpath(path))


def user_id() -> int:
    """Return the id of the user; on Windows it is 0, as in the status of every file."""
    if sys.platform == "win32":
        return 0
    return os.geteuid()


def restrict_permissions(files: Iterable[Path]) -> list[Path]:
    """Remove other users' access to our files, and return those that had it."""
    if os.name != "posix":
        return []
    restricted = []
    for path in files:
        with suppress(OSError):
            status = path.stat()
            ours = stat.S_ISREG(status.st_mode) and status.st_uid == user_id()
            if ours and status.st_mode & 0o077:
                path.chmod(stat.S_IMODE(status.st_mode) & 0o700)
                restricted.append(path)
    return restricted
