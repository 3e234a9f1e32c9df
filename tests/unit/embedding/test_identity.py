import json
from pathlib import Path

import pytest

from reservoir_cli.embedding.identity import model_identity


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
