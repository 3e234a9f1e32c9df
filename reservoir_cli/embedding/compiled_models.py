"""The cache of compiled models on disk.

A folder's name is a hash of all that its contents depend on, so an upgrade uses another one, and
all environments of a user share them. They are published by renaming. Sizes and times of files are
checked at each opening, contents once a day: the manifest's time records when.
"""

import errno
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from reservoir_cli.embedding import split_passages
from reservoir_cli.embedding.find_model import model_files, sha256
from reservoir_cli.embedding.prompts import Prompts
from reservoir_cli.errors import ModelUnavailableError
from reservoir_cli.settings import paths
from reservoir_cli.util.clock import unix_time
from reservoir_cli.util.private_files import (
    make_private_dir,
    temporary_folder,
    user_id,
    write_private,
)

MANIFEST = "manifest.json"
#: How models are compiled; a change invalidates the cache, but not the stored vectors.
_RULE = "onnx, dynamo, eager attention, basic, external weights; 3"
_ABANDONED = 3_600  #: Seconds after which an unfinished folder is considered abandoned.
_DAY = 24 * 3_600
#: Seconds to keep unused models of other versions, in case another installation uses them.
_OUTDATED = 7 * _DAY
#: Seconds after which a cached hash of a model is deleted; it is written again if needed.
_FORGOTTEN = 90 * _DAY

_UNWRITABLE = "the cache folder cannot be written"


class CacheUnusableError(Exception):
    """The cache cannot be written or trusted; the message is for users, and has no path."""


class FileFingerprint(NamedTuple):
    """The size, time and hash of a file, recorded when it was written."""

    size: int
    modified: int
    sha256: str


class Manifest(NamedTuple):
    """The data needed to run a compiled model, besides its files.

    :param refused: why the model cannot be compiled; empty if it was.
    :param max_length: the most word pieces the model reads; 0 if unlimited.
    :param vocabulary: how many word pieces are in a file beside the tokenizer; 0 if there is none.
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
    vocabulary: int = 0


def folder_of(source: Path, prompts: Prompts = Prompts()) -> Path:  # noqa: B008 - it is frozen
    """Return the cache folder for a model's compiled form, which all copies of the model share."""
    inferred = [[prompts.query, prompts.document]] if prompts.inferred else []
    inputs = json.dumps([*_rules(), contents_of(source, model_files(source)), *inferred])
    return paths.models_dir() / hashlib.sha256(inputs.encode()).hexdigest()[:32]


def contents_of(folder: Path, files: Sequence[Path]) -> str:
    """Return the hash of some files of a folder: :func:`hash_json` of their hashes by name.

    The hash is cached in a file named after their sizes and times, because reading the weights
    takes a fifth of the time of a question.
    """
    names = {path.relative_to(folder).as_posix(): path for path in files}
    states = {name: path.stat() for name, path in names.items()}
    sizes_and_times = {name: (state.st_size, state.st_mtime_ns) for name, state in states.items()}
    key = json.dumps([str(folder.resolve()), sizes_and_times])
    note = paths.cache_dir() / "weights" / hashlib.sha256(key.encode()).hexdigest()[:32]
    with suppress(OSError, ValueError):
        digest = note.read_text(encoding="ascii")
        if _is_own(note) and _is_own(note.parent) and re.fullmatch("[0-9a-f]{64}", digest):
            return digest
    digest = hash_json({name: sha256(path) for name, path in names.items()})
    with suppress(OSError):
        write_private(note, digest)
        for other in note.parent.iterdir():
            if unix_time() - other.stat().st_mtime > _FORGOTTEN:
                other.unlink()
    return digest


def hash_json(values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of values in JSON, whatever their order."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _rules() -> list[str]:
    try:
        return [*portable_rules(), *runtimes().values()]
    except (ImportError, MemoryError, OSError) as error:
        require_resources(error)  # the reference needs even more of them
        raise CacheUnusableError("ONNX Runtime cannot be loaded") from error


def portable_rules() -> list[str]:
    """Return the part of :func:`_rules` that does not depend on the runtimes."""
    return [_RULE, split_passages.RULE]


def runtimes() -> dict[str, str]:
    """Return the versions of the libraries that run a compiled model."""
    import numpy  # noqa: F401 - if it cannot be loaded, only its own error says why
    from onnxruntime import __version__ as runtime
    from tokenizers import __version__ as tokenizers

    return {"onnxruntime": runtime, "tokenizers": tokenizers}


def read(folder: Path) -> Manifest | None:
    """Read a compiled model's manifest; a damaged or outdated model is removed."""
    if not folder.is_dir():
        return None
    _require_own(folder.parent, folder)
    path = folder / MANIFEST
    try:
        age = unix_time() - path.stat().st_mtime
        fingerprints, manifest = read_manifest(path)
        thorough = not 0 <= age < _DAY
        intact = _are_intact(folder, fingerprints, thorough=thorough)
    except DAMAGE as error:
        require_resources(error)
        intact = False
    if not intact or (manifest.refused and manifest.tools != tool_versions()):
        remove(folder)
        return None
    if thorough:
        with suppress(OSError):
            os.utime(path)
        _sweep(folder.parent)
    return manifest


#: Errors that reading a damaged manifest can raise.
DAMAGE = (OSError, ValueError, TypeError, KeyError, AttributeError)


def is_damaged(folder: Path) -> bool:
    """Return whether any file of a compiled model has changed since it was written."""
    try:
        fingerprints, _ = read_manifest(folder / MANIFEST)
        return not _are_intact(folder, fingerprints, thorough=True)
    except DAMAGE as error:
        require_resources(error)
        return folder.is_dir()


#: Messages with which libraries report a lack of memory or file handles.
_SCARCE = "(?i)memory|bad_?alloc|too many open files|mmap|cannot allocate|failed to map segment"


def require_resources(error: Exception) -> None:
    """Distinguish a lack of memory or file handles from damage."""
    cause: BaseException | None = error
    while cause and not _is_scarcity(cause):  # libraries replace a lack of memory by an ImportError
        cause = cause.__cause__ or cause.__context__
    if cause:
        raise ModelUnavailableError(
            "the embedding model cannot be opened: memory or file handles ran out",
            hint="close other programs, or raise the limits of ulimit -v and ulimit -n",
        ) from error


def _is_scarcity(error: BaseException) -> bool:
    code = error.errno if isinstance(error, OSError) else None
    is_scarce = code in (errno.ENOMEM, errno.EMFILE, errno.ENFILE)
    return is_scarce or isinstance(error, MemoryError) or bool(re.search(_SCARCE, str(error)))


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Make a folder's files private, sync them, and record their fingerprints in the manifest."""
    files = {}
    for path in sorted(folder.iterdir()):
        path.chmod(0o600)
        with path.open("rb+") as file:
            os.fsync(file.fileno())
        state = path.stat()
        fingerprint = FileFingerprint(state.st_size, state.st_mtime_ns, sha256(path))
        files[path.name] = fingerprint._asdict()
    stored = {**manifest._asdict(), "files": files, "rules": _rules()}
    sealed = {**stored, "seal": hash_json(stored)}
    write_private(folder / MANIFEST, json.dumps(sealed))


def read_manifest(path: Path) -> tuple[dict[str, FileFingerprint], Manifest]:
    """Return the fingerprints of a folder's files, and its manifest."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    if stored.pop("seal") != hash_json(stored):
        raise ValueError("the seal does not match")
    del stored["rules"]
    files = stored.pop("files")
    fingerprints = {name: FileFingerprint(**values) for name, values in files.items()}
    return fingerprints, Manifest(**stored)


def require_writable(target: Path) -> None:
    """Check that a model can be compiled into a folder, before the work begins."""
    if not paths.is_writable(target.parent):
        raise CacheUnusableError(_UNWRITABLE)


@contextmanager
def building(target: Path) -> Iterator[Path]:
    """Yield a folder to compile into, published at the end unless another process was first."""
    try:
        make_private_dir(target.parent)
        _require_own(target.parent)
        _sweep(target.parent)
        with temporary_folder(target.parent, ".building-") as folder:
            yield folder
            try:
                folder.rename(target)
            except OSError:
                if not target.is_dir():
                    raise
    except OSError as error:
        raise CacheUnusableError(_UNWRITABLE) from error


def remove(folder: Path) -> None:
    """Remove a folder by renaming and then deleting it; processes that use it can continue."""
    try:
        with (
            temporary_folder(folder.parent, ".building-") as trash,
            suppress(FileNotFoundError),  # another process removed it
        ):
            folder.rename(trash / folder.name)
    except OSError as error:
        raise CacheUnusableError("a damaged compiled model cannot be removed") from error


def tool_versions() -> dict[str, str]:
    """Return the versions of the libraries that compile, without importing them."""
    from importlib.metadata import PackageNotFoundError, version

    versions = {}
    for name in ("torch", "transformers", "sentence-transformers", "onnx", "onnxscript"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = ""
    return versions


def _are_intact(folder: Path, recorded: Mapping[str, FileFingerprint], *, thorough: bool) -> bool:
    """Return whether files are unchanged; by default, their contents count if their times do."""
    for name, fingerprint in recorded.items():
        path = folder / name
        state = path.stat()
        if state.st_size != fingerprint.size:
            return False
        if thorough or state.st_mtime_ns != fingerprint.modified:
            if sha256(path) != fingerprint.sha256:
                return False
            with suppress(OSError):
                os.utime(path, ns=(fingerprint.modified, fingerprint.modified))
    return True


def _require_own(*folders: Path) -> None:
    if not all(map(_is_own, folders)):
        raise CacheUnusableError("other users can write to the folder of compiled models")


def _is_own(path: Path) -> bool:
    """Return whether only the user can write to a file or folder; always true on Windows."""
    if os.name != "posix":
        return True
    state = path.stat()
    return state.st_uid == user_id() and not state.st_mode & 0o022


def _sweep(models: Path) -> None:
    import shutil

    for folder in models.iterdir():
        with suppress(OSError, CacheUnusableError):
            if folder.name.startswith(".building-"):
                if unix_time() - folder.stat().st_mtime > _ABANDONED:
                    shutil.rmtree(folder, ignore_errors=True)
            elif _is_outdated(folder):
                remove(folder)


def _is_outdated(folder: Path) -> bool:
    manifest = folder / MANIFEST
    state = (manifest if manifest.exists() else folder).stat()
    if not folder.is_dir() or unix_time() - state.st_mtime < _OUTDATED:
        return False
    try:
        return bool(json.loads(manifest.read_text(encoding="utf-8"))["rules"] != _rules())
    except DAMAGE:
        return True
