"""Reservoir's own rows: an export can be imported without changes."""

import io
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from builders import embed, ingestor
from fingerprint import fingerprint
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reservoir_cli.embedding import Embedder
from reservoir_cli.errors import UsageError
from reservoir_cli.messages import (
    Conversation,
    Filter,
    Message,
    Role,
    Scope,
    StoredMessage,
    ToolCall,
)
from reservoir_cli.redaction import Redactor
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.store import Store
from reservoir_cli.tokens import load_counter
from reservoir_cli.transfer.export import export_messages
from reservoir_cli.transfer.export import export_rows as rows
from reservoir_cli.transfer.formats.reservoir_rows import Native
from reservoir_cli.transfer.reading.decompressed_file import File
from reservoir_cli.transfer.reports import ExportReport, ImportReport
from reservoir_cli.transfer.stages import Destination, ImportOptions
from reservoir_cli.transfer.store_records import FileImport

pytestmark = pytest.mark.both_stores

EVERYTHING = Scope(None)
MASK = Redactor(lambda _: "off")
Adding = Callable[..., list[StoredMessage | None]]


def export_text(store: Store, form: str = "jsonl", where: Filter | None = None, **more: Any) -> str:
    report = ExportReport()
    pieces = export_messages.export(
        store, EVERYTHING, where or Filter(), form, report, mask=MASK, **more
    )
    return "".join(pieces)


def import_text(text: str, store: Store, embedder: Embedder | None = None) -> ImportReport:
    destination, now = Destination(None, None, "usual"), datetime.now(UTC)
    receiver = ingestor(store, embedder, threshold=0.5)
    file_import = FileImport(receiver, destination, ImportOptions(), "export", now)
    return file_import.load(Native().read(File.of_bytes("export", text.encode())))


@pytest.fixture
def other(new_location: Callable[[], str]) -> Iterator[Store]:
    with closing(open_store(new_location())) as opened:
        yield opened


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
NAMED = TEXT.filter(str.strip)
MESSAGES = st.builds(
    Message,
    role=st.sampled_from(Role).map(str),
    content=TEXT,
    created_at=st.integers(0, 4_102_444_800_000).map(
        lambda ms: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    ),
    trace_id=st.none() | NAMED,
    name=st.none() | NAMED,
    tool_calls=st.lists(st.builds(ToolCall, TEXT, NAMED, TEXT), max_size=2).map(tuple),
    tool_call_id=st.none() | NAMED,
    conversation_id=st.none() | st.sampled_from("abc"),
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(MESSAGES, min_size=1, max_size=8), st.sampled_from(["jsonl", "json", "document"]))
def test_any_store_survives_export_and_import(tmp_path, messages, form):
    for name in ("one", "two"):
        (tmp_path / name).unlink(missing_ok=True)
    counter = load_counter("approximate")
    with (
        closing(open_store(str(tmp_path / "one"))) as source,
        closing(open_store(str(tmp_path / "two"))) as target,
    ):
        source.add(Scope("p", "i"), messages, counter=counter, now=datetime.now(UTC))
        conversations = [
            Conversation("a", "Title", "chatgpt", None, "taskboard", "main"),
            Conversation("b"),
        ]
        source.add_conversations(Scope("p", "i"), conversations)
        report = import_text(export_text(source, form), target)
        assert (report.imported, report.skipped) == (len(messages), 0)
        used_ids = {message.conversation_id for message in messages}
        described_ids = {summary.conversation.id for summary in target.conversations(EVERYTHING)}
        assert described_ids == used_ids - {None}
        if used_ids >= {"a", "b"}:
            assert fingerprint(source.location) == fingerprint(target.location)


def test_vectors_are_imported_and_nothing_is_embedded_again(store, other, add, fake_embedder):
    add(*(Message("user", f"message {number}", source_id=f"{number}") for number in range(30)))
    embed(store, fake_embedder, threshold=0.5)
    import_text(export_text(store, embeddings=True), other, fake_embedder)
    assert other.count_unembedded(EVERYTHING) == 0
    assert other.active_model() == store.active_model()
    assert fingerprint(other.location) == fingerprint(store.location)
    assert other.problems() == []


def test_all_passages_of_a_message_are_imported(store, other, add, embedder):
    add(Message("user", "The queue lost jobs. " * 400, source_id="long"))
    embed(store, embedder, threshold=0.5)
    text = export_text(store, embeddings=True)
    assert len(json.loads(text)["passages"]) > 1
    assert len(json.loads(text)["embedding"]) == 384
    import_text(text, other, embedder)
    assert fingerprint(other.location) == fingerprint(store.location)


def row_with(add: Adding, store: Store, embedder: Embedder, **fields: Any) -> str:
    add(Message("user", "hello", source_id="1"))
    embed(store, embedder, threshold=0.5)
    row = json.loads(export_text(store, embeddings=True))
    return json.dumps({**row, **fields})


UNUSABLE = {
    "another model's": {"embedding_model": {"id": "another", "name": "fake"}},
    "of no model": {"embedding_model": None},
    "of another size": {"embedding": [1.0]},
    "of length zero": {"embedding": [0.0] * 8},
    "no numbers": {"embedding": ["x"] * 8},
    "not finite": {"embedding": [float("inf")] * 8},
    "no list": {"embedding": "x"},
    "no passages": {"passages": []},
    "a passage that is no object": {"passages": [3]},
    "a passage beyond the text": {
        "passages": [{"start": 0, "end": 9, "embedding": [1.0] + [0.0] * 7}]
    },
}


@pytest.mark.parametrize("changed", UNUSABLE.values(), ids=UNUSABLE)
def test_unusable_vectors_are_ignored_and_rebuilt(store, other, add, fake_embedder, changed):
    report = import_text(row_with(add, store, fake_embedder, **changed), other, fake_embedder)
    assert (report.imported, report.skipped) == (1, 0)
    assert other.count_unembedded(EVERYTHING) == 1
    embed(other, fake_embedder, threshold=0.5)
    assert other.problems() == []


def test_without_a_model_vectors_are_left_out(store, other, add, fake_embedder):
    import_text(row_with(add, store, fake_embedder), other)
    assert other.count_unembedded(EVERYTHING) == 1
    assert other.active_model() is None


def test_vectors_are_exported_only_on_request(store, add, fake_embedder):
    assert "embedding" in row_with(add, store, fake_embedder)
    assert "embedding" not in export_text(store)


def test_a_conversation_is_described_once_by_its_first_row(store, add):
    for instance in ("i", "j"):
        add(*(Message("user", "x", conversation_id="c") for _ in range(3)), instance=instance)
        store.add_conversations(
            Scope("p", instance), [Conversation("c", f"in {instance}", "s", "m")]
        )
    rows = [json.loads(line) for line in export_text(store).splitlines()]
    titles = [row.get("conversation", {}).get("title") for row in rows]
    assert titles == ["in i", None, None, "in j", None, None]


def test_a_conversation_of_a_masked_id_is_still_found(store, add):
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    add(Message("user", f"Is {secret} mine?", conversation_id=f"c {secret}"))
    conversation = Conversation(f"c {secret}", project="taskboard", source="s")
    store.add_conversations(Scope("p", "i"), [conversation])
    mask = Redactor(lambda _: "mask")
    text = "".join(
        export_messages.export(store, EVERYTHING, Filter(), "jsonl", ExportReport(), mask=mask)
    )
    assert secret not in text
    described = json.loads(text)["conversation"]
    assert described["project"] == "taskboard"
    assert described["title"].startswith("Is ")


def test_the_first_question_is_the_title_of_an_untitled_conversation(store, other, add):
    add(Message("user", "\n Why  Redis?\nIt is slow.", conversation_id="c"))
    add(Message("assistant", "It was there.", conversation_id="d"))
    conversations = [Conversation("c", project="taskboard", branch="main"), Conversation("d")]
    store.add_conversations(Scope("p", "i"), conversations)
    described = [json.loads(line)["conversation"] for line in export_text(store).splitlines()]
    assert described == [
        {"title": "Why Redis?", "source": None, "model": None}
        | {"project": "taskboard", "branch": "main"},
        dict.fromkeys(("title", "source", "model", "project", "branch")),
    ]
    import_text(export_text(store), other)
    assert fingerprint(other.location) == fingerprint(store.location)
    # The title goes with the question that it was made from.
    other.delete(other.find(EVERYTHING)[:1])
    assert "Why Redis?" not in export_text(other)


def test_many_messages_come_in_order_of_time_and_id(store, add, monkeypatch):
    monkeypatch.setattr("reservoir_cli.transfer.export.export_rows._BATCH", 100)
    base = datetime(2026, 5, 9, tzinfo=UTC)
    add(
        *(
            Message("user", "x", base + timedelta(seconds=number * 7919 % 100 // 2))
            for number in range(250)
        )
    )
    rows = [json.loads(line) for line in io.StringIO(export_text(store))]
    order = [(row["created_at"], row["id"]) for row in rows]
    assert len(order) == 250
    assert order == sorted(order)


def test_a_json_array_and_a_document_hold_the_same_rows(store, add):
    assert json.loads(export_text(store, "json")) == []
    assert json.loads(export_text(store, "document")) == {"schema_version": 1, "messages": []}
    add(Message("user", "a"), Message("assistant", "b"))
    lines = [json.loads(line) for line in export_text(store).splitlines()]
    assert json.loads(export_text(store, "json")) == lines
    assert json.loads(export_text(store, "document"))["messages"] == lines


MATCHES = [
    ("redis", ["We use REDIS", "redis"]),
    ("STRASSE", ["Hauptstraße"]),
    ("50%", ["50% of _all_"]),
    ("_all_", ["50% of _all_"]),
    ('{"path"', ["[call read]"]),
    ('say "hi"', ['he would say "hi"']),
    ("nothing", []),
]


@pytest.mark.parametrize(("text", "expected"), MATCHES, ids=lambda value: str(value))
def test_a_match_is_literal_and_ignores_case(store, add, text, expected):
    contents = ["We use REDIS", "redis", "Hauptstraße", "50% of _all_", "500", 'he would say "hi"']
    add(*(Message("user", content) for content in contents))
    add(Message("assistant", "[call read]", tool_calls=(ToolCall("c", "read", '{"path": 1}'),)))
    lines = export_text(store, where=Filter(text=text)).splitlines()
    assert [json.loads(line)["content"] for line in lines] == expected


def test_an_unknown_format_and_vectors_without_a_place_are_refused(store):
    with pytest.raises(UsageError, match="unknown format 'csv'"):
        export_text(store, "csv")
    with pytest.raises(UsageError, match="cannot hold embeddings"):
        export_text(store, "openai", embeddings=True)


@pytest.mark.parametrize("form", ["jsonl", "markdown"])
def test_a_file_has_all_messages_of_a_partition_that_is_renamed_meanwhile(
    store, add, tmp_path, monkeypatch, form
):
    monkeypatch.setattr(rows, "_BATCH", 1)
    add(*(Message("user", f"number {n}", conversation_id=f"c{n}") for n in range(3)))

    def progress(_: str, done: int, __: int) -> None:
        if done == 1:
            with closing(open_store(store.location)) as other:
                other.move_partition("p", "q")

    report = export_messages.export_to(
        tmp_path / "everything",
        store,
        EVERYTHING,
        Filter(),
        form,
        redactor=MASK,
        embeddings=False,
        settings=tmp_path / "reservoir.toml",
        progress=progress,
        explain_empty=str,
    )
    text = (tmp_path / "everything").read_text()
    assert (report.messages, [f"number {n}" in text for n in range(3)]) == (3, [True] * 3)
