"""Write an export to a file atomically, or to a stream in batches."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from reservoir_cli.errors import ReservoirError
from reservoir_cli.settings import paths
from reservoir_cli.util.private_files import replace_atomically
from reservoir_cli.util.read_files import suggest_fix

#: Characters written at once.
_BATCH = 1 << 16


def write_batches(write: Callable[[str], object], pieces: Iterator[str]) -> None:
    """Write the pieces of a text in larger batches."""
    gathered: list[str] = []
    size = 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size > _BATCH:
            write("".join(gathered))
            gathered, size = [], 0
    write("".join(gathered))


def save(path: Path, pieces: Iterator[str], store: Iterable[Path]) -> None:
    """Write the pieces of a text to a file; an existing file is replaced at the end.

    :param store: the store's files, which must not be overwritten.
    :raises ReservoirError: the file cannot be written.
    """
    try:
        paths.refuse_store(path, store)
        if path.exists() and not path.is_file():
            _write(path, pieces)  # a pipe or a device; a folder raises an error
            return
        with replace_atomically(path) as unfinished:
            _write(unfinished, pieces)
    except OSError as error:
        raise ReservoirError(
            f"cannot write {path}: {error.strerror}", hint=suggest_fix(error, path)
        ) from None


def _write(path: Path, pieces: Iterator[str]) -> None:
    with path.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
        for piece in pieces:
            file.write(piece)
