"""List the history files of other tools, detect changes, and open their new parts."""

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from reservoir_cli.transfer.reading.decompressed_file import (
    DATABASES,
    SQLITE,
    SUFFIXES,
    UTF16,
    File,
)
from reservoir_cli.transfer.reading.json_stream import LONGEST_LINE
from reservoir_cli.util.read_files import open_regular

#: The number of bytes hashed at the beginning, and before the position where reading ended.
_COMPARED = 4_096
_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class FileState:
    """The modification time and the size of a file, with that of a database's write-ahead log."""

    path: str
    size: int
    mtime_ns: int


def walk(
    root: Path,
    excluded: Callable[[str], bool],
    report: Callable[[str, OSError], None],
    links: list[str] | None = None,
    endings: tuple[str, ...] = (),
) -> Iterator[FileState]:
    """Yield the files below a folder that may contain messages, or the file itself.

    :param endings: of the tool's files, besides the usual ones.
    :param report: receives each folder that cannot be read.
    :param links: receives the symbolic links to folders, which are not followed.
    """
    try:
        status = root.stat()
    except OSError:
        return
    if not root.is_dir():
        yield _file_state(str(root), status)
        return
    folders = [str(root)]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders += [] if excluded(entry.path) else [entry.path]
                    elif _is_history(entry, endings) and not excluded(entry.path):
                        yield _file_state(entry.path, entry.stat(follow_symlinks=False))
                    elif links is not None and entry.is_symlink() and entry.is_dir():
                        links.append(entry.path)
        except FileNotFoundError:  # deleted since it was listed
            continue
        except OSError as error:
            report(folder, error)


def _is_history(entry: os.DirEntry[str], endings: tuple[str, ...]) -> bool:
    return entry.name.endswith(SUFFIXES + endings) and entry.is_file(follow_symlinks=False)


def escape_path(path: str) -> str:
    """Return a path as valid UTF-8 text, with other bytes escaped."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _file_state(path: str, status: os.stat_result) -> FileState:
    state = FileState(path, status.st_size, status.st_mtime_ns)
    if not path.endswith(DATABASES):
        return state
    try:
        log = os.stat(f"{path}-wal")
    except OSError:
        return state
    return FileState(path, state.size + log.st_size, max(state.mtime_ns, log.st_mtime_ns))


def describe_unreadable(path: str, error: OSError) -> str:
    """Return why a file or folder cannot be read."""
    return f"cannot read {path}: {error.strerror or 'unknown reason'}"


def unreadable_folders(root: Path, excluded: Callable[[str], bool]) -> list[str]:
    """Return which folders below a folder cannot be read, and why."""
    reasons: list[str] = []

    def note(path: str, error: OSError) -> None:
        reasons.append(describe_unreadable(path, error))

    for _ in walk(root, excluded, note):
        pass
    return reasons


def is_database(stream: IO[bytes]) -> bool:
    """Return whether a file is a SQLite database."""
    stream.seek(0)
    return stream.read(len(SQLITE)) == SQLITE


def is_converted(stream: IO[bytes]) -> bool:
    """Return whether a text is in UTF-16: what is read of it has other positions than the file."""
    stream.seek(0)
    return stream.read(2) in UTF16


def hash_ends(stream: IO[bytes], offset: int) -> tuple[str, str]:
    """Return hashes of the first bytes of a file and of the last bytes before an offset."""
    length = min(_COMPARED, offset)
    parts = []
    for start in (0, offset - length):
        stream.seek(start)
        parts.append(hashlib.sha256(_read_exactly(stream, length)).hexdigest()[:32])
    return parts[0], parts[1]


def _read_exactly(stream: IO[bytes], length: int) -> bytes:
    data = b""
    while len(data) < length and (block := stream.read(length - len(data))):
        data += block
    return data


def find_last_line_end(stream: IO[bytes], start: int, size: int) -> int:
    """Return the offset after the last complete line between two, unless it is too long to read."""
    end = size
    while end > max(start, size - LONGEST_LINE):
        begin = max(start, end - _AT_ONCE)
        stream.seek(begin)
        newline = _read_exactly(stream, end - begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        end = begin
    return start


def open_part(path: Path, start: int, end: int) -> File:
    """Return the part of a file between two offsets as a file with the same path."""

    def open_at_start() -> IO[bytes]:
        stream = open_regular(path)
        stream.seek(start)
        return stream

    length = end - start
    return File(str(path), length, open_at_start, path, length=length, offset=start)
