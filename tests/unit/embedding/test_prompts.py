"""Prompts before questions and stored texts, and the resulting embeddings."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tiny_models import TinyModel, load_quietly

from reservoir_cli.embedding.find_model import ModelSource, model_identity
from reservoir_cli.embedding.prompts import CONFIG, Prompts, prompts_of
from reservoir_cli.embedding.torch import ReferenceEmbedder
from reservoir_cli.errors import ModelUnavailableError

QUERY, PASSAGE = "query: ", "passage: "
TEXTS = ["The cat sleeps on the sofa", "  why, at night? ", "数据库", "The worker lost it. " * 40]


@pytest.fixture(params=["published as passage", "known by the name"])
def folder(request: pytest.FixtureRequest, tiny_model: TinyModel, tmp_path: Path) -> Path:
    """Return a model with the prompts of E5."""
    published = request.param == "published as passage"
    copy = tmp_path / ("other" if published else "multilingual-e5-small")
    shutil.copytree(tiny_model(), copy)
    if published:
        prompts = {"query": QUERY, "document": "", "passage": PASSAGE}
        (copy / CONFIG).write_text(json.dumps({"prompts": prompts}), encoding="utf-8")
    return copy


@pytest.mark.filterwarnings("ignore")
def test_both_engines_give_the_vectors_of_the_library_with_these_prompts(folder):
    from sentence_transformers import SentenceTransformer

    reference = ReferenceEmbedder(str(folder), ModelSource(folder, "folder"), "asked for")
    compiled = load_quietly(folder)
    assert compiled.engine.kind == "compiled"
    assert compiled.model_id == reference.model_id
    library = SentenceTransformer(
        str(folder), device="cpu", prompts={"query": QUERY, "passage": PASSAGE}
    )
    questions, documents, plain = (
        library.encode(TEXTS, normalize_embeddings=True, **prompt)
        for prompt in ({"prompt_name": "query"}, {"prompt_name": "passage"}, {"prompt": ""})
    )
    for embedder in (reference, compiled):
        queries = np.stack([embedder.encode_query(text) for text in TEXTS])
        assert np.sum(queries * questions, axis=1).min() > 0.9999
        stored = embedder.encode_documents(TEXTS)
        assert np.sum(stored * documents, axis=1).min() > 0.9999
        assert np.sum(stored[:3] * plain[:3], axis=1).max() < 0.999


PUBLISHED = {
    "nothing": ({}, Prompts()),
    "both": ({"query": "q", "document": "d"}, Prompts("q", "d")),
    "passage": ({"query": "q", "passage": "p"}, Prompts("q", "p", inferred=True)),
    "corpus": ({"document": None, "corpus": "c"}, Prompts("", "c", inferred=True)),
    "document first": ({"passage": "p", "document": "d"}, Prompts("", "d")),
    "no texts": ({"query": 7}, Prompts()),
}


@pytest.mark.parametrize(("published", "expected"), PUBLISHED.values(), ids=PUBLISHED)
def test_the_first_prompt_that_is_not_empty_is_used(tmp_path, published, expected):
    (tmp_path / CONFIG).write_text(json.dumps({"prompts": published}), encoding="utf-8")
    assert prompts_of("some/model", tmp_path) == expected


NAMES = {
    "intfloat/multilingual-e5-small": True,
    "intfloat/multilingual-e5-large": True,
    "intfloat/e5-base-v2": True,
    "/models/multilingual-e5-base": True,
    "intfloat/multilingual-e5-large-instruct": False,
    "sentence-transformers/all-MiniLM-L6-v2": False,
}


@pytest.mark.parametrize(("name", "is_e5"), NAMES.items())
def test_an_e5_model_without_published_prompts_is_known_by_its_name(tmp_path, name, is_e5):
    expected = Prompts(QUERY, PASSAGE, inferred=True) if is_e5 else Prompts()
    assert prompts_of(name, tmp_path) == expected
    (tmp_path / CONFIG).write_text('{"prompts": {"query": "own: "}}', encoding="utf-8")
    assert prompts_of(name, tmp_path) == Prompts("own: ", "")


def test_only_inferred_prompts_change_the_identity(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    plain = model_identity(tmp_path)
    assert model_identity(tmp_path, Prompts(QUERY, PASSAGE)) == plain
    assert model_identity(tmp_path, Prompts(QUERY, PASSAGE, inferred=True)) != plain


@pytest.mark.parametrize("text", ["{", "[]", '{"prompts": "query"}', "[" * 100_000])
def test_unreadable_prompts_are_a_one_line_error(tmp_path, text):
    (tmp_path / CONFIG).write_text(text, encoding="utf-8")
    with pytest.raises(ModelUnavailableError, match="is damaged"):
        prompts_of("some/model", tmp_path)
