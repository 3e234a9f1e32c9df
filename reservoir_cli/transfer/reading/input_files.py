"""Open the files to import: on disk, in a folder, in a zip, or from stdin.

Nothing is unpacked to disk, and a zip that unpacks to far more than its size is refused.
"""

import io
import os
import stat
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple, cast

from reservoir_cli.errors import ReservoirError
from reservoir_cli.transfer.reading.decompressed_file import (
    ARCHIVES,
    DAMAGED,
    HARMLESS,
    RATIO,
    UNPACK,
    File,
    Unreadable,
)
from reservoir_cli.util.read_files import decode, read_bounded, suggest_fix

LARGEST_PIPED = 256 << 20  # the size limit of a pipe, which is kept in memory, unlike a file
#: All members of a zip may unpack to this size together, which takes seconds, or to ``RATIO``.
_HARMLESS_ZIP = 1 << 30
#: The table of a zip: some 100 bytes for each file, and ten times as much in memory.
_LARGEST_TABLE = 16 << 20


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
        if file.name.lower().endswith(ARCHIVES):
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
    stream = _BoundedReader(cast(io.RawIOBase, file.start()))
    try:
        archive = zipfile.ZipFile(open_files.enter_context(stream))
    except NotImplementedError:
        raise ReservoirError(f"{file.name} is a zip of a newer version", hint=UNPACK) from None
    except DAMAGED:
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
    if sum(member.file_size for member in members) > max(_HARMLESS_ZIP, RATIO * file.size):
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
            limit=max(HARMLESS, RATIO * member.compress_size),
            modified=_member_time(member),
        )


def _member_time(member: zipfile.ZipInfo) -> datetime | None:
    with suppress(ValueError, OverflowError, OSError):
        # A member without a time has the year 1980.
        if member.date_time[0] > 1980:
            return datetime(*member.date_time).astimezone(UTC)
    return None


class _BoundedReader(io.BufferedReader):
    """A zip file that refuses to read more at once than a large table needs."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size and size > _LARGEST_TABLE:
            raise zipfile.BadZipFile
        return super().read(size)


def read_text(path: Path) -> tuple[str, int]:
    """Return a text and how many characters replace invalid bytes; ReservoirError if not text."""
    try:
        data = read_bounded(path)
    except OSError as error:
        raise cannot_read(path, error) from None
    return decode(data, str(path))
