"""Contexts from a real store."""

import pytest
from builders import Compass
from long_replies import TOPICS, long_reply
from memories import Memory

from reservoir_cli.settings import config


@pytest.fixture
def memory(store, monkeypatch):
    monkeypatch.setattr(
        "reservoir_cli.embedding.load_model.load_embedder", lambda *_, **__: Compass()
    )
    return Memory(store)


@pytest.fixture
def write(home):
    """Return a function that writes the settings file."""

    def write_settings(toml):
        file = config.load().path
        assert file.is_relative_to(home)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(toml)

    return write_settings


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    """Return the name of an exact counter with its own vocabulary."""
    library = pytest.importorskip("tokenizers")
    trained = library.Tokenizer(library.models.BPE())
    trained.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = library.pre_tokenizers.ByteLevel.alphabet()
    trainer = library.trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=alphabet, show_progress=False
    )
    trained.train_from_iterator([long_reply(*TOPICS), "[Recalled Messages] user: tokens"], trainer)
    path = tmp_path_factory.mktemp("t") / "tokenizer.json"
    trained.save(str(path))
    return f"huggingface:{path}"
