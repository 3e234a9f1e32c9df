"""Import sessions of Kimi Code: journals of what was added to the model's context.

The present versions record messages and the events of a step. Earlier ones recorded the messages
that the program sent to its interface; of those, the parts of a reply follow each other.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reservoir_cli.transfer.reading.content_blocks import call_block, tool_use
from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.foreign_values import obj, objects, text
from reservoir_cli.transfer.reading.importer import Place, Record, Skipped
from reservoir_cli.transfer.reading.json_stream import contains, read_small_object
from reservoir_cli.transfer.reading.platform_folders import tool_dir
from reservoir_cli.transfer.reading.transcripts import Transcript, TranscriptImporter, Turn

_JOURNAL, _CONTEXT = "wire.jsonl", "context.jsonl"
_NAMES = (_JOURNAL, _CONTEXT)
#: What a journal holds for each question.
_QUESTIONS = (b'"user_input"', b'"context.append_message"')
_EVENTS = ("TurnBegin", "ContentPart", "ToolCall", "ToolResult", "StepBegin")
#: Origins of messages that the program writes as the user.
_INJECTED = ("injection", "system", "reminder", "hook", "compaction", "notification")


class _Journal(Transcript):
    """A journal while it is read. The parts of a reply are held until another message begins."""

    source = "kimi-code"

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self._held: list[Any] = []
        self._held_time: Any = None
        if file.path and file.path.name in _NAMES:
            self._describe_session(file.path)

    def _describe_session(self, path: Path) -> None:
        """Read the session's id from its folder, and its title and folder from the file there."""
        folders = path.absolute().parents
        is_agent = len(folders) > 2 and folders[1].name == "agents"
        session = folders[2] if is_agent else folders[0]
        state = read_small_object(session / "state.json")
        agent = folders[0].name if is_agent else "main"
        identity = session.name if agent == "main" else f"{session.name}/{agent}"
        if agent != "main":
            self.thread.parent = session.name
        title = state.get("title") or state.get("custom_title") if agent == "main" else None
        folder = state.get("workDir") or state.get("work_dir")
        self.describe(identity=identity, title=title, folder=folder)

    def turns(self, value: dict[str, Any]) -> Iterator[Turn]:
        kind, time = value.get("type"), value.get("time")
        if kind in ("llm.request", "config.update"):
            self.describe(model=value.get("model") or value.get("modelAlias"))
        elif kind == "context.append_message":
            yield from self._end()
            yield from self._message(obj(value.get("message")), time)
        elif kind == "context.append_loop_event":
            yield from self._event(obj(value.get("event")), time)
        elif isinstance(value.get("message"), dict):  # an earlier version
            message = value["message"]
            payload = obj(message.get("payload"))
            yield from self._older_event(message.get("type"), payload, value.get("timestamp"))
        elif "role" in value:
            yield from self._message(value, None)

    def _message(self, message: dict[str, Any], time: Any) -> Iterator[Turn]:
        role, content = str(message.get("role")), message.get("content")
        if role.startswith("_") or role == "system":
            return
        origin = message.get("origin")
        kind = obj(origin).get("kind") or origin
        if isinstance(kind, str) and kind.lower() in _INJECTED:
            return
        calls = [*map(call_block, objects(message.get("tool_calls", message.get("toolCalls"))))]
        if calls:
            content = [*(content if isinstance(content, list) else [content]), *calls]
        call_id = text(message.get("toolCallId")) or text(message.get("tool_call_id"))
        yield Turn(role, content, None, time, call_id=call_id)

    def _event(self, event: dict[str, Any], time: Any) -> Iterator[Turn]:
        kind, identity = event.get("type"), text(event.get("toolCallId"))
        if kind == "step.begin":
            yield from self._end()
        elif kind == "content.part":
            self._hold(event.get("part"), time)
        elif kind == "tool.call":
            self._hold(tool_use(identity, event.get("name"), event.get("args")), time)
        elif kind == "tool.result":
            yield from self._end()
            result = obj(event.get("result"))
            yield Turn("tool", _output(result.get("output")), None, time, call_id=identity)

    def _older_event(self, kind: Any, payload: dict[str, Any], time: Any) -> Iterator[Turn]:
        if kind in ("TurnBegin", "SteerInput"):  # the latter is said while the model works
            yield from self._end()
            yield Turn("user", payload.get("user_input"), None, time)
        elif kind == "StepBegin":
            yield from self._end()
        elif kind == "ContentPart":
            self._hold(payload, time)
        elif kind == "ToolCall":
            self._hold(call_block(payload), time)
        elif kind == "ToolResult":
            yield from self._end()
            value = obj(payload.get("return_value")) or obj(payload.get("result"))
            call_id = text(payload.get("tool_call_id"))
            yield Turn("tool", _output(value.get("output")), None, time, call_id=call_id)

    def _hold(self, part: Any, time: Any) -> None:
        if isinstance(part, dict):
            self._held.append(part)
            self._held_time = self._held_time or time

    def _end(self) -> Iterator[Turn]:
        """Yield the held reply, with the texts that follow each other joined."""
        held, time = self._held, self._held_time
        self._held, self._held_time = [], None
        if held:
            yield Turn("assistant", list(_join(held)), None, time)

    def read(self) -> Iterator[Record | Skipped]:
        yield from super().read()
        for turn in self._end():
            yield from self.thread.convert("the end", None, turn.messages)


def _output(output: Any) -> Any:
    return output if isinstance(output, str | list) else "" if output is None else [output]


def _join(parts: list[Any]) -> Iterator[Any]:
    for key in ("text", "think"):
        joined: list[Any] = []
        for part in parts:
            last = joined[-1] if joined else {}
            is_same = part.get("type") == last.get("type") == key
            if is_same and isinstance(part.get(key), str) and isinstance(last.get(key), str):
                joined[-1] = last | {key: last[key] + part[key]}
            else:
                joined.append(part)
        parts = joined
    yield from parts


class KimiCode(TranscriptImporter):
    """Reads ``wire.jsonl`` below ``~/.kimi-code/sessions``, and the files of earlier versions."""

    name = "kimi-code"
    title = "Kimi Code"
    instance = "kimi-code"
    transcript = _Journal

    def detect(self, head: Head) -> bool:
        is_journal = head.has_kind("context.append_message", "context.append_loop_event")
        is_older = head.has("payload") and head.has_kind(*_EVENTS)
        return is_journal or is_older or head.has_kind("_checkpoint", "_system_prompt", "_usage")

    def is_repeated(self, file: File) -> bool:
        path = file.path
        journal = path.with_name(_JOURNAL) if path and path.name == _CONTEXT else None
        if journal is None or not journal.is_file():
            return False
        whole = File.of_path(journal, journal.stat())
        return any(contains(whole, words) for words in _QUESTIONS)

    def read(self, file: File) -> Iterator[Record | Skipped]:
        return iter(()) if self.is_repeated(file) else super().read(file)

    def places(self) -> Iterator[Place]:
        yield Place(tool_dir("KIMI_CODE_HOME", ".kimi-code") / "sessions", _NAMES)
        yield Place(tool_dir("KIMI_SHARE_DIR", ".kimi") / "sessions", _NAMES)
