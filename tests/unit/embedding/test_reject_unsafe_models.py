"""Models with code of their own are refused, and the code never runs."""

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from reservoir_cli.embedding.load_model import load_embedder
from reservoir_cli.embedding.reject_unsafe_models import require_plain
from reservoir_cli.errors import ModelUnavailableError

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of the libraries

TinyModel = Callable[..., Path]
#: A program that records that it was run.
CODE = "from pathlib import Path\nPath({mark!r}).touch()\n\n\nclass Evil:\n    pass\n"


class Bomb:
    """A class whose pickle runs code when it is loaded."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.mark,)


@pytest.fixture
def model(tiny_model: TinyModel, tmp_path: Path) -> Path:
    """Return a private copy of a model for the test to change."""
    folder = tmp_path / "model"
    shutil.copytree(tiny_model(dense=True), folder)
    return folder


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "it-ran"


def load(folder: Path) -> None:
    load_embedder(str(folder), offline=True, progress=lambda *_: None)


def refused(folder: Path) -> str:
    with pytest.raises(ModelUnavailableError, match="cannot be loaded") as caught:
        load(folder)
    assert caught.value.exit_code == 5
    assert "safetensors" in str(caught.value.hint)
    return caught.value.message


def modules_of(folder: Path) -> list[dict[str, str]]:
    modules: list[dict[str, str]] = json.loads((folder / "modules.json").read_text())
    return modules


def test_a_model_in_safetensors_is_accepted(model):
    require_plain("model", model)
    # Many published models also have copies of their weights for other libraries.
    (model / "pytorch_model.bin").write_bytes(b"never read")
    (model / "training_args.bin").write_bytes(b"never read")
    require_plain("model", model)


def test_pickled_weights_are_refused_and_not_opened(model, mark):
    for weights in model.rglob("*.safetensors"):
        weights.unlink()
        (weights.parent / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(mark)))
    assert "no weights in safetensors" in refused(model)
    assert not mark.exists()


def test_one_module_in_a_pickle_is_enough_to_refuse_a_model(model, mark):
    (dense,) = [path.parent for path in model.glob("*Dense/*.safetensors")]
    (dense / "model.safetensors").unlink()
    (dense / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(mark)))
    assert "one of its modules" in refused(model)
    assert not mark.exists()


def test_an_adapter_in_a_pickle_is_refused(model):
    (model / "adapter_model.bin").write_bytes(b"x")
    assert "adapter" in refused(model)


def test_an_index_that_names_a_pickle_is_refused(model):
    index = {"weight_map": {"a": "model.safetensors", "b": "../../other.bin"}}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "lists weights" in refused(model)


@pytest.mark.parametrize("kind", ["evil.Evil", "os.system", "builtins.exec", "", None, 5])
def test_a_module_of_another_library_is_refused_and_not_imported(model, mark, kind):
    (model / "evil.py").write_text(CODE.format(mark=str(mark)))
    module = {"idx": 9, "name": "9", "path": "", "type": kind}
    (model / "modules.json").write_text(json.dumps([*modules_of(model), module]))
    assert "code that is not the library's" in refused(model)
    assert not mark.exists()


def test_modules_named_by_a_module_are_checked_too(model):
    (model / "9_Router").mkdir()
    (model / "9_Router" / "router_config.json").write_text('{"types": {"a": "evil.Evil"}}')
    module = {"path": "9_Router", "type": "sentence_transformers.models.Router"}
    (model / "modules.json").write_text(json.dumps([*modules_of(model), module]))
    assert "code that is not the library's" in refused(model)


@pytest.mark.parametrize("path", ["../elsewhere", "/etc", "a/../../b"])
def test_a_module_outside_of_the_folder_is_refused(model, path):
    module = {"path": path, "type": "sentence_transformers.models.Pooling"}
    (model / "modules.json").write_text(json.dumps([*modules_of(model), module]))
    assert "outside its folder" in refused(model)


def test_a_class_that_a_configuration_names_is_not_imported(model, mark):
    (model / "evil.py").write_text(CODE.format(mark=str(mark)))
    config = json.loads((model / "config.json").read_text())
    config |= {"model_type": "unheard-of", "auto_map": {"AutoModel": "evil.Evil"}}
    (model / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelUnavailableError, match="cannot be loaded"):
        load(model)
    assert not mark.exists()


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '"text"', "5"])
def test_an_invalid_configuration_is_refused(model, text):
    (model / "modules.json").write_text(text)
    refused(model)
