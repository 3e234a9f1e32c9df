"""Compare the compiled engine with the reference engine, on the real model."""

import os
import random
import string
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import get_ident

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import WordPiece

from reservoir_cli.embedding import Embedder, onnx
from reservoir_cli.embedding.find_model import locate
from reservoir_cli.embedding.load_model import load_embedder
from reservoir_cli.embedding.onnx import BATCH_PIECES, CompiledEmbedder, batches
from reservoir_cli.embedding.split_passages import PIECES
from reservoir_cli.embedding.torch import ReferenceEmbedder
from reservoir_cli.settings.schema import DEFAULT_MODEL
from reservoir_cli.util.progress import no_progress

SENTENCE = "The worker lost its lease, and the message was delivered a second time. "
#: First and last letters of scripts.
SCRIPTS = [
    (0x0370, 0x03FF), (0x0400, 0x04FF), (0x0530, 0x058F), (0x0590, 0x05FF), (0x0600, 0x06FF),
    (0x0900, 0x097F), (0x0980, 0x09FF), (0x0B80, 0x0BFF), (0x0E00, 0x0E7F), (0x10A0, 0x10FF),
    (0x1200, 0x137F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3),
    (0x2190, 0x22FF), (0x1F300, 0x1FAFF), (0x0000, 0x00FF), (0x2000, 0x206F), (0x1D400, 0x1D7FF),
]  # fmt: skip
EDGES = [
    "",
    " ",
    "x",
    "\n",
    "\u200b",
    "\ufeff",
    "\0",
    "e\u0301",
    "👩‍👩‍👧",
    SENTENCE * 140,
    "x" * 10_000,
]


def varied_texts(count: int) -> list[str]:
    """Return fixed texts of all lengths and scripts, code, numbers and mixtures."""
    rng = random.Random(11)

    def word() -> str:
        low, high = rng.choice(SCRIPTS)
        return "".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 9)))

    def english() -> str:
        return rng.choice(SENTENCE.split())

    def code() -> str:
        return "".join(rng.choices(string.printable, k=rng.randint(1, 20)))

    texts = []
    for _ in range(count):
        kinds = rng.choice([(word,), (english,), (code,), (word, english, code)])
        length = int(2 ** rng.uniform(0, 8.5))
        texts.append(" ".join(rng.choice(kinds)() for _ in range(length)))
    return texts


@pytest.fixture(scope="module")
def reference() -> ReferenceEmbedder:
    """Load the same model on torch."""
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.delenv("HF_HUB_OFFLINE", raising=False)
        patch.setattr("socket.socket.connect", lambda *_: pytest.fail("used the network"))
        source = locate(DEFAULT_MODEL, offline=True, progress=lambda *_: None)
        embedder = ReferenceEmbedder(DEFAULT_MODEL, source, "asked for")
        assert "HF_HUB_OFFLINE" not in os.environ  # other users of the library may download
        return embedder


def cosines(
    embedder: Embedder, other: Embedder, messages: Sequence[str], questions: Sequence[str]
) -> list[float]:
    """Return the cosines of two engines' embeddings."""
    pairs = [(embedder.encode_documents(messages), other.encode_documents(messages))]
    pairs.append(
        tuple(
            np.stack([engine.encode_query(text) for text in questions])
            for engine in (embedder, other)
        )
    )
    return [float(cosine) for ours, theirs in pairs for cosine in (ours * theirs).sum(axis=1)]


def test_the_engine_is_the_compiled_one(embedder):
    assert (embedder.engine.kind, embedder.engine.origin) == ("compiled", "package")


def test_both_engines_give_the_same_vectors(embedder, reference):
    texts = varied_texts(40)
    values = cosines(embedder, reference, [*EDGES, *texts], [*EDGES, *texts[::4]])
    assert len(values) == 2 * len(EDGES) + 40 + 10
    assert min(values) >= 0.9999


def test_both_engines_have_the_same_identity(embedder, reference):
    assert embedder.model_id == reference.model_id
    assert embedder.dimensions == reference.dimensions == 384


def test_both_engines_cut_the_same_passages(embedder, reference):
    texts = [*EDGES, *(text * 20 for text in varied_texts(20)), "🧑‍🚀" * 900, "数据库很慢。" * 300]
    passages = [embedder.passages(text) for text in texts]
    assert passages == [reference.passages(text) for text in texts]
    assert max(len(spans) for spans in passages) > 10


def test_a_passage_fits_the_model(embedder, reference):
    text = "\n".join(text * 5 for text in varied_texts(40))
    assert reference.tokenizer is not None
    for start, end in embedder.passages(text):
        read = reference.tokenizer.encode(text[start:end])
        assert len(read.ids) <= PIECES * 1.2
        assert not read.overflowing


def test_vectors_come_in_the_order_of_the_texts(embedder):
    texts = [SENTENCE * count for count in (1, 9, 2, 8, 3, 7, 4, 6, 5, 1)] + varied_texts(20)
    batched = embedder.encode_documents(texts)
    separate = np.concatenate([embedder.encode_documents([text]) for text in texts])
    assert np.sum(batched * separate, axis=1).min() > 0.99999
    assert np.linalg.norm(batched, axis=1) == pytest.approx(1, abs=1e-5)
    assert batched.dtype == np.float32


def test_no_texts_give_no_vectors(embedder, reference):
    assert embedder.encode_documents([]).shape == (0, 384)
    assert reference.encode_documents([]).shape == (0, 384)


def test_several_threads_can_embed_at_once(embedder):
    texts = varied_texts(12)
    expected = [embedder.encode_query(text) for text in texts]
    with ThreadPoolExecutor(6) as pool:
        vectors = list(pool.map(embedder.encode_query, texts))
    assert np.array_equal(expected, vectors)


@pytest.mark.usefixtures("compiled_before")
def test_a_packed_model_gives_the_same_vectors_and_needs_its_file_no_more(
    embedder, tmp_path, monkeypatch
):
    texts = [*varied_texts(12), *EDGES]
    expected = np.stack([embedder.encode_query(text) for text in texts])
    name = DEFAULT_MODEL
    packed = load_embedder(name, offline=True, progress=lambda *_: None, serving=True)
    vectors = np.stack([packed.encode_query(text) for text in texts])
    assert np.abs(vectors - expected).max() < 1e-5
    assert isinstance(packed, CompiledEmbedder)
    threads = set[int]()
    embed = packed._run_model

    def run(texts: Sequence[NDArray[np.int64]]) -> NDArray[np.float32]:
        threads.add(get_ident())
        return embed(texts)

    monkeypatch.setattr(packed, "_run_model", run)
    packed.encode_documents([SENTENCE * 20] * 6)
    assert len(threads) == 1  # questions need the other cores
    monkeypatch.setattr(packed, "_model", tmp_path / "gone.onnx")
    packed.pack()
    assert np.array_equal(packed.encode_query(texts[0]), vectors[0])


@pytest.mark.parametrize(("processors", "threads"), [(1, 1), (2, 1), (3, 2), (8, 2)])
def test_a_packed_model_leaves_a_core_to_questions(embedder, monkeypatch, processors, threads):
    assert isinstance(embedder, CompiledEmbedder)
    monkeypatch.setattr(onnx, "_threads", lambda: processors)
    session = onnx._session(embedder._model, packed=True)
    assert session.get_session_options().intra_op_num_threads == threads


# Batches


@given(st.lists(st.integers(1, 1_500), max_size=200))
def test_every_text_is_in_one_batch_and_none_is_too_large(lengths):
    groups = list(batches(lengths))
    assert sorted(index for group in groups for index in group) == list(range(len(lengths)))
    for group in groups:
        assert (
            len(group) == 1 or max(lengths[index] for index in group) * len(group) <= BATCH_PIECES
        )
    longest_first = [lengths[index] for group in groups for index in group]
    assert all(previous >= following for previous, following in pairwise(longest_first))


def test_texts_of_equal_length_fill_their_batches():
    assert [len(group) for group in batches([30] * 100)] == [16] * 6 + [4]


@pytest.mark.model
def test_word_pieces_as_lines_make_the_same_tokenizer(tmp_path):
    original = Tokenizer.from_file(
        str(locate(DEFAULT_MODEL, offline=True, progress=no_progress).folder / "tokenizer.json")
    )
    loaded = onnx._load_tokenizer(tmp_path, onnx.save_tokenizer(original, tmp_path))
    assert (tmp_path / "vocab.txt").exists()
    assert loaded.to_str() == original.to_str()
    signs = "[MASK] a [PAD]b [CLS][SEP] [UNK] ##ing"
    for text in [*varied_texts(300), *EDGES, signs]:
        ours, theirs = loaded.encode(text), original.encode(text)
        assert (ours.ids, ours.offsets) == (theirs.ids, theirs.offsets)


@pytest.mark.parametrize("pieces", [{"[UNK]": 0, "a": 2}, {"[UNK]": 0, "a ": 1, "a": 2}])
def test_word_pieces_that_lines_cannot_hold_stay_in_the_tokenizer(pieces, tmp_path):
    tokenizer = Tokenizer(WordPiece(pieces, unk_token="[UNK]"))
    assert onnx.save_tokenizer(tokenizer, tmp_path) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.json"]
    assert onnx._load_tokenizer(tmp_path, 0).get_vocab() == pieces


def test_a_token_beyond_the_word_pieces_keeps_its_number(tmp_path):
    tokenizer = Tokenizer(WordPiece({"[UNK]": 0, "a": 1, "b": 2}, unk_token="[UNK]"))
    tokenizer.add_tokens(["[NAME]"])
    loaded = onnx._load_tokenizer(tmp_path, onnx.save_tokenizer(tokenizer, tmp_path))
    assert loaded.get_vocab() == tokenizer.get_vocab()
    assert loaded.encode("[NAME]").ids == tokenizer.encode("[NAME]").ids == [3]
