"""Reject models that could run code: only safetensors and the library's modules are allowed."""

import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from reservoir_cli.errors import ModelUnavailableError
from reservoir_cli.util.read_files import read_bounded

_LIBRARY = "sentence_transformers."
_HINT = "choose a model that has a model.safetensors and needs no code of its own"
_LARGEST = 8 << 20  #: The largest configuration file accepted, in bytes.


def require_plain(name: str, folder: Path) -> None:
    """Reject a model that could run code other than the library's."""
    try:
        problems = [*_foreign_modules(folder), *_pickled_weights(folder)]
    except (OSError, ValueError, RecursionError) as error:
        problems = [f"its configuration cannot be read: {type(error).__name__}"]
    if problems:
        raise ModelUnavailableError(
            f"the embedding model {name} cannot be loaded: {problems[0]}", _HINT
        )


def _foreign_modules(folder: Path) -> Iterator[str]:
    listed = _read_json(folder / "modules.json", [])
    if not isinstance(listed, list):
        yield "modules.json is not a list"
        return
    for entry in listed:
        module = entry if isinstance(entry, dict) else {}
        path = str(module.get("path", ""))
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            yield "a module is outside its folder"
            return
        kinds = [module.get("type"), *_submodule_classes(folder / path)]
        if not all(isinstance(kind, str) and kind.startswith(_LIBRARY) for kind in kinds):
            yield "it needs code that is not the library's"


def _submodule_classes(module: Path) -> Iterator[Any]:
    for name in ("router_config.json", "config.json"):
        config = _read_json(module / name, {})
        kinds = config.get("types") if isinstance(config, dict) else None
        if isinstance(kinds, dict):
            yield from kinds.values()


def _pickled_weights(folder: Path) -> Iterator[str]:
    folders = [folder, *(path for path in folder.iterdir() if path.is_dir())]
    safe = {module: [path.name for path in module.glob("*.safetensors")] for module in folders}
    if not any(safe.values()):
        yield "it has no weights in safetensors"
    for module in folders:
        adapter = (module / "adapter_model.bin").exists()
        if adapter and "adapter_model.safetensors" not in safe[module]:
            yield "its adapter is not in safetensors"
        if any(module.glob("pytorch_model*.bin")) and not safe[module]:
            yield "one of its modules has no weights in safetensors"
        for index in module.glob("*.safetensors.index.json"):
            index_data = _read_json(index, {})
            files = index_data.get("weight_map", {}) if isinstance(index_data, dict) else {}
            if not set(files.values()) <= set(safe[module]):
                yield "it lists weights that are not in safetensors"


def _read_json(path: Path, default: Any) -> Any:
    return json.loads(read_bounded(path, _LARGEST)) if path.exists() else default
