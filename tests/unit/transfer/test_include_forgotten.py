"""Imports that include messages which were forgotten earlier."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from builders import ingestor

from reservoir_cli.messages import Message, Scope
from reservoir_cli.redaction import Redactor
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.transfer import store_records
from reservoir_cli.transfer.import_files import import_files
from reservoir_cli.transfer.ingest import Ingestor
from reservoir_cli.transfer.reports import ImportReport

WRONG, RIGHT = Scope("wrogn"), Scope("right")
KEY = "AKIA" + "Q7XN2VD4KLP3ZWTM"


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def row(number: int, content: str | None = None, **fields: Any) -> dict[str, Any]:
    return {
        "role": "user",
        "content": content or f"text {number}",
        "source": "claude",
        "source_id": str(number),
        "conversation_id": f"c{number // 2}",
        "created_at": f"2026-05-09T14:00:{number:02}Z",
    } | fields


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Return a file with two conversations of two messages, one id with a secret."""
    secret = row(3, source_id=f"3 {KEY}")
    return write(tmp_path / "rows.jsonl", row(0), row(1), row(2), secret)


def counts(report: ImportReport) -> tuple[int, int, int, int]:
    return report.imported, report.already, report.forgotten, report.restored


def texts(reservoir: Reservoir, scope: Scope = RIGHT) -> list[str]:
    return [message.content for message in reservoir.view(scope, 0)]


def forget(reservoir: Reservoir, *contents: str) -> None:
    keys = [
        message.key for message in reservoir.view(Scope(None), 0) if message.content in contents
    ]
    assert len(keys) == len(contents)
    reservoir.forget(keys)


@pytest.mark.parametrize("redact", ["mark", "remove"])
@pytest.mark.parametrize("batch", [1, 1_000])
def test_a_file_of_a_deleted_partition_is_imported_into_another(
    location, history, monkeypatch, redact, batch
):
    monkeypatch.setattr(store_records, "_BATCH", batch)
    with Reservoir.open(location) as reservoir:
        reservoir.import_files(history, partition="wrogn")
        reservoir.forget(reservoir.find(WRONG))
    with Reservoir.open(location, settings={"redact": redact}) as reservoir:
        check_the_way_back(reservoir, history)


def check_the_way_back(reservoir: Reservoir, history: Path) -> None:
    assert counts(reservoir.import_files(history, partition="right")) == (0, 0, 4, 0)
    for dry_run in (True, False):
        report = reservoir.import_files(
            history, partition="right", include_forgotten=True, dry_run=dry_run
        )
        assert counts(report) == (4, 0, 0, 4)
    for include_forgotten in (True, False):
        again = reservoir.import_files(
            history, partition="right", include_forgotten=include_forgotten
        )
        assert counts(again) == (0, 4, 0, 0)
    assert texts(reservoir) == [f"text {number}" for number in range(4)]
    assert counts(reservoir.import_files(history, partition="third")) == (4, 0, 0, 0)
    for scope in (RIGHT, Scope("third")):
        reservoir.forget(reservoir.find(scope))
    assert counts(reservoir.import_files(history, partition="right")) == (0, 0, 4, 0)


def test_only_the_tombstones_of_imported_messages_are_removed(reservoir, history, tmp_path):
    reservoir.import_files(history, partition="wrogn")
    forget(reservoir, "text 0", "text 1", "text 2")
    part = write(tmp_path / "part.jsonl", row(0), row(4))
    report = reservoir.import_files(part, partition="right", include_forgotten=True)
    assert counts(report) == (2, 0, 0, 1)
    assert counts(reservoir.import_files(history, partition="third")) == (2, 0, 2, 0)
    assert texts(reservoir, Scope("third")) == ["text 0", "text 3"]


def test_a_message_that_the_partition_still_has_is_already_there(reservoir, history):
    for partition in ("right", "wrogn"):
        reservoir.import_files(history, partition=partition)
    reservoir.forget(reservoir.find(WRONG))
    report = reservoir.import_files(history, partition="right", include_forgotten=True)
    assert counts(report) == (0, 4, 0, 0)
    assert counts(reservoir.import_files(history, partition="third")) == (0, 0, 4, 0)


def other_program(path: Path, *contents: str) -> Path:
    """Write the log of another program of conversation c0, with ids of its own."""
    rows = (
        row(number, content, source="codex", role="assistant", conversation_id="c0")
        for number, content in enumerate(contents)
    )
    return write(path, *rows)


def test_messages_that_another_program_logged_are_included(reservoir, tmp_path):
    first = write(tmp_path / "a", row(0, "Yes.\n\nA is first.", role="assistant"))
    reservoir.import_files(first, form="reservoir", partition="wrogn")
    forget(reservoir, "Yes.\n\nA is first.")
    other = other_program(tmp_path / "b", "Yes.\n\nA is first.")
    left_out = reservoir.import_files(other, form="reservoir", partition="right")
    assert counts(left_out) == (0, 0, 1, 0)
    report = reservoir.import_files(
        other, form="reservoir", partition="right", include_forgotten=True
    )
    assert counts(report) == (1, 0, 0, 1)
    third = reservoir.import_files(other, form="reservoir", partition="third")
    assert counts(third) == (1, 0, 0, 0)


def test_a_forgotten_reply_stays_out_although_a_paragraph_of_it_is_back(reservoir, tmp_path):
    replies = ["Yes.\n\nA is first.", "Yes.\n\nB is second."]
    first = write(
        tmp_path / "a", *(row(n, text, role="assistant") for n, text in enumerate(replies))
    )
    reservoir.import_files(first, form="reservoir", partition="wrogn")
    forget(reservoir, *replies)
    part = write(tmp_path / "b", row(0, replies[0], role="assistant"))
    reservoir.import_files(part, form="reservoir", partition="right", include_forgotten=True)
    other = other_program(tmp_path / "c", *replies)
    report = reservoir.import_files(other, form="reservoir", partition="third")
    assert counts(report) == (1, 0, 1, 0)
    assert texts(reservoir, Scope("third")) == replies[:1]


def test_a_text_that_an_edit_replaced_stays_out(reservoir, history, tmp_path):
    reservoir.import_files(history, partition="right")
    [edited] = [message for message in reservoir.view(RIGHT, 0) if message.content == "text 0"]
    reservoir.edit(edited.key, "new text")
    forget(reservoir, "text 1")
    other = write(
        tmp_path / "b", *(row(number, source="codex", conversation_id="c0") for number in range(2))
    )
    for file, expected in ((history, (1, 3, 0, 1)), (other, (1, 0, 1, 0))):
        report = reservoir.import_files(file, partition="right", include_forgotten=True)
        assert counts(report) == expected
    assert "text 0" not in texts(reservoir)
    # The copy of another partition was edited, not forgotten.
    third = reservoir.import_files(history, partition="third", include_forgotten=True)
    assert counts(third) == (3, 0, 1, 0)


def test_an_edited_message_that_was_forgotten_is_imported_as_the_file_has_it(reservoir, history):
    reservoir.import_files(history, partition="wrogn")
    [edited] = [message for message in reservoir.view(WRONG, 0) if message.content == "text 0"]
    reservoir.edit(edited.key, "new text")
    reservoir.forget(reservoir.find(WRONG))
    report = reservoir.import_files(history, partition="right", include_forgotten=True)
    assert counts(report) == (4, 0, 0, 4)
    assert texts(reservoir)[0] == "text 0"
    assert counts(reservoir.import_files(history, partition="right")) == (0, 4, 0, 0)


def test_messages_that_would_expire_are_left_out_and_stay_forgotten(reservoir, history, location):
    reservoir.import_files(history, partition="wrogn")
    reservoir.forget(reservoir.find(WRONG))
    with Reservoir.open(location, settings={"retention_days": 1}) as expiring:
        report = expiring.import_files(history, partition="right", include_forgotten=True)
        assert (*counts(report), report.expired) == (0, 0, 0, 0, 4)
    assert counts(reservoir.import_files(history, partition="right")) == (0, 0, 4, 0)


def test_a_batch_that_is_interrupted_changes_no_tombstone(store, tmp_path):
    file = write(tmp_path / "rows.jsonl", row(0, partition="a"), row(2, partition="b"))
    whole = ingestor(store)
    import_files(whole, [file])
    assert store.delete(store.find(Scope(None)))

    def mode(partition: str) -> str:
        if partition == "b" and store.find(Scope("a")):
            raise KeyboardInterrupt
        return "off"

    interrupted = Ingestor(store, whole.config, Redactor(mode), whole.indexer)
    with suppress(KeyboardInterrupt):
        import_files(interrupted, [file], include_forgotten=True)
        pytest.fail("not interrupted")
    assert not store.find(Scope(None))
    assert store.forgotten([Message("user", "", source="claude", source_id="0")]) == [True]
    assert counts(import_files(whole, [file])) == (0, 0, 2, 0)
    assert counts(import_files(whole, [file], include_forgotten=True)) == (2, 0, 0, 2)
