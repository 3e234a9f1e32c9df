"""Codex's sessions (rollouts): what was sent to the model and what came back, line by line."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from reservoir_cli.messages import Conversation, Message
from reservoir_cli.transfer.importers import File, Record, Skipped, has_key, is_json
from reservoir_cli.transfer.importers.blocks import content_text
from reservoir_cli.transfer.importers.coerce import (
    branch_name,
    call,
    folder_name,
    moment,
    obj,
    text,
)
from reservoir_cli.transfer.importers.conversations import SourceIds, Thread
from reservoir_cli.transfer.importers.json_stream import entries

#: What the program writes in the user's name.
_INJECTED = (
    "<environment_context>",
    "<permissions",
    "<user_instructions>",
    "# AGENTS.md instructions for ",
)
#: Such texts that once were taken for messages: they go on counting for the identities.
_NOTICES = (
    "<turn_aborted>",
    "<user_shell_command>",
    "<subagent_notification>",
    "<skill>",
)
#: What an editor tells of itself, and the heading below which the question stands.
_SETUP, _REQUEST = "# Context from my IDE setup:", "\n## My request for Codex:"
_LINES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")


class Codex:
    """Reads the rollouts below ``~/.codex/sessions``."""

    name = "codex"
    instance = "codex"

    def detect(self, head: str) -> bool:
        """Each line has a payload of one of a few types."""
        known = any(f'"{each}"' in head for each in _LINES)
        return is_json(head) and known and has_key(head, "payload")

    def read(self, file: File) -> Iterator[Record | Skipped]:
        """Message by message; events repeat what the items say, and are passed over."""
        identities = SourceIds()
        thread = _thread(file.stem, identities)
        for found in entries(file):
            if isinstance(found, Skipped):
                yield found
                continue
            place, line = found
            payload, kind = obj(line.get("payload")), line.get("type")
            if kind == "session_meta" and text(payload.get("id")):
                thread = _thread(str(text(payload["id"])), identities)
            if kind in ("session_meta", "turn_context") and thread.conversation:
                thread.conversation = _learnt(thread.conversation, payload)
            elif kind == "response_item":
                yield from _item(place, line, thread, identities)
            elif not isinstance(kind, str):
                yield Skipped(place, "no type")


def _thread(session: str, identities: SourceIds) -> Thread:
    made = Thread(Codex.name, Conversation(session, source=Codex.name))
    # Sessions may begin with the same words: what a message follows is, at first, its session.
    identities.follow(session, session)
    return made


def _learnt(about: Conversation, payload: dict[str, Any]) -> Conversation:
    """Return a conversation with the model, folder and branch that a line names."""
    return replace(
        about,
        model=text(payload.get("model")) or about.model,
        project=about.project or folder_name(payload.get("cwd")),
        branch=branch_name(obj(payload.get("git")).get("branch")) or about.branch,
    )


def _item(
    place: str, line: dict[str, Any], thread: Thread, identities: SourceIds
) -> Iterator[Record | Skipped]:
    try:
        message = _message(line)
    except ValueError as error:
        yield Skipped(place, str(error))
        return
    if message is not None and thread.conversation is not None:
        # Its identity is that of the whole text: what was imported once is there already.
        source_id = identities.new(thread.conversation.id, message)
        said = _said(message)
        if said.content or message.role != "user":
            yield thread.record(said, source_id)


def _said(message: Message) -> Message:
    """Return a user's message without what an editor put in front; empty if it is a notice."""
    if message.role != "user":
        return message
    content = message.content.strip()
    if content.startswith(_NOTICES):
        return replace(message, content="")
    before, heading, asked = content.partition(_REQUEST)
    if heading and before.startswith(_SETUP):
        return replace(message, content=asked.strip())
    return message


def _message(line: dict[str, Any]) -> Message | None:
    """Return what an item says; nothing if the program itself says it."""
    item, created_at = line.get("payload"), moment(line.get("timestamp"))
    if not isinstance(item, dict):
        raise ValueError("not an item")
    match item.get("type"):
        case "message":
            role, said = item.get("role"), content_text(item.get("content"))
            if role in ("system", "developer") or not said.strip():
                return None
            if role not in ("user", "assistant"):
                raise ValueError("unknown role")
            injected = role == "user" and said.lstrip().startswith(_INJECTED)
            return None if injected else Message(role, said, created_at)
        case "function_call":
            return _call(item, item.get("name"), item.get("arguments"), created_at)
        case "custom_tool_call":
            return _call(item, item.get("name"), item.get("input"), created_at)
        case "local_shell_call":
            return _call(item, "local_shell", item.get("action"), created_at)
        case "function_call_output" | "custom_tool_call_output":
            answered = text(item.get("call_id"))
            return Message("tool", _output(item), created_at, tool_call_id=answered)
        case _:
            return None


def _call(item: dict[str, Any], name: Any, arguments: Any, created_at: Any) -> Message:
    made = call(item.get("call_id"), name, arguments)
    return Message("assistant", "", created_at, tool_calls=(made,))


def _output(item: dict[str, Any]) -> str:
    output = item.get("output")
    return content_text(output.get("content") if isinstance(output, dict) else output)
