"""Compiled models on disk: found by a cheap key, trusted or not, published by one rename.

A folder of ``models`` in the cache holds one model as one set of libraries compiled it, or the
verdict that they cannot. Its name is a hash of everything that it was made from, so that what
is there need not be compared with anything, and an upgrade simply looks elsewhere.

Sizes and times of the files are looked at whenever a model is opened, their bytes once a day: that
takes a fifth of the time of a question. The manifest's own time says when it was last done, and so
when the model was last in use.
"""

import errno
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reservoir_cli.embedding import passages
from reservoir_cli.embedding.identity import model_files
from reservoir_cli.embedding.resolve import sha256
from reservoir_cli.errors import ModelUnavailableError
from reservoir_cli.settings import paths
from reservoir_cli.util.private import make_private_dir, write_private
from reservoir_cli.util.times import unix_time

MANIFEST = "manifest.json"
#: How models are compiled; another rule makes other files, of the same vectors.
_RULE = "onnx, dynamo, eager attention, basic, external weights; 2"
#: A folder that was begun so many seconds ago will not be finished.
_ABANDONED = 3_600
_DAY = 24 * 3_600
#: What no program of this version can open is kept as long for another version that is in use.
_OUTDATED = 7 * _DAY


class CacheUnusableError(Exception):
    """A compiled model cannot be kept here, or what is kept cannot be trusted.

    :param reason: words for a person, without a path.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Print:
    """What tells that a file is still the one that was written."""

    size: int
    modified: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a start needs to know of a model besides its files.

    :param refused: why it cannot be compiled; empty if it is.
    :param tools: versions of what compiled it, or failed to.
    :param max_length: word pieces that it reads; 0 if that is without limit.
    :param passage_pieces: word pieces that a passage may have.
    :param pads_left: shorter texts of a batch are filled up before their beginning.
    """

    model_id: str
    refused: str
    tools: Mapping[str, str]
    dimensions: int = 0
    max_length: int = 0
    passage_pieces: int = 0
    query_prompt: str = ""
    document_prompt: str = ""
    pad_id: int = 0
    pads_left: bool = False


def place_of(source: Path) -> Path:
    """Where the compiled form of a model belongs; it need not be there.

    :param source: the folder of the published model.
    :raises CacheUnusableError: there is no runtime for compiled models.
    """
    states = [(path, path.stat()) for path in model_files(source)]
    files = [
        (path.relative_to(source).as_posix(), state.st_size, state.st_mtime_ns)
        for path, state in states
    ]
    made_from = json.dumps([*_rules(), str(source.resolve()), files])
    return paths.models_dir() / hashlib.sha256(made_from.encode()).hexdigest()[:32]


def _rules() -> list[str]:
    """How this version compiles, and by what; a model compiled otherwise is of no use to it."""
    try:
        from onnxruntime import __version__ as runtime
        from tokenizers import __version__ as tokenizers
    except ImportError as error:
        raise CacheUnusableError("ONNX Runtime cannot be loaded") from error
    return [_RULE, passages.RULE, runtime, tokenizers]


def read(place: Path) -> Manifest | None:
    """The manifest of what lies at a place; what is damaged or outdated is removed.

    :raises CacheUnusableError: others could have written it.
    """
    if not place.is_dir():
        return None
    _require_own(place.parent, place)
    path = place / MANIFEST
    try:
        age = unix_time() - path.stat().st_mtime
        prints, manifest = _unsealed(path)
        thorough = not 0 <= age < _DAY
        whole = all(_is_whole(place / name, each, thorough) for name, each in prints.items())
    except _DAMAGE as error:
        require_resources(error)
        whole = False
    if not whole or (manifest.refused and manifest.tools != tool_versions()):
        remove(place)
        return None
    if thorough:
        with suppress(OSError):
            os.utime(path)
        _sweep(place.parent)
    return manifest


#: What reading a manifest that was damaged can end in.
_DAMAGE = (OSError, ValueError, TypeError, KeyError, AttributeError)


def damaged(place: Path) -> bool:
    """Whether any byte of what lies at a place is not as it was written."""
    try:
        prints, _ = _unsealed(place / MANIFEST)
        return not all(_is_whole(place / name, each, True) for name, each in prints.items())
    except _DAMAGE as error:
        require_resources(error)
        return place.is_dir()


#: How libraries say that they got no memory or no file handle.
_SCARCE = re.compile("(?i)memory|bad_?alloc|too many open files|mmap|cannot allocate")


def require_resources(error: Exception) -> None:
    """Tell a lack of memory or file handles from damage.

    :raises ModelUnavailableError: it is such a lack; the model's files may be whole.
    """
    number = error.errno if isinstance(error, OSError) else None
    scarce = (errno.ENOMEM, errno.EMFILE, errno.ENFILE)
    if isinstance(error, MemoryError) or number in scarce or _SCARCE.search(str(error)):
        raise ModelUnavailableError(
            "the embedding model cannot be opened: memory or file handles ran out",
            hint="close other programs, or raise the limits of ulimit -v and ulimit -n",
        ) from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Finish a folder: its files are the user's alone, on the disk, and their prints are noted."""
    files = {}
    for path in sorted(folder.iterdir()):
        path.chmod(0o600)
        with path.open("rb+") as file:
            os.fsync(file.fileno())
        state = path.stat()
        files[path.name] = asdict(Print(state.st_size, state.st_mtime_ns, sha256(path)))
    stored = {**asdict(manifest), "files": files, "rules": _rules()}
    sealed = {**stored, "seal": _seal(stored)}
    write_private(folder / MANIFEST, json.dumps(sealed))


def _unsealed(path: Path) -> tuple[dict[str, Print], Manifest]:
    """The prints of a folder's files, and what its manifest says.

    :raises ValueError: it is not what was written; so do the other errors of ``_DAMAGE``.
    """
    stored = json.loads(path.read_text(encoding="utf-8"))
    if stored.pop("seal") != _seal(stored):
        raise ValueError("another seal")
    del stored["rules"]
    prints = {name: Print(**each) for name, each in stored.pop("files").items()}
    return prints, Manifest(**stored)


def _seal(stored: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(stored, sort_keys=True).encode()).hexdigest()


@contextmanager
def building(place: Path) -> Iterator[Path]:
    """A folder to compile into, which becomes the place if the block ends well.

    Where another process was faster, its work stands and ours is thrown away.

    :raises CacheUnusableError: the cache cannot be written, or is full.
    """
    import shutil
    import tempfile

    folder = None
    try:
        make_private_dir(place.parent)
        _require_own(place.parent)
        _sweep(place.parent)
        folder = Path(tempfile.mkdtemp(prefix=".building-", dir=place.parent))
        yield folder
        _publish(folder, place)
    except OSError as error:
        raise CacheUnusableError("the cache folder cannot be written") from error
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def remove(place: Path) -> None:
    """Take a folder away at once, then empty it; others that use it may go on.

    :raises CacheUnusableError: it cannot be moved.
    """
    import shutil
    import tempfile

    try:
        grave = Path(tempfile.mkdtemp(prefix=".building-", dir=place.parent))
        with suppress(FileNotFoundError):  # somebody else removed it
            place.rename(grave / place.name)
    except OSError as error:
        raise CacheUnusableError("a damaged compiled model cannot be removed") from error
    shutil.rmtree(grave, ignore_errors=True)


def tool_versions() -> dict[str, str]:
    """The versions of what compiles, found without loading it."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("torch", "transformers", "sentence-transformers", "onnx", "onnxscript"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    return found


def _is_whole(path: Path, known: Print, thorough: bool) -> bool:
    """Whether a file is as it was written; it is read if its time says otherwise, or if asked."""
    state = path.stat()
    if state.st_size != known.size:
        return False
    if thorough or state.st_mtime_ns != known.modified:
        if sha256(path) != known.sha256:
            return False
        with suppress(OSError):
            os.utime(path, ns=(known.modified, known.modified))
    return True


def _require_own(*folders: Path) -> None:
    """Hold folders to be the user's, and closed to others: what lies in them is run."""
    if os.name != "posix":
        return
    for folder in folders:
        state = folder.stat()
        if state.st_uid != os.geteuid() or state.st_mode & 0o022:
            raise CacheUnusableError("the folder of compiled models is open to others")


def _publish(folder: Path, place: Path) -> None:
    try:
        folder.rename(place)
    except OSError:
        if not place.is_dir():
            raise


def _sweep(models: Path) -> None:
    """Remove what killed processes left, and what nobody has used for long and we cannot use."""
    import shutil

    for folder in models.iterdir():
        with suppress(OSError, CacheUnusableError):
            if folder.name.startswith(".building-"):
                if unix_time() - folder.stat().st_mtime > _ABANDONED:
                    shutil.rmtree(folder, ignore_errors=True)
            elif _is_outdated(folder):
                remove(folder)


def _is_outdated(folder: Path) -> bool:
    """Whether a compiled model is of another version, and was not opened for a week."""
    manifest = folder / MANIFEST
    state = (manifest if manifest.exists() else folder).stat()
    if not folder.is_dir() or unix_time() - state.st_mtime < _OUTDATED:
        return False
    try:
        return bool(json.loads(manifest.read_text(encoding="utf-8"))["rules"] != _rules())
    except _DAMAGE:
        return True
