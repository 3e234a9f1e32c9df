"""Loading a model: it is compiled at its first use and opened from then on.

Small real models with random weights are used instead of published ones.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tiny_models import Exports, TinyModel, load_quietly, modules

from reservoir_cli.embedding import compiler, load_model
from reservoir_cli.embedding.find_model import ModelSource
from reservoir_cli.embedding.load_model import load_embedder
from reservoir_cli.embedding.torch import ReferenceEmbedder

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of the libraries

TEXTS = [*compiler.SAMPLES, "Where does the cat sleep?", "It sleeps on the sofa. " * 40]
PROMPTS = {"query": "ask the cat: ", "document": "the queue said: "}


def load_reference(folder: Path) -> ReferenceEmbedder:
    return ReferenceEmbedder(str(folder), ModelSource(folder, "folder"), "asked for")


@dataclass(frozen=True)
class FirstUse:
    """A home with the compiled tiny model, and the progress that was reported."""

    home: Path
    steps: list[tuple[str, int, int]]


@pytest.fixture(scope="module")
def first_use(
    tiny_model: TinyModel, exports: Exports, tmp_path_factory: pytest.TempPathFactory
) -> FirstUse:
    """Compile the tiny model once."""
    first = FirstUse(tmp_path_factory.mktemp("compiled-once") / "home", [])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "_export", exports.export)
        patch.setenv("RESERVOIR_HOME", str(first.home))
        patch.setenv("RESERVOIR_MODEL_CACHE", str(first.home / "cache" / "models"))
        embedder = load_embedder(
            str(tiny_model()), offline=True, progress=lambda *step: first.steps.append(step)
        )
        assert embedder.engine.kind == "compiled"
    return first


@pytest.fixture
def compiled_model(first_use: FirstUse, models_folder: Path) -> Path:
    """Copy that home for the test; return the path of the compiled model."""
    shutil.copytree(first_use.home, models_folder.parent.parent)
    (path,) = models_folder.iterdir()
    return path


MODELS = [
    {},
    {"architecture": "Roberta", "pooling": "cls", "dense": True, "prompts": PROMPTS},
    {"architecture": "DistilBert", "pooling": "max", "layer_norm": True, "normalize": True},
    {"architecture": "Qwen2", "pooling": "lasttoken", "padding_side": "left"},
]


@pytest.mark.parametrize("options", MODELS, ids=lambda options: options.get("architecture", "Bert"))
def test_a_model_by_its_folder_is_compiled_and_gives_the_vectors_of_the_reference(
    tiny_model, options
):
    folder = tiny_model(**options)
    expected = load_reference(folder)
    documents = expected.encode_documents(TEXTS)
    questions = np.stack([expected.encode_query(text) for text in TEXTS])
    embedder = load_quietly(folder)
    assert (embedder.engine.kind, embedder.engine.origin) == ("compiled", "folder")
    assert (embedder.model_id, embedder.dimensions) == (expected.model_id, expected.dimensions)
    assert np.sum(embedder.encode_documents(TEXTS) * documents, axis=1).min() > 0.9999
    query_vectors = np.stack([embedder.encode_query(text) for text in TEXTS])
    assert np.sum(query_vectors * questions, axis=1).min() > 0.9999
    # The embeddings of these texts differ, or any vector would pass.
    assert np.min(documents @ documents.T) < 0.9
    if "prompts" in options:
        assert np.sum(documents * questions, axis=1).max() < 0.999
    long_text = "The cat sleeps on the sofa. " * 60
    assert embedder.passages(long_text) == expected.passages(long_text)
    assert (
        len(embedder.passages(long_text)) > 3
    )  # it reads 128 pieces, so a passage has fewer than 200


def test_torch_is_not_loaded_once_a_model_is_compiled(compiled_model, tiny_model):
    script = (
        "import sys\n"
        "from reservoir_cli.embedding.load_model import load_embedder\n"
        "e = load_embedder(sys.argv[1], offline=True, progress=print)\n"
        "e.encode_documents(['a', 'b c']), e.encode_query('d'), e.passages('e' * 9000)\n"
        "heavy = {'torch', 'transformers', 'sentence_transformers', 'huggingface_hub', 'onnx'}\n"
        "print(e.engine.kind, sorted(heavy & set(sys.modules)))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, str(tiny_model())],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == "compiled []\n"
    assert result.stderr == ""


def test_compilation_is_announced_at_the_first_use_only(compiled_model, tiny_model, first_use):
    assert {label for label, *_ in first_use.steps} == {
        "compiling the embedding model, which takes about 15 seconds, once"
    }
    shares = [share for _, share, total in first_use.steps if total == 100]
    assert (len(shares), shares) == (len(first_use.steps), sorted(set(shares)))
    assert shares[0] == 0
    load_embedder(str(tiny_model()), offline=True, progress=lambda *_: pytest.fail("again"))
    assert {path.name for path in compiled_model.iterdir()} == {
        *("manifest.json", "model.bin", "model.onnx", "tokenizer.json", "vocab.txt")
    }


def test_another_home_with_a_copy_of_the_model_compiles_nothing(
    compiled_model, tiny_model, tmp_path, monkeypatch
):
    copy = shutil.copytree(tiny_model(), tmp_path / "copy", copy_function=shutil.copy)
    monkeypatch.setenv("RESERVOIR_HOME", str(tmp_path / "another"))
    embedder = load_embedder(str(copy), offline=True, progress=lambda *_: pytest.fail("compiles"))
    assert embedder.engine.kind == "compiled"
    assert [path.name for path in compiled_model.parent.iterdir()] == [compiled_model.name]


#: Compile in forked processes, which load the libraries once: first one that is killed when its
#: model is complete but not compared yet, then two that write their models at the same time. They
#: copy the graph that another test's export has written.
_COMPILE_IN_THREE = """
import multiprocessing, os, shutil, sys
import sentence_transformers
from reservoir_cli.embedding import compiler
from reservoir_cli.embedding.load_model import load_embedder

model, models, exported = sys.argv[1:]
both = multiprocessing.get_context("fork").Barrier(2, timeout=120)

def fork(compile, *wait):
    child = os.fork()
    if not child:
        compiler._export = lambda _, target: copy(target, *wait)
        compile()
        os._exit(0)
    return child

def copy(target, *wait):
    for barrier in wait:
        barrier.wait()
    shutil.copytree(exported, target.parent, dirs_exist_ok=True)

def status(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def compile():
    embedder = load_embedder(model, offline=True, progress=lambda *_: None)
    vector = embedder.encode_query("hello")[:3].round(4).tolist()
    os.write(1, f"{embedder.engine.kind} {vector}\\n".encode())

def compile_and_be_killed():
    compiler._require_agreement = lambda *_: os._exit(9)
    compile()

assert status(fork(compile_and_be_killed)) == 9
print(*os.listdir(models), flush=True)
assert [status(child) for child in [fork(compile, both), fork(compile, both)]] == [0, 0]
"""


@pytest.mark.skipif(os.name != "posix", reason="forks")
def test_a_killed_compilation_is_not_used_and_two_at_once_leave_one_model(
    tiny_model, first_use, exports, models_folder
):
    exported = exports.folder_of(load_reference(tiny_model()).model)
    command = [sys.executable, "-W", "ignore", "-c", _COMPILE_IN_THREE, str(tiny_model())]
    result = subprocess.run(
        [*command, str(models_folder), str(exported)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=600,
    )
    leftover, *answers = result.stdout.splitlines()
    assert leftover.startswith(".building-")
    assert len(answers) == 2
    assert len(set(answers)) == 1
    assert answers[0].startswith("compiled ")
    (model,) = {path.name for path in models_folder.iterdir()} - {leftover}
    assert not model.startswith(".")


# Damage


def garble(path: Path) -> None:
    """Replace the bytes of a file without changing its size and time, as a failing disk does."""
    state = path.stat()
    path.write_bytes(b"\x07" * state.st_size)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "vocab.txt"])
def test_an_invalid_file_is_removed(compiled_model, tiny_model, name):
    garble(compiled_model / name)
    source = ModelSource(tiny_model(), "folder")
    assert load_model._open_compiled("tiny", source, compiled_model, lambda *_: None) is None
    assert list(compiled_model.parent.iterdir()) == []


def test_a_damaged_model_is_compiled_again(compiled_model, tiny_model):
    before = load_quietly(tiny_model()).encode_query("hello")
    garble(compiled_model / "model.onnx")
    recompiled = load_quietly(tiny_model())
    assert recompiled.engine.kind == "compiled"
    assert recompiled.encode_query("hello") == pytest.approx(before, abs=1e-5)
    assert [path.name for path in compiled_model.parent.iterdir()] == [compiled_model.name]


def test_removing_the_cache_during_work_does_no_harm(compiled_model, tiny_model):
    embedder = load_quietly(tiny_model())
    before = embedder.encode_documents(TEXTS)
    shutil.rmtree(compiled_model.parent)
    assert np.array_equal(embedder.encode_documents(TEXTS), before)


# When the reference engine runs


def test_with_an_unwritable_cache_the_reference_engine_runs(tiny_model, models_folder):
    models_folder.parent.mkdir(parents=True, exist_ok=True)
    models_folder.write_text("a file is in the way")
    embedder = load_quietly(tiny_model())
    assert (embedder.engine.kind, embedder.engine.reason) == (
        "reference",
        "the cache folder cannot be written",
    )
    assert np.linalg.norm(embedder.encode_query("hello")) == pytest.approx(1, abs=1e-5)


@pytest.mark.skipif(os.name != "posix", reason="the modes of POSIX files")
def test_with_a_cache_that_others_can_write_the_reference_engine_runs(compiled_model, tiny_model):
    compiled_model.chmod(0o777)
    engine = load_quietly(tiny_model()).engine
    assert (engine.kind, engine.reason) == (
        "reference",
        "other users can write to the folder of compiled models",
    )


def static(folder: Path) -> None:
    """Return a model without a transformer."""
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder.parent / "tokenizer.json"))
    part = modules().StaticEmbedding(tokenizer, embedding_dim=8)
    SentenceTransformer(modules=[part]).save(str(folder))


def test_a_model_without_a_transformer_runs_on_the_reference_engine(tiny_model, tmp_path):
    shutil.copy(tiny_model() / "tokenizer.json", tmp_path / "tokenizer.json")
    static(tmp_path / "static")
    embedder = load_quietly(tmp_path / "static")
    assert (embedder.engine.kind, embedder.engine.reason) == (
        "reference",
        "it has a module StaticEmbedding",
    )
    assert embedder.encode_documents(["a", "b"]).shape == (2, 8)
    assert embedder.passages("word " * 1_000)[-1][1] == 5_000


def test_the_reason_why_a_model_cannot_be_compiled_is_remembered(
    tiny_model, models_folder, monkeypatch
):
    folder = tiny_model(include_prompt=False)
    first = load_quietly(folder)
    assert first.engine.reason == "its pooling excludes the prompt"
    (entry,) = models_folder.iterdir()
    assert [path.name for path in entry.iterdir()] == ["manifest.json"]
    assert json.loads((entry / "manifest.json").read_text())["refused"] == first.engine.reason

    def compile_again(*_: object) -> None:
        raise AssertionError("it was tried again")

    monkeypatch.setattr(compiler, "compile_into", compile_again)
    second = load_quietly(folder)
    assert second.engine == first.engine
    assert second.model_id == first.model_id


def test_a_compiled_model_with_different_embeddings_is_not_used(
    tiny_model, models_folder, monkeypatch
):
    monkeypatch.setattr(compiler, "_AGREEMENT", 1.1)
    engine = load_quietly(tiny_model()).engine
    assert (engine.kind, engine.reason) == (
        "reference",
        "its compiled form computes different vectors",
    )
    (entry,) = models_folder.iterdir()
    assert [path.name for path in entry.iterdir()] == ["manifest.json"]
