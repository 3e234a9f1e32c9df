"""Sessions of Goose: its database, and older files that are moved into it."""

import json
import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from databases import create_database
from reading import (
    SAMPLES,
    entries_by_file,
    file_of,
    last_conversation,
    lines,
    read,
    records,
    roles_and_texts,
    row_of,
    skipped,
)

from reservoir_cli.errors import ReservoirError
from reservoir_cli.transfer.detect_format import choose
from reservoir_cli.transfer.formats.goose import Goose
from reservoir_cli.transfer.reading.foreign_databases import tables_of
from reservoir_cli.transfer.reading.importer import Skipped


def database(folder: Path) -> list[Any]:
    [entries] = entries_by_file(create_database(folder, "goose")).values()
    return entries


def test_the_database_is_imported(tmp_path):
    entries = database(tmp_path)
    assert [row_of(record) for record in records(entries)][9:] == [
        ("user", "Write a test.", "13:00:01", "20260509_2"),
        ("assistant", 'developer__shell({"command": "pytest"})', "13:00:02", "20260509_2"),
        ("tool", "1 passed", "13:00:03", "20260509_2"),
        ("assistant", "It passes.", "13:00:05", "20260509_2"),
    ]
    assert skipped(entries) == [("message 14", "unknown role")]
    last = last_conversation(entries)
    assert (last.title, last.model, last.project) == (
        "A test for it",
        "claude-sonnet-4-5",
        "taskboard",
    )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_in_place_of_the_journal_is_not_opened(tmp_path):
    path = create_database(tmp_path, "goose")
    path.with_name(f"{path.name}-wal").touch()
    pipe = path.with_name(f"{path.name}-journal")
    os.mkfifo(pipe)
    opened = threading.Event()

    def write() -> None:
        with pipe.open("wb"):  # waits for a reader
            opened.set()

    writer = threading.Thread(target=write)
    writer.start()
    with pytest.raises(ReservoirError, match="not a regular file"):
        tables_of(path)
    assert not opened.is_set()
    with pytest.raises(ReservoirError, match="not a regular file"):
        entries_by_file(path)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # lets the writer finish
    writer.join()
    os.close(reader)


def test_a_file_that_was_moved_into_the_database_adds_nothing(tmp_path):
    older = [record.message for record in records(read((SAMPLES / "goose.jsonl").read_bytes()))]
    # The file is named after its session.
    file = file_of((SAMPLES / "goose.jsonl").read_bytes(), "goose.jsonl")
    older = [record.message for record in records(Goose().read(file))]
    assert [record.message for record in records(database(tmp_path))][:9] == older


def test_message_ids_of_a_growing_session_do_not_change():
    all_lines = (SAMPLES / "goose.jsonl").read_text(encoding="utf-8").splitlines()[:9]
    ids = [record.message.source_id for record in records(read("\n".join(all_lines)))]
    for count in range(3, 9):
        partial = records(read("\n".join(all_lines[:count])))
        assert [record.message.source_id for record in partial] == ids[: len(partial)]


@pytest.mark.parametrize(
    ("first", "form"),
    [
        ({"working_dir": "/a", "description": "x", "message_count": 0}, "goose"),
        ({"working_dir": "/a", "role": "user", "content": "x"}, "openai"),
        ({"description": "my working_dir", "role": "user", "content": "x"}, "openai"),
    ],
)
def test_a_session_is_recognised_by_its_first_line(first, form):
    assert choose(file_of(lines(first, {"role": "user", "content": []}))).name == form


def test_an_exported_session_is_read_too():
    message = {"role": "user", "created": 1, "content": [{"type": "text", "text": "Why?"}]}
    session = {"id": "s1", "working_dir": "/a/b", "name": "T", "schedule_id": None}
    entries = read(json.dumps({**session, "conversation": [message, 7]}))
    assert roles_and_texts(entries) == [("user", "Why?")]
    assert skipped(entries) == [("the document, message 2", "not a message")]
    assert (
        last_conversation(entries).id,
        last_conversation(entries).title,
        last_conversation(entries).project,
    ) == ("s1", "T", "b")


def test_both_forms_of_thinking_are_imported():
    content = [
        {"type": "reasoning", "text": "They mean the bird."},
        {"type": "thinking", "thinking": "Not the ship.", "signature": "x"},
        {"type": "text", "text": "One metre."},
    ]
    message = {"role": "assistant", "created": 1, "content": content}
    session = {"id": "s1", "working_dir": "/a", "message_count": 1, "conversation": [message]}
    entries = read(json.dumps(session))
    assert roles_and_texts(entries) == [
        ("assistant", "One metre."),
        ("system", "They mean the bird.\nNot the ship."),
    ]


def test_tables_without_some_columns_are_read(tmp_path):
    path = create_database(tmp_path, "goose")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE messages DROP COLUMN metadata_json")
        connection.execute("ALTER TABLE sessions DROP COLUMN model_config_json")
        connection.execute("ALTER TABLE sessions DROP COLUMN name")
    [entries] = entries_by_file(path).values()
    assert len(records(entries)) == 14


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE messages ADD COLUMN x TEXT AS (hex(zeroblob(20000000)))",
        "DROP TABLE messages; CREATE VIRTUAL TABLE messages USING fts5 (content_json)",
    ],
)
def test_a_database_with_computed_content_is_refused(tmp_path, statement):
    path = create_database(tmp_path, "goose")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(statement)
    with pytest.raises(ReservoirError, match="not a database as Goose writes it"):
        entries_by_file(path)


def test_a_database_of_another_program_is_not_a_session(tmp_path):
    path = create_database(tmp_path, "zed")
    [entries] = entries_by_file(path, "goose").values()
    assert entries == [Skipped("what follows", "the database cannot be read: SQLITE_ERROR")]
