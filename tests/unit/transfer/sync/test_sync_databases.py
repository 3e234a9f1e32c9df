"""Databases of other tools with growing conversations: syncing again stores nothing twice."""

import importlib.util
import json
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from databases import create_database

from reservoir_cli.messages import Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.transfer.reading import foreign_databases
from reservoir_cli.transfer.reports import ImportReport
from reservoir_cli.transfer.sync.history_sources import Source
from reservoir_cli.transfer.sync.sync_reports import SourceReport

SAMPLES = Path(__file__).parents[1] / "formats" / "samples"
#: A time long after all files were written.
LATER = datetime.now(UTC) + timedelta(days=1)
SAID = datetime(2026, 6, 1, 9, tzinfo=UTC)
SESSION = "ses_dfe7f67a9ffedzrzV3r9JZ9NqQ"

Tell = Callable[[sqlite3.Connection, int, str, str], None]


def tell_opencode(database: sqlite3.Connection, number: int, role: str, text: str) -> None:
    created = 1_000 * int(SAID.timestamp()) + number
    message, part = f"msg_z{number:03}", f"prt_z{number:03}"
    details = {"role": role, "time": {"created": created}, "modelID": "m1"}
    database.execute(
        "INSERT OR REPLACE INTO message VALUES (?, ?, ?, ?, ?)",
        [message, SESSION, created, created, json.dumps(details)],
    )
    database.execute(
        "INSERT OR REPLACE INTO part VALUES (?, ?, ?, ?, ?, ?)",
        [part, message, SESSION, created, created, json.dumps({"type": "text", "text": text})],
    )


def tell_cursor(database: sqlite3.Connection, number: int, role: str, text: str) -> None:
    kind = 1 if role == "user" else 2
    created_at = (SAID + timedelta(seconds=number)).isoformat()
    bubble = {"type": kind, "bubbleId": f"z{number}", "text": text, "createdAt": created_at}
    insert = "INSERT OR REPLACE INTO cursorDiskKV VALUES (?, ?)"
    database.execute(insert, [f"bubbleId:c1:z{number}", json.dumps(bubble)])
    [(value,)] = database.execute("SELECT value FROM cursorDiskKV WHERE key = 'composerData:c1'")
    composer = json.loads(value)
    headers = composer["fullConversationHeadersOnly"]
    if not any(header["bubbleId"] == f"z{number}" for header in headers):
        headers.append({"bubbleId": f"z{number}", "type": kind})
    database.execute(insert, ["composerData:c1", json.dumps(composer)])


def tell_goose(database: sqlite3.Connection, number: int, role: str, text: str) -> None:
    created_at = int(SAID.timestamp()) + number
    database.execute(
        "INSERT OR REPLACE INTO messages VALUES (?, NULL, '20260509_2', ?, ?, ?, ?, NULL, ?)",
        [
            100 + number,
            role,
            json.dumps([{"type": "text", "text": text}]),
            created_at,
            "2026-06-01 09:00:00",
            '{"userVisible": true, "agentVisible": true}',
        ],
    )


def tell_zed(database: sqlite3.Connection, number: int, role: str, text: str) -> None:
    """Write a thread as Zed does, but uncompressed."""
    select = "SELECT data FROM threads WHERE id = 'z-more'"
    [row] = [*database.execute(select), None][:1]
    messages = json.loads(row[0])["messages"] if row else []
    content = [{"Text": text}]
    message = (
        {"User": {"id": f"q{number}", "content": content}}
        if role == "user"
        else {"Agent": {"content": content, "tool_results": {}}}
    )
    messages[number:] = [message]
    data = json.dumps({"version": "0.3.0", "messages": messages}).encode()
    database.execute("DELETE FROM threads WHERE id = 'z-more'")
    database.execute(
        "INSERT INTO threads (id, summary, updated_at, data_type, data) "
        "VALUES ('z-more', 'More', ?, 'json', ?)",
        [(SAID + timedelta(seconds=number)).isoformat(), data],
    )


TELL: dict[str, Tell] = {
    "opencode": tell_opencode,
    "cursor": tell_cursor,
    "goose": tell_goose,
    "zed": tell_zed,
}


def copy_opencode(database: sqlite3.Connection, number: int) -> None:
    for table, columns in (("session", 1), ("message", 2), ("part", 3)):
        rows = database.execute(f"SELECT * FROM {table} WHERE id NOT LIKE '%-%'").fetchall()
        for row in rows:
            ids = [f"{value}-{number}" if value else value for value in row[:columns]]
            values = list(row[columns:])
            if table == "session":
                values[0] = None
            placeholders = ", ".join("?" * len(row))
            database.execute(f"INSERT INTO {table} VALUES ({placeholders})", [*ids, *values])


def copy_cursor(database: sqlite3.Connection, number: int) -> None:
    insert = "INSERT INTO cursorDiskKV SELECT replace(key, 'c1', ?), value FROM cursorDiskKV "
    where = "WHERE key = 'composerData:c1' OR key LIKE 'bubbleId:c1:%'"
    database.execute(insert + where, [f"x{number}"])


def copy_goose(database: sqlite3.Connection, number: int) -> None:
    for table, key in (("sessions", "id"), ("messages", "session_id")):
        rows = database.execute(f"SELECT * FROM {table} WHERE {key} = '20260509_2'").fetchall()
        names = [column[1] for column in database.execute(f"PRAGMA table_info({table})")]
        for row in rows:
            values = dict(zip(names, row, strict=True)) | {key: f"x{number}"}
            if table == "messages":
                values["id"] += 1_000 * (number + 1)
            columns, placeholders = ", ".join(values), ", ".join("?" * len(values))
            database.execute(
                f"INSERT INTO {table} ({columns}) VALUES ({placeholders})", [*values.values()]
            )


def copy_zed(database: sqlite3.Connection, number: int) -> None:
    names = [
        column[1] for column in database.execute("PRAGMA table_info(threads)") if column[1] != "id"
    ]
    columns = ", ".join(names)
    database.execute(
        f"INSERT INTO threads (id, {columns}) SELECT ?, {columns} FROM threads WHERE id = 'z-old'",
        [f"x{number}"],
    )


COPY = {"opencode": copy_opencode, "cursor": copy_cursor, "goose": copy_goose, "zed": copy_zed}


@pytest.fixture
def reservoir(tmp_path: Path) -> Iterator[Reservoir]:
    with Reservoir.open(tmp_path / "store.db") as opened:
        yield opened


@pytest.mark.parametrize("tool", TELL)
def test_a_growing_conversation_is_stored_once(reservoir, tmp_path, tool):
    if tool == "zed" and not (importlib.util.find_spec("backports") or sys.version_info >= (3, 14)):
        pytest.skip("the extra zed is not installed")
    path = create_database(tmp_path, tool)

    def sync() -> SourceReport:
        source = Source(tool, tool, path, "work")
        [report] = reservoir.sync([source], embed=False, now=LATER).sources
        assert report.failures == []
        return report

    def said() -> list[tuple[str, str]]:
        rows = reservoir.view(Scope("work"), 0)
        assert len({row.source_id for row in rows}) == len(rows)
        return [(str(row.role), row.content) for row in rows]

    before = sync().imports.imported
    first = said()
    assert before == len(first) > 0
    assert sync().read == 0
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        TELL[tool](database, 0, "user", "Do they dive?")
        if tool != "goose":  # Goose writes complete messages only
            TELL[tool](database, 1, "assistant", "They")
        assert sync().imports.imported == 2 - (tool == "goose")  # while the tool has it open
        TELL[tool](database, 1, "assistant", "They do, from ten metres.")
        imports = sync().imports
        assert (imports.imported, imports.renewed) == ((1, 0) if tool == "goose" else (0, 1))
        for number in range(2, 6):
            role = ("user", "assistant")[number % 2]
            TELL[tool](database, number, role, f"word {number}")
            assert sync().imports.imported == 1
        assert sync().read == 0
    added = [row for row in said() if row not in first]
    assert added == [
        ("user", "Do they dive?"),
        ("assistant", "They do, from ten metres."),
        *((("user", "assistant")[number % 2], f"word {number}") for number in range(2, 6)),
    ]
    assert len(said()) == len(first) + len(added)


def overwrite(path: Path, start: int) -> None:
    """Overwrite a file from an offset to its end, as a failing disk does."""
    data = path.read_bytes()
    path.write_bytes(data[:start] + b"\xa5" * (len(data) - start))


@pytest.mark.parametrize("tool", ["opencode", "goose", "cursor"])
@pytest.mark.parametrize("start", [0, 16, 4_096])
def test_a_damaged_database_is_reported_each_time_and_the_other_sources_are_read(
    reservoir, tmp_path, tool, start
):
    path = create_database(tmp_path, tool)
    intact = path.read_bytes()
    overwrite(path, start)
    session = tmp_path / "sessions" / "one.jsonl"
    session.parent.mkdir()
    shutil.copy(SAMPLES / "claude-code.jsonl", session)
    sources = [
        Source(tool, tool, path, "work"),
        Source("claude-code", "claude-code", session.parent, "home"),
    ]
    for _ in range(2):
        damaged, other = reservoir.sync(sources, embed=False, now=LATER).sources
        [failure] = damaged.failures
        assert f"{path}" in failure
        assert "database" in failure
        assert not other.failures
    assert reservoir.view(Scope("home"), 0)
    path.write_bytes(intact)
    [restored] = reservoir.sync(sources[:1], embed=False, now=LATER).sources
    assert restored.failures == []
    assert restored.imports.imported > 0


def test_a_row_that_is_too_large_hides_no_other(reservoir, tmp_path, monkeypatch):
    monkeypatch.setattr(foreign_databases, "LARGEST", 1_000)
    path = tmp_path / "logs.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE responses (id, prompt, response, datetime_utc)")
        for number, text in enumerate(("short", "x" * 2_000, "last")):
            row = (str(number), text, "reply", "2026-05-09T12:00:00")
            database.execute("INSERT INTO responses VALUES (?, ?, ?, ?)", row)
    source = Source("llm", "llm", path, "work")
    [report] = reservoir.sync([source], embed=False, now=LATER).sources
    assert (report.imports.imported, report.failures) == (4, [])
    assert report.imports.reasons == [f"{path}, response 2: larger than 0 MB"]
    stored = [row.content for row in reservoir.view(Scope("work"), 0)]
    assert sorted(stored) == ["last", "reply", "reply", "short"]


@pytest.mark.parametrize("tool", TELL)
def test_only_changed_conversations_are_read(reservoir, tmp_path, tool):
    if tool == "zed" and not (importlib.util.find_spec("backports") or sys.version_info >= (3, 14)):
        pytest.skip("the extra zed is not installed")
    path = create_database(tmp_path, tool)

    def sync() -> ImportReport:
        source = Source(tool, tool, path, "work")
        [report] = reservoir.sync([source], embed=False, now=LATER).sources
        assert report.failures == []
        return report.imports

    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        first = sync().imported
        for number in range(100):
            COPY[tool](database, number)
        copies = sync()
        assert copies.imported >= 100
        TELL[tool](database, 0, "user", "Do they dive?")
        added = sync()
        assert added.imported == 1
        assert added.already <= first + copies.imported // 10
        # A row of an older conversation changes later.
        TELL[tool](database, 1, "assistant", "They")
        COPY[tool](database, 100)
        sync()
        TELL[tool](database, 1, "assistant", "They do, from ten metres.")
        renewed = sync()
        assert (renewed.imported, renewed.renewed) == ((1, 0) if tool == "goose" else (0, 1))
        assert renewed.already <= first + copies.imported // 10
    [last] = [row for row in reservoir.view(Scope("work"), 0) if row.content.startswith("They do")]
    assert last.role == "assistant"
