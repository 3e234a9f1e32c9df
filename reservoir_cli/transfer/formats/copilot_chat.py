"""Import Copilot Chat's sessions in VS Code: a document, or the log of changes to one.

A session is a list of requests, each with the question and the parts of the response. A line of a
log contains the whole document (kind 0), sets a value (1), truncates a list and appends to it (2),
or deletes a value (3).
"""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from reservoir_cli.transfer.formats.copilot_cli import read_events
from reservoir_cli.transfer.reading import content_blocks
from reservoir_cli.transfer.reading.content_blocks import tool_result, tool_use
from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.foreign_values import (
    folder_name,
    joined_texts,
    obj,
    objects,
    require_list,
    require_object,
    text,
    uri_folder_name,
    uri_path,
)
from reservoir_cli.transfer.reading.importer import Importer, Place, Record, Skipped, Thread
from reservoir_cli.transfer.reading.json_stream import entries, read_small_object, readable_objects
from reservoir_cli.transfer.reading.platform_folders import editor_user_dirs
from reservoir_cli.transfer.reading.times import moment_ms
from reservoir_cli.util.read_files import LARGEST

_ENDINGS, _TRANSCRIPTS = (".json", ".jsonl"), "transcripts"
_INITIAL, _SET, _PUSH, _DELETE = range(4)
_MOST = LARGEST  #: A log is read up to this size: its document is kept in memory.
_LOG = re.compile(r'\A\s*\{\s*"kind"\s*:\s*[0-3]\s*,\s*"[vki]"')
_SUFFIX = re.compile(r"__vscode-\d+\Z")  #: Suffix that VS Code adds to the ids of calls.


class CopilotChat(Importer):
    """Reads ``chatSessions`` below VS Code's ``workspaceStorage``."""

    name = "copilot-chat"
    title = "Copilot Chat"
    instance = "copilot-chat"
    folders = ("GitHub.copilot-chat", "chatSessions", "emptyWindowChatSessions")

    def detect(self, head: Head) -> bool:
        if head.has("vscodeVersion") and head.has_all("type", "data", depth=1):
            return True
        is_session = head.has("responderUsername", "initialLocation", "creationDate")
        return bool(_LOG.match(head.start)) or (is_session and head.has("requests"))

    def places(self) -> Iterator[Place]:
        for user_dir in editor_user_dirs():
            folders = ("chatSessions", _TRANSCRIPTS)
            yield Place(user_dir / "workspaceStorage", _ENDINGS, folders)
            yield Place(user_dir / "globalStorage" / "emptyWindowChatSessions", _ENDINGS)

    def is_repeated(self, file: File) -> bool:
        folders = file.path.absolute().parents if file.path else ()
        if len(folders) < 3 or folders[0].name != _TRANSCRIPTS:
            return False
        sessions = folders[2] / "chatSessions"
        return any((sessions / f"{file.stem}{ending}").exists() for ending in _ENDINGS)

    def read(self, file: File) -> Iterator[Record | Skipped]:
        if self.is_repeated(file):
            return
        if _is_transcript(file):
            folder = _project_folder(_workspace_folder(file))
            yield from read_events(file, self.name, None, folder)
            return
        document = _ChatLog(file)
        yield from document.build()
        if document.value is None:
            return
        yield from Skipped.if_invalid("the session", _read_session(document.value, file))


def _read_session(session: dict[str, Any], file: File) -> Iterator[Record | Skipped]:
    thread = _make_thread(session, file)
    requests = require_list(session.get("requests"), "no list of requests")
    for number, request in enumerate(requests, 1):
        yield from Skipped.if_invalid(f"request {number}", _read_request(request, thread))


class _ChatLog:
    def __init__(self, file: File) -> None:
        self._file = file
        self.value: dict[str, Any] | None = None

    def build(self) -> Iterator[Skipped]:
        """Apply all lines, and yield those that are skipped."""
        for entry in entries(self._file):
            if isinstance(entry, Skipped):
                yield entry
                continue
            if self._file.done > _MOST:
                yield Skipped("what follows", f"a log of more than {_MOST >> 20} MB")
                return
            place, line = entry
            try:
                self._apply(line)
            except (ValueError, TypeError, LookupError):
                if self.value is None:
                    yield Skipped(place, "no session that this changes")
                    return
                yield Skipped(place, "a change that does not fit")

    def _apply(self, line: dict[str, Any]) -> None:
        kind = line.get("kind")
        if kind == _INITIAL or "requests" in line:
            self.value = obj(line.get("v")) if "v" in line else line
        elif self.value is None or not isinstance(line.get("k"), list) or not line["k"]:
            raise ValueError
        elif kind == _PUSH:
            _push(self._parent(line["k"]), line["k"][-1], line.get("v"), line.get("i"))
        elif kind in (_SET, _DELETE):
            _set(self._parent(line["k"]), line["k"][-1], line.get("v"))
        else:
            raise ValueError

    def _parent(self, path: list[Any]) -> Any:
        value: Any = self.value
        for key in path[:-1]:
            value = value[key]
        return value


def _set(parent: Any, key: Any, value: Any) -> None:
    if isinstance(parent, list) and key == len(parent):
        parent.append(value)
    elif isinstance(parent, dict | list):
        parent[key] = value


def _push(parent: Any, key: Any, values: Any, start: Any) -> None:
    """Append values to a list, after truncating it at ``start``."""
    present = parent.get(key) if isinstance(parent, dict) else parent[key]
    listed = present if isinstance(present, list) else []
    if isinstance(start, int) and 0 <= start <= len(listed):
        del listed[start:]
    listed += values if isinstance(values, list) else []
    parent[key] = listed


def _make_thread(session: dict[str, Any], file: File) -> Thread:
    identity = text(session.get("sessionId")) or file.stem
    folder = uri_path(session.get("workingDirectory")) or _workspace_folder(file)
    title, project = session.get("customTitle"), folder_name(_project_folder(folder))
    return Thread(CopilotChat.name, identity, title=title, folder=folder, project=project)


def _workspace_folder(file: File) -> str | None:
    """Return the folder or workspace file open in VS Code, from ``workspace.json``."""
    folders = file.path.absolute().parents if file.path else ()
    for folder in folders[1:3]:  # a transcript is in a folder of its extension
        workspace = read_small_object(folder / "workspace.json")
        if path := uri_path(workspace.get("folder") or workspace.get("workspace")):
            return path
    return None


def _project_folder(folder: str | None) -> str | None:
    return folder and folder.removesuffix(".code-workspace")


def _is_transcript(file: File) -> bool:
    first = next(readable_objects(file), {})
    return isinstance(first.get("type"), str) and isinstance(first.get("data"), dict)


def _read_request(request: Any, thread: Thread) -> Iterator[Record]:
    request = require_object(request, "not a request")
    if request.get("isHidden") is True or obj(request.get("shouldBeRemovedOnSend")):
        return
    request_id, time = text(request.get("requestId")), moment_ms(request.get("timestamp"))
    thread.update(model=_model(request))
    typed = [] if request.get("isSystemInitiated") is True else _question_blocks(request)
    question = content_blocks.messages("user", typed, time)
    replied = _response_blocks(request)
    response = content_blocks.messages("assistant", replied, time, request_id or "")
    yield from thread.records(request_id, question)
    yield from thread.records(request_id and f"{request_id}/response", response)


def _model(request: dict[str, Any]) -> str | None:
    metadata = obj(obj(request.get("result")).get("metadata"))
    model = text(metadata.get("resolvedModel")) or text(request.get("modelId"))
    return model and model.removeprefix("copilot/")


def _question_blocks(request: dict[str, Any]) -> list[Any]:
    """Return the text of the question, preceded by markers for attached images and files."""
    message = request.get("message")
    content = message if isinstance(message, str) else obj(message).get("text")
    if not isinstance(content, str):
        raise ValueError("no text")
    attached: list[dict[str, Any]] = []
    for variable in objects(obj(request.get("variableData")).get("variables")):
        if variable.get("kind") == "image":
            attached.append({"type": "image"})
        elif variable.get("kind") == "file" and not _is_implicit(variable):
            attached.append({"type": "file", "title": variable.get("name")})
    return [*attached, content]


def _is_implicit(variable: dict[str, Any]) -> bool:
    """Return whether VS Code attached the open file automatically."""
    return (text(variable.get("id")) or "").startswith("vscode.implicit")


def _response_blocks(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of a response as blocks, with adjacent texts joined."""
    calls, answers = _model_calls(request)
    blocks: list[dict[str, Any]] = []
    for kind, parts in groupby(objects(request.get("response")), _kind):
        if kind == "tool":
            for part in parts:
                blocks += _call_blocks(part, calls, answers)
        elif kind == "thinking":
            thoughts = (_join_texts(part.get("value")) for part in parts)
            blocks += [{"type": "thinking", "thinking": thought} for thought in thoughts]
        elif content := "".join(map(_text, parts)):
            blocks.append({"type": "text", "text": content})
    return blocks


def _model_calls(request: dict[str, Any]) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the calls as the model made them, and the results it received, by call id."""
    metadata = obj(obj(request.get("result")).get("metadata"))
    rounds = objects(metadata.get("toolCallRounds"))
    calls = [call for entry in rounds for call in objects(entry.get("toolCalls"))]
    results = obj(metadata.get("toolCallResults"))
    return (
        {_SUFFIX.sub("", text(call.get("id")) or ""): call for call in calls},
        {_SUFFIX.sub("", key): value for key, value in results.items()},
    )


def _kind(part: dict[str, Any]) -> str:
    kind = part.get("kind")
    if kind in ("toolInvocationSerialized", "toolInvocation"):
        return "tool"
    return "thinking" if kind == "thinking" else "text"


def _text(part: dict[str, Any]) -> str:
    """Return the text of a part, or the name of the file or symbol it refers to."""
    match part.get("kind"):
        case None | "markdownContent" | "markdownVuln":
            return _markdown(part.get("content", part.get("value")))
        case "inlineReference":
            reference = obj(part.get("inlineReference"))
            uri = obj(reference.get("uri")) or obj(obj(reference.get("location")).get("uri"))
            name = text(part.get("name")) or text(reference.get("name"))
            uri = uri or reference
            name = name or uri_folder_name(uri.get("path") or uri.get("fsPath"))
            return f"`{name}`" if name else ""
        case _:
            return ""


def _markdown(value: Any) -> str:
    content = value.get("value") if isinstance(value, dict) else value
    return content if isinstance(content, str) else ""


def _join_texts(value: Any) -> str:
    parts = value if isinstance(value, list) else [value]
    return "".join(part for part in parts if isinstance(part, str))


def _call_blocks(
    part: dict[str, Any], calls: dict[str, dict[str, Any]], answers: dict[str, Any]
) -> list[dict[str, Any]]:
    identity = _SUFFIX.sub("", text(part.get("toolCallId")) or "")
    model_call, display = calls.get(identity, {}), obj(part.get("toolSpecificData"))
    details = obj(part.get("resultDetails"))
    name = text(model_call.get("name")) or text(part.get("toolId")) or "tool"
    arguments = model_call.get("arguments") or _displayed_arguments(display, details, part)
    received = joined_texts(obj(answers.get(identity)).get("content"), "value")
    content = received or _displayed_result(display, details)
    called = tool_use(identity, name, arguments)
    return [called, tool_result(identity or None, content)] if content else [called]


def _displayed_arguments(
    display: dict[str, Any], details: dict[str, Any], part: dict[str, Any]
) -> Any:
    command = obj(display.get("commandLine"))
    if entered := text(command.get("original")) or text(display.get("command")):
        return {"command": entered}
    arguments = details.get("input") or display.get("rawInput") or display.get("prompt")
    return arguments or _markdown(part.get("invocationMessage"))


def _displayed_result(display: dict[str, Any], details: dict[str, Any]) -> str:
    output = details.get("output")
    parts = [_markdown(item) for item in output] if isinstance(output, list) else []
    result = obj(display.get("terminalCommandOutput")).get("text") or display.get("result")
    return "\n".join(filter(None, parts)) or text(result) or ""
