"""A question's vector from a process of its own."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from reservoir_cli.embedding import Embedder
from reservoir_cli.embedding.ahead import QuestionAhead
from reservoir_cli.errors import StoreError
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.settings.schema import DEFAULT_MODEL_NAME

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks")

QUESTION = "Why did we drop Redis?"


def children() -> list[int]:
    """The processes that this one has begun and not seen the end of."""
    return [int(each) for each in Path("/proc/thread-self/children").read_text().split()]


@pytest.fixture(autouse=True)
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every test leaves as many processes and open files as there were."""
    # Those of the tools that run the tests wait, and hold nothing that is needed.
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    before = children(), len(os.listdir("/proc/self/fd"))
    yield
    assert (children(), len(os.listdir("/proc/self/fd"))) == before


@pytest.fixture
def home_with_model(home: Path, compiled_models: Path) -> Path:
    (home / "cache").mkdir(parents=True, mode=0o700)
    (home / "cache" / "models").symlink_to(compiled_models)
    return home


def begun(name: str = DEFAULT_MODEL_NAME) -> QuestionAhead:
    ahead = QuestionAhead.begin(name, QUESTION)
    assert ahead is not None
    return ahead


def never() -> Embedder:
    raise AssertionError("nothing else was asked")


@pytest.mark.usefixtures("home_with_model")
def test_the_vector_is_the_one_that_the_model_gives(embedder: Embedder) -> None:
    found = begun().embedder(never)
    assert found is not None
    assert np.array_equal(found.encode_query(QUESTION), embedder.encode_query(QUESTION))
    assert found.encode_query(QUESTION).dtype == np.float32
    assert (found.name, found.model_id) == (embedder.name, embedder.model_id)
    assert (found.dimensions, found.engine) == (embedder.dimensions, embedder.engine)


@pytest.mark.usefixtures("home_with_model")
def test_what_else_is_asked_loads_the_model_once(embedder: Embedder) -> None:
    loaded = []

    def load() -> Embedder:
        loaded.append(embedder)
        return embedder

    found = begun().embedder(load)
    assert found is not None
    assert np.array_equal(found.encode_query("else"), embedder.encode_query("else"))
    assert np.array_equal(found.encode_documents(["a"]), embedder.encode_documents(["a"]))
    assert list(found.passages("a text")) == list(embedder.passages("a text"))
    assert loaded == [embedder]


def test_a_model_that_is_not_compiled_yet_gives_no_answer(home: Path) -> None:
    assert begun().embedder(never) is None
    assert not (home / "cache").exists()


def test_a_model_that_is_not_here_gives_no_answer() -> None:
    assert begun("nobody/has-this-model").embedder(never) is None


@pytest.mark.usefixtures("home_with_model")
def test_a_process_that_is_killed_gives_no_answer() -> None:
    ahead = begun()
    os.kill(ahead._process, signal.SIGKILL)
    assert ahead.embedder(never) is None


@pytest.mark.usefixtures("home_with_model")
def test_nobody_has_to_wait_for_the_answer() -> None:
    ahead = begun()
    assert ahead._process in children()
    ahead.close()
    ahead.close()


def test_there_is_none_beside_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        assert QuestionAhead.begin(DEFAULT_MODEL_NAME, QUESTION) is None
    finally:
        end.set()
        thread.join()


def test_a_server_that_cannot_be_reached_leaves_no_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = []
    begin = QuestionAhead.begin
    monkeypatch.setattr(
        QuestionAhead, "begin", lambda *all: started.append(begin(*all)) or started[-1]
    )
    with pytest.raises(StoreError):
        Reservoir.open("postgresql://nobody@127.0.0.1:9/none", question=QUESTION)
    assert started[0] is not None


def test_a_file_is_opened_without_a_second_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fork", never)
    Reservoir.open(question=QUESTION).close()
