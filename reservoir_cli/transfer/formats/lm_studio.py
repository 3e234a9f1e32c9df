"""Import conversations of LM Studio: a file each, with all versions of each message."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from reservoir_cli.messages import Message
from reservoir_cli.transfer.reading import content_blocks
from reservoir_cli.transfer.reading.content_blocks import tool_result, tool_use
from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.foreign_values import obj, objects, text
from reservoir_cli.transfer.reading.importer import Importer, Place, Record, Skipped, Thread
from reservoir_cli.transfer.reading.json_stream import read_entries
from reservoir_cli.transfer.reading.times import moment_ms
from reservoir_cli.util.read_files import read_regular

_STEP_TIME = re.compile(r"([0-9]{13})-")  #: The millisecond in which a step began, in its name.


class LmStudio(Importer):
    """Reads the ``*.conversation.json`` below ``~/.lmstudio/conversations``."""

    name = "lm-studio"
    title = "LM Studio"
    endings = (".conversation.json",)
    instance = "lm-studio"

    def detect(self, head: Head) -> bool:
        return head.has_all("versions", "currentlySelected")

    def places(self) -> Iterator[Place]:
        yield Place(_home() / "conversations", self.endings)

    def read(self, file: File) -> Iterator[Record | Skipped]:
        def read(place: str, value: dict[str, Any]) -> Iterator[Record | Skipped]:
            listed = value.get("messages")
            if not isinstance(listed, list):
                raise ValueError("no list of messages")
            conversation = _ConversationReader(file.stem, value)
            yield from conversation.system_prompt()
            for number, message in enumerate(listed, 1):
                yield from Skipped.if_invalid(
                    f"{place}, message {number}", conversation.read(message)
                )

        return read_entries(file, read)


def _home() -> Path:
    pointer = Path.home() / ".lmstudio-home-pointer"
    with suppress(OSError, ValueError):
        folder = Path(read_regular(pointer).decode().strip())
        if folder.is_absolute():
            return folder
    return Path.home() / ".lmstudio"


@dataclass
class _ConversationReader:
    stem: str
    about: dict[str, Any]

    def __post_init__(self) -> None:
        self.time = moment_ms(self.about.get("createdAt"))
        # The file has the same name until the user renames it.
        self.identity = str(int(self.time.timestamp() * 1000)) if self.time else self.stem
        last_model = obj(self.about.get("lastUsedModel"))
        model = text(last_model.get("identifier")) or last_model.get("indexedModelIdentifier")
        title = self.about.get("name")
        self.thread = Thread(LmStudio.name, self.identity, title=title, model=model)

    def system_prompt(self) -> Iterator[Record]:
        if prompt := text(self.about.get("systemPrompt")):
            message = Message("system", prompt, self.time)
            yield self.thread.record(message, f"{self.identity}:system")

    def read(self, value: Any) -> Iterator[Record]:
        """Yield a message's selected version; its first step's id stays while a reply grows."""
        version = _selected_version(value)
        role, steps = version.get("role"), _steps(version)
        if role not in ("user", "assistant", "system"):
            raise ValueError("unknown role")
        first = next((name for step in steps if (name := text(step.get("stepIdentifier")))), None)
        first_id = first and f"{self.identity}:{first}"
        blocks = [part for step in steps for part in _parts(step, first_id or self.identity)]
        messages = content_blocks.messages(role, blocks, self._step_time(first))
        if first_id:
            self.thread.follow(first_id)
        yield from self.thread.records(first_id, messages)

    def _step_time(self, step: str | None) -> datetime | None:
        """Return the time of a step; without one, the time of the previous message."""
        if step and (match := _STEP_TIME.match(step)):
            self.time = moment_ms(int(match[1])) or self.time
        return self.time


def _selected_version(value: Any) -> dict[str, Any]:
    """Return the selected version, else the last one; raise ValueError if there is none."""
    versions = obj(value).get("versions")
    if not isinstance(versions, list) or not versions:
        raise ValueError("no versions")
    number = value.get("currentlySelected")
    inside = isinstance(number, int) and 0 <= number < len(versions)
    version = versions[number if inside else -1]
    if not isinstance(version, dict):
        raise ValueError("not a message")
    return version


def _steps(version: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the steps of a version; a version without steps is the only step."""
    if version.get("type") == "multiStep" or "steps" in version:
        return [step for step in objects(version.get("steps")) if step.get("content") is not None]
    return [version]


def _parts(step: dict[str, Any], prefix: str) -> Iterator[Any]:
    """Yield the content of a step as blocks; calls that only have a number get the prefix."""
    content = step.get("content")
    is_thinking = obj(step.get("style")).get("type") == "thinking"
    for part in content if isinstance(content, list) else [content]:
        fields = obj(part)
        identity = text(fields.get("toolCallRequestId")) or f"{prefix}/{fields.get('callId')}"
        match fields.get("type"):
            case "toolCallRequest":
                arguments = fields.get("parameters", fields.get("arguments"))
                yield tool_use(identity, fields.get("name"), arguments)
            case "toolCallResult":
                yield tool_result(identity, fields.get("content"))
            case "text" if fields.get("isStructural") is True:
                continue
            case "text" if is_thinking:
                yield {"type": "thinking", "thinking": fields.get("text")}
            case "file" if fields.get("fileType") == "image":
                yield {"type": "image"}
            case _:
                yield part
