"""Read files named by the user safely, whatever their type, and open pipes to write.

An endless device would fill the memory, and a pipe with one end would block forever. Therefore only
regular files and pipes are read, up to a size, and waiting for a pipe's other end times out.
"""

import codecs
import errno
import io
import os
import stat
import sys
import time
from pathlib import Path
from typing import IO, Any

from reservoir_cli.errors import ReservoirError
from reservoir_cli.util.timeouts import OTHER_END_OF_PIPE

#: Default limit, in bytes, of a text or an entry of a file, which is read into memory.
LARGEST = 64 << 20
_BLOCK = 1 << 20
#: The command that converts a text, and U+FFFD as bytes.
_CONVERT, _REPLACEMENT = "iconv -f {} -t utf-8", "\ufffd".encode()
#: What to do about replaced bytes: mostly they are text in another encoding.
CONVERT_HINT = f"convert text in another encoding than UTF-8: {_CONVERT.format('latin1')}"


class NotTextError(ReservoirError):
    """A file is not text."""


def suggest_fix(error: OSError, path: Path) -> str | None:
    """Return a hint for a path that cannot be read or written."""
    folder = path.parent
    if error.errno == errno.ENOENT and os.path.isdir(folder):
        try:
            return f"the folder {os.path.realpath(folder)} has no file of that name"
        except OSError:
            return "the current folder no longer exists: change to another"
    return {
        errno.ENOENT: f"there is no folder {folder}: create it, or name another",
        errno.ENOTDIR: f"{folder} is not a folder: name another",
        errno.EISDIR: "name a file in it",
        errno.EINVAL: "name a regular file",
        errno.ENXIO: "name a regular file",
        errno.EPIPE: "start the program at its other end first, or name a regular file",
        errno.ELOOP: "its links lead in a circle: name another",
        errno.EACCES: "change the permissions, or choose another file",
        errno.EPERM: "change the permissions, or choose another file",
        errno.EROFS: "the file system is read-only: choose another location",
        errno.ENOSPC: "free some disk space, or choose another location",
        errno.EDQUOT: "free some disk space, or choose another location",
        errno.EFBIG: "the file is too large: name another",
        errno.ENAMETOOLONG: "use a shorter name",
    }.get(error.errno or 0)


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file, unbuffered."""
    # Without O_NONBLOCK, opening a pipe would wait for a writer; regular files ignore the flag.
    descriptor = os.open(
        path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    )
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return _RegularFile(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


class _RegularFile(io.FileIO):
    """A regular file; one like ``/proc/kmsg``, which would wait for more data, is refused."""

    def read(self, size: int | None = -1, /) -> bytes:
        data: bytes | None = super().read(size)
        if data is None:
            raise OSError(errno.EINVAL, "not a regular file")
        return data

    def readinto(self, buffer: Any, /) -> int:
        count: int | None = super().readinto(buffer)
        if count is None:
            raise OSError(errno.EINVAL, "not a regular file")
        return count


def read_bounded(path: Path, most: int = LARGEST) -> bytes:
    """Read all bytes of a regular file or a pipe; the null device reads as empty."""
    mode = path.stat().st_mode
    if stat.S_ISFIFO(mode):
        return _read_pipe(path, most)
    if stat.S_ISCHR(mode) and path.samefile(os.devnull):
        return b""
    return read_regular(path, most)


def read_regular(path: Path, most: int = LARGEST) -> bytes:
    """Read all bytes of a regular file."""
    with open_regular(path) as file:
        return read_stream(file, most)


def read_stream(stream: IO[bytes], most: int = LARGEST, start: bytes = b"") -> bytes:
    """Read all bytes of a stream."""
    blocks, size = [start], len(start)
    while size <= most and (block := stream.read(_BLOCK)):
        blocks.append(block)
        size += len(block)
        if len(block) < _BLOCK and isinstance(stream, io.BufferedReader):
            break  # this is the end: asking again, a terminal would wait for another Ctrl-D
    if size > most:
        raise OSError(errno.EFBIG, f"larger than {most >> 20} MB")
    return b"".join(blocks)


def _read_pipe(path: Path, most: int) -> bytes:
    """Read all bytes of a pipe once it has a writer."""
    if sys.platform == "win32":  # its pipes are not files
        raise OSError(errno.EINVAL, "not a regular file")
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb", buffering=0) as pipe:
        deadline = time.monotonic() + OTHER_END_OF_PIPE
        # read() returns None while a writer has sent nothing, and b"" while there is no writer.
        while (start := pipe.read(1 << 16)) == b"" and time.monotonic() < deadline:
            time.sleep(0.02)
        if start == b"":
            raise OSError(errno.EPIPE, "nobody writes to this pipe")
        os.set_blocking(descriptor, True)
        return read_stream(pipe, most, start or b"")


def open_pipe_to_write(path: str, flags: int) -> int:
    """Open a pipe once it has a reader: an ``opener`` for :func:`open`."""
    if sys.platform == "win32":  # its pipes are not files
        raise OSError(errno.EINVAL, "not a regular file")
    deadline = time.monotonic() + OTHER_END_OF_PIPE
    while True:
        try:
            descriptor = os.open(path, flags | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > deadline:
                raise OSError(errno.EPIPE, "nobody reads from this pipe") from None
            time.sleep(0.02)
        else:
            os.set_blocking(descriptor, True)
            return descriptor


def decode(data: bytes, where: str, *, cut: bool = False) -> tuple[str, int]:
    """Return bytes as text, and how many characters of it replace bytes that are not text."""
    text = codecs.getincrementaldecoder("utf-8-sig")("replace").decode(data, final=not cut)
    replaced = text.count("\ufffd") + text.count("\0")
    if replaced > max(8, len(text) // 10):
        is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        command = f": {_CONVERT.format('utf-16')}" if is_utf16 else ""
        raise NotTextError(
            f"{where} is not a text file", hint=f"convert it to text in UTF-8{command}"
        )
    return text, replaced - data.count(_REPLACEMENT)
