"""The databases of opencode and Cursor together, and the files of older versions of opencode."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from databases import CURSOR, create_database
from reading import entries_by_file, last_conversation, records, roles_and_texts, row_of, skipped

from reservoir_cli.errors import ReservoirError
from reservoir_cli.reservoir import Reservoir

# opencode

SESSION = "ses_dfe7f67a9ffedzrzV3r9JZ9NqQ"


def opencode_rows() -> list[tuple[Any, ...]]:
    first, second, third = (
        "How long is a brown pelican?",
        "Read the notes. What do pelicans eat?",
        "How heavy is it?",
    )
    thinking = "I should think of pelicans."
    result = (
        "<path>/home/ann/src/pelicans/notes.txt</path>\n<type>file</type>\n<content>\n"
        "1: Pelicans eat fish.\n\n(End of file - total 1 lines)\n</content>"
    )
    return [
        ("user", first, "04:25:34", SESSION),
        ("assistant", "A brown pelican is 1.2 m long.", "04:25:37", SESSION),
        ("system", thinking, "04:25:37", SESSION),
        ("user", second, "04:26:19", SESSION),
        ("assistant", "I will read it.", "04:26:20", SESSION),
        ("system", thinking, "04:26:20", SESSION),
        ("tool", result, "04:26:20", SESSION),
        ("assistant", "The file says: pelicans eat fish.", "04:26:21", SESSION),
        ("system", thinking, "04:26:21", SESSION),
        ("user", third, "04:26:24", SESSION),
        ("assistant", "About three kilos.", "04:26:25", SESSION),
        ("system", thinking, "04:26:25", SESSION),
    ]


def test_the_database_of_opencode_is_imported(tmp_path):
    [entries] = entries_by_file(create_database(tmp_path, "opencode")).values()
    assert [row_of(record) for record in records(entries)] == opencode_rows()
    assert skipped(entries) == []
    [call] = [call for record in records(entries) for call in record.message.tool_calls]
    assert (call.name, call.arguments) == ("read", '{"filePath": "notes.txt"}')
    [result] = [record.message for record in records(entries) if record.message.role == "tool"]
    assert result.tool_call_id == call.id
    session = last_conversation(entries)
    assert (session.title, session.model) == ("Pelicans and their size", "m1")
    assert (session.source, session.project) == ("opencode", "pelicans")


NEW_TABLES = """
    CREATE TABLE session_v2 (id text PRIMARY KEY, parent_id text, directory text, title text,
        model text, revert text, time_created integer NOT NULL, time_updated integer NOT NULL);
    CREATE TABLE session_message (id text PRIMARY KEY, session_id text, type text,
        seq integer NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL,
        data text);
"""


def add_new_session(
    database: sqlite3.Connection, name: str, rows: list[tuple[str, str, Any]], **more: Any
) -> None:
    """Add a session of version 2, whose messages are (id, type, data) in their order."""
    values = {"directory": "/home/ann/src/owls", "time_created": 1, "time_updated": 1}
    values |= {"id": name, **more}
    marks = ", ".join(f":{column}" for column in values)
    database.execute(f"INSERT INTO session_v2 ({', '.join(values)}) VALUES ({marks})", values)
    for number, (identity, kind, data) in enumerate(rows):
        text = data if isinstance(data, str) else json.dumps(data)
        database.execute(
            "INSERT INTO session_message VALUES (?, ?, ?, ?, 1778387134727, 1, ?)",
            [identity, name, kind, number, text],
        )


def reply(*content: dict[str, Any]) -> dict[str, Any]:
    model = {"id": "m2", "providerID": "fake"}
    return {"agent": "build", "model": model, "content": list(content)}


NEW_ROWS: list[tuple[str, str, Any]] = [
    ("msg_1", "model-switched", {"model": {"id": "m2", "providerID": "fake"}}),
    (
        "msg_9",
        "user",
        {
            "text": "How big is an owl?",
            "time": {"created": 1778387135000},
            "files": [{"mime": "image/png", "name": "owl.png"}, {"name": "owls.txt"}],
        },
    ),
    ("msg_2", "system", {"text": "The tools have changed."}),
    ("msg_3", "synthetic", {"text": "A reminder."}),
    ("msg_4", "skill", {"name": "owls", "text": "How to look at owls."}),
    (
        "msg_5",
        "assistant",
        reply(
            {"type": "reasoning", "text": "I will look.", "native": {"id": "x"}},
            {
                "type": "tool",
                "id": "call_1",
                "name": "read",
                "state": {
                    "status": "completed",
                    "input": {"path": "owls.txt"},
                    "content": [{"type": "text", "text": "70 cm"}],
                },
            },
            {
                "type": "tool",
                "id": "call_2",
                "name": "read",
                "state": {"output": "", "input": {}, "error": {"message": "no such file"}},
            },
        ),
    ),
    ("msg_6", "assistant", reply({"type": "text", "text": "About 70 cm."})),
    ("msg_7", "shell", {"shellID": "sh_1", "command": "ls", "output": {"output": "owls.txt"}}),
    ("msg_8", "compaction", {"status": "completed", "summary": "They talked of owls."}),
    ("msg_90", "idle", {"outcome": "succeeded"}),
    ("msg_91", "user", "{"),
    ("msg_92", "assistant", reply({"type": "tool", "id": "call_3", "name": None})),
]


def test_sessions_of_opencode_2_are_imported(tmp_path):
    path = tmp_path / "opencode.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(NEW_TABLES)
        add_new_session(database, "ses_owls", NEW_ROWS, title="Owls", parent_id="ses_birds")
    [entries] = entries_by_file(path).values()
    assert [row_of(record)[:3] for record in records(entries)] == [
        ("user", "How big is an owl?\n[image]\n[file owls.txt]", "04:25:35"),
        ("assistant", 'read({"path": "owls.txt"})', "04:25:34"),
        ("system", "I will look.", "04:25:34"),
        ("tool", "70 cm", "04:25:34"),
        ("assistant", "read({})", "04:25:34"),
        ("tool", "no such file", "04:25:34"),
        ("assistant", "About 70 cm.", "04:25:34"),
        ("assistant", 'shell({"command": "ls"})', "04:25:34"),
        ("tool", "owls.txt", "04:25:34"),
    ]
    assert skipped(entries) == [
        ("message msg_91", "not a message"),
        ("message msg_92", "a tool call without a name"),
    ]
    about = last_conversation(entries)
    assert (about.id, about.title, about.model, about.project) == ("ses_owls", "Owls", "m2", "owls")
    assert {record.parent for record in records(entries)} == {"ses_birds"}


def test_a_session_of_opencode_with_a_damaged_id_stops_no_other(tmp_path):
    path = tmp_path / "opencode.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(NEW_TABLES)
        add_new_session(database, "ses_1", NEW_ROWS[:2])
        add_new_session(database, "ses_2", [("msg_a", "user", {"text": "Why?"})])
        database.execute("UPDATE session_v2 SET id = CAST(x'ff41' AS text) WHERE id = 'ses_1'")
    [entries] = entries_by_file(path).values()
    assert [record.message.content for record in records(entries)] == ["Why?"]


def test_sessions_that_opencode_2_copied_are_imported_once(tmp_path):
    path = create_database(tmp_path, "opencode")
    with Reservoir.open(tmp_path / "store.db") as reservoir:
        count = reservoir.import_files(path).imported
        with closing(sqlite3.connect(path)) as database, database:
            database.executescript(NEW_TABLES)
            rows: list[tuple[str, str, Any]] = []
            for identity, data in database.execute("SELECT id, data FROM message").fetchall():
                query = "SELECT data FROM part WHERE message_id = ? ORDER BY id"
                parts = [json.loads(part) for (part,) in database.execute(query, [identity])]
                texts = [part for part in parts if part["type"] in ("text", "reasoning")]
                tools = [
                    part | {"id": part["callID"], "name": part["tool"]}
                    for part in parts
                    if part["type"] == "tool"
                ]
                if json.loads(data)["role"] == "user":
                    rows.append((identity, "user", {"text": texts[0]["text"]}))
                else:
                    rows.append((identity, "assistant", reply(*texts, *tools)))
            rows.append(("msg_new", "user", {"text": "And an owl?"}))
            add_new_session(database, SESSION, rows)
        again = reservoir.import_files(path)
    assert (again.imported, again.already) == (1, count)


@pytest.mark.parametrize(("part", "kept"), [(None, 1), ("prt_1", 2)])
def test_messages_that_were_taken_back_in_opencode_are_left_out(tmp_path, part, kept):
    path = tmp_path / "opencode.db"
    revert = json.dumps({"messageID": "msg_2", "partID": part})
    rows: list[tuple[str, str, Any]] = [
        (f"msg_{number}", "user", {"text": f"Question {number}"}) for number in (1, 2, 3)
    ]
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(NEW_TABLES)
        add_new_session(database, "ses_owls", rows, revert=revert)
    [entries] = entries_by_file(path).values()
    assert len(records(entries)) == kept
    (tmp_path / "old").mkdir()
    old = create_database(tmp_path / "old", "opencode")
    with closing(sqlite3.connect(old)) as database, database:
        [third] = database.execute("SELECT id FROM message LIMIT 1 OFFSET 2").fetchone()
        database.execute("ALTER TABLE session ADD COLUMN revert text")
        database.execute("UPDATE session SET revert = ?", [json.dumps({"messageID": third})])
    [entries] = entries_by_file(old).values()
    assert [row_of(record) for record in records(entries)] == opencode_rows()[:3]


def test_a_fork_of_a_session_of_opencode_repeats_nothing(tmp_path):
    path = create_database(tmp_path, "opencode")
    with closing(sqlite3.connect(path)) as database, database:
        for number, source in ((1, SESSION), (2, "ses_fork1")):
            fork = f"ses_fork{number}"
            title = f"Pelicans (fork #{number})"
            columns = "NULL, '', directory, ?, '', model, time_created + ?, time_updated"
            query = f"INSERT INTO session SELECT ?, {columns} FROM session WHERE id = ?"
            database.execute(query, [fork, title, number, source])
            copy = "SELECT 'msg_3' || ? || id, ?, time_created, time_updated, data FROM message"
            query = f"INSERT INTO message {copy} WHERE session_id = ?"
            database.execute(query, [number, fork, source])
            new = (f"msg_3{number}new", fork, 1778387187000 + number)
            data = '{"role": "user"}'
            database.execute("INSERT INTO message VALUES (?, ?, ?, 1, ?)", [*new, data])
        for identity, created_at in database.execute(
            "SELECT id, time_created FROM message WHERE session_id != ?", [SESSION]
        ).fetchall():
            part = json.dumps({"type": "text", "text": f"Words of {created_at}"})
            row = [f"prt_{identity}", identity, part]
            database.execute("INSERT INTO part VALUES (?, ?, '', 1, 1, ?)", row)
    [entries] = entries_by_file(path).values()
    rows = [row_of(record) for record in records(entries)]
    assert rows[: len(opencode_rows())] == opencode_rows()
    assert [(row[1], row[3]) for row in rows[len(opencode_rows()) :]] == [
        ("Words of 1778387187001", "ses_fork1"),
        ("Words of 1778387187002", "ses_fork2"),
    ]


def opencode_tree(folder: Path) -> Path:
    """Write the session as versions before 1.2 did: a file for each session, message and part."""
    storage = folder / "storage"
    database = create_database(folder, "opencode")
    with closing(sqlite3.connect(database)) as connection:
        for row in connection.execute("SELECT id, directory, title FROM session"):
            value = dict(zip(("id", "directory", "title"), row, strict=True))
            write_json(storage / "session/p1" / row[0], value | {"projectID": "p1"})
        for row_id, session, data in connection.execute("SELECT id, session_id, data FROM message"):
            write_json(storage / "message" / session / row_id, json.loads(data) | {"id": row_id})
        for row_id, message, data in connection.execute("SELECT id, message_id, data FROM part"):
            write_json(storage / "part" / message / row_id, json.loads(data) | {"id": row_id})
    database.unlink()
    return storage


def write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name(f"{path.name}.json").write_text(json.dumps(value), encoding="utf-8")


def test_files_of_older_versions_of_opencode_give_the_same_messages(tmp_path):
    storage = opencode_tree(tmp_path)
    for path in (storage, storage / "session"):
        [entries] = entries_by_file(path).values()
        assert [row_of(record) for record in records(entries)] == opencode_rows()
        assert skipped(entries) == []
    database = entries_by_file(create_database(tmp_path, "opencode"))[""]
    assert records(entries) == records(database)


def test_only_damaged_parts_and_messages_are_skipped(tmp_path):
    storage = opencode_tree(tmp_path)
    message, *_ = sorted((storage / "message" / SESSION).iterdir())
    message.write_text("{")
    part, *_ = sorted((storage / "part").glob("*/*.json"), reverse=True)
    part.write_bytes(b"\xff")
    [entries] = entries_by_file(storage / "session").values()
    assert [reason for _, reason in skipped(entries)] == ["not a message", "not a part"]
    assert len(records(entries)) == len(opencode_rows()) - 1


def test_a_session_of_opencode_reads_no_other_files(tmp_path):
    storage = opencode_tree(tmp_path)
    [session] = (storage / "session/p1").iterdir()
    shutil.move(storage / "message" / SESSION, tmp_path / "elsewhere")
    for identity in ("../../elsewhere", str(tmp_path / "elsewhere")):
        session.write_text(json.dumps({"id": identity, "projectID": "p", "directory": "ses_"}))
        [entries] = entries_by_file(session, "opencode").values()
        assert skipped(entries) == [("the document", "no id")]
    (storage / "message" / SESSION).symlink_to(tmp_path / "elsewhere")
    session.write_text(json.dumps({"id": SESSION, "projectID": "p", "directory": "/"}))
    assert entries_by_file(session)[""] == []


def test_text_that_opencode_adds_to_a_session_is_left_out(tmp_path):
    path = create_database(tmp_path, "opencode")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DELETE FROM part")
        database.execute("UPDATE session SET title = 'New session - 2026-05-10T04:25:34.550Z'")
        [question_id, reply_id, *_] = [row[0] for row in database.execute("SELECT id FROM message")]
        database.execute(
            "UPDATE message SET data = json_set(data, '$.summary', json('true')) WHERE id = ?",
            [reply_id],
        )
        parts = [
            (question_id, {"type": "text", "text": "Called the Read tool", "synthetic": True}),
            (question_id, {"type": "text", "text": "How long?"}),
            (
                question_id,
                {"type": "file", "mime": "image/png", "filename": "a.png", "url": "data:"},
            ),
            (question_id, {"type": "file", "mime": "text/plain", "filename": "notes.txt"}),
            (reply_id, {"type": "text", "text": "A summary of what came before."}),
        ]
        database.executemany(
            "INSERT INTO part (id, message_id, time_created, time_updated, data)"
            " VALUES (?, ?, 1, 1, ?)",
            [
                (f"p{index}", message_id, json.dumps(part))
                for index, (message_id, part) in enumerate(parts)
            ],
        )
    [entries] = entries_by_file(path).values()
    assert roles_and_texts(entries) == [("user", "How long?\n[image]\n[file notes.txt]")]
    assert last_conversation(entries).title is None


# Databases


@pytest.mark.parametrize("tool", ["opencode", "cursor"])
def test_a_database_is_recognised_by_its_tables_and_imported_once(tool, tmp_path):
    path = create_database(tmp_path, tool).rename(tmp_path / "anything.db")
    before = path.read_bytes()
    (tmp_path / "note.md").write_text("# Birds")
    with Reservoir.open(tmp_path / "own" / "store.db") as reservoir:
        first = reservoir.import_files(path)
        assert first.imported == len(CURSOR if tool == "cursor" else opencode_rows())
        second = reservoir.import_files(tmp_path / "anything.db")
        assert (second.imported, second.already) == (0, first.imported)
    assert list(entries_by_file(tmp_path)) == ["anything.db"]
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("anything.db-*"))


@pytest.mark.parametrize(
    ("tool", "other"), [("opencode", "cursor"), ("cursor", "opencode"), ("opencode", "llm")]
)
def test_a_database_of_another_tool_is_refused(tool, other, tmp_path):
    path = create_database(tmp_path, tool)
    with pytest.raises(ReservoirError, match="is a database, but not"):
        entries_by_file(path, other)


@pytest.mark.parametrize(
    ("tool", "statement"),
    [
        ("opencode", "ALTER TABLE part ADD COLUMN x TEXT AS (hex(zeroblob(20000000)))"),
        ("cursor", "ALTER TABLE cursorDiskKV ADD COLUMN x TEXT AS (hex(zeroblob(20000000)))"),
    ],
)
def test_a_database_with_computed_content_is_refused(tool, statement, tmp_path):
    path = create_database(tmp_path, tool)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement)
    with pytest.raises(ReservoirError, match="is computed"):
        entries_by_file(path)


ENDLESS = {
    "opencode": """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
        INSERT INTO message SELECT 'm' || i, session.id, 1, 1, '{"role":"user"}' FROM n, session;
        UPDATE part SET message_id = 'none';
    """,
    "cursor": """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
        INSERT INTO cursorDiskKV SELECT 'composerData:x' || i,
        (SELECT value FROM cursorDiskKV WHERE key = 'composerData:c1') FROM n;
    """,
}


@pytest.mark.parametrize(("tool", "statement"), ENDLESS.items(), ids=ENDLESS)
def test_reading_ends_if_it_takes_too_long_for_the_size(tool, statement, tmp_path, monkeypatch):
    path = create_database(tmp_path, tool)
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(statement)
    monkeypatch.setattr("reservoir_cli.transfer.reading.foreign_databases.STEPS", 500_000)
    monkeypatch.setattr("reservoir_cli.transfer.reading.foreign_databases.STEPS_A_BYTE", 1)
    [entries] = entries_by_file(path).values()
    assert skipped(entries)[-1] == (
        "what follows",
        "reading it takes too long for a file of its size",
    )
