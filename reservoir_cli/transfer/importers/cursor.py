"""Cursor's database of state: conversations ("composers") and their messages ("bubbles").

Both are JSON in a table of keys and values. A composer lists its bubbles in order; older ones hold
them.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Conversation
from reservoir_cli.transfer.importers import content_blocks
from reservoir_cli.transfer.importers.base import Record, Skipped
from reservoir_cli.transfer.importers.coerce import (
    branch_name,
    folder_name,
    moment_ms,
    obj,
    objects,
    parsed_object,
    text,
    uri_folder_name,
)
from reservoir_cli.transfer.importers.conversation_identity import SourceIds, Thread, source_ids
from reservoir_cli.transfer.importers.foreign_databases import (
    Database,
    Talk,
    octets,
    read_database,
    resume_database,
)
from reservoir_cli.transfer.importers.input_files import File
from reservoir_cli.transfer.importers.resume import Checkpoint

_TABLE = "cursorDiskKV"
_COLUMNS = {_TABLE: "key value", "composerHeaders": "composerId value"}
_COMPOSER, _BUBBLE = "composerData:", "bubbleId:"
_ROLES = {1: "user", 2: "assistant"}
#: The title until Cursor finds another one.
_UNTITLED = "New Agent"
#: The model of whoever lets Cursor choose.
_DEFAULT = "default"


class Cursor:
    """Reads ``state.vscdb`` in Cursor's ``globalStorage``."""

    name = "cursor"
    instance = "cursor"
    version = 1
    only_databases = True

    def detect(self, head: str) -> bool:
        """Recognise no text: a database is known by its tables."""
        return False

    def read(self, file: File) -> Iterator[Record | Skipped]:
        """Yield messages by conversation.

        :raises ReservoirError: it is another program's database, or cannot be opened.
        """
        return read_database(
            file,
            _COLUMNS,
            lambda database: (item for talk in _talks(database, file.name) for item in talk.read()),
        )

    def resume(self, file: File, start: Checkpoint) -> Iterator[Record | Skipped | Checkpoint]:
        """Yield the messages of conversations that are new or have changed.

        :raises ReservoirError: it is another program's database, or cannot be opened.
        """
        return resume_database(file, _COLUMNS, start, lambda found: _talks(found, file.name))


def _talks(database: Database, name: str) -> Iterator[Talk]:
    if _TABLE not in database.tables:
        raise ReservoirError(f"{name} is a database, but not Cursor's", hint="leave --format out")
    database.refuse_computed(f"{name} is no database as Cursor writes it")
    # The character behind the colon ends the range of keys.
    composers = database.connection.execute(
        f"SELECT key, rowid, {octets('value')} FROM {_TABLE} "
        "WHERE key >= ? AND key < ? ORDER BY key",
        (_COMPOSER, _COMPOSER[:-1] + ";"),
    )
    # A row that is written anew has another number.
    bubbles = (
        f"SELECT count(*), max(rowid), sum(rowid), sum({octets('value')}) FROM {_TABLE} "
        "WHERE key >= ? AND key < ?"
    )
    for key, *about in composers:
        prefix = f"{_BUBBLE}{str(key)[len(_COMPOSER) :]}"
        said = database.connection.execute(bubbles, (f"{prefix}:", f"{prefix};")).fetchone()
        yield Talk(key, (about, tuple(said)), partial(_read, database, key))


def _read(database: Database, key: Any) -> Iterator[Record | Skipped]:
    identity = text(str(key)[len(_COMPOSER) :])
    composer = _value(database, key)
    if composer is None or identity is None:
        yield Skipped(f"conversation {identity}", "not a JSON object")
    else:
        yield from _Composer(database, identity, composer).read()


class _Composer:
    """A conversation while it is read."""

    def __init__(self, database: Database, identity: str, value: dict[str, Any]) -> None:
        self._database = database
        self._identity = identity
        self._value = value
        self._at = moment_ms(value.get("createdAt"))
        self._thread = Thread(Cursor.name, self._about())
        self._thoughts: list[Record] = []
        self._identities = SourceIds()
        self._identities.follow(identity, identity)

    def _about(self) -> Conversation:
        value = self._value
        title = text(value.get("name"))
        header = self._database.one("composerHeaders", "composerId", self._identity)
        return Conversation(
            self._identity,
            None if title == _UNTITLED else title,
            Cursor.name,
            model=_model(obj(value.get("modelConfig"))),
            project=_folder(value)
            or _folder(parsed_object(header.get("value")) or {})
            or folder_name(value.get("currentDir")),
            branch=branch_name(value.get("createdOnBranch")),
        )

    def read(self) -> Iterator[Record | Skipped]:
        """Yield the messages of all bubbles."""
        for number, bubble in enumerate(self._bubbles(), 1):
            place = f"conversation {self._identity}, message {number}"
            if bubble is None:
                yield Skipped(place, "not a message")
            else:
                yield from self._bubble(place, bubble)
        yield from self._thoughts

    def _bubbles(self) -> Iterator[dict[str, Any] | None]:
        """Yield the bubbles in order; one that was deleted is passed over."""
        inline = obj(self._value.get("conversationMap"))
        seen: set[str] = set()
        for header in objects(self._value.get("fullConversationHeadersOnly")):
            own = text(header.get("bubbleId"))
            if own is None or own in seen:
                continue
            seen.add(own)
            key = f"{_BUBBLE}{self._identity}:{own}"
            if rows := self._database.rows(_TABLE, "key", key, "key"):
                bubble = parsed_object(rows[0].get("value"))
                yield header | bubble if bubble is not None else None
            elif own in inline:
                yield header | obj(inline[own])
        yield from objects(self._value.get("conversation"))

    def _bubble(self, place: str, bubble: dict[str, Any]) -> Iterator[Record | Skipped]:
        own = text(bubble.get("bubbleId"))
        self._at = _time(bubble) or self._at
        try:
            made = content_blocks.messages(_role(bubble), _content(bubble), self._at, own or "")
        except ValueError as error:
            yield Skipped(place, str(error))
            return
        self._learn(bubble)
        records = []
        for source_id, message in source_ids(f"{self._identity}:{own}", made):
            identity = source_id if own else self._identities.new(self._identity, message)
            records.append(self._thread.record(message, identity))
        yield from self._in_order(records)

    def _in_order(self, records: list[Record]) -> Iterator[Record]:
        """Hold thinking that stands before its reply until it can follow it."""
        if [each.message.name for each in records] == [content_blocks.THINKING]:
            self._thoughts += records
        elif records:
            reply = 0 if records[0].message.role == "user" else 1
            yield from (*records[:reply], *self._thoughts, *records[reply:])
            self._thoughts.clear()

    def _learn(self, bubble: dict[str, Any]) -> None:
        """Note the model and the folder that a bubble tells of."""
        about = self._thread.conversation
        if about:
            folders = bubble.get("workspaceUris")
            first = folders[0] if isinstance(folders, list) and folders else None
            model = _model(obj(bubble.get("modelInfo"))) or about.model
            project = about.project or uri_folder_name(first)
            self._thread.conversation = replace(about, model=model, project=project)


def _role(bubble: dict[str, Any]) -> str:
    kind = bubble.get("type")
    if not isinstance(kind, int) or kind not in _ROLES:
        raise ValueError("unknown type")
    return _ROLES[kind]


def _content(bubble: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the blocks of a bubble: its text, its thinking, and the tool it called."""
    said = bubble.get("text")
    if said is not None and not isinstance(said, str):
        raise ValueError("text is not a text")
    content: list[dict[str, Any]] = [{"type": "image"} for _ in objects(bubble.get("images"))]
    content += [{"type": "text", "text": said or ""}]
    thoughts = objects(bubble.get("allThinkingBlocks")) or [obj(bubble.get("thinking"))]
    content += [{"type": "thinking", "thinking": each.get("text")} for each in thoughts]
    tool = obj(bubble.get("toolFormerData"))
    if text(tool.get("name")):
        content += _call(tool)
    return content


def _call(tool: dict[str, Any]) -> list[dict[str, Any]]:
    identity = text(tool.get("toolCallId"))
    made = {
        "type": "tool_use",
        "id": identity,
        "name": tool["name"],
        "input": tool.get("rawArgs") or tool.get("params"),
    }
    result = tool.get("result") or obj(tool.get("error")).get("clientVisibleErrorMessage")
    if not result:
        return [made]
    said = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    return [made, {"type": "tool_result", "tool_use_id": identity, "content": said}]


def _folder(value: dict[str, Any]) -> str | None:
    """Return the folder of the workspace that a conversation belongs to."""
    return folder_name(obj(obj(value.get("workspaceIdentifier")).get("uri")).get("fsPath"))


def _time(bubble: dict[str, Any]) -> datetime | None:
    """Return when a bubble was made; some times are counted from the start of the program."""
    timing = obj(bubble.get("timingInfo"))
    known = (bubble.get("createdAt"), timing.get("clientRpcSendTime"))
    times = (moment_ms(each) for each in known)
    return next((each for each in times if each and each.year >= 2000), None)


def _model(about: dict[str, Any]) -> str | None:
    name = text(about.get("modelName"))
    return None if name == _DEFAULT else name


def _value(database: Database, key: Any) -> dict[str, Any] | None:
    return parsed_object(database.one(_TABLE, "key", key).get("value"))
