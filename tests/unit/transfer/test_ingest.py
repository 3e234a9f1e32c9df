import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any
from unicodedata import normalize

import pytest
from behind import behind
from builders import EVERYWHERE, NOW, ingestor

from reservoir_cli.messages import Conversation, Message, Scope, StoredMessage, ToolCall
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.store import Store
from reservoir_cli.transfer import store_records
from reservoir_cli.transfer.detect_format import choose
from reservoir_cli.transfer.import_files import import_files
from reservoir_cli.transfer.reading.decompressed_file import File
from reservoir_cli.transfer.reading.importer import Record, Skipped
from reservoir_cli.transfer.reports import ImportReport
from reservoir_cli.transfer.stages import Destination, ImportOptions
from reservoir_cli.transfer.store_records import FileImport

pytestmark = pytest.mark.both_stores

HOUR = timedelta(hours=1)
HERE = Scope("p", "i")

Adding = Callable[..., list[StoredMessage | None]]


def load(
    store: Store,
    records: Iterable[Record | Skipped],
    *,
    partition: str | None = "p",
    instance: str | None = "i",
    home: str | None = None,
    dry_run: bool = False,
) -> ImportReport:
    destination = Destination(partition, instance, "usual", home)
    options = ImportOptions(dry_run=dry_run)
    return FileImport(ingestor(store), destination, options, "file.jsonl", NOW).load(records)


def load_text(store: Store, *values: object, **where: Any) -> ImportReport:
    text = "".join(json.dumps(value) + "\n" for value in values)
    file = File.of_bytes("file.jsonl", text.encode())
    return load(store, choose(file).read(file), **where)


def record(content: str, created_at: datetime | None = None, **more: Any) -> Record:
    return Record(Message("user", content, created_at, source="s", source_id=content), **more)


def contents(store: Store, scope: Scope = HERE) -> list[str]:
    return [message.content for message in store.last(scope, 0)]


# Loading


def test_new_messages_are_imported_and_known_ones_skipped(store):
    records = [record("a"), Skipped("line 2", "torn"), record("b")]
    first = load(store, records)
    assert (first.imported, first.already, first.skipped) == (2, 0, 1)
    assert first.reasons == ["file.jsonl, line 2: torn"]
    second = load(store, [*records, record("c")])
    assert (second.imported, second.already, second.skipped) == (1, 2, 1)
    assert contents(store) == ["a", "b", "c"]


def test_nothing_is_imported_from_nothing(store):
    assert load(store, []) == ImportReport()
    assert store.channels() == []


def test_the_summary_line():
    assert ImportReport(1_812, 40, 3).line() == "imported 1,812, already there 40, skipped 3"


def test_at_most_a_thousand_reasons_are_kept(store):
    totals = load(store, (Skipped(f"line {number}", "torn") for number in range(2_500)))
    assert (totals.skipped, len(totals.reasons)) == (2_500, 1_000)
    combined = ImportReport(reasons=["first"])
    combined.add(totals)
    assert (combined.skipped, len(combined.reasons), combined.reasons[0]) == (2_500, 1_000, "first")
    lines = combined.reason_lines()
    assert (len(lines), lines[0], lines[-1]) == (1_001, "  first", "  and 1,500 more")


# A dry run


def test_a_dry_run_counts_the_import_without_changing_the_store(store):
    load(store, [record("a"), record("b")])
    before = store.last(EVERYWHERE, 0)
    conversation = Conversation("c", "Redis", "chatgpt", "gpt-4")
    records = [
        record("a"),
        Skipped("line 2", "torn"),
        record("c", conversation=conversation),
        record("d"),
    ]
    planned = load(store, records, dry_run=True)
    assert (planned.imported, planned.already, planned.skipped) == (2, 1, 1)
    assert store.last(EVERYWHERE, 0) == before
    assert store.holdings()["conversations"] == 0
    actual = load(store, records)
    assert (actual.imported, actual.already, actual.skipped) == (2, 1, 1)


@pytest.fixture
def small_batches(monkeypatch):
    """Store every hundred records, not every thousand."""
    monkeypatch.setattr(store_records, "_BATCH", 100)


@pytest.mark.usefixtures("small_batches")
def test_a_dry_run_counts_duplicates_once_at_any_distance(store):
    records = [record(str(number % 170)) for number in range(250)]
    planned = load(store, records, dry_run=True)
    assert (planned.imported, planned.already) == (170, 80)
    assert load(store, records) == planned


def test_a_dry_run_counts_a_message_of_several_files_once(store, tmp_path):
    for name, texts in (("a", ["one", "two"]), ("b", ["one", "two", "three"])):
        rows = [
            {"role": "user", "content": text, "source_id": text, "source": "s"} for text in texts
        ]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    planned = import_files(ingestor(store), [tmp_path], partition="p", dry_run=True)
    assert (planned.imported, planned.already, planned.repeated) == (3, 2, 2)
    assert import_files(ingestor(store), [tmp_path], partition="p") == planned
    again = import_files(ingestor(store), [tmp_path], partition="p", dry_run=True)
    assert (again.imported, again.already, again.repeated) == (0, 5, 0)


def test_the_summary_of_a_dry_run_says_would():
    assert ImportReport(3).line(dry_run=True) == "would import 3, already there 0, skipped 0"


HOMES = [
    # -p, -i, the record's own scope, the result; the format's instance is "chatgpt"
    (None, None, (None, None), ("usual", "chatgpt")),
    ("p", None, (None, None), ("p", "chatgpt")),
    (None, "i", (None, None), ("usual", "i")),
    ("p", "i", (None, None), ("p", "i")),
]


@pytest.mark.parametrize(("partition", "instance", "record_scope", "expected"), HOMES)
def test_a_format_has_its_own_instance(store, partition, instance, record_scope, expected):
    entry = record("a", partition=record_scope[0], instance=record_scope[1])
    load(store, [entry], partition=partition, instance=instance, home="chatgpt")
    assert store.channels() == [(*expected, 1)]


PLACES = [
    # -p, -i, the record's own scope, the result
    (None, None, (None, None), ("usual", "usual")),
    (None, None, ("q", "j"), ("q", "j")),
    (None, None, ("q", None), ("q", "q")),
    (None, None, (None, "j"), ("usual", "j")),
    ("p", None, (None, None), ("p", "p")),
    ("p", None, ("q", "j"), ("p", "p")),
    (None, "i", (None, None), ("usual", "i")),
    (None, "i", ("q", "j"), ("q", "i")),
    ("p", "i", ("q", "j"), ("p", "i")),
]


@pytest.mark.parametrize(("partition", "instance", "record_scope", "expected"), PLACES)
def test_a_record_goes_to_the_given_scope_or_else_to_its_own(
    store, partition, instance, record_scope, expected
):
    load(
        store,
        [record("a", partition=record_scope[0], instance=record_scope[1])],
        partition=partition,
        instance=instance,
    )
    assert store.channels() == [(*expected, 1)]


@pytest.mark.usefixtures("small_batches")
def test_more_records_than_a_batch_keep_their_order(store):
    records: list[Record | Skipped] = [record(str(number)) for number in range(250)]
    records.insert(170, Skipped("line 171", "torn"))
    totals = load(store, iter(records))
    assert (totals.imported, totals.skipped) == (250, 1)
    assert contents(store) == [str(number) for number in range(250)]


@pytest.mark.usefixtures("small_batches")
def test_an_error_while_reading_keeps_saved_batches(store):
    def fail_after_a_batch() -> Iterator[Record]:
        yield from (record(str(number)) for number in range(150))
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="gone"):
        load(store, fail_after_a_batch())
    assert len(contents(store)) == 100
    assert load(store, [record(str(number)) for number in range(150)]).imported == 50


def test_titles_come_with_their_messages(store):
    conversation = Conversation("c", "Redis", "chatgpt", "gpt-4")
    load(store, [record("a", conversation=conversation), record("b")])
    rows = behind(store.location, "SELECT partition, instance, id, title FROM conversations")
    assert rows == [("p", "i", "c", "Redis")]


def test_later_details_of_a_conversation_are_stored(store):
    conversations = [
        Conversation("c", "Redis"),
        Conversation("d"),
        Conversation("c", None, None, "gpt-4"),
    ]
    load(
        store,
        [
            record(str(index), conversation=conversation)
            for index, conversation in enumerate(conversations)
        ],
    )
    rows = behind(store.location, "SELECT id, title, model FROM conversations ORDER BY id")
    assert rows == [("c", "Redis", "gpt-4"), ("d", None, None)]


TIMES = [
    ("none has a time", [None, None, None], [NOW, NOW, NOW]),
    ("all have one", [NOW - HOUR, NOW, NOW], [NOW - HOUR, NOW, NOW]),
    (
        "the first ones take their successor's",
        [None, None, NOW - HOUR, None],
        [NOW - HOUR, NOW - HOUR, NOW - HOUR, NOW - HOUR],
    ),
    (
        "one without takes its predecessor's",
        [NOW - HOUR, None, None, NOW],
        [NOW - HOUR, NOW - HOUR, NOW - HOUR, NOW],
    ),
]


@pytest.mark.parametrize(
    ("times", "expected"), [row[1:] for row in TIMES], ids=[row[0] for row in TIMES]
)
def test_the_time_of_a_message(store, times, expected):
    load(store, [record(str(number), time) for number, time in enumerate(times)])
    messages = store.last(HERE, 0)
    assert [message.created_at for message in messages] == expected
    assert contents(store) == [str(number) for number in range(len(times))]


def test_a_file_without_times_gets_the_current_time(store, add):
    add(Message("user", "from the future", created_at=NOW + HOUR))
    load(store, [record("a"), record("b")])
    rows = [(message.content, message.created_at) for message in store.last(HERE, 0)]
    assert rows == [("a", NOW), ("b", NOW), ("from the future", NOW + HOUR)]


@pytest.mark.parametrize("position", [0, 1])
def test_a_future_time_is_kept_and_counted_but_not_passed_on(store, position):
    records = [record("x"), record("y"), record("z", NOW - HOUR), record("w")]
    records.insert(position, record("ahead", NOW + 25 * HOUR))
    records.append(record("soon", NOW + 23 * HOUR))
    assert load(store, records).ahead == 1
    assert load(store, records).ahead == 0
    times = {message.content: message.created_at for message in store.last(HERE, 0)}
    assert times.pop("ahead") == NOW + 25 * HOUR
    assert times.pop("soon") == NOW + 23 * HOUR
    assert set(times.values()) == {NOW - HOUR}


def test_records_of_several_scopes_get_the_time_of_the_previous_one(store):
    load(
        store,
        [
            record("a", NOW, partition="x"),
            record("b", partition="y"),
            record("c", NOW + HOUR, partition="x"),
        ],
        partition=None,
        instance=None,
    )
    assert store.last(Scope("y"), 1)[0].created_at == NOW


# From file to store


TALK = [
    {"role": "user", "content": "q1"},
    {"role": "assistant", "content": "r1"},
    {"role": "user", "content": "yes"},
    {"role": "assistant", "content": "yes"},
    {"role": "user", "content": "yes"},
]


@pytest.mark.parametrize("count", range(len(TALK)))
def test_importing_a_longer_file_adds_only_its_tail(store, count):
    load_text(store, *TALK[:count])
    before = store.last(HERE, 0)
    totals = load_text(store, *TALK)
    assert (totals.imported, totals.already) == (len(TALK) - count, count)
    assert store.last(HERE, 0)[:count] == before
    assert contents(store) == [row["content"] for row in TALK]


def test_an_export_is_imported_unchanged(store, add, new_location):
    add(Message("user", "q", trace_id="t", conversation_id="k", name="mara"))
    add(Message("assistant", "", tool_calls=(ToolCall("c", "f", "{}"),)), instance="j")
    add(Message("tool", "", tool_call_id="c"), partition="q")
    rows = [message.to_row() for message in store.last(EVERYWHERE, 0)]
    with closing(open_store(new_location())) as copy:
        load_text(copy, *rows, partition=None, instance=None)
        copied_rows = [message.to_row() for message in copy.last(EVERYWHERE, 0)]
        second = load_text(copy, *rows, partition=None, instance=None)
    assert [{**row, "id": 0} for row in copied_rows] == [{**row, "id": 0} for row in rows]
    assert (second.imported, second.already) == (0, 3)
    assert load_text(store, *rows, partition=None, instance=None).imported == 0


@pytest.mark.parametrize("field", ["name", "tool_call_id"])
def test_a_file_with_a_field_that_cannot_be_stored_is_imported(store, field):
    totals = load_text(
        store,
        {"role": "user", "content": "before"},
        {"role": "tool", "content": "in between", field: "\ud800"},
        {"role": "user", "content": "after"},
    )
    assert totals.imported + totals.skipped == 3
    assert contents(store)[0] == "before"
    assert contents(store)[-1] == "after"


def test_text_that_cannot_be_stored_is_cleaned_and_counted(store):
    totals = load_text(
        store,
        {"role": "user", "content": "a\0b\ud800"},
        {"role": "user", "content": "naïve \ufffd 😀"},
    )
    assert contents(store) == ["a\ufffdb\ufffd", "naïve \ufffd 😀"]
    assert (totals.imported, totals.mended) == (2, 1)


@pytest.mark.parametrize("first", ["NFC", "NFD"])
def test_a_forgotten_text_stays_out_in_another_unicode_form(store, first):
    said = {"role": "user", "conversation_id": "c", "created_at": "2026-05-09T10:00:00Z"}
    texts = {form: normalize(form, "Übersee und Café") for form in ("NFC", "NFD")}
    load_text(store, said | {"content": texts.pop(first)}, instance="p")
    assert store.delete(store.find(EVERYWHERE))
    [other] = texts.values()
    report = load_text(store, said | {"content": other}, instance="p")
    assert (report.imported, report.forgotten) == (0, 1)
