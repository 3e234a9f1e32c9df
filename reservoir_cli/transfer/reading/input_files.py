"""Open the files to import: on disk, in a folder, in a zip, or from stdin.

Nothing is unpacked to disk, and a zip that unpacks to far more than its size is refused.
"""

import codecs
import gzip
import io
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple, cast

from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import clean_text
from reservoir_cli.transfer.reading.message_times import moment
from reservoir_cli.transfer.reading.zstd_files import NoLibrary, ZstdFile
from reservoir_cli.util.read_files import decode, open_regular, read_bounded, suggest_fix

HEAD = 65_536  # the number of bytes examined to detect a file's format
_BUFFER_SIZE = 1 << 18
LARGEST_PIPED = 256 << 20  # the size limit of a pipe, which is kept in memory, unlike a file
#: A zip member may unpack to this many times its size, or to this size if that is more. Deflate
#: can reach a ratio of 1,032; text written by people stays below 30.
_RATIO, _HARMLESS = 200, 64 << 20
#: All members together may unpack to this size, which takes seconds, or to the same ratio.
_HARMLESS_ZIP = 1 << 30
#: The table of a zip: some 100 bytes for each file, and ten times as much in memory.
_LARGEST_TABLE = 16 << 20


#: Endings of archives that are not read, and how a text in UTF-16 begins.
_ARCHIVES = tuple(".tar .tgz .tar.gz .tar.zst .tar.bz2 .tar.xz .7z .rar .bz2 .xz".split())
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
#: Errors of ``zipfile`` for a damaged zip, whose numbers it does not check.
_DAMAGED = (
    zipfile.BadZipFile,
    ValueError,
    EOFError,
    OverflowError,
    struct.error,
)


_UNPACK = "unpack the zip with another program, and name the folder"


class Unreadable(Exception):
    """The rest of a file cannot be read; the message gives the reason and never quotes the file.

    :param hint: what to do about it.
    """

    def __init__(self, reason: str, hint: str = "export or download it again") -> None:
        super().__init__(reason)
        self.hint = hint


class LockedError(ReservoirError):
    """A database is in use by the program that writes it."""


@dataclass(slots=True)
class File:
    """A file that can be opened several times.

    :param name: the name shown to the user: the path, followed by the path inside a zip.
    :param size: unpacked size in bytes, as far as known.
    :param path: its path on disk; ``None`` in a zip or from stdin.
    :param limit: the number of bytes after which reading fails.
    :param length: the number of bytes to read; ``None`` for all.
    :param offset: the position in the file on disk at which it begins.
    :param unlisted: a folder that cannot be read, in place of its files.
    """

    name: str
    size: int
    start: Callable[[], IO[bytes]]
    path: Path | None = None
    limit: int | None = None
    done: int = 0
    modified: datetime | None = None
    length: int | None = None
    offset: int = 0
    unlisted: bool = False

    @classmethod
    def of_unlisted(cls, error: OSError) -> "File":
        """Return the entry for a folder that cannot be read; opening it raises the error."""

        def start() -> IO[bytes]:
            raise error

        return cls(str(error.filename), 0, start, unlisted=True)

    @classmethod
    def of_bytes(cls, name: str, data: bytes) -> "File":
        """Return a file in memory."""
        return cls(name, len(data), lambda: io.BytesIO(data))

    @classmethod
    def of_path(cls, path: Path, status: os.stat_result) -> "File":
        """Return a regular file on disk; if it is compressed with gzip or zstd, its content."""
        name, size, modified = str(path), status.st_size, moment(status.st_mtime)
        if name.endswith((".zst", ".gz")) and not name.lower().endswith(_ARCHIVES):
            limit = max(_HARMLESS, _RATIO * size)
            start = cast(Callable[[], IO[bytes]], partial(ZstdFile, path))
            if name.endswith(".gz"):
                start = cast(Callable[[], IO[bytes]], partial(gzip.GzipFile, path, "rb"))
            return cls(name, size, start, path, limit, modified=modified)
        return cls(name, size, lambda: open_regular(path), path, modified=modified)

    @property
    def stem(self) -> str:
        """The file's name without folder and extensions."""
        file_name = self.name.replace("\\", "/").rsplit("/", 1)[-1]
        return clean_text(file_name.split(".", 1)[0])

    def open(self) -> BinaryIO:
        """Open the file at its beginning; the caller closes it. OSError if it cannot be opened.

        :raises Unreadable: the zip is damaged, or uses an unsupported method.
        """
        self.done = 0
        try:
            source = self.start()
        except NoLibrary as error:
            raise Unreadable(f"compressed with zstd: {error}") from None
        except NotImplementedError:
            raise Unreadable("its compression method is not supported", _UNPACK) from None
        except (*_DAMAGED, RuntimeError):
            raise Unreadable("it is damaged") from None
        length = self.length
        if length is None and isinstance(source, io.FileIO):
            # Read a file that grows meanwhile up to its present end; the system's have no size.
            length = os.fstat(source.fileno()).st_size or None
        stream = io.BufferedReader(_CountingReader(self, source, length), _BUFFER_SIZE)
        if self.offset or not stream.peek(2).startswith(UTF16):
            return stream
        return cast(BinaryIO, io.BufferedReader(_Utf16Reader(stream), _BUFFER_SIZE))

    def head(self) -> bytes:
        """Return the first 64 KB."""
        with self.open() as stream:
            return stream.read(HEAD)


class _Utf16Reader(io.RawIOBase):
    """A text in UTF-16, as PowerShell writes it, as bytes in UTF-8."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._decoder = stream, codecs.getincrementaldecoder("utf-16")("replace")
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        while not self._left and (data := self._stream.read(_BUFFER_SIZE)):
            self._left = self._decoder.decode(data).encode()
        part, self._left = self._left[: len(view)], self._left[len(view) :]
        view[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self._stream.close()
        super().close()


class _CountingReader(io.RawIOBase):
    """Counts the bytes read of a file and enforces its limit; ends after ``length``, if given."""

    def __init__(self, file: File, source: IO[bytes], length: int | None) -> None:
        self._file, self._source, self._length = file, source, length

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        left = len(view) if self._length is None else max(0, self._length - self._file.done)
        try:
            data = self._source.read(min(len(view), left))
        except (*_DAMAGED, zlib.error):
            what = "the zip" if self._file.path is None else "the file"
            raise Unreadable(f"{what} is damaged here") from None
        view[: len(data)] = data
        self._file.done += len(data)
        if self._file.limit is not None and self._file.done > self._file.limit:
            raise Unreadable("it unpacks to far more than its size")
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._source.close()
        super().close()


class PassedOver(NamedTuple):
    """The names of what is neither a file nor a folder.

    :param links: symbolic links, which are not followed.
    :param others: pipes, sockets and devices.
    """

    links: list[str]
    others: list[str]


def gather(
    source: Path | File, open_files: ExitStack, passed_over: PassedOver
) -> tuple[list[File], bool]:
    """Return the files of a source, and whether it is a single one; ReservoirError if unreadable.

    :param passed_over: receives what is no file in a folder or zip.
    """
    try:
        if isinstance(source, Path) and source.is_dir():
            return list(_list_folder(source, passed_over)), False
        file = source if isinstance(source, File) else _open_path(source)
        if file.head().startswith((b"PK\x03\x04", b"PK\x05\x06")):
            return list(_list_zip(file, open_files, passed_over)), False
        if file.name.lower().endswith(_ARCHIVES):
            raise ReservoirError(
                f"{file.name} is an archive that is not read", hint="unpack it and name the folder"
            )
        return [file], True
    except (OSError, Unreadable) as error:
        raise cannot_read(name_of(source), error) from None
    except ValueError:  # a NUL in a path
        problem = f"cannot read {name_of(source)!r}: not a path"
        raise ReservoirError(problem, hint="name a file or folder") from None


def cannot_read(name: str | Path, error: OSError | Unreadable) -> ReservoirError:
    """Return the error for a file or folder that cannot be opened."""
    if isinstance(error, Unreadable):
        return ReservoirError(f"cannot read {name}: {error}", hint=error.hint)
    reason = error.strerror or error
    return ReservoirError(f"cannot read {name}: {reason}", hint=suggest_fix(error, Path(name)))


def name_of(source: Path | File) -> str:
    """Return the name of a source for the user."""
    return source.name if isinstance(source, File) else str(source)


def _open_path(path: Path) -> File:
    status = path.stat()
    if stat.S_ISREG(status.st_mode):
        return File.of_path(path, status)
    # A pipe can be read only once.
    return File.of_bytes(str(path), read_bounded(path, LARGEST_PIPED))


def _list_folder(folder: Path, passed_over: PassedOver) -> Iterator[File]:
    """Yield the regular files of a folder and its folders, sorted by path."""
    errors: list[OSError] = []
    for parent, folders, names in os.walk(folder, onerror=errors.append, followlinks=False):
        folders.sort()
        paths = (os.path.join(parent, name) for name in folders)
        passed_over.links.extend(filter(os.path.islink, paths))
        for name in sorted(names):
            path = Path(parent, name)
            try:
                status = path.lstat()
            except FileNotFoundError:  # deleted since it was listed
                continue
            if stat.S_ISREG(status.st_mode):
                yield File.of_path(path, status)
            else:
                is_link = stat.S_ISLNK(status.st_mode)
                (passed_over.links if is_link else passed_over.others).append(str(path))
    yield from map(File.of_unlisted, errors)


def _list_zip(file: File, open_files: ExitStack, passed_over: PassedOver) -> Iterator[File]:
    try:
        archive = zipfile.ZipFile(_BoundedReader(open_files.enter_context(file.start())))
    except NotImplementedError:
        raise ReservoirError(f"{file.name} is a zip of a newer version", hint=_UNPACK) from None
    except _DAMAGED:
        raise ReservoirError(
            f"{file.name} is a damaged zip", hint="export or download it again"
        ) from None
    open_files.callback(archive.close)
    members: list[zipfile.ZipInfo] = []
    for member in archive.infolist():
        if stat.S_ISLNK(member.external_attr >> 16):
            passed_over.links.append(f"{file.name}/{member.filename}")
        elif not member.is_dir():
            members.append(member)
    # No member can yield more than its stated size.
    if sum(member.file_size for member in members) > max(_HARMLESS_ZIP, _RATIO * file.size):
        raise ReservoirError(
            f"{file.name} unpacks to far more than its size",
            hint="if you trust it, unpack it and name the folder",
        )
    for member in sorted(members, key=lambda member: member.filename):
        if member.flag_bits & 1:
            raise ReservoirError(f"{file.name} is a zip with a password", hint="unpack it first")
        yield File(
            f"{file.name}/{member.filename}",
            member.file_size,
            partial(archive.open, member),
            limit=max(_HARMLESS, _RATIO * member.compress_size),
            modified=_member_time(member),
        )


def _member_time(member: zipfile.ZipInfo) -> datetime | None:
    with suppress(ValueError, OverflowError, OSError):
        # A member without a time has the year 1980.
        if member.date_time[0] > 1980:
            return datetime(*member.date_time).astimezone(UTC)
    return None


class _BoundedReader(io.RawIOBase):
    """A zip file that refuses to read more at once than a large table needs."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source

    def read(self, size: int = -1) -> bytes:
        if size > _LARGEST_TABLE:
            raise zipfile.BadZipFile
        return self._source.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._source.seek(offset, whence)

    def tell(self) -> int:
        return self._source.tell()

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True


def read_text(path: Path) -> tuple[str, int]:
    """Return a text and how many characters replace invalid bytes; ReservoirError if not text."""
    try:
        data = read_bounded(path)
    except OSError as error:
        raise cannot_read(path, error) from None
    return decode(data, str(path))
