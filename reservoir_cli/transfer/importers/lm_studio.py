"""Import conversations of LM Studio: a file each, with all versions of each message."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from reservoir_cli.messages import Conversation, Message
from reservoir_cli.transfer.importers import content_blocks
from reservoir_cli.transfer.importers.base import Record, Skipped, has_key, is_json
from reservoir_cli.transfer.importers.coerce import moment_ms, obj, objects, text
from reservoir_cli.transfer.importers.conversation_identity import SourceIds, Thread, assign_ids
from reservoir_cli.transfer.importers.input_files import File
from reservoir_cli.transfer.importers.json_stream import entries

#: A step is named after the millisecond in which it began.
_STEP_TIME = re.compile(r"([0-9]{13})-")


class LmStudio:
    """Reads the ``*.conversation.json`` below ``~/.lmstudio/conversations``."""

    name = "lm-studio"
    instance = "lm-studio"

    def detect(self, head: str) -> bool:
        """Recognise messages with versions, one of which is selected."""
        return is_json(head) and has_key(head, "versions") and has_key(head, "currentlySelected")

    def read(self, file: File) -> Iterator[Record | Skipped]:
        """Yield the messages in order, each in its selected version."""
        for found in entries(file):
            if isinstance(found, Skipped):
                yield found
                continue
            place, value = found
            listed = value.get("messages")
            if not isinstance(listed, list):
                yield Skipped(place, "no list of messages")
                continue
            conversation = _ConversationReader(file.stem, value)
            yield from conversation.system_prompt()
            for number, message in enumerate(listed, 1):
                yield from conversation.read(f"{place}, message {number}", message)


@dataclass
class _ConversationReader:
    """A conversation while it is read."""

    stem: str
    about: dict[str, Any]
    identities: SourceIds = field(default_factory=SourceIds)

    def __post_init__(self) -> None:
        began = self.about.get("createdAt")
        self.time = moment_ms(began)
        # The file has the same name until the user renames it.
        self.identity = str(int(self.time.timestamp() * 1000)) if self.time else self.stem
        used = obj(self.about.get("lastUsedModel"))
        model = text(used.get("identifier")) or text(used.get("indexedModelIdentifier"))
        title = text(self.about.get("name"))
        known = Conversation(self.identity, title, LmStudio.name, model)
        self.thread = Thread(LmStudio.name, known)
        self.identities.follow("", self.identity)

    def system_prompt(self) -> Iterator[Record]:
        """Yield the system prompt of the conversation."""
        if prompt := text(self.about.get("systemPrompt")):
            yield self.thread.record(
                Message("system", prompt, self.time), f"{self.identity}:system"
            )

    def read(self, place: str, value: Any) -> Iterator[Record | Skipped]:
        """Yield the selected version of a message.

        The id of a reply is that of its first step, so that it stays the same while the reply
        grows; other ids depend on the previous message.
        """
        try:
            version = _selected(value)
            role, steps = version.get("role"), _steps(version)
            if role not in ("user", "assistant", "system"):
                raise ValueError("unknown role")
            step = next((said for s in steps if (said := text(s.get("stepIdentifier")))), None)
            own = step and f"{self.identity}:{step}"
            told = [part for each in steps for part in _parts(each, own or self.identity)]
            made = content_blocks.messages(role, told, self._began(step))
        except ValueError as error:
            yield Skipped(place, str(error))
            return
        if own is None:
            for message in made:
                yield self.thread.record(message, self.identities.new("", message))
            return
        self.identities.follow("", own)
        for source_id, message in assign_ids(own, made):
            yield self.thread.record(message, source_id)

    def _began(self, step: str | None) -> datetime | None:
        """Return the time of a step; without one, the time of the previous message."""
        if step and (match := _STEP_TIME.match(step)):
            self.time = moment_ms(int(match[1])) or self.time
        return self.time


def _selected(value: Any) -> dict[str, Any]:
    """Return the selected version of a message; the last one if none is selected.

    :raises ValueError: there is no version.
    """
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


def _parts(step: dict[str, Any], own: str) -> Iterator[Any]:
    """Yield the content of a step as Anthropic content blocks.

    :param own: prefix of the ids of calls that only have a number.
    """
    content = step.get("content")
    thinks = obj(step.get("style")).get("type") == "thinking"
    for part in content if isinstance(content, list) else [content]:
        about = obj(part)
        identity = text(about.get("toolCallRequestId")) or f"{own}/{about.get('callId')}"
        match about.get("type"):
            case "toolCallRequest":
                arguments = about.get("parameters", about.get("arguments"))
                name = about.get("name")
                yield {"type": "tool_use", "id": identity, "name": name, "input": arguments}
            case "toolCallResult":
                said = about.get("content")
                yield {"type": "tool_result", "tool_use_id": identity, "content": said}
            case "text" if about.get("isStructural") is True:
                continue
            case "text" if thinks:
                yield {"type": "thinking", "thinking": about.get("text")}
            case "file" if about.get("fileType") == "image":
                yield {"type": "image"}
            case _:
                yield part
