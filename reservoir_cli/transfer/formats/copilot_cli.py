"""Import Copilot CLI's sessions: files with one event per line."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from reservoir_cli.messages import Message
from reservoir_cli.transfer.reading import content_blocks
from reservoir_cli.transfer.reading.content_blocks import file_block, tool_use
from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.foreign_values import (
    branch_name,
    folder_name,
    obj,
    objects,
    text,
)
from reservoir_cli.transfer.reading.importer import (
    Importer,
    Place,
    Record,
    Skipped,
    SourceIds,
    Thread,
    pop_from,
)
from reservoir_cli.transfer.reading.json_stream import (
    read_entries,
    read_small_file,
    readable_objects,
)
from reservoir_cli.transfer.reading.platform_folders import tool_dir
from reservoir_cli.transfer.reading.times import moment

#: The name of a session in the YAML file beside its events, quoted or not.
_NAME = re.compile(r"^name: (?:'((?:[^'\n]|'')+)'|([^'\"|>\n][^\n]*))$", re.M)
_NAMED_BY_USER = re.compile(r"^user_named: true$", re.M)
_EVENTS = ("session.start", "session.resume", "user.message", "assistant.message")


class CopilotCli(Importer):
    """Reads ``events.jsonl`` in the folders below ``~/.copilot/session-state``."""

    name = "copilot-cli"
    title = "Copilot CLI"
    instance = "copilot-cli"

    def detect(self, head: Head) -> bool:
        return head.has_all("parentId", "data") and head.has_kind(*_EVENTS)

    def places(self) -> Iterator[Place]:
        yield Place(tool_dir("COPILOT_HOME", ".copilot") / "session-state")

    def read(self, file: File) -> Iterator[Record | Skipped]:
        return read_events(file, self.name, _given_name(file))


def read_events(
    file: File, source: str, title: str | None, folder: str | None = None
) -> Iterator[Record | Skipped]:
    """Yield the messages of a session's events, which may name another folder."""
    identity, rewound = _survey(file)
    session = _Session(Thread(source, identity, folder=folder), rewound, title)
    return read_entries(file, session.read)


@dataclass
class _Session:
    """A session while its events are read; each agent has its own conversation.

    :param about: what the events of the session say of all of them.
    """

    about: Thread
    rewound: set[str]
    title: str | None
    threads: dict[str, Thread] = field(default_factory=dict)
    identities: SourceIds = field(default_factory=SourceIds)
    seen: set[str] = field(default_factory=set)

    def read(self, place: str, event: dict[str, Any]) -> Iterator[Record | Skipped]:
        kind, data = event.get("type"), event.get("data")
        if not isinstance(kind, str):
            yield Skipped(place, "no type")
            return
        event_id = text(event.get("id"))
        if event_id in self.seen or event_id in self.rewound:
            return
        if event_id:
            self.seen.add(event_id)
        if kind.startswith("session."):
            self._update_metadata(obj(data))
        if kind not in _READERS or _is_injected(event):
            return
        time = moment(event.get("timestamp"))

        def read() -> Iterator[Message]:
            if not isinstance(data, dict):
                raise ValueError("no data")
            for message in _READERS[kind](data, event_id or ""):
                yield replace(message, created_at=time)

        yield from self._thread(event).convert(place, event_id, read)

    def _update_metadata(self, data: dict[str, Any]) -> None:
        place = obj(data.get("context")) or data
        model, branch = data.get("selectedModel"), branch_name(place.get("branch"))
        self.about.update(model=model, folder=place.get("cwd"), branch=branch)

    def _thread(self, event: dict[str, Any]) -> Thread:
        """Return the conversation of the agent that sent an event, with an updated model."""
        data = obj(event.get("data"))
        agent = text(event.get("agentId")) or text(data.get("parentToolCallId"))
        session, title = self.about.conversation, None if agent else self.title
        key = f"{session.id}/{agent}" if agent else session.id
        if key not in self.threads:
            thread = Thread(self.about.source, key, title=title, identities=self.identities)
            thread.update(model=session.model)
            self.threads[key] = thread
        thread = self.threads[key]
        thread.update(model=data.get("model"), folder=self.about.folder, branch=session.branch)
        return thread


def _is_injected(event: dict[str, Any]) -> bool:
    """Return whether a skill or the program wrote a user message; an agent's task is kept."""
    data = obj(event.get("data"))
    source = text(data.get("source")) or ""
    from_agent = source.startswith("agent-") and text(event.get("agentId")) is None
    return source.startswith("skill-") or from_agent or data.get("isAutopilotContinuation") is True


def _user(data: dict[str, Any], event_id: str) -> list[Message]:
    """Return the user's message, preceded by markers for attachments."""
    attached = [_attachment_block(about) for about in objects(data.get("attachments"))]
    return content_blocks.messages("user", [*attached, _text_content(data)], None)


def _text_content(data: dict[str, Any]) -> str:
    content = data.get("content")
    if content is not None and not isinstance(content, str):
        raise ValueError("content is not a text")
    return content or ""


def _attachment_block(about: dict[str, Any]) -> dict[str, Any]:
    name = about.get("displayName") or about.get("path") or about.get("filePath")
    return file_block(about.get("mimeType"), folder_name(name))


def _assistant(data: dict[str, Any], event_id: str) -> list[Message]:
    calls = [
        tool_use(text(request.get("toolCallId")), request.get("name"), request.get("arguments"))
        for request in objects(data.get("toolRequests"))
    ]
    thinking = {"type": "thinking", "thinking": data.get("reasoningText")}
    blocks = [_text_content(data), *calls, thinking]
    return content_blocks.messages("assistant", blocks, None, event_id)


def _result(data: dict[str, Any], event_id: str) -> list[Message]:
    result, error = obj(data.get("result")), obj(data.get("error"))
    content = text(result.get("content")) or text(error.get("message")) or ""
    return [Message("tool", content, tool_call_id=text(data.get("toolCallId")))]


_READERS = {
    "user.message": _user,
    "assistant.message": _assistant,
    "tool.execution_complete": _result,
}


def _survey(file: File) -> tuple[str, set[str]]:
    """Read the whole file for the session's id and the ids of events rewound later."""
    session, rewound = None, set()
    order: dict[str, None] = {}
    for event in readable_objects(file):
        data = obj(event.get("data"))
        if event.get("type") == "session.start":
            session = session or text(data.get("sessionId"))
        elif event.get("type") == "session.snapshot_rewind":
            rewound |= _rewound_ids(data, order)
        if event_id := text(event.get("id")):
            order[event_id] = None
    names = file.place.parts
    is_in_folder = file.stem == "events" and len(names) > 1  # not in older versions
    return session or (names[-2] if is_in_folder else file.stem), rewound


def _rewound_ids(data: dict[str, Any], order: dict[str, None]) -> set[str]:
    """Return the ids of the events that a rewind removes: a list, or all from an event on."""
    listed = data.get("eventIds")
    if isinstance(listed, list):
        return set(filter(None, map(text, listed)))
    return set(pop_from(order, text(data.get("upToEventId")) or ""))


def _given_name(file: File) -> str | None:
    """Return the name that the user gave to a session; others are its first question."""
    place = file.path.with_name("workspace.yaml") if file.path else None
    about = read_small_file(place).decode("utf-8", "replace")
    match = _NAME.search(about) if _NAMED_BY_USER.search(about) else None
    return text(match[2] or match[1].replace("''", "'")) if match else None
