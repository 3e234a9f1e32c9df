"""Messages of several partitions that were forgotten in one of them."""

import json
from pathlib import Path

import pytest

from reservoir_cli.messages import Message, Scope
from reservoir_cli.transfer.reports import ImportReport

KEPT, DELETED = Scope("kept"), Scope("deleted")
KEY = "AKIA" + "Q7XN2VD4KLP3ZWTM"


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Return a file with two conversations of two messages, one id with a secret."""
    path = tmp_path / "rows.jsonl"
    rows = [
        {
            "role": "user",
            "content": f"text {number}",
            "source": "claude",
            "source_id": f"{number} {KEY}" if number == 3 else str(number),
            "conversation_id": f"c{number // 2}",
            "created_at": f"2026-05-09T14:00:0{number}Z",
        }
        for number in range(4)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def counts(report: ImportReport) -> tuple[int, int, int, int]:
    return report.imported, report.already, report.forgotten, len(report.conversations)


@pytest.mark.parametrize("redact", ["mark", "remove"])
def test_messages_that_the_partition_has_are_already_there(reservoir, history, monkeypatch, redact):
    monkeypatch.setenv("RESERVOIR_REDACT", redact)
    reservoir.import_files(history, partition="kept", instance="i")
    reservoir.import_files(history, partition="deleted", instance="i")
    reservoir.forget(reservoir.find(DELETED))
    before = reservoir.view(KEPT, 0)
    for dry_run in (True, False):
        again = reservoir.import_files(history, partition="kept", instance="i", dry_run=dry_run)
        assert counts(again) == (0, 4, 0, 2)
    for place in (("deleted", "i"), ("third", "i"), ("kept", "j")):
        copied = reservoir.import_files(history, partition=place[0], instance=place[1])
        assert counts(copied) == (0, 0, 4, 0)
        unasked = reservoir.import_files(
            history, partition=place[0], instance=place[1], copies=False
        )
        assert (unasked.imported, unasked.already + unasked.forgotten) == (0, 4)
    assert reservoir.view(KEPT, 0) == before
    assert not reservoir.view(DELETED, 0)


def test_messages_are_forgotten_once_the_last_partition_forgets_them(reservoir, history):
    reservoir.import_files(history, partition="kept", instance="i")
    reservoir.import_files(history, partition="deleted", instance="i")
    reservoir.forget(reservoir.find(DELETED))
    reservoir.forget(reservoir.find(KEPT)[:1])
    assert counts(reservoir.import_files(history, partition="kept", instance="i")) == (0, 3, 1, 2)
    elsewhere = reservoir.import_files(history, partition="third", instance="i", copies=False)
    assert counts(elsewhere)[:3] == (0, 3, 1)


def test_messages_whose_words_were_forgotten_under_other_ids_are_already_there(reservoir, history):
    reservoir.import_files(history, partition="kept", instance="i")
    [copy] = reservoir.ingest(
        [Message("user", "text 1", source="proxy", source_id="p1", conversation_id="c0")],
        partition="deleted",
    )
    reservoir.forget([copy.key])
    assert counts(reservoir.import_files(history, partition="kept", instance="i")) == (0, 4, 0, 2)
    assert counts(reservoir.import_files(history, partition="third"))[:3] == (3, 0, 1)
