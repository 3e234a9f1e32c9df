"""A file to import, however it is compressed, and the beginning by which its format is found."""

import codecs
import io
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from importlib import import_module
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import IO, BinaryIO, cast

from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import clean_text
from reservoir_cli.transfer.reading.times import moment
from reservoir_cli.util.installation import install_hint
from reservoir_cli.util.read_files import LARGEST, open_regular

COMPRESSED = ".jsonl.zst"  # the ending of a compressed file of JSON Lines
#: Endings of the databases of other programs, and of all files of their histories.
DATABASES = (".db", ".vscdb", ".sqlite")
SUFFIXES = (".jsonl", ".json", ".md", COMPRESSED, *DATABASES)
#: Log2 of the largest window. Programs use up to 8 MB; a hostile one would only cost memory.
WINDOW_LOG = 23
SQLITE = b"SQLite format 3\0"  # how a SQLite file begins
HEAD = 65_536  # the number of bytes examined to detect a file's format
_BUFFER_SIZE = 1 << 18
#: A compressed file may unpack to this many times its size, or to this size if that is more.
#: Deflate can reach a ratio of 1,032; text written by people stays below 30.
RATIO, HARMLESS = 200, 64 << 20
#: Endings of archives that are not read, and how a text in UTF-16 begins.
ARCHIVES = tuple(".tar .tgz .tar.gz .tar.zst .tar.bz2 .tar.xz .7z .rar .bz2 .xz".split())
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
#: Errors of ``zipfile`` for a damaged zip, whose numbers it does not check.
DAMAGED = (
    zipfile.BadZipFile,
    ValueError,
    EOFError,
    OverflowError,
    struct.error,
)
UNPACK = "unpack the zip with another program, and name the folder"
#: Brackets of objects, keys with short values, and other strings. The last string of a line may be
#: cut off.
_TOKEN = re.compile(
    r'(?P<line>^\{)|(?P<open>\{)|(?P<close>\})|"(?:(?P<key>[^"\\\n]{0,100}+)"\s*:'
    r'(?:\s*"(?P<value>[^"\\\n]{0,60}+)")?|[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?)',
    re.M,
)
_DEEPEST = 6  # keys deeper than this are arguments and results of tools, which may have any name
#: Keys whose values say what an object is.
_KINDS = frozenset(
    {"type", "role", "kind", "object", "sender", "author", "header", "url", "harness"}
)
#: The parts of the pattern that are brackets, and what they add to the depth.
_BRACKETS = {"line": 0, "open": 1, "close": -1}
#: After so many objects, the format is looked for again.
_LOOKS = (1, 2, 4, 8)
#: Objects, keys and strings that are examined at once, and at most.
_FIRST_STEP, _STEP = 100, 1_000
_MOST_TOKENS = 200_000


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
        if name.endswith((".zst", ".gz")) and not name.lower().endswith(ARCHIVES):
            limit = max(HARMLESS, RATIO * size)
            start: Callable[[], IO[bytes]] = partial(_open_zstd, path)
            if name.endswith(".gz"):
                import gzip

                start = cast(Callable[[], IO[bytes]], partial(gzip.GzipFile, path, "rb"))
            return cls(name, size, start, path, limit, modified=modified)
        return cls(name, size, lambda: open_regular(path), path, modified=modified)

    @property
    def place(self) -> PurePosixPath:
        """The name as a path, also one of Windows."""
        return PurePosixPath(self.name.replace("\\", "/"))

    @property
    def stem(self) -> str:
        """The file's name without folder and extensions."""
        return clean_text(self.place.name.split(".", 1)[0])

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
            raise Unreadable("its compression method is not supported", UNPACK) from None
        except (*DAMAGED, RuntimeError):
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
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        while not self._rest and (data := self._stream.read(_BUFFER_SIZE)):
            self._rest = self._decoder.decode(data).encode()
        part, self._rest = self._rest[: len(view)], self._rest[len(view) :]
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
        most = len(view) if self._length is None else max(0, self._length - self._file.done)
        try:
            data = self._source.read(min(len(view), most))
        except _damage_errors():
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


class NoLibrary(Exception):
    """No zstd library is installed; the message is a hint."""


def load_zstd() -> ModuleType:
    """Return Python's zstd module or its backport; raise NoLibrary if neither is installed."""
    for name in ("compression.zstd", "backports.zstd"):
        with suppress(ImportError):
            return import_module(name)
    raise NoLibrary(install_hint("zed"))


def _open_zstd(path: Path) -> IO[bytes]:
    zstd = load_zstd()
    options = {zstd.DecompressionParameter.window_log_max: WINDOW_LOG}
    return cast(IO[bytes], zstd.ZstdFile(path, "rb", options=options))


def _damage_errors() -> tuple[type[Exception], ...]:
    """Return the errors of damaged data, with that of the zstd library if it is installed."""
    from gzip import BadGzipFile

    with suppress(NoLibrary):
        return (*DAMAGED, zlib.error, BadGzipFile, load_zstd().ZstdError)
    return (*DAMAGED, zlib.error, BadGzipFile)


class Head:
    """The beginning of a file, with the keys of its objects and where they are.

    Only as much is scanned as :meth:`advance` is called for; text inside strings does not count.

    :ivar objects: how many objects that are not inside others were completed.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.start = text.lstrip("\ufeff \t\r\n")
        self.is_json = self.start[:1] in ("{", "[")
        self.is_array = self.start[:1] == "["
        self.objects = 0
        self._depths: dict[str, int] = {}
        self._kinds: set[str] = set()
        self._depth = self._tokens = 0
        self._text = text if self.is_json else ""
        self._position = 0

    def has(self, *names: str, depth: int = 2) -> bool:
        """Return whether an object has one of the keys, in at most ``depth`` nested objects."""
        return any(self._depths.get(name, _DEEPEST) <= depth for name in names)

    def has_all(self, *names: str, depth: int = 2) -> bool:
        """Return whether there are objects with all of the keys."""
        return all(self.has(name, depth=depth) for name in names)

    def has_kind(self, *kinds: str) -> bool:
        """Return whether an object says that it is of one of the kinds, as its type or role."""
        return not self._kinds.isdisjoint(kinds)

    @property
    def keys(self) -> Collection[str]:
        """All keys found so far."""
        return self._depths.keys()

    def advance(self) -> bool:
        """Scan up to the end of an object, or some more; return whether there was more."""
        depth, depths, size = self._depth, self._depths, len(self._text)
        step = _FIRST_STEP if not self._tokens else _STEP
        count, position = 0, self._position
        for token in _TOKEN.finditer(self._text, position):
            part = token.lastgroup  # of a string, which may be long, nothing is copied
            if token.end() == size and part not in _BRACKETS:
                position = token.start()  # it may be cut off
                break
            position = token.end()
            count += 1
            if part == "key" or part == "value":
                key = token["key"]
                depths[key] = min(depth, depths.get(key, _DEEPEST))
                if part == "value" and key in _KINDS:
                    self._kinds.add(token["value"])
            elif part in _BRACKETS:
                depth = 1 if part == "line" else depth + _BRACKETS[part]
                if depth == 0 and part == "close":
                    self.objects += 1
                    step = 0 if self.objects in _LOOKS else step
            if count >= step:
                break
        is_further = position > self._position
        self._depth, self._position = depth, position
        self._tokens += count
        return is_further

    def read_on(self, stream: BinaryIO) -> bool:
        """Add more of the file behind what was read last; return whether there was more."""
        rest = self._text[self._position :]
        if self._tokens >= _MOST_TOKENS or len(rest) > LARGEST:
            return False
        data = stream.read(max(HEAD, len(rest)))
        self._text, self._position = rest + data.decode("utf-8", "replace"), 0
        return bool(data)
