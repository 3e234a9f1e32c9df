"""Import Gemini CLI's sessions: lines that add a message, extend one, or change the list.

The file of a resumed session repeats the header and the messages, with new times and without the
thoughts; the first record of a message is used.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from reservoir_cli.messages import Conversation
from reservoir_cli.transfer.importers import content_blocks
from reservoir_cli.transfer.importers.base import Record, Skipped, has_key, is_json
from reservoir_cli.transfer.importers.coerce import folder_name, moment, obj, objects, text
from reservoir_cli.transfer.importers.conversation_identity import (
    SourceIds,
    Thread,
    source_ids,
    take_back,
)
from reservoir_cli.transfer.importers.input_files import File, Unreadable
from reservoir_cli.transfer.importers.json_stream import entries

_ROLES = {"user": "user", "gemini": "assistant"}
#: Beginnings of texts that the program writes as the user or the model.
_INJECTED = (
    "<session_context>",
    "<hook_context>",
    "<state_snapshot>",
    "Got it. Thanks for the additional context!",
)
#: A command that the program handles itself.
_COMMAND = re.compile(r"/[a-z-]+(?:\s|$)")
#: The number of characters searched for the folder, which the program writes at the beginning.
_BEGINNING = 4_000
_FOLDER = re.compile(r"Workspace Directories:\**\s*\n\s*- ([^\n]{1,1000})")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
#: The name of a project's folder in older versions.
_HASH = re.compile(r"[0-9a-f]{64}")
#: A line of ``logs.json``, which repeats the questions of all sessions.
_LOG = re.compile(r'"messageId"\s*:\s*\d')


class GeminiCli:
    """Reads the files below ``~/.gemini/tmp``."""

    name = "gemini-cli"
    instance = "gemini-cli"

    def detect(self, head: str) -> bool:
        """Recognise a header that names the session and the project."""
        session = is_json(head) and has_key(head, "sessionId")
        return session and (has_key(head, "projectHash") or bool(_LOG.search(head)))

    def read(self, file: File) -> Iterator[Record | Skipped]:
        """Yield messages in order, without those that the user rewound."""
        session = _Session(*_survey(file))
        for found in _messages(file):
            if isinstance(found, Skipped):
                yield found
            else:
                place, message, listed = found
                yield from session.read(place, message, listed=listed)
        yield from session.end()


@dataclass
class _Session:
    """A session while it is read. A message is held until the next one begins.

    :param rewound: ids of messages that the user rewound.
    :param calls: the id of each call's message, or ``None`` once the result has been read.
    """

    conversation: Conversation
    rewound: set[str]
    thread: Thread = field(init=False)
    identities: SourceIds = field(default_factory=SourceIds)
    seen: set[str] = field(default_factory=set)
    calls: dict[str, str | None] = field(default_factory=dict)
    held: tuple[str, dict[str, Any]] | None = None

    def __post_init__(self) -> None:
        self.thread = Thread(GeminiCli.name, self.conversation)
        self.identities.follow(self.conversation.id, self.conversation.id)

    def read(
        self, place: str, message: dict[str, Any], *, listed: bool
    ) -> Iterator[Record | Skipped]:
        """Hold a message, and yield the one held before.

        :param listed: the message is from a list, which repeats messages with less content.
        """
        own = text(message.get("id"))
        if self.held and own and own == self.held[1].get("id"):
            if not listed:
                self.held[1].update(message | {"type": self.held[1]["type"]})
            return
        known = own in self.seen or own in self.rewound
        if known or text(message.get("type")) not in _ROLES:
            return
        yield from self.end()
        if own:
            self.seen.add(own)
        self.held = place, message

    def end(self) -> Iterator[Record | Skipped]:
        """Yield the held message."""
        if self.held is None:
            return
        (place, message), self.held = self.held, None
        own = self._source_id(text(message.get("id")))
        try:
            content = self._content(message, own or "")
            role, at = _ROLES[message["type"]], moment(message.get("timestamp"))
            made = content_blocks.messages(role, content, at, own or "")
        except ValueError as error:
            yield Skipped(place, str(error))
            return
        self._learn(message)
        for source_id, each in source_ids(own or "", made):
            if each.role == "tool" and each.tool_call_id in self.calls:
                owner = self.calls[each.tool_call_id]
                self.calls[each.tool_call_id] = None
                if owner is None:  # a second record of the same result
                    continue
                source_id = f"{owner}#{each.tool_call_id}"
            elif not own:
                source_id = self.identities.new(self.conversation.id, each)
            yield self.thread.record(each, source_id)

    def _source_id(self, identity: str | None) -> str | None:
        """Return an id that is unique among all sessions."""
        if identity is None or _UUID.match(identity):
            return identity
        return f"{self.conversation.id}:{identity}"

    def _learn(self, message: dict[str, Any]) -> None:
        about = self.thread.conversation or self.conversation
        model = text(message.get("model")) or about.model
        self.thread.conversation = replace(about, model=model)

    def _content(self, message: dict[str, Any], own: str) -> list[Any]:
        """Return the blocks of a message: texts, thoughts, calls and their results."""
        content = _blocks(message.get("content"))
        if message["type"] == "user":
            content = [block for block in content if not _COMMAND.match(block.get("text", ""))]
        called = {block["id"] for block in content if block["type"] == "tool_use"}
        for thought in objects(message.get("thoughts")):
            said = [text(thought.get("subject")), text(thought.get("description"))]
            content.append({"type": "thinking", "thinking": "\n".join(filter(None, said))})
        calls = objects(message.get("toolCalls"))
        for each in calls:
            if text(each.get("id")) not in called:
                content.append(_call(each))
        for block in content:
            if block["type"] == "tool_use" and block["id"]:
                self.calls.setdefault(block["id"], own)
        for each in calls:
            content += _results(each.get("result"), text(each.get("id")))
        return content


def _blocks(content: Any) -> list[dict[str, Any]]:
    """Return the parts of a content as blocks, without the program's own text."""
    if content is None:
        return []
    parts = content if isinstance(content, list) else [content]
    made: list[dict[str, Any]] = []
    for part in parts:
        made += _block(part)
    return made


def _block(part: Any) -> list[dict[str, Any]]:
    if isinstance(part, str):
        part = {"text": part}
    if not isinstance(part, dict):
        raise ValueError("content is neither a text nor a list of parts")
    said = part.get("text")
    if isinstance(said, str):
        if part.get("thought") is True:
            return [{"type": "thinking", "thinking": said}]
        return [] if said.lstrip().startswith(_INJECTED) else [{"type": "text", "text": said}]
    if isinstance(part.get("functionCall"), dict):
        return [_call(part["functionCall"])]
    if isinstance(part.get("functionResponse"), dict):
        return _results([part], None)
    data = obj(part.get("inlineData")) or obj(part.get("fileData"))
    kind = (text(data.get("mimeType")) or "").split("/")[0]
    if data:
        return [{"type": kind if kind in ("image", "audio", "video") else "file"}]
    return []


def _call(value: dict[str, Any]) -> dict[str, Any]:
    identity = text(value.get("id"))
    return {
        "type": "tool_use",
        "id": identity,
        "name": value.get("name"),
        "input": value.get("args"),
    }


def _results(value: Any, identity: str | None) -> list[dict[str, Any]]:
    """Return the results of calls, which are a text or parts.

    :param identity: the id of the call for results that do not name one.
    """
    if isinstance(value, str):
        return [{"type": "tool_result", "tool_use_id": identity, "content": value}]
    made = []
    for part in objects(value):
        answer = obj(part.get("functionResponse"))
        response = obj(answer.get("response"))
        said = response.get("output", response.get("error", response))
        if answer:
            asked = text(answer.get("id")) or identity
            content = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
            made.append({"type": "tool_result", "tool_use_id": asked, "content": content})
    return made


# Reading the file


def _messages(file: File) -> Iterator[tuple[str, dict[str, Any], bool] | Skipped]:
    """Yield the position and record of each message, and whether it is part of a list."""
    for found in entries(file):
        if isinstance(found, Skipped):
            yield found
            continue
        place, line = found
        if isinstance(line.get("type"), str) and "messageId" not in line:
            yield place, line, False
        elif not any(name in line for name in ("$set", "$rewindTo", "sessionId")):
            yield Skipped(place, "no type")
        for number, message in enumerate(_listed(line), 1):
            if isinstance(message, dict):
                yield f"{place}, message {number}", message, True
            else:
                yield Skipped(f"{place}, message {number}", "not a message")


def _listed(line: dict[str, Any]) -> list[Any]:
    """Return the list of messages of a header or a change."""
    listed = (obj(line.get("$set")) or line).get("messages")
    return listed if isinstance(listed, list) else []


def _survey(file: File) -> tuple[Conversation, set[str]]:
    """Read the whole file for the conversation's metadata and the ids of rewound messages."""
    about = Conversation(file.stem, source=GeminiCli.name)
    order: dict[str, None] = {}
    rewound: set[str] = set()
    with suppress(Unreadable, OSError):
        for _, line in (entry for entry in entries(file) if not isinstance(entry, Skipped)):
            told = obj(line.get("$set")) or line
            about = replace(
                about,
                id=text(told.get("sessionId")) or about.id,
                title=text(told.get("summary")) or about.title,
                project=about.project or _project(line),
            )
            ids = [text(each.get("id")) for each in (line, *objects(_listed(line)))]
            order |= dict.fromkeys(filter(None, ids))
            rewound.update(take_back(order, text(line.get("$rewindTo")) or ""))
    return replace(about, project=about.project or _folder(file)), rewound


def _project(line: dict[str, Any]) -> str | None:
    """Return the name of the session's working folder, if a line contains it."""
    told = obj(line.get("$set")) or line
    folders = told.get("directories")
    if isinstance(folders, list) and folders:
        return folder_name(folders[0])
    for message in (line, *objects(_listed(line))[:1]):
        for part in objects(message.get("content"))[:1]:
            if match := _FOLDER.search(str(part.get("text"))[:_BEGINNING]):
                return folder_name(match[1])
    return None


def _folder(file: File) -> str | None:
    """Return the name of the project's folder in ``tmp``, unless it is a hash."""
    names = file.name.replace("\\", "/").split("/")
    if "chats" not in names[1:]:
        return None
    name = names[names.index("chats", 1) - 1]
    return None if _HASH.fullmatch(name) else text(name)
