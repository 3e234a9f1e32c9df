"""The typed public API, and the examples on its documentation page."""

import inspect
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import reservoir_cli
from reservoir_cli import (
    ContextOptions,
    Filter,
    Message,
    Reservoir,
    Scope,
    ToolCall,
    WindowMessage,
    api_types,
)
from reservoir_cli.retrieval.embed_messages import Indexer

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
BLOCKS = re.findall(r"(?ms)^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"))


@pytest.fixture
def reservoir(tmp_path: Path, fake_embedder: Any) -> Reservoir:
    with Reservoir.open(tmp_path / "r.db", embedder=fake_embedder) as opened:
        yield opened


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_an_example_of_the_page_runs(block, tmp_path, fake_embedder, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Indexer, "embedder", lambda _: fake_embedder)
    exec(compile(block, str(PAGE), "exec"), {"__name__": "__main__"})


def test_the_page_names_everything_public():
    page = PAGE.read_text(encoding="utf-8")
    documented_elsewhere = {"ToolCall"}
    missing = [name for name in reservoir_cli.__all__ if f"{name}" not in page]
    assert set(missing) <= documented_elsewhere


def _own_classes(annotation: Any) -> Iterator[str]:
    if isinstance(annotation, type) and annotation.__module__.startswith("reservoir_cli."):
        yield annotation.__name__
    for part in get_args(annotation):
        for inner in part if isinstance(part, list) else [part]:
            yield from _own_classes(inner)


def test_every_type_of_a_parameter_or_result_is_in_api_types():
    methods = inspect.getmembers(
        Reservoir, lambda member: inspect.isfunction(member) or inspect.ismethod(member)
    )
    names = {
        class_name
        for name, method in methods
        if not name.startswith("_")
        for annotation in get_type_hints(inspect.unwrap(method), localns=vars(api_types)).values()
        for class_name in _own_classes(annotation)
    }
    assert "Hit" in names
    assert names <= vars(api_types).keys()


def test_messages_of_a_window_are_typed_and_equal_to_their_rows(reservoir):
    reservoir.ingest([Message("user", "the queue lost jobs", datetime(2026, 5, 1, tzinfo=UTC))])
    window = reservoir.context("which queue?", budget=500, system="Be brief.")
    assert isinstance(window.messages, tuple)
    system, stored, question = window.messages
    assert (system.section, system.role, system.id) == ("system", "system", None)
    assert (stored.section, stored.content) == ("recalled", "the queue lost jobs")
    assert stored.created_at == datetime(2026, 5, 1, tzinfo=UTC)
    assert stored.priority is not None
    assert question.content == "which queue?"
    rows = window.to("json")["messages"]
    assert [message.to_row() for message in window.messages] == rows


def test_a_message_of_a_window_has_an_attribute_for_each_value_of_its_row(reservoir):
    calls = (ToolCall("c", "find", '{"jobs": 1}'),)
    result = Message("tool", "none", tool_call_id="c")
    reservoir.ingest([Message("assistant", "I look them up.", tool_calls=calls), result])
    stored, _, question = reservoir.context("which queue?", budget=500).messages
    assert (stored.tool_calls, question.tool_calls) == (calls, ())
    assert stored.spans is stored.excerpt_priority is None
    row = stored.to_row() | {"spans": [[0, 1], [7, 9]], "excerpt_priority": 0.5}
    excerpt = WindowMessage.from_row(row)
    assert (excerpt.spans, excerpt.excerpt_priority) == (((0, 1), (7, 9)), 0.5)
    assert all(hasattr(excerpt, name) for name in row)


def test_options_have_the_names_of_settings(reservoir):
    reservoir.ingest([Message("user", f"note {number}") for number in range(9)])
    options = ContextOptions(recent_context_size=2, semantic_context_size=0, fill=False)
    assert 0 < len(reservoir.context("which?", options=options).kept) < 9
    with pytest.raises(TypeError, match="recent_context_size"):
        reservoir.context("which?", recent_context_size=2)  # type: ignore[call-arg]


def test_every_option_of_a_context_is_a_setting():
    from reservoir_cli.settings.schema import SETTINGS

    assert set(ContextOptions.__slots__) <= set(SETTINGS)


def test_use_takes_settings_by_name(reservoir, tmp_path):
    with Reservoir.open(tmp_path / "other.db", settings={"partition": "other"}) as other:
        reservoir.use(settings=other.config)
    assert reservoir.scope() == Scope("other", "other")


def test_a_context_can_be_built_for_a_given_time(reservoir):
    now = datetime(2020, 1, 2, tzinfo=UTC)
    window = reservoir.context("what?", budget=500, now=now)
    assert window.messages[-1].created_at == now


def test_every_reading_verb_redacts(reservoir, fake_embedder, monkeypatch):
    token = "ghp_" + "a1B2" * 9
    monkeypatch.setenv("RESERVOIR_REDACT", "mask")
    with Reservoir.open(reservoir.location, embedder=fake_embedder) as hiding:
        (stored,) = hiding.ingest(
            [Message("user", f"my token is {token}?", conversation_id="c", source_id="1")]
        )
        hits = hiding.search("token")
        texts = [
            hiding.view(Scope(None))[0].content,
            hiding.messages([stored.id])[0].content,
            hiding.messages([stored.key])[0].content,
            hits[0].message.content,
            hiding.context("token?", budget=500).messages[0].content,
            str(hiding.conversations()[0]),
        ]
        pieces: list[str] = []
        hiding.export(pieces.append, Scope(None), where=Filter(role="user"))
    assert "[redacted:github-token]" in texts[0]
    assert not [text for text in (*texts, *pieces) if token in text]


def test_a_message_and_a_file_are_imported_alike(reservoir, tmp_path):
    window = reservoir.context("what was that?", budget=500).to("text")
    log = tmp_path / "log.jsonl"
    token = "ghp_" + "a1B2" * 9
    report = reservoir.export(log.with_suffix(".none"), Scope("nowhere"))
    assert report.messages == 0
    message = Message("user", f"{window} {token}", source="s", source_id="1")
    with Reservoir.open(tmp_path / "one.db", settings={"redact": "remove"}) as first:
        (stored,) = first.ingest([message], embed=False)
        row = {**stored.to_row(), "content": message.content, "id": 1}
        log.write_text(__import__("json").dumps(row) + "\n", encoding="utf-8")
    with Reservoir.open(tmp_path / "two.db", settings={"redact": "remove"}) as second:
        assert second.import_files(log).imported == 1
        (imported,) = second.view(Scope(None))
    assert imported.content == stored.content
    assert token not in stored.content
