"""Open the default model from the package ``reservoir-model-minilm``, with runtimes it supports."""

import json
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from reservoir_cli.embedding import compiled_models
from reservoir_cli.embedding.embedder import Engine
from reservoir_cli.embedding.find_model import is_default, sha256
from reservoir_cli.embedding.onnx import CompiledEmbedder
from reservoir_cli.errors import ModelUnavailableError
from reservoir_cli.util.installation import install_command

PACKAGE, DISTRIBUTION = "reservoir_model_minilm", "reservoir-model-minilm"
_ENGINE = Engine(
    "compiled", "compiled, and verified against the reference, before it was packaged", "package"
)


def open_package(name: str) -> CompiledEmbedder | None:
    """Open the packaged model if it has this name and supports these runtimes."""
    folder = _folder(name)
    if folder is None:
        return None
    try:
        stored = _read(folder)
        if not _is_usable(stored):
            return None
        contents = compiled_models.contents_of(folder, _files(folder, stored))
        if contents != compiled_models.hash_json(stored["files"]):
            raise ValueError("a file has changed")
        return CompiledEmbedder(name, folder, compiled_models.Manifest(**stored["model"]), _ENGINE)
    except Exception as error:  # the package cannot be used, whatever the error
        compiled_models.require_resources(error)
        raise _damage_error() from error


def verify_package(name: str) -> bool:
    """Read the whole packaged model, and return whether there is one for these runtimes."""
    folder = _folder(name)
    if folder is None:
        return False
    try:
        stored = _read(folder)
        hashes = {path.name: sha256(path) for path in _files(folder, stored)}
    except (*compiled_models.DAMAGE, UnicodeError) as error:
        raise _damage_error() from error
    if hashes != stored["files"]:
        raise _damage_error()
    return _is_usable(stored)


def _folder(name: str) -> Path | None:
    spec = find_spec(PACKAGE) if is_default(name) else None
    locations = spec.submodule_search_locations if spec else None
    return Path(next(iter(locations))) if locations else None


def _read(folder: Path) -> dict[str, Any]:
    stored = json.loads((folder / compiled_models.MANIFEST).read_text(encoding="utf-8"))
    if not isinstance(stored, dict):
        raise ValueError("not a manifest")
    return stored


def _files(folder: Path, stored: Mapping[str, Any]) -> list[Path]:
    return [folder / name for name in stored["files"]]


def _is_usable(stored: Mapping[str, Any]) -> bool:
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
