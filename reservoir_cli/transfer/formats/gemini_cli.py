"""Import Gemini CLI's sessions: lines that add a message, extend one, or change the list.

The file of a resumed session repeats the header and the messages, with new times and without the
thoughts; the first record of a message is used.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reservoir_cli.transfer.reading import content_blocks
from reservoir_cli.transfer.reading.content_blocks import (
    file_block,
    remove_between,
    tool_result,
    tool_use,
)
from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.foreign_values import folder_name, obj, objects, text
from reservoir_cli.transfer.reading.importer import (
    Importer,
    Place,
    Record,
    Skipped,
    Thread,
    assign_ids,
    pop_from,
)
from reservoir_cli.transfer.reading.json_stream import read_entries, readable_objects
from reservoir_cli.transfer.reading.platform_folders import tool_dir
from reservoir_cli.transfer.reading.times import moment
from reservoir_cli.transfer.reading.transcripts import Transcript, Turn

_ROLES = {"user": "user", "gemini": "assistant", "model": "assistant"}
#: Beginnings of texts that the program writes as the user or the model.
_INJECTED = (
    "<session_context>",
    "<hook_context>",
    "<state_snapshot>",
    "<system_note>",
    "Got it. Thanks for the additional context!",
    "Here is the user's editor context as a JSON object.",
    "Here is a summary of changes in the user's editor context",
    "System: Potential loop detected.",
    "[System: You previously ",
)
_GO_ON = "Please continue."  #: How the program lets the model go on.
#: The files that a question names, which the program appends to it.
_FILES, _FILES_END = "--- Content from referenced files ---", "--- End of content ---"
_COMMAND = re.compile(r"/[a-z-]+(?:\s|$)")  #: A command that the program handles itself.
#: The number of characters searched for the folder, which the program writes at the beginning.
_BEGINNING = 4_000
_FOLDER = re.compile(r"Workspace Directories:\**(?=[^\S\n]*\n)\s*+- ([^\n]{1,1000})")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_HASH = re.compile(r"[0-9a-f]{64}")  #: The name of a project's folder in older versions.
#: A line of ``logs.json``, which repeats the questions of all sessions.
_LOG = re.compile(r'"messageId"\s*:\s*\d')


class GeminiCli(Importer):
    """Reads the files below ``~/.gemini/tmp``."""

    name = "gemini-cli"
    title = "Gemini CLI"
    instance = "gemini-cli"

    def detect(self, head: Head) -> bool:
        is_log = head.has("messageId") and bool(_LOG.search(head.text))
        is_session = head.has("sessionId") and (head.has("projectHash") or is_log)
        is_checkpoint = head.has_all("role", "parts") and not head.has("sessionId", "contents")
        return is_session or is_checkpoint

    def places(self) -> Iterator[Place]:
        base = tool_dir("GEMINI_CLI_HOME", Path.home()) / ".gemini"
        yield Place(base / "tmp", (".json", ".jsonl"), ("chats",))

    def read(self, file: File) -> Iterator[Record | Skipped]:
        first = next(readable_objects(file), {})
        if "parts" in first or "history" in first:
            yield from SavedChat(file).read()
            return
        session = _Session(*_survey(file))
        yield from read_entries(file, session.read_line)
        yield from session.end()


@dataclass
class _Session:
    """A session while it is read. A message is held until the next one begins."""

    thread: Thread
    rewound: set[str]  #: Messages that the user rewound.
    seen: set[str] = field(default_factory=set)
    #: Messages of calls without a result yet.
    calls: dict[str, str | None] = field(default_factory=dict)
    question: tuple[str, str] = ("", "")  #: Typed, and sent for it.
    held: tuple[str, dict[str, Any]] | None = None

    def read_line(self, place: str, line: dict[str, Any]) -> Iterator[Record | Skipped]:
        if isinstance(line.get("type"), str) and "messageId" not in line:
            yield from self.read(place, line, listed=False)
        elif not any(name in line for name in ("$set", "$rewindTo", "sessionId")):
            yield Skipped(place, "no type")
        for number, message in enumerate(_list_messages(line), 1):
            if isinstance(message, dict):
                yield from self.read(f"{place}, message {number}", message, listed=True)
            else:
                yield Skipped(f"{place}, message {number}", "not a message")

    def read(
        self, place: str, message: dict[str, Any], *, listed: bool
    ) -> Iterator[Record | Skipped]:
        """Hold a message, and yield the one before. A list repeats messages with less content."""
        message_id = text(message.get("id"))
        if self.held and message_id and message_id == self.held[1].get("id"):
            if not listed:
                self.held[1].update(message | {"type": self.held[1]["type"]})
            return
        skip = message_id in self.seen or message_id in self.rewound
        if skip or text(message.get("type")) not in _ROLES:
            return
        yield from self.end()
        if message_id:
            self.seen.add(message_id)
        self.held = place, message

    def end(self) -> Iterator[Record | Skipped]:
        if self.held is None:
            return
        (place, message), self.held = self.held, None
        yield from Skipped.if_invalid(place, self._records(message))

    def _records(self, message: dict[str, Any]) -> Iterator[Record]:
        message_id = self._source_id(text(message.get("id")))
        content = self._content(message, message_id or "")
        role, time = _ROLES[message["type"]], moment(message.get("timestamp"))
        messages = content_blocks.messages(role, content, time, message_id or "")
        self.thread.update(model=message.get("model"))
        for source_id, part in assign_ids(message_id or "", messages):
            if part.role == "tool" and part.tool_call_id in self.calls:
                owner = self.calls[part.tool_call_id]
                self.calls[part.tool_call_id] = None
                if owner is None:  # a second record of the same result
                    continue
                source_id = f"{owner}#{part.tool_call_id}"
            elif not message_id:
                source_id = self.thread.new_id(part)
            yield self.thread.record(part, source_id)

    def _source_id(self, identity: str | None) -> str | None:
        """Return an id that is unique among all sessions."""
        if identity is None or _UUID.match(identity):
            return identity
        return f"{self.thread.conversation.id}:{identity}"

    def _question(self, sent: list[dict[str, Any]], displayed: Any) -> list[dict[str, Any]]:
        """Return the blocks of a user's message with the text that the user typed.

        What is displayed repeats the last question when the program makes the model go on.
        """
        typed, text_sent = _joined(_blocks(displayed)), _joined(sent)
        if not typed.strip():
            return [block for block in sent if not _COMMAND.match(block.get("text", ""))]
        last_typed, last_sent = self.question
        others = [block for block in sent if "text" not in block]
        is_new = typed != last_typed or text_sent == last_sent or text_sent.startswith(typed)
        if not text_sent.strip() or not is_new:
            return others
        self.question = typed, text_sent
        return [{"type": "text", "text": typed}, *others]

    def _content(self, message: dict[str, Any], message_id: str) -> list[Any]:
        content = _blocks(message.get("content"))
        if message["type"] == "user":
            content = self._question(content, message.get("displayContent"))
        call_ids = {block["id"] for block in content if block["type"] == "tool_use"}
        for thought in objects(message.get("thoughts")):
            texts = [text(thought.get("subject")), text(thought.get("description"))]
            content.append({"type": "thinking", "thinking": "\n".join(filter(None, texts))})
        calls = objects(message.get("toolCalls"))
        for call in calls:
            if text(call.get("id")) not in call_ids:
                content.append(_call(call))
        for block in content:
            if block["type"] == "tool_use" and block["id"]:
                self.calls.setdefault(block["id"], message_id)
        for call in calls:
            content += _results(call.get("result"), text(call.get("id")))
        return content


def _blocks(content: Any) -> list[dict[str, Any]]:
    """Return the parts of a content as blocks, without the program's own text."""
    if content is None:
        return []
    parts = content if isinstance(content, list) else [content]
    blocks: list[dict[str, Any]] = []
    in_files = False
    for part in parts:
        words = str(obj(part).get("text", part if isinstance(part, str) else "")).strip()
        in_files = in_files or words == _FILES
        blocks += [block for block in _block(part) if not in_files or "text" not in block]
        in_files = in_files and words != _FILES_END
    return blocks


def _joined(blocks: list[dict[str, Any]]) -> str:
    return "\n".join(block["text"] for block in blocks if "text" in block)


def _block(part: Any) -> list[dict[str, Any]]:
    if isinstance(part, str):
        part = {"text": part}
    if not isinstance(part, dict):
        raise ValueError("content is neither a text nor a list of parts")
    content = part.get("text")
    if isinstance(content, str):
        if part.get("thought") is True:
            return [{"type": "thinking", "thinking": content}]
        if content.lstrip().startswith(_INJECTED) or content.strip() == _GO_ON:
            return []
        for begin in (f"\n{_FILES}", _FILES):
            content = remove_between(content, begin, _FILES_END)
        return [{"type": "text", "text": content}]
    if isinstance(part.get("functionCall"), dict):
        return [_call(part["functionCall"])]
    if isinstance(part.get("functionResponse"), dict):
        return _results([part], None)
    data = obj(part.get("inlineData")) or obj(part.get("fileData"))
    return [file_block(data.get("mimeType"))] if data else []


def _call(value: dict[str, Any]) -> dict[str, Any]:
    return tool_use(text(value.get("id")), value.get("name"), value.get("args"))


def _results(value: Any, identity: str | None) -> list[dict[str, Any]]:
    """Return the results of calls, a text or parts; ``identity`` is for those that name no call."""
    if isinstance(value, str):
        return [tool_result(identity, value)]
    blocks = []
    for part in objects(value):
        answer = obj(part.get("functionResponse"))
        response = obj(answer.get("response"))
        output = response.get("output", response.get("error", response))
        if answer:
            call_id = text(answer.get("id")) or identity
            content = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
            blocks.append(tool_result(call_id, content))
    return blocks


class SavedChat(Transcript):
    """A conversation that the user saved: a list of contents, without ids and times."""

    source = GeminiCli.name

    def turns(self, value: dict[str, Any]) -> Iterator[Turn]:
        history = value.get("history")
        for entry in history if isinstance(history, list) else [value]:
            content = [part for part in objects(obj(entry).get("parts")) if _block(part)]
            yield Turn(str(obj(entry).get("role")), content)


def _list_messages(line: dict[str, Any]) -> list[Any]:
    listed = (obj(line.get("$set")) or line).get("messages")
    return listed if isinstance(listed, list) else []


def _survey(file: File) -> tuple[Thread, set[str]]:
    """Read the whole file for the conversation's metadata, and the ids of rewound messages."""
    identity, title, folder = file.stem, None, None
    order: dict[str, None] = {}
    rewound: set[str] = set()
    for line in readable_objects(file):
        header = obj(line.get("$set")) or line
        identity = text(header.get("sessionId")) or identity
        title = text(header.get("summary")) or title
        folder = folder or _working_folder(line)
        ids = [text(message.get("id")) for message in (line, *objects(_list_messages(line)))]
        order |= dict.fromkeys(filter(None, ids))
        rewound.update(pop_from(order, text(line.get("$rewindTo")) or ""))
    thread = Thread(
        GeminiCli.name,
        identity,
        title=title,
        folder=folder,
        project=folder_name(folder) or _folder(file),
        parent=_parent(file),
    )
    return thread, rewound


def _working_folder(line: dict[str, Any]) -> str | None:
    header = obj(line.get("$set")) or line
    folders = header.get("directories")
    if isinstance(folders, list) and folders:
        return text(folders[0])
    for message in (line, *objects(_list_messages(line))[:1]):
        for part in objects(message.get("content"))[:1]:
            if match := _FOLDER.search(str(part.get("text"))[:_BEGINNING]):
                return text(match[1].strip())
    return None


def _parent(file: File) -> str | None:
    """Return the id of the session that started a subagent: it names the folder in ``chats``."""
    names = file.place.parts
    return text(names[-2]) if names[-3:-2] == ("chats",) else None


def _folder(file: File) -> str | None:
    """Return the name of the project's folder in ``tmp``, unless it is a hash."""
    names = file.place.parts
    if "chats" not in names[1:]:
        return None
    name = names[names.index("chats", 1) - 1]
    return None if _HASH.fullmatch(name) else text(name)
