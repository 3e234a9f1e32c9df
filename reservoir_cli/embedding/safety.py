"""What a model's folder may ask for: weights in safetensors, and modules of the library alone.

A pickle and a Python file can do whatever they like to whoever loads them; a model may come from
anywhere. The library has rules of its own, which differ from version to version.
"""

import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from reservoir_cli.errors import ModelUnavailableError
from reservoir_cli.util.files import read_bounded

_LIBRARY = "sentence_transformers."
_HINT = "choose a model that is published with model.safetensors, and needs no code of its own"
#: A description that is larger is none.
_LARGEST = 8 << 20


def require_plain(name: str, folder: Path) -> None:
    """Refuse a model that could run anything but the library's own code.

    :param name: what the model is called.
    :raises ModelUnavailableError: its weights are pickled, or it names classes elsewhere.
    """
    try:
        faults = [*_foreign_modules(folder), *_pickled(folder)]
    except (OSError, ValueError, RecursionError) as error:
        faults = [f"its description cannot be read: {type(error).__name__}"]
    if faults:
        raise ModelUnavailableError(
            f"the embedding model {name} cannot be loaded: {faults[0]}", _HINT
        )


def _foreign_modules(folder: Path) -> Iterator[str]:
    """Modules that the library would import from elsewhere, or read outside of the folder."""
    listed = _described(folder / "modules.json", [])
    if not isinstance(listed, list):
        yield "modules.json is no list"
        return
    for each in listed:
        about = each if isinstance(each, dict) else {}
        path = str(about.get("path", ""))
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            yield "a module lies outside of its folder"
            return
        kinds = [about.get("type"), *_routed(folder / path)]
        if not all(isinstance(kind, str) and kind.startswith(_LIBRARY) for kind in kinds):
            yield "it needs code that is not the library's"


def _routed(module: Path) -> Iterator[Any]:
    """The classes that a module of several modules names in turn."""
    for name in ("router_config.json", "config.json"):
        about = _described(module / name, {})
        kinds = about.get("types") if isinstance(about, dict) else None
        if isinstance(kinds, dict):
            yield from kinds.values()


def _pickled(folder: Path) -> Iterator[str]:
    """Weights that would be loaded by pickle, for lack of others."""
    places = [folder, *(each for each in folder.iterdir() if each.is_dir())]
    safe = {each: [path.name for path in each.glob("*.safetensors")] for each in places}
    if not any(safe.values()):
        yield "it has no weights in safetensors"
    for place in places:
        adapter = (place / "adapter_model.bin").exists()
        if adapter and "adapter_model.safetensors" not in safe[place]:
            yield "its adapter is not in safetensors"
        if any(place.glob("pytorch_model*.bin")) and not safe[place]:
            yield "a module of it has no weights in safetensors"
        for index in place.glob("*.safetensors.index.json"):
            about = _described(index, {})
            files = about.get("weight_map", {}) if isinstance(about, dict) else {}
            if not set(files.values()) <= set(safe[place]):
                yield "it lists weights that are not in safetensors"


def _described(path: Path, default: Any) -> Any:
    return json.loads(read_bounded(path, _LARGEST)) if path.exists() else default
