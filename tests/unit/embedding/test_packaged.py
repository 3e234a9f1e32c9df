"""The default model as an installed package, and installations without torch."""

import json
import os
import runpy
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from each import each

from reservoir_cli.embedding import Embedder, compiled_models, load_model
from reservoir_cli.embedding.load_model import compiled_is_damaged, load_embedder
from reservoir_cli.errors import ModelUnavailableError
from reservoir_cli.settings.schema import DEFAULT_MODEL

TEXTS = ["Why did we drop Redis?", "The cat sleeps on the sofa.", "queue " * 150]
HOOK = Path(__file__).parents[3] / "packages" / "model" / "hatch_build.py"
RUNTIMES = ("onnxruntime>=1.22,<2", "tokenizers>=0.22.2,<1")


@pytest.fixture
def slim(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate an installation without torch."""
    monkeypatch.setitem(sys.modules, "torch", None)


@pytest.fixture
def package(compiled_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the installed package."""
    folder = tmp_path / "site" / load_model.PACKAGE
    folder.mkdir(parents=True)
    [compiled] = compiled_models.glob("[!.]*")
    for file in compiled.iterdir():
        (os.link if file.name == "model.bin" else shutil.copy)(file, folder / file.name)
    runpy.run_path(str(HOOK))["describe"](folder, "of the weights", RUNTIMES)
    monkeypatch.syspath_prepend(folder.parent)
    return folder


def load_packaged(name: str = DEFAULT_MODEL) -> Embedder:
    return load_embedder(name, offline=True, progress=lambda *_: pytest.fail("it works"))


@pytest.mark.usefixtures("slim", "package")
@pytest.mark.parametrize("name", [DEFAULT_MODEL, "all-MiniLM-L6-v2"])
def test_the_packaged_model_needs_no_torch(embedder, name):
    loaded = load_packaged(name)
    assert (loaded.engine.kind, loaded.engine.origin) == ("compiled", "package")
    assert (loaded.name, loaded.model_id) == (name, embedder.model_id)
    assert np.array_equal(loaded.encode_documents(TEXTS), embedder.encode_documents(TEXTS))
    assert not compiled_is_damaged(name, remove=False)


@pytest.mark.usefixtures("package")
def test_a_full_installation_uses_the_packaged_model_and_compiles_nothing(home):
    assert load_packaged().engine.origin == "package"
    assert not (home / "cache" / "models").exists()


def change(package: Path, **values: object) -> None:
    file = package / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


@pytest.mark.usefixtures("slim")
@pytest.mark.parametrize(
    "values",
    [
        {"runtimes": {"onnxruntime": ">=1.21,<1.22", "tokenizers": ">=0.22.2,<1"}},
        {"runtimes": {"onnxruntime": ">=1.22,<2", "tokenizers": ">=99,<100"}},
        {"rules": ["compiled in another way"]},
    ],
    ids=["runtime", "tokenizers", "rules"],
)
def test_a_package_for_other_versions_is_not_used(package, values):
    change(package, **values)
    with pytest.raises(ModelUnavailableError, match="needs the full package"):
        load_embedder(DEFAULT_MODEL, offline=True, progress=lambda *_: None)


def rewrite(package: Path, edit: Callable[[bytearray], object]) -> None:
    """Change the weights in a copy, since other tests share the file."""
    weights = package / "model.bin"
    data = bytearray(weights.read_bytes())
    edit(data)
    weights.unlink()
    weights.write_bytes(data)


def shorten(package: Path) -> None:
    rewrite(package, lambda data: data.__delitem__(slice(1_000, None)))


def garble(package: Path) -> None:
    rewrite(package, lambda data: data.__setitem__(slice(1_000_000, 1_000_007), b"garbled"))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "short weights": shorten,
    "other weights": garble,
    "no tokenizer": lambda package: (package / "tokenizer.json").unlink(),
    "no manifest": lambda package: (package / "manifest.json").unlink(),
    "a manifest that is a list": lambda package: (package / "manifest.json").write_text("[1]"),
    "a manifest without versions": lambda package: (package / "manifest.json").write_text("{}"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_package_is_an_error(package, damage):
    damage(package)
    with pytest.raises(ModelUnavailableError, match="is damaged") as raised:
        load_embedder(DEFAULT_MODEL, offline=True, progress=lambda *_: None)
    assert raised.value.hint == (
        "pip install --force-reinstall reservoir-model-minilm --find-links dist"
    )


def test_doctor_reads_every_byte_of_the_package(package):
    load_packaged()
    state = (package / "model.bin").stat()
    garble(package)
    os.utime(package / "model.bin", ns=(state.st_atime_ns, state.st_mtime_ns))
    with pytest.raises(ModelUnavailableError, match="is damaged"):
        compiled_is_damaged(DEFAULT_MODEL, remove=True)


@pytest.mark.usefixtures("slim")
@pytest.mark.parametrize("name", ["BAAI/bge-small-en", "/models/own", "nobody"])
def test_without_torch_another_model_is_an_error_that_names_the_full_package(name):
    with pytest.raises(ModelUnavailableError) as raised:
        load_embedder(name, offline=False, progress=lambda *_: pytest.fail("it downloads"))
    text = f"the embedding model {name} needs the full package"
    assert (raised.value.message, raised.value.hint) == (
        text,
        "pip install reservoir-cli --find-links dist",
    )


@pytest.mark.usefixtures("slim")
def test_without_torch_and_package_the_hint_names_the_package():
    with pytest.raises(ModelUnavailableError, match="full package") as raised:
        load_embedder(DEFAULT_MODEL, offline=True, progress=lambda *_: None)
    assert "pip install reservoir-model-minilm --find-links dist" in str(raised.value.hint)


@pytest.mark.usefixtures("slim")
def test_without_torch_a_model_in_the_cache_is_used(compiled_models, monkeypatch):
    monkeypatch.setenv("RESERVOIR_MODEL_CACHE", str(compiled_models))
    assert load_packaged().engine.kind == "compiled"


@each(
    ("version", "fits"),
    [("1.22", True), ("1.22.0", True), ("1.9.9", False), ("1.31.1", True), ("2.0.0rc1", False)],
)
def test_versions_are_compared_as_numbers(version, fits):
    assert load_model._is_within(version, ">=1.22,<2") == fits


def test_the_manifest_describes_the_package(package):
    stored = json.loads((package / "manifest.json").read_text())
    assert stored["name"] == DEFAULT_MODEL
    assert stored["license"] == "Apache-2.0"
    assert stored["runtimes"] == {"onnxruntime": ">=1.22,<2", "tokenizers": ">=0.22.2,<1"}
    files = {"model.bin", "model.onnx", "tokenizer.json", "vocab.txt"}
    assert set(stored["files"]) == files
    assert stored["rules"] == compiled_models.portable_rules()
    assert len(stored["model"]["model_id"]) == 32
