"""Logs of llm, as databases that the tests write themselves."""

import sqlite3
from contextlib import closing
from typing import Any

from llm_logs import newer_log, older_log
from reading import entries_by_file, records, row_of, skipped


def log_rows(entries: list[Any]) -> list[tuple[Any, ...]]:
    assert skipped(entries) == []
    return [row_of(record) for record in records(entries)]


LOG = [
    ("system", "Be brief.", "08:00:00", "c1"),
    ("user", "[image]\n[file b.txt]\nThe fragment.\nWhat is it?", "08:00:00", "c1"),
    ("assistant", "A pelican.", "08:00:00", "c1"),
    ("user", "How tall?", "08:01:00", "c1"),
    ("assistant", 'measure({"what": "pelican"})', "08:01:00", "c1"),
    ("tool", "1.5 m", "08:01:30", "c1"),
    ("assistant", "A metre and a half.", "08:01:30", "c1"),
    ("user", "Alone", "09:00:00", "r4"),
    ("assistant", "Indeed", "09:00:00", "r4"),
]


def test_the_older_log_of_llm_is_imported(tmp_path):
    [entries] = entries_by_file(older_log(tmp_path / "logs.db")).values()
    assert log_rows(entries) == LOG
    first = records(entries)[0]
    assert first.conversation is not None
    assert (first.conversation.title, first.conversation.model) == ("Birds", "gpt-4o-mini")


def test_the_newer_log_of_llm_is_imported(tmp_path):
    [entries] = entries_by_file(newer_log(tmp_path / "logs.db")).values()
    assert log_rows(entries) == [
        ("system", "Be brief.", "10:00:00", "t1"),
        ("user", "The fragment. What is it?\n[image]", "10:00:00", "t1"),
        ("assistant", "A pelican.", "10:00:00", "t1"),
        ("system", "It has a beak.", "10:00:00", "t1"),
        ("user", "How tall?", "10:01:00", "t1"),
        ("assistant", 'measure({"what": "pelican"})', "10:01:00", "t1"),
        ("tool", "1.5 m", "10:02:00", "t1"),
        ("assistant", "A metre and a half.", "10:02:00", "t1"),
        # A fork shares the beginning of the first conversation, and only its own messages are new.
        ("user", "How heavy?", "11:00:00", "t2"),
        ("assistant", "Ten kilos.", "11:00:00", "t2"),
    ]


def test_a_log_in_both_formats_gives_each_message_once(tmp_path):
    path = newer_log(older_log(tmp_path / "logs.db"), also_older="turn-1")
    [entries] = entries_by_file(path).values()
    assert len(log_rows(entries)) == len(LOG) + 10


def test_rows_without_ids_do_not_hide_the_others(tmp_path):
    path = newer_log(older_log(tmp_path / "logs.db"))
    with closing(sqlite3.connect(path)) as log, log:
        log.execute("INSERT INTO turns (id, thread_id) VALUES (NULL, NULL)")
        log.execute("INSERT INTO responses (id, prompt) VALUES (NULL, 'x')")
    [entries] = entries_by_file(path).values()
    assert len(records(entries)) == len(LOG) + 10
    assert skipped(entries) == [("response 6", "no id"), ("turn 1", "no id")]


def test_a_log_without_a_column_is_read_as_far_as_possible(tmp_path):
    path = newer_log(older_log(tmp_path / "logs.db"))
    with closing(sqlite3.connect(path)) as log, log:
        log.execute("ALTER TABLE messages RENAME COLUMN hash TO digest")
    [entries] = entries_by_file(path).values()
    assert [row_of(record) for record in records(entries)] == LOG
    assert [position for position, _ in skipped(entries)] == ["what follows"]


def test_a_read_only_log_is_read_without_creating_files(tmp_path):
    path = older_log(tmp_path / "logs.db")
    before = path.read_bytes()
    path.chmod(0o400)
    assert len(entries_by_file(path)[""]) == len(LOG)
    assert path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["logs.db"]
