"""Import tasks of Cline and its descendants Roo Code and Kilo Code, and Cline's sessions.

A task is a list of messages in the shape of Anthropic's API. Older versions write tool calls as
tags in the text of a reply, and their results as text of the user. Cline 4 has sessions instead.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from reservoir_cli.messages import Message, clean_text
from reservoir_cli.transfer.formats.claude_code_notices import opening_tags, split_tags
from reservoir_cli.transfer.reading import content_blocks
from reservoir_cli.transfer.reading.content_blocks import (
    content_text,
    file_marker,
    part_text,
    tool_use,
)
from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.foreign_values import (
    folder_name,
    obj,
    objects,
    parse_object,
    require_object,
    text,
)
from reservoir_cli.transfer.reading.importer import Importer, Place, Record, Skipped, Thread
from reservoir_cli.transfer.reading.json_stream import read_entries, read_small_object
from reservoir_cli.transfer.reading.platform_folders import editor_user_dirs, tool_dir
from reservoir_cli.transfer.reading.times import moment, moment_ms

_HISTORY = "api_conversation_history.json"
#: Cline and its forks, with the ids of their extensions.
_EXTENSIONS = {
    "Cline": "saoudrizwan.claude-dev",
    "Roo Code": "rooveterinaryinc.roo-cline",
    "Kilo Code": "kilocode.kilo-code",
}
#: A text that begins in a way typical of these tools.
_TYPICAL = re.compile(r'"(?:text|content)"\s*:\s*"\s*<(?:task|environment_details|user_message)>')
#: Tags around the user's words, and around what the program adds to them.
_WORDS = ("task", "user_message", "feedback", "answer")
_ADDED = ("environment_details", "hook_context", "explicit_instructions")
_USER_TAGS = opening_tags((*_WORDS, *_ADDED))
_NOTICES = (
    "[TASK RESUMPTION]",
    "[ERROR] You did not use a tool",
    "(The user did not provide",
    "The user approved switching to act mode. Continue with the approved plan now.",
)
#: The beginning of a tool's result that is written as text of the user.
_RESULT = re.compile(r"\[(\w{1,64})\b.{0,4000}?\] Result:\s*", re.S)
#: Beginnings of texts that do not continue a result.
_NOT_RESULT = re.compile(
    rf"<(?:{'|'.join((*_WORDS, *_ADDED))})[ >]|\[TASK RESUMPTION\]|New (?:instr|mess)"
)
_DENIED = "The user denied this operation"
#: Tools that show a text to the user, and the parameter with the text.
_SPEAKING = {
    "attempt_completion": "result",
    "ask_followup_question": "question",
    "plan_mode_respond": "response",
}
_TOOLS = (
    "execute_command read_file write_to_file replace_in_file apply_diff insert_content "
    "search_and_replace search_files list_files list_code_definition_names codebase_search "
    "browser_action use_mcp_tool access_mcp_resource new_task switch_mode fetch_instructions "
    "load_mcp_documentation update_todo_list web_fetch edit_file"
).split()
_REPLY_TAGS = opening_tags((*_TOOLS, *_SPEAKING, "thinking"))
_MOST_PARAMETERS = 50
_PARAMETER = re.compile(r"<(\w{1,64})>")
#: Fields of the description of the environment.
_FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \((.{1,4096}?)\) Files")
_MODEL = re.compile(r"<model>([^<\n]{1,200})</model>")
_UTC = re.compile(r"ISO 8601 UTC format: (\S{1,40})")
_LOCAL = re.compile(
    r"# Current Time\s+(\d{1,2}/\d{1,2}/\d{4}, \d{1,2}:\d\d:\d\d\s[AP]M) "
    r"\([^()\n]{0,64}UTC([+-])(\d{1,2})(?::(\d\d))?\)"
)

# Sessions: a folder each with a file of messages and a manifest. Messages have ids, but those of
# some are new each time the file is written.
_MESSAGES = ".messages.json"
_KEYS = ("version", "updated_at", "agent", "sessionId", "messages")
#: What the program writes around the user's words, and instead of an attached file.
_NOTICE = re.compile(r"<mode_notice>[^<]{0,1000}</mode_notice>")
_COMMAND = re.compile(r'<user_command slash="([^"<>\n]{1,100})">')
_WRAPPER = re.compile(r"<user_input(?: [^<>\n]{0,100})?>|</user_(?:input|command)>")
_ATTACHED = '<file_content path="'
_FILE = re.compile(r'<file_content path="([^"\n]{1,1000})">')
_FILE_END = "</file_content>"
#: Kinds of messages that the program writes as the user: summaries, reminders, notices.
_KINDS = re.compile(r"(?:auto_|manual_)?compaction(?:_\w+)?|completion_reminder|\w+_notice")
_OPERATION = {"query", "result", "success"}  #: The keys of what one operation of a tool returned.


class Cline(Importer):
    """Reads ``api_conversation_history.json`` or ``*.messages.json``, and the files beside it."""

    name = "cline"
    title = "Cline"
    instance = "cline"
    endings = (_HISTORY, _MESSAGES)

    def detect(self, head: Head) -> bool:
        is_task = head.is_array and head.has("role") and bool(_TYPICAL.search(head.text))
        return is_task or head.has_all(*_KEYS, depth=1)

    def places(self) -> Iterator[Place]:
        data = tool_dir("CLINE_DATA_DIR", tool_dir("CLINE_DIR", ".cline") / "data")
        yield Place(tool_dir("CLINE_SESSION_DATA_DIR", data / "sessions"), (_MESSAGES,))
        yield Place(data / "tasks", (_HISTORY,))
        for user_dir in editor_user_dirs():
            for title, extension in _EXTENSIONS.items():
                tasks = user_dir / "globalStorage" / extension / "tasks"
                yield Place(tasks, (_HISTORY,), title=title)

    def read(self, file: File) -> Iterator[Record | Skipped]:
        task = _Task(_thread(file))

        def read(place: str, value: dict[str, Any]) -> Iterator[Record | Skipped]:
            if "sessionId" in value and isinstance(value.get("messages"), list):
                return _read_session(file, place, value)
            return task.read(place, value)

        return read_entries(file, read)


def _read_session(file: File, place: str, value: dict[str, Any]) -> Iterator[Record | Skipped]:
    """Yield the messages of a session of Cline 4, without those of the one it was forked from."""
    thread, forked_at = _describe_session(file, value)
    session = _Task(thread)
    for number, message in enumerate(value["messages"], 1):
        if not _is_copied(message, forked_at):
            yield from session.read(f"{place}, message {number}", message, _unwrap_message)


def _thread(file: File) -> Thread:
    place = file.place
    if place.name != _HISTORY or not place.parent.name:
        return Thread(Cline.name)
    usages = objects(_read_beside(file, "task_metadata.json").get("model_usage"))
    models = [model for usage in usages if (model := text(usage.get("model_id")))]
    folder = _read_beside(file, "history_item.json").get("workspace")
    model = models[-1] if models else None
    return Thread(Cline.name, place.parent.name, model=model, folder=folder)


@dataclass
class _Task:
    thread: Thread
    spoken: set[str] = field(default_factory=set)  #: Calls that showed a text to the user.
    pending: list[tuple[str, str]] = field(default_factory=list)  #: Calls in text without a result.
    call_counts: dict[str, int] = field(default_factory=dict)
    time: datetime | None = None

    def __post_init__(self) -> None:
        # Cline names a task after the millisecond in which it began.
        if re.fullmatch(r"[0-9]{13}", name := self.thread.conversation.id):
            self.time = moment_ms(int(name))

    def read(
        self, place: str, value: Any, unwrap: Callable[[Any], dict[str, Any]] = obj
    ) -> Iterator[Record | Skipped]:
        """Yield the messages of an entry, which ``unwrap`` converts into one of a task."""
        yield from self.thread.convert(place, None, lambda: self.messages(unwrap(value)))

    def messages(self, value: dict[str, Any]) -> list[Message]:
        if any(value.get(mark) is True for mark in ("isSummary", "isTruncationMarker")):
            return []
        role, content = value.get("role"), value.get("content")
        if role not in ("user", "assistant"):
            if "role" not in value and value.get("type") == "reasoning":
                return []
            raise ValueError("unknown role")
        content = content_blocks.block_list(content)
        self.thread.update(model=obj(value.get("modelInfo")).get("modelId"))
        messages = self._user_messages(content) if role == "user" else self._reply_messages(content)
        self.time = moment_ms(value.get("ts")) or self.time
        return [replace(message, created_at=self.time) for message in messages]

    # Entries of the user, which also contain the program's text

    def _user_messages(self, content: list[Any]) -> list[Message]:
        messages: list[Message] = []
        for block in content:
            if obj(block).get("type") == "tool_result":
                messages += self._result_messages(block)
            elif block is not None:
                self._add_text(part_text(block), messages)
        return [
            message for message in messages if message.role == "tool" or message.content.strip()
        ]

    def _result_messages(self, block: dict[str, Any]) -> list[Message]:
        call_id, content = text(block.get("tool_use_id")), content_text(block.get("content"))
        if call_id in self.spoken:
            return self._split_words(content)[1]
        return self._split_denied(Message("tool", content, tool_call_id=call_id))

    def _split_denied(self, result: Message) -> list[Message]:
        """Return a result and, if the user denied the call, the user's words in tags."""
        if not result.content.startswith(_DENIED):
            return [result]
        outside, words = self._split_words(result.content)
        return [replace(result, content=outside), *words]

    def _add_text(self, content: str, messages: list[Message]) -> None:
        """Add a text to the messages: the user's words, or a part of a tool's result."""
        match = _RESULT.match(content)
        if match and match[1] not in _SPEAKING:
            result = Message("tool", content[match.end() :].strip(), name=match[1])
            result = replace(result, tool_call_id=self._take_pending(match[1]))
            messages += self._split_denied(result)
        elif messages and _continues(messages[-1], content):
            result = messages.pop()
            joined = "\n".join(filter(None, (result.content, content.strip())))
            messages += self._split_denied(replace(result, content=joined))
        else:
            messages += self._user_words(content, match is not None or content.startswith(_NOTICES))

    def _user_words(self, content: str, notice: bool) -> list[Message]:
        """Return the user's words: those in tags; without tags, all of a text that is no notice."""
        outside, words = self._split_words(content)
        if words and outside.startswith("<"):  # files that the user mentions
            words[-1] = replace(words[-1], content=f"{words[-1].content}\n{outside}")
        return words if words or notice else [Message("user", outside)]

    def _take_pending(self, name: str) -> str | None:
        """Return the id of the first pending call of a tool, which is no longer pending."""
        call = next((call for call in self.pending if call[0] == name), None)
        if call is None:
            return None
        self.pending.remove(call)
        return call[1]

    def _split_words(self, content: str) -> tuple[str, list[Message]]:
        """Split a text into the text outside tags, and the user's words as messages."""
        outside, words = [], []
        for tag, part in split_tags(content, _USER_TAGS):
            if tag == "environment_details":
                self._read_environment(part)
            elif tag in _WORDS:
                words.append(Message("user", part.strip()))
            elif tag is None:
                outside.append(part)
        return "".join(outside).strip(), [word for word in words if word.content]

    def _read_environment(self, details: str) -> None:
        model, folder = _MODEL.search(details), _FOLDER.search(details)
        self.thread.update(model=model and model[1], folder=folder and folder[1])
        self.time = _current_time(details) or self.time

    # Entries of the model

    def _reply_messages(self, content: list[Any]) -> list[Message]:
        blocks: list[Any] = []
        for block in content:
            kind = obj(block).get("type")
            if kind == "tool_use":
                blocks.append(self._convert_call(block))
            elif isinstance(block, str) or kind == "text":
                blocks += self._text_blocks(part_text(block).strip())
            elif block is not None:
                blocks.append(block)
        return content_blocks.messages("assistant", blocks, None)

    def _convert_call(self, block: dict[str, Any]) -> dict[str, Any]:
        """Return a call unchanged, or as text if it shows a text to the user."""
        words = text(obj(block.get("input")).get(_SPEAKING.get(str(block.get("name")), "")))
        if words is None:
            return block
        self.spoken.add(str(block.get("id")))
        return {"type": "text", "text": words}

    def _text_blocks(self, content: str) -> Iterator[dict[str, Any]]:
        """Yield the blocks of a text: its words, thinking, and calls of tools written as tags."""
        for tag, part in split_tags(content, _REPLY_TAGS):
            if tag == "thinking":
                yield {"type": "thinking", "thinking": part.strip()}
            elif tag is None:
                if part.strip():
                    yield {"type": "text", "text": part.strip()}
            else:
                parameters = _parameters(part)
                if words := text(parameters.get(_SPEAKING.get(tag, ""))):
                    yield {"type": "text", "text": words}
                elif tag not in _SPEAKING:
                    yield self._tagged_call(tag, parameters)

    def _tagged_call(self, name: str, parameters: dict[str, str]) -> dict[str, Any]:
        """Return a call in text as a block, with an id derived from its content."""
        arguments = json.dumps(parameters, ensure_ascii=False)
        digest = hashlib.sha256(f"{name} {arguments}".encode("utf-8", "replace")).hexdigest()[:24]
        self.call_counts[digest] = self.call_counts.get(digest, 0) + 1
        identity = f"call_{digest}_{self.call_counts[digest]}"
        self.pending.append((name, identity))
        return tool_use(identity, name, parameters)


def _continues(result: Message, content: str) -> bool:
    """Return whether a text continues the result before it, as the first one after its heading."""
    if result.role != "tool" or result.name is None:
        return False
    if not result.content:
        return not content.startswith("<environment_details>")
    return _NOT_RESULT.match(content) is None


def _parameters(part: str) -> dict[str, str]:
    """Return the parameters in the tag of a tool; a value extends to its last closing tag."""
    parameters: dict[str, str] = {}
    position = 0
    for _ in range(_MOST_PARAMETERS):
        match = _PARAMETER.search(part, position)
        if match is None:
            break
        end = part.rfind(f"</{match[1]}>", match.end())
        if end < 0 or match[1] in parameters:
            position = match.end()
            continue
        parameters[match[1]] = part[match.end() : end].strip("\n")
        position = end + len(match[1]) + 3
    return parameters


def _current_time(details: str) -> datetime | None:
    if match := _UTC.search(details):
        return moment_ms(match[1])
    if match := _LOCAL.search(details):
        with suppress(ValueError, OverflowError):
            local = datetime.strptime(" ".join(match[1].split()), "%m/%d/%Y, %I:%M:%S %p")
            offset = f"{match[2]}{int(match[3]):02}:{match[4] or '00'}"
            return moment_ms(f"{local.isoformat()}{offset}")
    return None


# Sessions of Cline 4


def _read_beside(file: File, name: str) -> dict[str, Any]:
    """Return the JSON object in a small file beside another; an empty one if it is unreadable."""
    return read_small_object(file.path.with_name(name) if file.path else None)


def _describe_session(file: File, value: dict[str, Any]) -> tuple[Thread, datetime | None]:
    """Return a session, and when it was forked; a subagent's is in its folder, without manifest."""
    session = text(value.get("sessionId")) or file.stem
    name = clean_text(file.place.name.removesuffix(_MESSAGES))
    is_main = value.get("agent") == "lead"
    if not is_main:  # its own id begins with that of its session
        session = session.removesuffix(f"__{name}").removesuffix("__teamtask")
    manifest = _read_beside(file, f"{session}.json")
    metadata = obj(manifest.get("metadata"))
    thread = Thread(
        Cline.name,
        session if is_main else f"{session}/{name}",
        title=metadata.get("title") if is_main else None,
        model=manifest.get("model"),
        folder=text(manifest.get("workspace_root")) or manifest.get("cwd"),
    )
    return thread, moment(obj(metadata.get("fork")).get("forkedAt")) if is_main else None


def _is_copied(message: Any, forked_at: datetime | None) -> bool:
    """Return whether a fork repeats a message of the session that it continues."""
    written_at = moment_ms(obj(message).get("ts"))
    return forked_at is not None and written_at is not None and written_at < forked_at


def _unwrap_message(message: Any) -> dict[str, Any]:
    """Return a message with the user's words as typed, and the model's name; none of a notice.

    :raises ValueError: it is not a message.
    """
    content, model = require_object(message).get("content"), obj(message.get("modelInfo")).get("id")
    if isinstance(content, str):
        content = [content]
    if isinstance(content, list) and message.get("role") == "user":
        results = [block for block in content if obj(block).get("type") == "tool_result"]
        words = [_words(block) for block in content if block not in results and block is not None]
        content = [*map(_unwrap_result, results), *(["\n".join(words)] if words else [])]
        content = [] if _is_notice(obj(message.get("metadata"))) else content
    return {**message, "content": content, "modelInfo": {"modelId": model}}


def _is_notice(metadata: dict[str, Any]) -> bool:
    is_kind = bool(_KINDS.fullmatch(text(metadata.get("kind")) or ""))
    return is_kind or metadata.get("displayRole") in ("system", "status", "error")


def _unwrap_result(block: dict[str, Any]) -> dict[str, Any]:
    """Return a tool's result as text; a tool that does one operation records it as JSON."""
    content = block.get("content")
    if isinstance(content, list):
        return {**block, "content": [_output(part) for part in content]}
    operation = parse_object(content) or {}
    return {**block, "content": _output(operation)} if _OPERATION <= operation.keys() else block


def _output(part: Any) -> Any:
    """Return an operation's output and error, or other data, as text; blocks stay as they are."""
    if not isinstance(part, dict) or {"type", "text"} & part.keys():
        return part
    if not part.keys() >= _OPERATION:
        return json.dumps(part, ensure_ascii=False)
    output = part["result"]
    with suppress(ValueError):
        output = content_text(output)
    if not isinstance(output, str):
        output = json.dumps(output, ensure_ascii=False)
    return "\n".join(filter(None, (output, text(part.get("error")))))


def _words(block: Any) -> str:
    """Return the text of a block as the user typed it, or a marker of a file or picture."""
    if obj(block).get("type") == "file" and isinstance(block.get("path"), str):
        return file_marker(folder_name(block["path"]))
    words = _NOTICE.sub("", _mark_files(part_text(block)))
    return _WRAPPER.sub("", _COMMAND.sub(r"/\1 ", words)).strip()


def _mark_files(words: str) -> str:
    parts, position = [], 0
    while (start := words.find(_ATTACHED, position)) >= 0:
        match, end = _FILE.match(words, start), words.find(_FILE_END, start)
        if match is None or end < 0:
            break
        parts += [words[position:start], file_marker(folder_name(match[1]))]
        position = end + len(_FILE_END)
    return "".join([*parts, words[position:]])
