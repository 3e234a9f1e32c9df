"""Read the sessions of Cline from version 4 on: a folder with a file of messages and a manifest.

Messages have ids, but those of some are new each time the file is written.
"""

import json
import re
from contextlib import suppress
from datetime import datetime
from pathlib import PurePath
from typing import Any

from reservoir_cli.messages import clean_text
from reservoir_cli.transfer.reading.content_blocks import content_text, file_marker, part_text
from reservoir_cli.transfer.reading.file import File, Head
from reservoir_cli.transfer.reading.foreign_values import (
    folder_name,
    moment,
    moment_ms,
    obj,
    parse_object,
    require_object,
    text,
)
from reservoir_cli.transfer.reading.importer import Thread
from reservoir_cli.transfer.reading.json_stream import read_small_object

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


def is_session(head: Head) -> bool:
    """Return whether a JSON text begins like the messages of a session."""
    return head.has_all(*_KEYS, depth=1)


def read_beside(file: File, name: str) -> dict[str, Any]:
    """Return the JSON object in a small file beside another; an empty one if it is unreadable."""
    return read_small_object(file.path.with_name(name) if file.path else None)


def describe_session(
    file: File, value: dict[str, Any], source: str
) -> tuple[Thread, datetime | None]:
    """Return a session, and when it was forked; a subagent's is in its folder, without manifest."""
    session = text(value.get("sessionId")) or file.stem
    name = clean_text(PurePath(file.name.replace("\\", "/")).name.removesuffix(_MESSAGES))
    is_main = value.get("agent") == "lead"
    if not is_main:  # its own id begins with that of its session
        session = session.removesuffix(f"__{name}").removesuffix("__teamtask")
    manifest = read_beside(file, f"{session}.json")
    metadata = obj(manifest.get("metadata"))
    thread = Thread(
        source,
        session if is_main else f"{session}/{name}",
        title=metadata.get("title") if is_main else None,
        model=manifest.get("model"),
        folder=text(manifest.get("workspace_root")) or manifest.get("cwd"),
    )
    return thread, moment(obj(metadata.get("fork")).get("forkedAt")) if is_main else None


def is_copied(message: Any, forked_at: datetime | None) -> bool:
    """Return whether a fork repeats a message of the session that it continues."""
    written_at = moment_ms(obj(message).get("ts"))
    return forked_at is not None and written_at is not None and written_at < forked_at


def unwrap_message(message: Any) -> dict[str, Any]:
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
