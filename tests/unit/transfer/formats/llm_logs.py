"""Logs of the ``llm`` command line in both formats."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

OLDER = """
CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT,
    prompt_json TEXT, options_json TEXT, response TEXT, response_json TEXT, conversation_id TEXT,
    duration_ms INTEGER, datetime_utc TEXT);
CREATE TABLE attachments (id TEXT PRIMARY KEY, type TEXT, path TEXT, url TEXT, content BLOB);
CREATE TABLE prompt_attachments (response_id TEXT, attachment_id TEXT, "order" INTEGER);
CREATE TABLE fragments (id INTEGER PRIMARY KEY, hash TEXT, content TEXT, source TEXT);
CREATE TABLE prompt_fragments (response_id TEXT, fragment_id INTEGER, "order" INTEGER);
CREATE TABLE system_fragments (response_id TEXT, fragment_id INTEGER, "order" INTEGER);
CREATE TABLE tool_calls (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT,
    arguments TEXT, tool_call_id TEXT);
CREATE TABLE tool_results (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT,
    output TEXT, tool_call_id TEXT);
INSERT INTO attachments VALUES ('a1', 'image/png', '/tmp/a.png', NULL, x'89'),
    ('a2', 'text/plain', '/tmp/b.txt', NULL, x'00');
INSERT INTO fragments VALUES (1, 'h', 'The fragment.', 'notes.txt');
"""

NEWER = """
CREATE TABLE IF NOT EXISTS attachments
    (id TEXT PRIMARY KEY, type TEXT, path TEXT, url TEXT, content BLOB);
CREATE TABLE IF NOT EXISTS fragments
    (id INTEGER PRIMARY KEY, hash TEXT, content TEXT, source TEXT);
INSERT OR IGNORE INTO attachments VALUES ('a1', 'image/png', NULL, 'https://x/y', x'89');
INSERT OR IGNORE INTO fragments VALUES (1, 'h', 'The fragment.', 'notes.txt');
CREATE TABLE threads (id TEXT PRIMARY KEY, name TEXT, tip_message_hash TEXT, forked_from TEXT,
    datetime_utc TEXT);
CREATE TABLE turns (id TEXT PRIMARY KEY, thread_id TEXT, parent_message_hash TEXT,
    tip_message_hash TEXT, model TEXT, datetime_utc TEXT);
CREATE TABLE messages (hash TEXT PRIMARY KEY, parent_hash TEXT, role TEXT,
    provider_metadata TEXT);
CREATE TABLE parts (id INTEGER PRIMARY KEY, message_hash TEXT, position INTEGER, type TEXT,
    tool_name TEXT, text TEXT, payload TEXT);
"""


def older_log(path: Path) -> Path:
    """Write a log of a version before 0.32."""
    with closing(sqlite3.connect(path)) as log, log:
        log.executescript(OLDER)
        log.execute("INSERT INTO conversations VALUES ('c1', 'Birds', 'gpt-4o-mini')")
        responses = [
            ("r1", "What is it?", "Be brief.", "A pelican.", "c1", "2026-03-01T08:00:00.123456"),
            ("r2", "How tall?", "Be brief.", "", "c1", "2026-03-01T08:01:00"),
            ("r3", "", "Be brief.", "A metre and a half.", "c1", "2026-03-01T08:01:30"),
            ("r4", "Alone", None, "Indeed", None, "2026-03-01T09:00:00+00:00"),
            ("r5", None, None, None, "c1", None),
        ]
        for identity, prompt, system, response, conversation, created_at in responses:
            log.execute(
                "INSERT INTO responses (id, model, prompt, system, response, conversation_id, "
                "datetime_utc) VALUES (?, 'gpt-4o-mini', ?, ?, ?, ?, ?)",
                (identity, prompt, system, response, conversation, created_at),
            )
        log.execute("INSERT INTO prompt_attachments VALUES ('r1', 'a2', 1), ('r1', 'a1', 0)")
        log.execute("INSERT INTO prompt_fragments VALUES ('r1', 1, 0)")
        arguments = '{"what": "pelican"}'
        log.execute(
            "INSERT INTO tool_calls VALUES (1, 'r2', 1, 'measure', ?, 'call_1')", (arguments,)
        )
        log.execute("INSERT INTO tool_results VALUES (1, 'r3', 1, 'measure', '1.5 m', 'call_1')")
    return path


def newer_log(path: Path, also_older: str | None = None) -> Path:
    """Write a log of a version from 0.32 on.

    :param also_older: a turn that is in the older tables, too.
    """
    text: dict[str, Any] = {"type": "text"}
    messages: list[tuple[str, str | None, str, list[dict[str, Any]]]] = [
        ("b2:s", None, "system", [{**text, "text": "Be brief."}]),
        (
            "b2:u1",
            "b2:s",
            "user",
            [
                {**text, "text_ref": [{"fragment": 1}, {"literal": " What is it?"}]},
                {"type": "attachment", "attachment": {"id": "a1"}},
            ],
        ),
        (
            "b2:a1",
            "b2:u1",
            "assistant",
            [{"type": "reasoning", "text": "It has a beak."}, {**text, "text": "A pelican."}],
        ),
        ("b2:u2", "b2:a1", "user", [{**text, "text": "How tall?"}]),
        (
            "b2:a2",
            "b2:u2",
            "assistant",
            [
                {
                    "type": "tool_call",
                    "name": "measure",
                    "arguments": {"what": "pelican"},
                    "tool_call_id": "call_9",
                }
            ],
        ),
        (
            "b2:u3",
            "b2:a2",
            "tool",
            [
                {
                    "type": "tool_result",
                    "name": "measure",
                    "output": "1.5 m",
                    "tool_call_id": "call_9",
                }
            ],
        ),
        ("b2:a3", "b2:u3", "assistant", [{**text, "text": "A metre and a half."}]),
        ("b2:u4", "b2:a1", "user", [{**text, "text": "How heavy?"}]),
        ("b2:a4", "b2:u4", "assistant", [{**text, "text": "Ten kilos."}]),
    ]
    with closing(sqlite3.connect(path)) as log, log:
        log.executescript(NEWER)
        for message_hash, parent, role, parts in messages:
            log.execute("INSERT INTO messages VALUES (?, ?, ?, NULL)", (message_hash, parent, role))
            for position, part in enumerate(parts):
                kind, content = part["type"], part.get("text")
                payload = {key: value for key, value in part.items() if key not in ("type", "text")}
                log.execute(
                    "INSERT INTO parts (message_hash, position, type, tool_name, text, payload) "
                    "VALUES (?, ?, ?, ?, ?, ?)",
                    (
                        message_hash,
                        position,
                        kind,
                        part.get("name"),
                        content,
                        json.dumps(payload) if payload else None,
                    ),
                )
        log.execute("INSERT INTO threads VALUES ('t1', 'Birds', 'b2:a3', NULL, NULL)")
        log.execute("INSERT INTO threads VALUES ('t2', 'Weights', 'b2:a4', 't1', NULL)")
        for number, (thread, parent, tip, time) in enumerate(
            [
                ("t1", "b2:u1", "b2:a1", "10:00:00"),
                ("t1", "b2:u2", "b2:a2", "10:01:00"),
                ("t1", "b2:u3", "b2:a3", "10:02:00"),
                ("t2", "b2:u4", "b2:a4", "11:00:00"),
            ],
            1,
        ):
            row = (f"turn-{number}", thread, parent, tip, "gpt-5", f"2026-04-01T{time}.5")
            log.execute("INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?)", row)
        if also_older:
            log.execute(
                "INSERT INTO responses (id, prompt, response) VALUES (?, 'x', 'y')", (also_older,)
            )
    return path
