"""Import Cursor's conversations ("composers") and messages ("bubbles") from its state database.

Both are JSON in a table of keys and values. A composer lists its bubbles in order; an older one
contains them. A conversation of a subagent names the one it works for.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import THINKING
from reservoir_cli.transfer.reading import content_blocks
from reservoir_cli.transfer.reading.content_blocks import texts_between, tool_result, tool_use
from reservoir_cli.transfer.reading.decompressed_file import SQLITE, File, Head
from reservoir_cli.transfer.reading.foreign_databases import (
    DatabaseConversation,
    DatabaseImporter,
    ToolDatabase,
    size_in_bytes,
)
from reservoir_cli.transfer.reading.foreign_values import (
    branch_name,
    obj,
    objects,
    parse_object,
    require_object,
    text,
    uri_path,
)
from reservoir_cli.transfer.reading.importer import Place, Record, Skipped, Thread
from reservoir_cli.transfer.reading.platform_folders import editor_user_dir
from reservoir_cli.transfer.reading.times import moment_ms
from reservoir_cli.transfer.reading.transcripts import Transcript, Turn

_TABLE = "cursorDiskKV"
_COLUMNS = {_TABLE: "key value", "composerHeaders": "composerId value"}
_COMPOSER, _BUBBLE, _AGENT = "composerData:", "bubbleId:", "agentKv:"
_ROLES = {1: "user", 2: "assistant"}
_UNTITLED = "New Agent"  #: The title until Cursor finds another one.
_DEFAULT = "default"  #: The model's name if Cursor chooses the model.


class Cursor(DatabaseImporter):
    """Reads ``state.vscdb`` in Cursor's ``globalStorage``."""

    name = "cursor"
    title = "Cursor"
    instance = "cursor"
    folders = ("agent-transcripts",)
    version = 2
    columns = _COLUMNS
    tables = (frozenset({_TABLE}),)

    def detect(self, head: Head) -> bool:
        is_line = head.has_all("role", "message", depth=1) and head.has("content")
        return is_line and not head.has("type", "timestamp", "uuid", "id", depth=1)

    def places(self) -> Iterator[Place]:
        yield Place(editor_user_dir("Cursor") / "globalStorage" / "state.vscdb", (".vscdb",))
        projects = Path.home() / ".cursor" / "projects"
        yield Place(projects, (".jsonl", ".txt"), ("agent-transcripts",))  # .txt only to be named

    def read(self, file: File) -> Iterator[Record | Skipped]:
        is_database = file.head().startswith(SQLITE)
        return super().read(file) if is_database else CursorTranscript(file).read()

    def read_all(self, name: str, database: ToolDatabase) -> Iterator[Record | Skipped]:
        """Yield the messages of an open database, or that it holds them in another form."""
        is_empty = True
        for item in super().read_all(name, database):
            is_empty = False
            yield item
        query = f"SELECT 1 FROM {_TABLE} WHERE key >= ? AND key < ? LIMIT 1"
        if is_empty and database.connection.execute(query, (_AGENT, _AGENT[:-1] + ";")).fetchone():
            yield Skipped(
                "conversations of the agent",
                "in a form that is not read (agentKv); read their transcripts in "
                "~/.cursor/projects instead",
            )

    def conversations(self, database: ToolDatabase, name: str) -> Iterator[DatabaseConversation]:
        """Yield the composers; a new or changed bubble changes the version of its composer."""
        if _TABLE not in database.tables:
            raise ReservoirError(f"{name} is a database, but not Cursor's", hint="omit --format")
        database.refuse_computed(f"{name} is not a database as Cursor writes it")
        # ";" is the character after ":", and ends the range of keys with the prefix.
        composers = database.connection.execute(
            f"SELECT key, rowid, {size_in_bytes('value')} FROM {_TABLE} "
            "WHERE key >= ? AND key < ? ORDER BY key",
            (_COMPOSER, _COMPOSER[:-1] + ";"),
        )
        # A rewritten row has a new rowid.
        bubbles = (
            f"SELECT count(*), max(rowid), sum(rowid), sum({size_in_bytes('value')}) FROM {_TABLE} "
            "WHERE key >= ? AND key < ?"
        )
        for key, *version in composers:
            prefix = f"{_BUBBLE}{str(key)[len(_COMPOSER) :]}"
            sums = database.connection.execute(bubbles, (f"{prefix}:", f"{prefix};")).fetchone()
            yield DatabaseConversation(key, (version, tuple(sums)), partial(_read, database, key))


def _read(database: ToolDatabase, key: Any) -> Iterator[Record | Skipped]:
    identity = text(str(key)[len(_COMPOSER) :])
    composer = parse_object(database.one(_TABLE, "key", key).get("value"))
    if composer is None or identity is None:
        yield Skipped(f"conversation {identity}", "not a JSON object")
    else:
        yield from _Composer(database, identity, composer).read()


class _Composer:
    def __init__(self, database: ToolDatabase, identity: str, value: dict[str, Any]) -> None:
        self._database = database
        self._identity = identity
        self._value = value
        self._at = moment_ms(value.get("createdAt"))
        header = self._database.one("composerHeaders", "composerId", identity)
        head = parse_object(header.get("value")) or {}
        folder = _folder(value) or _folder(head) or text(value.get("currentDir"))
        title = value.get("name")
        self._thread = Thread(
            Cursor.name,
            identity,
            title=None if title == _UNTITLED else title,
            model=_model(obj(value.get("modelConfig"))),
            folder=folder,
            branch=branch_name(value.get("createdOnBranch")),
            parent=_parent(value) or _parent(head),
        )
        self._held_thinking: list[Record] = []

    def read(self) -> Iterator[Record | Skipped]:
        for number, bubble in enumerate(self._bubbles(), 1):
            place = f"conversation {self._identity}, message {number}"
            yield from Skipped.if_invalid(place, self._read_bubble(bubble))
        yield from self._held_thinking

    def _bubbles(self) -> Iterator[dict[str, Any] | None]:
        """Yield the bubbles in order, skipping deleted ones."""
        inline = obj(self._value.get("conversationMap"))
        seen: set[str] = set()
        for header in objects(self._value.get("fullConversationHeadersOnly")):
            bubble_id = text(header.get("bubbleId"))
            if bubble_id is None or bubble_id in seen:
                continue
            seen.add(bubble_id)
            key = f"{_BUBBLE}{self._identity}:{bubble_id}"
            if rows := self._database.rows(_TABLE, "key", key, "key"):
                bubble = parse_object(rows[0].get("value"))
                yield header | bubble if bubble is not None else None
            elif bubble_id in inline:
                yield header | obj(inline[bubble_id])
        yield from objects(self._value.get("conversation"))

    def _read_bubble(self, bubble: dict[str, Any] | None) -> Iterator[Record]:
        bubble = require_object(bubble)
        bubble_id = text(bubble.get("bubbleId"))
        self._at = _time(bubble) or self._at
        role, content = _role(bubble), _content(bubble)
        messages = content_blocks.messages(role, content, self._at, bubble_id or "")
        self._update_metadata(bubble)
        record_id = bubble_id and f"{self._identity}:{bubble_id}"
        yield from self._reorder_thinking(list(self._thread.records(record_id, messages)))

    def _reorder_thinking(self, records: list[Record]) -> Iterator[Record]:
        """Yield records with thinking moved from before its reply to after it."""
        if [record.message.name for record in records] == [THINKING]:
            self._held_thinking += records
        elif records:
            reply = 0 if records[0].message.role == "user" else 1
            yield from (*records[:reply], *self._held_thinking, *records[reply:])
            self._held_thinking.clear()

    def _update_metadata(self, bubble: dict[str, Any]) -> None:
        folders = bubble.get("workspaceUris")
        first = uri_path(folders[0]) if isinstance(folders, list) and folders else None
        self._thread.update(model=_model(obj(bubble.get("modelInfo"))), folder=first)


def _role(bubble: dict[str, Any]) -> str:
    kind = bubble.get("type")
    if not isinstance(kind, int) or kind not in _ROLES:
        raise ValueError("unknown type")
    return _ROLES[kind]


def _content(bubble: dict[str, Any]) -> list[dict[str, Any]]:
    content = bubble.get("text")
    if content is not None and not isinstance(content, str):
        raise ValueError("text is not a text")
    blocks: list[dict[str, Any]] = [{"type": "image"} for _ in objects(bubble.get("images"))]
    blocks += [{"type": "text", "text": content or _rich_text(bubble.get("richText"))}]
    thoughts = objects(bubble.get("allThinkingBlocks")) or [obj(bubble.get("thinking"))]
    blocks += [{"type": "thinking", "thinking": thought.get("text")} for thought in thoughts]
    tool = obj(bubble.get("toolFormerData"))
    if text(tool.get("name")):
        blocks += _call_blocks(tool)
    return blocks


def _rich_text(value: Any) -> str:
    """Return the words of Cursor's input field, which some messages have instead of a text."""
    root = obj((parse_object(value) or {}).get("root"))
    return "\n".join("".join(_words(block)) for block in objects(root.get("children")))


def _words(block: dict[str, Any]) -> Iterator[str]:
    nodes = [block]
    while nodes:
        node = nodes.pop()
        words = "\n" if node.get("type") == "linebreak" else node.get("text")
        if isinstance(words, str):
            yield words
        nodes += reversed(list(objects(node.get("children"))))


def _call_blocks(tool: dict[str, Any]) -> list[dict[str, Any]]:
    identity = text(tool.get("toolCallId"))
    called = tool_use(identity, tool["name"], tool.get("rawArgs") or tool.get("params"))
    result = tool.get("result") or obj(tool.get("error")).get("clientVisibleErrorMessage")
    if not result:
        return [called]
    content = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    return [called, tool_result(identity, content)]


def _folder(value: dict[str, Any]) -> str | None:
    return text(obj(obj(value.get("workspaceIdentifier")).get("uri")).get("fsPath"))


def _parent(value: dict[str, Any]) -> str | None:
    """Return the conversation that a subagent works for, over all subagents between them."""
    about = obj(value.get("subagentInfo"))
    return text(about.get("rootParentConversationId")) or text(about.get("parentComposerId"))


def _time(bubble: dict[str, Any]) -> datetime | None:
    """Return when a bubble was created; ignore times relative to the program's start."""
    timing = obj(bubble.get("timingInfo"))
    values = (bubble.get("createdAt"), timing.get("clientRpcSendTime"))
    times = (moment_ms(time) for time in values)
    return next((time for time in times if time and time.year >= 2000), None)


def _model(about: dict[str, Any]) -> str | None:
    name = text(about.get("modelName"))
    return None if name == _DEFAULT else name


_FOLDER = "agent-transcripts"
_QUERY = ("<user_query>", "</user_query>")


class CursorTranscript(Transcript):
    """A transcript while it is read. Its messages have the time of the file."""

    source = "cursor"

    def __init__(self, file: File) -> None:
        super().__init__(file)
        names = file.place.parts
        if _FOLDER in names[1:]:
            position = names.index(_FOLDER, 1)
            self.describe(folder=_project_folder(names[position - 1]))
            session = names[position + 1]
            if len(names) > position + 2 and session != file.stem:  # of a subagent
                self.thread.parent = session

    def turns(self, value: dict[str, Any]) -> Iterator[Turn]:
        if "role" not in value and "type" in value:  # such as the end of a turn
            return
        content = obj(value.get("message")).get("content", value.get("content"))
        role = str(value.get("role"))
        if role == "user":
            content = _typed(content)
        yield Turn(role, content, None, self.file.modified and self.file.modified.isoformat())


def _typed(content: Any) -> Any:
    """Return what the user typed in a message; other texts are Cursor's."""
    parts = content if isinstance(content, list) else [content]
    words = [
        text(obj(part).get("text")) or (part if isinstance(part, str) else "") for part in parts
    ]
    queries = [query for word in words for query in texts_between(word, *_QUERY)]
    if not queries:
        return content
    others = [part for part in parts if isinstance(part, dict) and "text" not in part]
    return [*others, "\n".join(queries)]


def _project_folder(slug: str) -> str:
    """Return a project's folder from its name with dashes, or the last part of that."""
    folder = Path("/")
    rest = slug.split("-")
    while rest:
        for length in range(len(rest), 0, -1):
            if (folder / "-".join(rest[:length])).is_dir():
                folder, rest = folder / "-".join(rest[:length]), rest[length:]
                break
        else:
            return f"/{'/'.join(slug.split('-'))}"
    return str(folder)
