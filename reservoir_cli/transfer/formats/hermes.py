"""Import sessions of Hermes Agent from its database."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from reservoir_cli.transfer.reading.content_blocks import call_block
from reservoir_cli.transfer.reading.foreign_databases import (
    DatabaseConversation,
    DatabaseImporter,
    ToolDatabase,
)
from reservoir_cli.transfer.reading.foreign_values import objects, parse_json, text
from reservoir_cli.transfer.reading.importer import Place, Record, Skipped, Thread
from reservoir_cli.transfer.reading.platform_folders import tool_dir
from reservoir_cli.transfer.reading.transcripts import Turn

_COLUMNS = {
    "sessions": "id title model parent_session_id cwd git_branch",
    "messages": "id role content tool_call_id tool_calls tool_name timestamp reasoning "
    "reasoning_content",
}


class Hermes(DatabaseImporter):
    """Reads ``state.db`` in ``~/.hermes``."""

    name = "hermes"
    title = "Hermes"
    instance = "hermes"
    columns = _COLUMNS
    tables = (frozenset({"sessions.started_at", "messages.session_id", "messages.timestamp"}),)

    def places(self) -> Iterator[Place]:
        yield Place(tool_dir("HERMES_HOME", ".hermes") / "state.db", (".db",))

    def conversations(self, database: ToolDatabase, name: str) -> Iterator[DatabaseConversation]:
        database.refuse_computed(f"{name} is not a database as Hermes writes it")
        changing = {"id": "sum", "content": "length"}
        messages = database.count_by_session("messages", changing)
        query = "SELECT rowid FROM sessions ORDER BY started_at, id"
        for (number,) in database.connection.execute(query):
            about = database.one("sessions", "rowid", number)
            version = (about.get("title"), messages.get(about.get("id")))
            read = partial(_read_session, database, about)
            yield DatabaseConversation(about.get("id"), version, read)


def _read_session(database: ToolDatabase, about: dict[str, Any]) -> Iterator[Record | Skipped]:
    identity = about["id"]
    thread = Thread(
        Hermes.name,
        identity,
        title=about.get("title"),
        model=about.get("model"),
        folder=about.get("cwd"),
        branch=about.get("git_branch"),
        parent=about.get("parent_session_id"),
    )
    query = "SELECT rowid FROM messages WHERE session_id = ? ORDER BY timestamp, id"
    for (row_number,) in database.connection.execute(query, [identity]):
        row = database.one("messages", "rowid", row_number)
        if row.get("role") in ("session_meta", "system"):
            continue
        turn = _turn(identity, row)
        thread.follow(turn.source_id or "")
        yield from thread.convert(f"message {row_number}", turn.source_id, turn.messages)


def _turn(session: str, row: dict[str, Any]) -> Turn:
    content = row.get("content")
    if isinstance(parsed := parse_json(content), list):  # a message with pictures
        content = parsed
    blocks = [*(content if isinstance(content, list) else [content])]
    blocks += map(call_block, objects(parse_json(row.get("tool_calls"))))
    thinking = text(row.get("reasoning_content")) or text(row.get("reasoning"))
    blocks.append({"type": "thinking", "thinking": thinking})
    role, call_id = str(row.get("role")), text(row.get("tool_call_id"))
    source_id, time = f"{session}:{row.get('id')}", row.get("timestamp")
    return Turn(role, content if role == "tool" else blocks, source_id, time, call_id=call_id)
