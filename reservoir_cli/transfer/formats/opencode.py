"""Import opencode's sessions from its database, or from the files of older versions.

A message has a role and times; its parts are texts, thinking, and tool calls with their results.
Parts are rows of their own before version 2, and files of their own before version 1.2. Version 2
keeps the tables of earlier versions, and copies their sessions with the same ids.
"""

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Message
from reservoir_cli.storage.content_identity import unquote
from reservoir_cli.transfer.reading import content_blocks
from reservoir_cli.transfer.reading.content_blocks import file_block, tool_result, tool_use
from reservoir_cli.transfer.reading.decompressed_file import SQLITE, File, Head
from reservoir_cli.transfer.reading.foreign_databases import (
    DatabaseConversation,
    DatabaseImporter,
    ToolDatabase,
)
from reservoir_cli.transfer.reading.foreign_values import obj, objects, parse_object, text
from reservoir_cli.transfer.reading.importer import Place, Record, Skipped, Thread
from reservoir_cli.transfer.reading.json_stream import read_entries
from reservoir_cli.transfer.reading.platform_folders import xdg_data_dir
from reservoir_cli.transfer.reading.times import moment_ms
from reservoir_cli.util.read_files import LARGEST, open_regular, read_stream

_SESSION = "id parent_id directory title time_created model revert fork_session_id"
_COLUMNS = {
    "session_v2": _SESSION,
    "session_message": "id session_id type seq time_created data",
    "session": _SESSION,
    "message": "id session_id time_created data",
    "part": "id message_id data",
}
#: The tables of version 2, and those of earlier versions.
_TABLES = (
    frozenset({"session_v2", "session_message"}),
    frozenset({"session", "message", "part.message_id"}),
)
#: The title of a session before opencode has generated one.
_UNTITLED = re.compile(r"(?:New|Child) session - \d{4}-\d\d-\d\dT")
#: The end of the title of a session that was forked from another one.
_FORK = re.compile(r"\(fork #\d+\)\s*$")
#: Roles by type in version 2; other types are the program's own text, or changed settings.
_ROLES = {"user": "user", "assistant": "assistant", "shell": "assistant"}
_ID = re.compile(r"[A-Za-z0-9_-]{1,200}")  #: A valid id, which is also the name of a file.

#: An object with its position; ``None`` if it cannot be read.
Placed = tuple[str, dict[str, Any] | None]


class OpenCode(DatabaseImporter):
    """Reads ``opencode.db``, and the folder ``storage`` of versions before 1.2."""

    name = "opencode"
    title = "opencode"
    instance = "opencode"
    version = 2
    columns = _COLUMNS
    tables = _TABLES

    def detect(self, head: Head) -> bool:
        return head.has_all("projectID", "directory")

    def places(self) -> Iterator[Place]:
        """Yield the places, with those of Kilo Code, which is built on opencode by now."""
        folder = xdg_data_dir() / "opencode"
        yield Place(folder / (os.environ.get("OPENCODE_DB") or "opencode.db"), (".db",))
        yield Place(folder / "storage" / "session", (".json",))
        kilo = xdg_data_dir() / "kilo" / (os.environ.get("KILO_DB") or "kilo.db")
        yield Place(kilo, (".db",), title="Kilo Code")

    def read(self, file: File) -> Iterator[Record | Skipped]:
        is_database = file.head().startswith(SQLITE)
        return super().read(file) if is_database else _read_tree(file)

    def conversations(self, database: ToolDatabase, name: str) -> Iterator[DatabaseConversation]:
        if not database.has_all_of(_TABLES):
            raise ReservoirError(f"{name} is a database, but not opencode's", hint="omit --format")
        database.refuse_computed(f"{name} is not a database as opencode writes it")
        changing = {"time_updated": "sum", "data": "length"}
        rows = database.count_by_session("session_message", changing)
        messages = database.count_by_session("message", changing)
        parts = database.count_by_session("part", changing)
        for identity, table in _list_sessions(database).items():
            about = database.one(table, "id", identity)
            counts = (rows.get(identity), messages.get(identity), parts.get(identity))
            has_rows = identity in rows and (table == "session_v2" or identity not in messages)
            read = partial(_read_rows if has_rows else _read, database, identity, about)
            yield DatabaseConversation(identity, (about, *counts), read)


def _list_sessions(database: ToolDatabase) -> dict[Any, str]:
    sessions: dict[Any, str] = {}
    for table in ("session_v2", "session"):
        if table in database.tables:
            query = f"SELECT id FROM {table} ORDER BY time_created, id"
            for (identity,) in database.connection.execute(query):
                sessions.setdefault(identity, table)
    return sessions


def _list_messages(
    database: ToolDatabase, table: str, about: dict[str, Any], order: str
) -> Iterator[Any]:
    """Yield the ids of a session's messages that nobody took back and no fork copied."""
    if table not in database.tables:
        return
    query = f"SELECT id, time_created FROM {table} WHERE session_id = ? ORDER BY {order}"
    rows = database.connection.execute(query, (about.get("id"),)).fetchall()
    database.spend(len(rows))
    taken_back = parse_object(about.get("revert")) or {}
    elsewhere = _find_copied(database, table, about)
    for message_id, created_at in rows:
        is_boundary = message_id == taken_back.get("messageID")
        if is_boundary and not taken_back.get("partID"):
            return
        if created_at not in elsewhere:
            yield message_id
        if is_boundary:  # of this message, only the end was taken back
            return


def _find_copied(database: ToolDatabase, table: str, about: dict[str, Any]) -> set[Any]:
    """Return the times of the messages that a fork copied; copies have later ids."""
    if not about.get("fork_session_id") and not _FORK.search(text(about.get("title")) or ""):
        return set()
    query = f"SELECT time_created, session_id, min(id) FROM {table} GROUP BY time_created"
    first = database.connection.execute(query)
    return {row[0] for row in first if row[1] != about.get("id")}


def _read_rows(
    database: ToolDatabase, identity: Any, about: dict[str, Any]
) -> Iterator[Record | Skipped]:
    thread = _make_thread(identity, about)
    order = "seq, id" if database.has("session_message", "seq") else "time_created, id"
    for message_id in _list_messages(database, "session_message", about, order):
        row = database.one("session_message", "id", message_id)
        place, value = f"message {message_id}", parse_object(row.get("data"))
        if value is None:
            yield Skipped(place, "not a message")
            continue
        thread.update(model=_model_of(value.get("model")))
        read = partial(_row_messages, row, value, str(message_id))
        yield from thread.convert(place, str(message_id), read)


def _read(
    database: ToolDatabase, identity: Any, about: dict[str, Any]
) -> Iterator[Record | Skipped]:
    ids = _list_messages(database, "message", about, "time_created, id")

    def read_message(message_id: Any) -> Placed:
        return _parse_row(f"message {message_id}", database.one("message", "id", message_id))

    def read_parts(message_id: str) -> Iterator[Placed]:
        rows = database.rows("part", "message_id", message_id, "id")
        return (_parse_row(f"part {row.get('id')}", row) for row in rows)

    yield from _read_session(_make_thread(identity, about), map(read_message, ids), read_parts)


def _parse_row(place: str, row: dict[str, Any]) -> Placed:
    value = parse_object(row.get("data"))
    if value is None:
        return place, None
    return place, {"time": {"created": row.get("time_created")}} | value | {"id": row.get("id")}


def _make_thread(key: str, session: dict[str, Any]) -> Thread:
    title = text(session.get("title"))
    if title and _UNTITLED.match(title):
        title = None
    parent, folder = session.get("parent_id") or session.get("parentID"), session.get("directory")
    return Thread(OpenCode.name, key, title=title, folder=folder, parent=parent)


def _read_session(
    thread: Thread, messages: Iterator[Placed], parts: Callable[[str], Iterator[Placed]]
) -> Iterator[Record | Skipped]:
    """Yield the messages of a session, whose parts are found by the id of a message."""
    for place, message in messages:
        message_id = text(message.get("id")) if message else None
        if message is None or message_id is None:
            yield Skipped(place, "not a message")
            continue
        content = []
        for part_place, part in parts(message_id):
            if part is None:
                yield Skipped(part_place, "not a part")
            else:
                content += _blocks(part)
        requested = obj(message.get("model"))
        thread.update(model=text(message.get("modelID")) or requested.get("modelID"))
        read = partial(_messages, message, content, message_id)
        yield from thread.convert(place, message_id, read)


def _messages(message: dict[str, Any], content: list[dict[str, Any]], message_id: str) -> list[Any]:
    role = message.get("role")
    if role not in ("user", "assistant"):
        raise ValueError("unknown role")
    if role == "assistant" and message.get("summary") is True:  # summarises earlier messages
        return []
    time = moment_ms(obj(message.get("time")).get("created"))
    if role == "user":
        content = list(map(_unquoted, content))
    return content_blocks.messages(role, content, time, message_id)


def _unquoted(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block of a prompt without the quotation marks that the command line adds."""
    return {**block, "text": unquote(block["text"])} if block.get("type") == "text" else block


def _blocks(part: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a part as blocks; none for the program's own text and steps."""
    match part.get("type"):
        case "text" if part.get("synthetic") is not True and part.get("ignored") is not True:
            return [{"type": "text", "text": text(part.get("text")) or ""}]
        case "reasoning":
            return [{"type": "thinking", "thinking": part.get("text")}]
        case "file":
            return [file_block(part.get("mime"), part.get("filename"))]
        case "tool":
            return _call_blocks(part)
        case _:
            return []


def _call_blocks(part: dict[str, Any]) -> list[dict[str, Any]]:
    state, identity = obj(part.get("state")), text(part.get("callID")) or text(part.get("id"))
    called = tool_use(identity, part.get("tool") or part.get("name"), state.get("input"))
    outputs = (state.get("content"), state.get("output"), state.get("error"))
    output = next(filter(None, outputs), state.get("output"))
    output = obj(output).get("message", output)
    return [called, tool_result(identity, output)] if isinstance(output, str | list) else [called]


# The rows of version 2, each of which is a message with its parts


def _model_of(value: Any) -> str | None:
    return text(obj(parse_object(value) or value).get("id"))


def _row_messages(row: dict[str, Any], value: dict[str, Any], message_id: str) -> list[Message]:
    """Return a row's messages, none for the program's own text, or raise ValueError."""
    kind = text(row.get("type"))
    if kind not in _ROLES:
        return []
    created_at = moment_ms(obj(value.get("time")).get("created") or row.get("time_created"))
    blocks = list({"user": _question, "shell": _command}.get(kind, _reply)(value))
    return content_blocks.messages(_ROLES[kind], blocks, created_at, message_id)


def _question(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield _unquoted({"type": "text", "text": text(value.get("text")) or ""})
    for file in objects(value.get("files")):
        yield file_block(file.get("mime"), file.get("name") or file.get("filename"))


def _command(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    identity, output = text(value.get("shellID")), obj(value.get("output")).get("output")
    yield tool_use(identity, "shell", {"command": value.get("command")})
    if isinstance(output, str):
        yield tool_result(identity, output)


def _reply(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for part in objects(value.get("content")):
        yield from _blocks(part)


# The files of older versions


def _read_tree(file: File) -> Iterator[Record | Skipped]:
    """Yield the messages of a session file; they are in files of other folders."""
    folders = file.path.absolute().parents if file.path else ()
    storage = folders[2] if len(folders) > 2 else None

    def read_parts(message_id: str) -> Iterator[Placed]:
        if storage is None or not _ID.fullmatch(message_id):
            return iter(())
        return _read_folder(storage / "part" / message_id)

    def read(place: str, session: dict[str, Any]) -> Iterator[Record | Skipped]:
        if isinstance(session.get("messages"), list):
            yield from _read_export(place, session)
            return
        session_id = text(session.get("id"))
        if session_id is None or not _ID.fullmatch(session_id):
            raise ValueError("no id")
        if storage is None:
            yield Skipped("the file", "its messages are in other files: give the folder")
            return
        thread = _make_thread(session_id, session)
        yield from _read_session(thread, _read_folder(storage / "message" / session_id), read_parts)

    yield from read_entries(file, read)


def _read_export(place: str, value: dict[str, Any]) -> Iterator[Record | Skipped]:
    """Yield the messages of a session that ``opencode export`` printed."""
    about = obj(value.get("info"))
    session_id = text(about.get("id"))
    if session_id is None:
        raise ValueError("no id")
    parts: dict[str, list[Any]] = {}
    messages: list[Placed] = []
    for number, entry in enumerate(value["messages"], 1):
        message = obj(entry).get("info")
        messages.append((f"{place}, message {number}", _as_object(message)))
        listed = obj(entry).get("parts")
        parts[str(obj(message).get("id"))] = listed if isinstance(listed, list) else []

    def read_parts(message_id: str) -> Iterator[Placed]:
        for number, part in enumerate(parts.get(message_id, ()), 1):
            yield f"{place}, part {number}", _as_object(part)

    yield from _read_session(_make_thread(session_id, about), iter(messages), read_parts)


def _as_object(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def _read_folder(folder: Path) -> Iterator[Placed]:
    """Yield a folder's objects by name, which begins with the time; links are not followed."""
    if folder.is_symlink() or folder.parent.is_symlink():
        return
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if _is_file(entry))
    except OSError:
        return
    for name in names:
        try:
            with open_regular(folder / name) as stream:
                value = parse_object(read_stream(stream, LARGEST))
        except (OSError, ReservoirError):
            value = None
        identity = text(obj(value).get("id")) or name.removesuffix(".json")
        yield name, None if value is None else value | {"id": identity}


def _is_file(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".json") and entry.is_file(follow_symlinks=False)
