"""Word pieces from a tokenizer's file, against the library's tokenizer."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from reservoir_cli.embedding.base import Engine
from reservoir_cli.embedding.compiled_models import MANIFEST, read_manifest
from reservoir_cli.embedding.onnx import CompiledEmbedder
from reservoir_cli.embedding.wordpiece import WordPieces

QUESTION = "Why did we drop Redis for the job queue?"
PRINTABLE = "".join(map(chr, range(32, 127))) + "\t\n"


@pytest.fixture(scope="module")
def data(compiled_models: Path) -> bytes:
    """The default model's tokenizer, as it is compiled."""
    (file,) = compiled_models.glob("*/tokenizer.json")
    return file.read_bytes()


@pytest.fixture(scope="module")
def library(data: bytes) -> Tokenizer:
    """The library's tokenizer."""
    return Tokenizer.from_buffer(data)


@pytest.fixture(scope="module")
def word_pieces(data: bytes) -> WordPieces:
    """The same, read by us."""
    parsed = WordPieces.parse(data)
    assert parsed is not None
    return parsed


def test_every_plain_piece_of_the_vocabulary_is_found(
    word_pieces: WordPieces, library: Tokenizer
) -> None:
    plain = {
        piece: number
        for piece, number in library.get_vocab().items()
        if piece.isascii() and piece.isalnum() and piece == piece.lower()
    }
    assert len(plain) > 20_000
    some = sorted(plain)[::20]
    assert {piece: word_pieces.ids(piece) for piece in some} == {
        piece: library.encode(piece).ids for piece in some
    }


@pytest.mark.parametrize(
    "text",
    [
        QUESTION,
        "",
        " ",
        "a\tb\n\nc",
        'It\'s 3.14 (a_b), "said" C:\\x; #1 @you <tag> {k}|~`^',
        "kubernetes pg_drop",
        "UPPER Case",
        "the " * 250,
    ],
)
def test_plain_texts_are_split_as_by_the_library(
    word_pieces: WordPieces, library: Tokenizer, text: str
) -> None:
    assert word_pieces.ids(text) == library.encode(text).ids


@given(
    text=st.text(PRINTABLE, max_size=40)
    | st.lists(st.text("etaoinshr", max_size=6), max_size=9).map(" ".join)
)
def test_a_text_is_split_as_by_the_library_or_not_at_all(
    word_pieces: WordPieces, library: Tokenizer, text: str
) -> None:
    assert word_pieces.ids(text) in (None, library.encode(text).ids)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[SEP]", id="a special token"),
        pytest.param("Zürich", id="an accent"),
        pytest.param("a\x00b", id="a control character"),
        pytest.param("\u200bhi", id="no width"),
        pytest.param("the " * 300, id="longer than the model reads"),
        pytest.param("x" * 101, id="a word without a piece"),
        pytest.param("qzxwvj" * 12, id="many pieces that there are not"),
    ],
)
def test_other_texts_are_left_to_the_library(word_pieces: WordPieces, text: str) -> None:
    assert word_pieces.ids(text) is None


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "case counts": lambda rules: rules["normalizer"].update(lowercase=False),
    "accents stay": lambda rules: rules["normalizer"].update(strip_accents=False),
    "no normalizer": lambda rules: rules.update(normalizer=None),
    "another split": lambda rules: rules.update(pre_tokenizer={"type": "Whitespace"}),
    "another model": lambda rules: rules["model"].update(type="WordLevel"),
    "another prefix": lambda rules: rules["model"].update(continuing_subword_prefix="@@"),
    "nothing around it": lambda rules: rules.update(post_processor=None),
    "nothing before it": lambda rules: rules["post_processor"]["single"].pop(0),
    "padded": lambda rules: rules.update(padding={"strategy": {"Fixed": 9}}),
    "not truncated": lambda rules: rules.update(truncation=None),
    "a word of its own": lambda rules: rules["added_tokens"][0].update(content="redis"),
    "no rules": lambda rules: rules.clear(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_tokenizer_of_other_rules_is_left_to_the_library(data: bytes, change: str) -> None:
    rules = json.loads(data)
    CHANGES[change](rules)
    assert WordPieces.parse(_compact(rules)) is None
    assert WordPieces.parse(_compact(json.loads(data))) is not None


@pytest.mark.parametrize("damage", [b"", b"{}", b"\x07" * 99, b'{"vocab":{}}}', b'"vocab":{}}}'])
def test_what_is_no_tokenizer_is_left_to_the_library(damage: bytes) -> None:
    assert WordPieces.parse(damage) is None


def _compact(rules: dict[str, Any]) -> bytes:
    return json.dumps(rules, ensure_ascii=False, separators=(",", ":")).encode()


def test_few_texts_load_no_tokenizer_and_have_the_same_vectors(compiled_models: Path) -> None:
    (place,) = compiled_models.iterdir()
    _, manifest = read_manifest(place / MANIFEST)

    def load() -> CompiledEmbedder:
        return CompiledEmbedder("MiniLM", place, manifest, Engine("compiled", "", "cache"))

    few, many = load(), load()
    many.pack()
    assert np.array_equal(few.encode_query(QUESTION), few.encode_documents([QUESTION])[0])
    assert few.passages(QUESTION) == [(0, len(QUESTION))]
    assert "_tokenizer" not in few.__dict__
    assert np.allclose(few.encode_query(QUESTION), many.encode_query(QUESTION), atol=1e-5)
    assert many.passages(QUESTION) == [(0, len(QUESTION))]
    assert "_tokenizer" in many.__dict__
