"""Counting with tiktoken, if it is installed with its vocabulary."""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from reservoir_cli.errors import ModelUnavailableError
from reservoir_cli.tokens import load_counter, tiktoken


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace tiktoken by a fake; return a list of the requested encodings."""
    requested: list[str] = []

    def get_encoding(name: str) -> SimpleNamespace:
        requested.append(name)
        if name == "p50k_edit":
            raise ValueError("Unknown encoding")
        return SimpleNamespace(encode_ordinary=lambda text: text.split())

    monkeypatch.setattr(tiktoken, "find_spec", lambda name: SimpleNamespace(name=name))
    stand_in = SimpleNamespace(get_encoding=get_encoding, __version__="1.2")
    monkeypatch.setitem(sys.modules, "tiktoken", stand_in)
    return requested


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    content = b"aGk= 0\n"
    digest = hashlib.sha256(content).hexdigest()
    for encoding in ("o200k_base", "p50k_edit"):
        monkeypatch.setitem(tiktoken.VOCABULARIES, encoding, (("some-file", digest),))
    (tmp_path / "some-file").write_bytes(content)
    return tmp_path


def test_tiktoken_counts_by_encode_ordinary(library, cache):
    counter = load_counter("tiktoken:o200k_base")
    assert (counter.name, counter.version) == ("tiktoken:o200k_base", "1.2")
    assert counter.exact
    assert [counter.count(text) for text in ("", "a b <|endoftext|>")] == [0, 3]
    assert library == ["o200k_base"]


def test_without_tiktoken_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr(tiktoken, "find_spec", lambda name: None)
    with pytest.raises(ModelUnavailableError) as caught:
        load_counter("tiktoken:o200k_base")
    assert caught.value.exit_code == 5
    assert "pip install tiktoken" in str(caught.value.hint)


@pytest.mark.parametrize("encoding", sorted(tiktoken.VOCABULARIES))
def test_tiktoken_is_not_called_without_its_vocabulary(encoding, library, monkeypatch, tmp_path):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(ModelUnavailableError, match="missing") as caught:
        load_counter(f"tiktoken:{encoding}")
    assert f"tiktoken.get_encoding('{encoding}')" in str(caught.value.hint)
    assert library == []


def test_tiktoken_is_not_called_with_a_damaged_vocabulary(library, cache):
    (cache / "some-file").write_bytes(b"half of i")
    with pytest.raises(ModelUnavailableError, match="damaged"):
        load_counter("tiktoken:o200k_base")
    assert library == []
    assert (cache / "some-file").exists()


def test_tiktoken_is_not_called_when_its_cache_is_off(library, cache, monkeypatch):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(cache))
    with pytest.raises(ModelUnavailableError, match="disabled"):
        load_counter("tiktoken:o200k_base")
    assert library == []


def test_the_older_variable_names_the_cache_when_the_newer_is_unset(library, cache, monkeypatch):
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(cache))
    assert load_counter("tiktoken:o200k_base").count("a b") == 2


def test_without_variables_the_cache_is_in_the_temporary_folder(library, cache, monkeypatch):
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    monkeypatch.delenv("DATA_GYM_CACHE_DIR", raising=False)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(cache))
    (cache / "data-gym-cache").mkdir()
    (cache / "some-file").rename(cache / "data-gym-cache" / "some-file")
    assert load_counter("tiktoken:o200k_base").count("a b") == 2


def test_an_encoding_that_an_old_tiktoken_lacks_is_unavailable(library, cache):
    with pytest.raises(ModelUnavailableError, match="does not know"):
        load_counter("tiktoken:p50k_edit")


def test_the_files_looked_for_are_those_tiktoken_reads():
    pytest.importorskip("tiktoken")
    public = pytest.importorskip("tiktoken_ext.openai_public")
    source = Path(public.__file__).read_text(encoding="utf-8")
    addresses = [word for word in source.split('"') if word.startswith("https://")]
    files = {file for files in tiktoken.VOCABULARIES.values() for file in files}
    assert {name for name, _ in files} == {
        hashlib.sha1(address.encode()).hexdigest() for address in addresses
    }
    assert all(digest in source for _, digest in files)
    assert set(tiktoken.VOCABULARIES) <= set(public.ENCODING_CONSTRUCTORS)
