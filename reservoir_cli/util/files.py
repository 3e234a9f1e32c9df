"""Reading files that somebody named, whatever they turn out to be.

A device without an end fills the memory, and a pipe that nobody writes to waits for ever. So only
regular files and pipes are read, no more of them than was agreed on, and a pipe at which nobody
turns up is given up.
"""

import errno
import io
import os
import stat
import time
from pathlib import Path
from typing import IO

#: The most that is taken into memory at once, in bytes: a text, or an entry of a file.
LARGEST = 64 << 20
#: Seconds until somebody must have opened the other end of a pipe.
_PATIENCE = 2.0


def way_out(error: OSError, path: Path) -> str | None:
    """What to do about a path that cannot be read or written."""
    folder = path.parent
    if error.errno == errno.ENOENT and os.path.isdir(folder):
        try:
            return f"the folder {os.path.realpath(folder)} has no file of that name"
        except OSError:
            return "the folder you are in is gone: go to another"
    return {
        errno.ENOENT: f"there is no folder {folder}: make it, or name another",
        errno.ENOTDIR: f"{folder} is no folder: name another",
        errno.EISDIR: "name a file in it",
        errno.EINVAL: "name a regular file",
        errno.EACCES: "its permissions forbid it: change them, or name another",
        errno.EPERM: "its permissions forbid it: change them, or name another",
        errno.EROFS: "nothing can be written there: name another place",
        errno.ENOSPC: "make room on the disk, or name another place",
        errno.EDQUOT: "make room on the disk, or name another place",
        errno.EFBIG: "nothing so large can be there: name another place",
        errno.ENAMETOOLONG: "give a shorter name",
    }.get(error.errno or 0)


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file, unbuffered.

    :raises OSError: it cannot be opened, or is no regular file.
    """
    # A pipe would wait here for a writer; a regular file does not know the difference.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return os.fdopen(handle, "rb", buffering=0)
    except BaseException:
        os.close(handle)
        raise


def read_bounded(path: Path, most: int = LARGEST) -> bytes:
    """All bytes of a regular file, or of a pipe; nothing of the null device.

    :param most: how many bytes it may have.
    :raises OSError: it cannot be read, is neither, or is larger.
    """
    kind = path.stat().st_mode
    if stat.S_ISFIFO(kind):
        with _open_pipe(path) as pipe:
            return read_stream(pipe, most)
    if stat.S_ISCHR(kind) and path.samefile(os.devnull):
        return b""
    with open_regular(path) as file:
        return read_stream(file, most)


def read_stream(stream: IO[bytes], most: int = LARGEST) -> bytes:
    """All bytes of a stream.

    :raises OSError: it cannot be read, or has more bytes than that.
    """
    parts, size = [], 0
    while size <= most and (part := stream.read(1 << 20)):
        parts.append(part)
        size += len(part)
    if size > most:
        raise OSError(errno.EFBIG, f"larger than {most >> 20} MB")
    return b"".join(parts)


def _open_pipe(path: Path) -> IO[bytes]:
    """A pipe at which a writer has turned up.

    :raises OSError: nobody did.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    pipe = os.fdopen(handle, "rb", buffering=0)
    deadline = time.monotonic() + _PATIENCE
    begun: bytes | None = b""
    try:
        # Nothing yet is None, and no writer is the end of the file.
        while (begun := pipe.read(1 << 16)) == b"" and time.monotonic() < deadline:
            time.sleep(0.02)
        if begun == b"":
            raise OSError(errno.EPIPE, "nobody writes to this pipe")
        os.set_blocking(handle, True)
    except BaseException:
        pipe.close()
        raise
    return io.BufferedReader(_Begun(begun or b"", pipe))


class _Begun(io.RawIOBase):
    """A stream of which a part has been read already."""

    def __init__(self, begun: bytes, rest: IO[bytes]) -> None:
        self._begun, self._rest = begun, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        data = self._begun[: len(view)] or self._rest.read(len(view))
        self._begun = self._begun[len(data) :]
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._rest.close()
        super().close()
