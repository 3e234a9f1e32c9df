"""Counting with a Hugging Face tokenizer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from reservoir_cli.errors import ModelUnavailableError
from reservoir_cli.tokens import huggingface, load_counter


@pytest.fixture
def tokenizer_file(tmp_path: Path) -> Path:
    """Return a word tokenizer that adds special tokens, truncates and pads, as is usual."""
    vocabulary = {"[CLS]": 0, "[SEP]": 1, "[UNK]": 2, "hello": 3, "world": 4, "[PAD]": 5}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 1)]
    )
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=4, pad_id=5, pad_token="[PAD]")
    file = tmp_path / "tokenizer.json"
    tokenizer.save(str(file))
    return file


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", 0, id="empty"),
        pytest.param("hello", 1, id="neither framed nor padded"),
        pytest.param("hello world " * 50, 100, id="not cut"),
        pytest.param("hello there", 2, id="unknown words count"),
        pytest.param("  \n", 1, id="blanks that the tokenizer drops"),
        pytest.param("hello \ud83d world", 3, id="lone surrogate"),
    ],
)
def test_huggingface_counts_the_text_only(tokenizer_file, text, expected):
    assert load_counter(f"huggingface:{tokenizer_file}").count(text) == expected


def test_huggingface_takes_a_folder_and_keeps_the_name_given(tokenizer_file):
    counter = load_counter(f"huggingface:{tokenizer_file.parent}")
    assert counter.exact
    assert counter.name == f"huggingface:{tokenizer_file.parent}"
    assert counter.count("hello world") == 2


def test_huggingface_version_follows_the_file(tokenizer_file):
    name = f"huggingface:{tokenizer_file}"
    before = load_counter(name).version
    assert load_counter(name).version == before
    tokenizer = json.loads(tokenizer_file.read_text(encoding="utf-8"))
    tokenizer["model"]["vocab"]["there"] = 6
    tokenizer_file.write_text(json.dumps(tokenizer), encoding="utf-8")
    assert load_counter(name).version != before


def test_huggingface_refuses_a_missing_file(tmp_path):
    with pytest.raises(ModelUnavailableError, match="no tokenizer at"):
        load_counter(f"huggingface:{tmp_path}")


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", b"not json"])
def test_huggingface_refuses_anything_but_a_tokenizer(tmp_path, content):
    file = tmp_path / "tokenizer.json"
    file.write_bytes(content)
    with pytest.raises(ModelUnavailableError, match="not a tokenizer"):
        load_counter(f"huggingface:{file}")


def test_huggingface_refuses_a_file_that_crashes_the_process(tmp_path):
    vocabulary = [["<unk>", 0.0], ["a" * 1_000_000, -1.0]]  # a trie too deep to be freed
    content = json.dumps({"model": {"type": "Unigram", "unk_id": 0, "vocab": vocabulary}})
    file = tmp_path / "tokenizer.json"
    file.write_text(content, encoding="utf-8")
    script = "import sys, tokenizers; tokenizers.Tokenizer.from_file(sys.argv[1])"
    ended = subprocess.run([sys.executable, "-c", script, str(file)], check=False)
    assert ended.returncode < 0
    with pytest.raises(ModelUnavailableError, match="not a tokenizer"):
        load_counter(f"huggingface:{file}")


def test_huggingface_refuses_without_the_library(tokenizer_file, monkeypatch):
    monkeypatch.setattr(huggingface, "find_spec", lambda name: None)
    with pytest.raises(ModelUnavailableError, match="library tokenizers, which is not installed"):
        load_counter(f"huggingface:{tokenizer_file}")
