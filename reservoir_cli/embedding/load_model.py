"""Load a model: open its compiled form, or compile it on its first use.

The default model is also compiled in the package ``reservoir-model-minilm``, for some runtimes.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from reservoir_cli.embedding import compiled_models
from reservoir_cli.embedding.embedder import Embedder, Engine
from reservoir_cli.embedding.find_model import (
    ModelSource,
    check_weights,
    is_default,
    locate,
    sha256,
)
from reservoir_cli.embedding.onnx import CompiledEmbedder
from reservoir_cli.embedding.plugin_embedder import PluginEmbedder
from reservoir_cli.embedding.prompts import prompts_of
from reservoir_cli.embedding.reject_unsafe_models import require_plain
from reservoir_cli.embedding.torch import ReferenceEmbedder
from reservoir_cli.errors import ModelUnavailableError
from reservoir_cli.tokens.huggingface import UnloadableError, require_loadable
from reservoir_cli.util.installation import FULL, install_command
from reservoir_cli.util.installed_plugins import find_scheme
from reservoir_cli.util.progress import Progress, no_progress
from reservoir_cli.util.read_files import read_bounded

# Set before the libraries are imported: the tokenizer's threads would compete with ours, and no
# telemetry may be collected, not even in a file in the home folder.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.update(ORT_DISABLE_TELEMETRY="1", HF_HUB_DISABLE_TELEMETRY="1")

PACKAGE, DISTRIBUTION = "reservoir_model_minilm", "reservoir-model-minilm"
_PACKAGED = Engine(
    "compiled", "compiled, and verified against the reference, before it was packaged", "package"
)
_SPARE = 8 << 20  #: Bytes set aside while a model is loaded: a search by words takes two million.
_VERIFIED = "compiled on this machine, and verified against the reference"
_COMPILING = "compiling the embedding model, which takes about 15 seconds, once"


def load_embedder(
    name: str,
    *,
    offline: bool,
    progress: Progress,
    notify: Callable[[str], None] = lambda _: None,
    ready_only: bool = False,
    serving: bool = False,
) -> Embedder:
    """Find or download a model, compile it if this is its first use, and load it.

    :param notify: called with a message if the slower engine is used.
    """
    with _spare_memory():
        embedder = _find_and_load(name, offline=offline, progress=progress, ready_only=ready_only)
    if serving and isinstance(embedder, CompiledEmbedder):
        embedder.pack()
    if embedder.engine.kind == "reference":
        reason = embedder.engine.reason
        notify(f"the embedding model runs on sentence-transformers, which is slower: {reason}")
    return embedder


@contextmanager
def _spare_memory() -> Iterator[None]:
    """Set memory aside while a model is loaded, for a command that goes on without one."""
    from mmap import mmap

    try:
        spare = mmap(-1, _SPARE)
    except OSError as error:
        compiled_models.require_resources(error)
        raise
    with spare:
        yield


def _find_and_load(name: str, *, offline: bool, progress: Progress, ready_only: bool) -> Embedder:
    if packaged := open_package(name):
        return packaged
    plugin, argument = find_scheme("embedders", name)
    if plugin is not None:
        return PluginEmbedder(name, plugin, argument)
    source = _locate(name, offline=offline or ready_only, progress=progress)
    try:
        folder = _cache_folder(name, source)
        if opened := _open_compiled(name, source, folder, progress, ready_only=ready_only):
            return opened
        if not ready_only:
            return _compile(name, source, folder, progress)
    except compiled_models.CacheUnusableError as problem:
        if not ready_only:
            return _load_reference(name, source, str(problem), progress)
    raise ModelUnavailableError(
        f"the embedding model {name} is not compiled", hint="reservoir embed compiles it, once"
    )


def compiled_is_damaged(name: str, *, remove: bool) -> bool:
    """Read a model's whole compiled form, and return whether it has changed on disk.

    :param remove: delete a damaged form, so that the next use compiles the model again.
    """
    if verify_package(name) or find_scheme("embedders", name)[0]:
        return False
    source = _locate(name, offline=True, progress=no_progress)
    try:
        folder = _cache_folder(name, source)
        is_damaged = compiled_models.is_damaged(folder)
        if is_damaged and remove:
            compiled_models.remove(folder)
        return is_damaged
    except compiled_models.CacheUnusableError:
        return False


def _cache_folder(name: str, source: ModelSource) -> Path:
    return compiled_models.folder_of(source.folder, prompts_of(name, source.folder))


def _locate(name: str, *, offline: bool, progress: Progress) -> ModelSource:
    """Find a model; a slim installation downloads none because it could not run it."""
    full = _is_full()
    try:
        return locate(name, offline=offline or not full, progress=progress)
    except ModelUnavailableError:
        if full:
            raise
        raise _full_package_error(name) from None


def _is_full() -> bool:
    return all(find_spec(library) for library in ("torch", "sentence_transformers"))


def _full_package_error(name: str) -> ModelUnavailableError:
    packages = [DISTRIBUTION, FULL] if is_default(name) else [FULL]
    return ModelUnavailableError(
        f"the embedding model {name} needs the full package",
        ", or ".join(map(install_command, packages)),
    )


def _open_compiled(
    name: str, source: ModelSource, folder: Path, progress: Progress, *, ready_only: bool = False
) -> Embedder | None:
    manifest = compiled_models.read(folder)
    if manifest is None or (manifest.refused and ready_only):
        return None
    if manifest.refused:
        return _load_reference(name, source, manifest.refused, progress, manifest.model_id)
    try:
        engine = Engine("compiled", _VERIFIED, source.origin)
        return CompiledEmbedder(name, folder, manifest, engine)
    except Exception as error:  # the file cannot be used, whatever the error
        compiled_models.require_resources(error)
        if not ready_only:
            compiled_models.remove(folder)
        return None


def _compile(name: str, source: ModelSource, target: Path, progress: Progress) -> Embedder:
    from reservoir_cli.embedding.compiler import compile_into

    compiled_models.require_writable(target)
    reference = _load_reference(name, source, "", progress, doing=_COMPILING, total=100)
    reason = "its compiled form disappeared"
    try:
        with compiled_models.building(target) as folder:
            refused = compile_into(
                folder, reference, lambda percent: progress(_COMPILING, percent, 100)
            )
        reason = refused or reason
        if not refused and (opened := _open_compiled(name, source, target, progress)):
            return opened
    except compiled_models.CacheUnusableError as problem:
        reason = str(problem)
    reference.engine = reference.engine._replace(reason=reason)
    return reference


def _require_tokenizer(name: str, source: ModelSource) -> None:
    """Reject a model whose tokenizer would crash the process that loads it."""
    file = source.folder / "tokenizer.json"
    if source.origin == "package" or not file.is_file():
        return
    try:
        require_loadable(read_bounded(file))
    except (UnloadableError, OSError) as error:
        raise ModelUnavailableError(
            f"the embedding model {name} cannot be loaded: its tokenizer.json is damaged",
            "download the model again, or choose another",
        ) from error


def _load_reference(
    name: str,
    source: ModelSource,
    reason: str,
    progress: Progress,
    model_id: str | None = None,
    doing: str = "loading the embedding model",
    total: int = 0,
) -> ReferenceEmbedder:
    if not _is_full():
        raise _full_package_error(name)
    check_weights(source)
    require_plain(name, source.folder)
    _require_tokenizer(name, source)
    progress(doing, 0, total)
    return ReferenceEmbedder(name, source, reason, model_id)


def open_package(name: str) -> CompiledEmbedder | None:
    """Open the packaged model if it has this name and supports these runtimes."""
    folder = _package_folder(name)
    if folder is None:
        return None
    try:
        stored = _read_package(folder)
        if not _is_supported(stored):
            return None
        contents = compiled_models.contents_of(folder, _package_files(folder, stored))
        if contents != compiled_models.hash_json(stored["files"]):
            raise ValueError("a file has changed")
        return CompiledEmbedder(
            name, folder, compiled_models.Manifest(**stored["model"]), _PACKAGED
        )
    except Exception as error:  # the package cannot be used, whatever the error
        compiled_models.require_resources(error)
        raise _damage_error() from error


def verify_package(name: str) -> bool:
    """Read the whole packaged model, and return whether there is one for these runtimes."""
    folder = _package_folder(name)
    if folder is None:
        return False
    try:
        stored = _read_package(folder)
        hashes = {path.name: sha256(path) for path in _package_files(folder, stored)}
    except (*compiled_models.DAMAGE, UnicodeError) as error:
        raise _damage_error() from error
    if hashes != stored["files"]:
        raise _damage_error()
    return _is_supported(stored)


def _package_folder(name: str) -> Path | None:
    spec = find_spec(PACKAGE) if is_default(name) else None
    locations = spec.submodule_search_locations if spec else None
    return Path(next(iter(locations))) if locations else None


def _read_package(folder: Path) -> dict[str, Any]:
    stored = json.loads((folder / compiled_models.MANIFEST).read_text(encoding="utf-8"))
    if not isinstance(stored, dict):
        raise ValueError("not a manifest")
    return stored


def _package_files(folder: Path, stored: Mapping[str, Any]) -> list[Path]:
    return [folder / name for name in stored["files"]]


def _is_supported(stored: Mapping[str, Any]) -> bool:
    supported, installed = stored["runtimes"], compiled_models.runtimes()
    matches = all(_is_within(installed[name], supported[name]) for name in installed)
    return matches and stored["rules"] == compiled_models.portable_rules()


def _is_within(version: str, bounds: str) -> bool:
    """Return whether a version is within bounds such as ``>=1.22,<2``."""
    low, high = bounds.split(",<")
    return _release(low) <= _release(version) < _release(high)


def _release(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:3]]


def _damage_error() -> ModelUnavailableError:
    return ModelUnavailableError(
        "the installed embedding model is damaged",
        install_command(f"--force-reinstall {DISTRIBUTION}"),
    )
