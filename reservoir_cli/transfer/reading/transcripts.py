"""Read transcripts: objects with a role and content blocks, in each program's envelope.

Programs name the parts of a message differently; they become Anthropic's blocks.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from reservoir_cli.messages import Message
from reservoir_cli.transfer.reading import content_blocks
from reservoir_cli.transfer.reading.decompressed_file import File
from reservoir_cli.transfer.reading.foreign_values import obj, text
from reservoir_cli.transfer.reading.importer import Importer, Record, Skipped, Thread
from reservoir_cli.transfer.reading.json_stream import read_entries
from reservoir_cli.transfer.reading.times import moment

#: Roles of a transcript, and ours.
ROLES = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "model", "gemini", "bot"), "assistant"),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function"), "tool"),
}


@dataclass(frozen=True, slots=True)
class Turn:
    """What a transcript says of one message: a text or parts, and a time in any form.

    :param source_id: its id, unique among all files of the program.
    :param call_id: of a tool's message, the call that it answers.
    """

    role: str
    content: Any
    source_id: str | None = None
    time: Any = None
    model: str | None = None
    call_id: str | None = None

    def messages(self) -> list[Message]:
        """Return the messages of the turn; raise ValueError if it cannot be read."""
        role, time = ROLES.get(self.role), moment(self.time)
        if role is None:
            raise ValueError("unknown role")
        if role == "tool":
            content = [content_blocks.tool_result(self.call_id, as_blocks(self.content))]
            return content_blocks.messages("user", content, time)
        return content_blocks.messages(role, as_blocks(self.content), time, self.source_id or "")


class Transcript:
    """A conversation while its file is read; ``source`` is the name of the importer."""

    source: ClassVar[str]

    def __init__(self, file: File) -> None:
        self.file = file
        self.thread = Thread(self.source, file.stem)

    def describe(
        self, *, identity: Any = None, title: Any = None, model: Any = None, folder: Any = None
    ) -> None:
        """Update the metadata of the conversation, as far as a value is a text."""
        self.thread.update(identity=identity, title=title, model=model, folder=folder)

    def turns(self, value: dict[str, Any]) -> Iterable[Turn]:
        """Yield the turns of an object after updating the metadata; ValueError if it is invalid."""
        raise NotImplementedError

    def read(self) -> Iterator[Record | Skipped]:
        """Yield the messages of the file."""
        return read_entries(self.file, self._read_object)

    def _read_object(self, place: str, value: dict[str, Any]) -> Iterator[Record | Skipped]:
        turns = list(self.turns(value))
        for number, turn in enumerate(turns, 1):
            where = place if len(turns) == 1 else f"{place}, message {number}"
            yield from _read_turn(self.thread, where, turn)


class TranscriptImporter(Importer):
    """The base class of importers of transcripts."""

    transcript: ClassVar[type[Transcript]]

    def read(self, file: File) -> Iterator[Record | Skipped]:
        return self.transcript(file).read()


def read_conversation(
    thread: Thread, place: str, turns: Iterable[tuple[int, Turn | None]]
) -> Iterator[Record | Skipped]:
    """Yield the messages of numbered turns; ``None`` stands for one that is not a message."""
    for number, turn in turns:
        yield from _read_turn(thread, f"{place}, message {number}", turn)


def _read_turn(thread: Thread, place: str, turn: Turn | None) -> Iterator[Record | Skipped]:
    if turn is None:
        yield Skipped(place, "not a message")
        return
    thread.update(model=turn.model)
    if turn.source_id:
        thread.follow(turn.source_id)
    yield from thread.convert(place, turn.source_id, turn.messages)


_CALLS = frozenset({"tool_use", "toolCall", "tool_call", "toolUse", "function_call", "tool-call"})
_RESULTS = frozenset(
    {"tool_result", "toolResult", "tool-result", "function_call_output", "toolResponse"}
)
_THINKING = frozenset({"thinking", "think", "reasoning", "thought"})
#: Names of the id of a call in its result, and of a call's arguments.
_CALL_IDS = ("tool_use_id", "toolUseID", "toolUseId", "toolCallId", "tool_call_id", "call_id")
_ARGUMENTS = ("input", "arguments", "args", "rawInput")


def as_blocks(content: Any) -> list[Any]:
    """Return the blocks of a text, a part or a list of parts; raise ValueError for others."""
    if content is None:
        return []
    if isinstance(content, str | dict):
        content = [content]
    if not isinstance(content, list):
        raise ValueError("content is neither a text nor a list of parts")
    return [block for part in content if (block := _as_block(part)) is not None]


def _as_block(part: Any) -> Any:
    if not isinstance(part, dict):
        return part if isinstance(part, str) else None
    kind = text(part.get("type")) or _kind_of(part)
    if kind in _CALLS:
        identity = part.get("id") or _first(part, _CALL_IDS)
        name = part.get("name") or part.get("toolName")
        return content_blocks.tool_use(text(identity), name, _first(part, _ARGUMENTS))
    if kind in _RESULTS:
        return content_blocks.tool_result(text(_first(part, _CALL_IDS)), _result(part))
    if kind in _THINKING:
        words = text(part.get("thinking")) or text(part.get("think")) or text(part.get("text"))
        return {"type": "thinking", "thinking": words}
    if kind == "gemini":
        return _gemini_block(part)
    return part


def _kind_of(part: dict[str, Any]) -> str | None:
    if part.get("thought") is True:
        return "thinking"
    is_gemini = any(name in part for name in ("functionCall", "functionResponse", "inlineData"))
    return "gemini" if is_gemini or "fileData" in part else None


def _gemini_block(part: dict[str, Any]) -> dict[str, Any]:
    call, answer = obj(part.get("functionCall")), obj(part.get("functionResponse"))
    if call:
        return content_blocks.tool_use(text(call.get("id")), call.get("name"), call.get("args"))
    if answer:
        return content_blocks.tool_result(text(answer.get("id")), _output(answer.get("response")))
    data = obj(part.get("inlineData")) or obj(part.get("fileData"))
    return content_blocks.file_block(data.get("mimeType"), data.get("displayName"))


def _first(part: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((part[name] for name in names if part.get(name) is not None), None)


def _result(part: dict[str, Any]) -> Any:
    run = obj(part.get("run"))
    for value in (part.get("content"), run.get("result"), part.get("output"), part.get("result")):
        if value is not None:
            return _output(value)
    return _output(run.get("error") or part.get("error")) or ""


def _output(value: Any) -> Any:
    if isinstance(value, dict):
        inner = value.get("output", value.get("content", value.get("error")))
        value = inner if isinstance(inner, str | list) else value
    if isinstance(value, str | list) or value is None:
        return as_blocks(value) if isinstance(value, list) else value
    return json.dumps(value, ensure_ascii=False)
