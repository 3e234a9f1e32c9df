"""Records of runs, the log, and their statistics."""

import json
import os
import sqlite3
import stat
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from builders import context

from reservoir_cli import Reservoir
from reservoir_cli.context import run_statistics
from reservoir_cli.messages import Message, Scope
from reservoir_cli.settings import paths
from reservoir_cli.storage.open_store import open_store

SECRET = "heliotrope"


@pytest.fixture
def notes():
    return []


@pytest.fixture
def reservoir(tmp_path, notes, fake_embedder):
    with Reservoir.open(tmp_path / "s.db", notify=notes.append, embedder=fake_embedder) as opened:
        opened.ingest([Message("user", f"{SECRET} {number} " * 20) for number in range(30)])
        yield opened


def ask(reservoir, **options):
    request = {
        "system": f"{SECRET} prompt",
        "knowledge": [(f"{SECRET} source", f"{SECRET} text")],
        **options,
    }
    window = context(reservoir, f"where is the {SECRET}?", **request)
    reservoir.runs.record(window)
    return window


def rows(reservoir):
    connection = sqlite3.connect(reservoir.store.location)
    connection.row_factory = sqlite3.Row
    records = [dict(row) for row in connection.execute("SELECT * FROM context_runs")]
    connection.close()
    return records


def test_a_run_adds_one_row_with_its_figures(reservoir):
    window = ask(reservoir, budget=700, model="gpt-4", format="openai")
    (row,) = rows(reservoir)
    assert row["input_tokens"] == window.used
    assert row["utilisation"] == pytest.approx(window.used / 700)
    assert row["truncations"] == window.shortages > 0
    assert row["reserve_used"] == 0
    assert row["ms"] > 0
    assert (row["model"], row["format"], row["available"]) == ("gpt-4", "openai", 700)


@pytest.mark.parametrize(("recent", "is_short"), [(15, True), (0, False)])
def test_a_run_is_short_of_room_for_recent_similar_and_pinned_messages_only(
    reservoir, recent, is_short
):
    settings = {"recent_context_size": recent, "similar_cosine": 1.0, "budget": 500}
    assert ask(reservoir, **settings).truncations > 0
    assert [row["truncations"] > 0 for row in rows(reservoir)] == [is_short]
    for message in reservoir.view(count=0):
        reservoir.pin(message.id)
    ask(reservoir, **settings)
    assert rows(reservoir)[-1]["truncations"] > 0


def test_a_run_records_how_much_of_the_reserve_it_used(reservoir):
    window = ask(reservoir, budget=900, model="gpt-4", reserve_tokens=7_500)
    (row,) = rows(reservoir)
    assert row["reserve_used"] == window.used - (8_192 - 7_500) > 0


def test_no_text_is_recorded_or_logged(reservoir):
    assert ask(reservoir, budget=700).truncated
    assert SECRET not in json.dumps(rows(reservoir))
    log = paths.log_file().read_text()
    assert log
    assert SECRET not in log


def test_a_truncation_writes_one_line_with_the_word_truncated(reservoir):
    ask(reservoir, budget=700)
    ask(reservoir, budget=700)
    lines = paths.log_file().read_text().splitlines()
    assert len(lines) == 2
    assert all("truncated" in line for line in lines)


def test_a_run_without_truncation_writes_nothing(reservoir):
    assert not ask(reservoir).truncated
    assert not paths.log_file().exists()
    assert len(rows(reservoir)) == 1


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_the_log_is_private(reservoir, mask):
    before = os.umask(mask)
    try:
        ask(reservoir, budget=700)
    finally:
        os.umask(before)
    assert stat.S_IMODE(paths.log_file().stat().st_mode) == 0o600


def test_every_file_of_a_full_log_is_private(reservoir):
    before = os.umask(0o022)
    try:
        ask(reservoir, budget=700)
        log = paths.log_file()
        with log.open("a") as file:
            file.write("x" * 999_990 + "\n")
        ask(reservoir, budget=700)
    finally:
        os.umask(before)
    files = sorted(log.parent.glob(log.name + "*"))
    assert len(files) == 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_the_log_has_at_most_three_files_of_a_megabyte(reservoir):
    ask(reservoir, budget=700)
    log = paths.log_file()
    for number in range(5):
        with log.open("a") as file:
            file.write(f"{number}" * 999_990 + "\n")
        ask(reservoir, budget=700)
    files = sorted(log.parent.glob(log.name + "*"))
    assert len(files) == 3
    assert all(path.stat().st_size < 1_100_000 for path in files)


def test_a_run_does_not_wait_for_a_locked_store_and_a_note_says_so(reservoir, notes, monkeypatch):
    waits = []
    write = reservoir.store.write
    monkeypatch.setattr(
        reservoir.store,
        "write",
        lambda wait=None, **options: waits.append(wait) or write(wait, **options),
    )
    writer = sqlite3.connect(reservoir.store.location, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    notes.clear()
    ask(reservoir, budget=700)
    writer.execute("ROLLBACK")
    writer.close()
    assert rows(reservoir) == []
    assert "this run is not recorded: the store is locked by another process" in notes
    assert waits
    assert all(wait is not None and wait <= 0.1 for wait in waits)


def test_a_run_of_a_read_only_store_is_silently_not_recorded(
    reservoir, notes, fake_embedder, monkeypatch
):
    monkeypatch.setattr("reservoir_cli.storage.sqlite.store_file.os.access", lambda *_: False)
    with closing(open_store(reservoir.store.location)) as store:
        reader = Reservoir(store, reservoir.config, notify=notes.append, embedder=fake_embedder)
        notes.clear()
        ask(reader, budget=700)
    assert rows(reservoir) == []
    assert notes == []


def run(**values):
    start = datetime(2026, 5, 9, 12, tzinfo=UTC)
    day = values.pop("day", 0)
    return {
        "at": round((start + timedelta(days=day)).timestamp() * 1000),
        "format": "text",
        "model": "gpt-4",
        "input_tokens": 100,
        "context_window": 8_192,
        "reserve_used": 0,
        "utilisation": 0.5,
        "ms": 10.0,
        "truncations": 0,
        **values,
    }


def test_a_summary_of_nothing_is_zeros_and_nulls():
    summary = run_statistics.summarize_runs([], {"messages": 0})
    assert (summary["runs"], summary["truncated_runs"], summary["truncation_events"]) == (0, 0, 0)
    assert summary["input_tokens"] == {"median": None, "p95": None}
    assert (summary["models"], summary["days"]) == ({}, {})


def test_a_summary_has_counts_medians_and_95th_percentiles():
    runs = [
        run(input_tokens=number, ms=float(number), truncations=number % 2)
        for number in range(1, 102)
    ]
    summary = run_statistics.summarize_runs(runs, {"messages": 7})
    assert summary["runs"] == 101
    assert summary["truncated_runs"] == summary["truncation_events"] == 51
    assert summary["input_tokens"] == {"median": 51, "p95": 96}
    assert summary["ms"] == {"median": 51, "p95": 96}
    assert summary["utilisation"] == {"median": 0.5, "p95": 0.5}
    assert summary["store"] == {"messages": 7}


def test_truncation_events_are_counted_beside_the_runs_that_had_any():
    summary = run_statistics.summarize_runs([run(truncations=3), run(), run(truncations=1)], {})
    assert (summary["truncated_runs"], summary["truncation_events"]) == (2, 4)


def test_runs_are_counted_by_model_and_by_day():
    runs = [run(), run(model="gpt-4o", day=1), run(day=1), run(model=None, day=3)]
    summary = run_statistics.summarize_runs(runs, {})
    assert summary["models"] == {"gpt-4": 2, "gpt-4o": 1, "": 1}
    assert summary["days"] == {"2026-05-09": 1, "2026-05-10": 2, "2026-05-12": 1}


def test_a_percentile_is_one_of_the_values():
    summary = run_statistics.summarize_runs([run(ms=ms) for ms in (10.0, 20.0, 400.0)], {})
    assert summary["ms"] == {"median": 20, "p95": 400}


def test_every_percentile_of_one_run_is_its_value():
    assert run_statistics.summarize_runs([run(input_tokens=42)], {})["input_tokens"] == {
        "median": 42,
        "p95": 42,
    }


def test_answers_of_the_proxy_are_counted_separately(location):
    with Reservoir.open(location) as reservoir:
        for tokens, cached in ((100, 0), (300, 200)):
            reservoir.runs.add(
                [run_statistics.answer_record(Scope("p", "i"), None, tokens, cached)]
            )
        stats = reservoir.stats()
    figures = {"request_tokens": 400, "cached_tokens": 200, "cached_share": 0.5}
    assert stats["answers"] == {"count": 2, **figures}
    assert stats["runs"] == stats["recalls"]["runs"] == 0
    [day] = stats["by_day"]
    assert figures.items() <= day.items()
    assert (day["answers"], day["runs"]) == (2, 0)
