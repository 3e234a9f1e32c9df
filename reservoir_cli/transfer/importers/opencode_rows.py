"""Convert the messages of opencode from version 2 on, each of which is one row with its parts."""

from collections.abc import Iterator
from typing import Any

from reservoir_cli.messages import Message
from reservoir_cli.transfer.importers import content_blocks
from reservoir_cli.transfer.importers.content_blocks import file_block, tool_result, tool_use
from reservoir_cli.transfer.importers.foreign_values import obj, objects, parse_object, text
from reservoir_cli.transfer.importers.message_times import moment_ms

#: The role of a message by its type. Other types are the program's own text, or changed settings.
_ROLES = {"user": "user", "assistant": "assistant", "shell": "assistant"}


def model_of(value: Any) -> str | None:
    """Return the name of a model, which is an object or its JSON."""
    return text(obj(parse_object(value) or value).get("id"))


def row_messages(row: dict[str, Any], value: dict[str, Any], message_id: str) -> list[Message]:
    """Return the messages in a row; none for the program's own text.

    :param value: the row's data.
    :raises ValueError: a part cannot be read.
    """
    kind = text(row.get("type"))
    if kind not in _ROLES:
        return []
    created_at = moment_ms(obj(value.get("time")).get("created") or row.get("time_created"))
    blocks = list({"user": _question, "shell": _command}.get(kind, _reply)(value))
    return content_blocks.messages(_ROLES[kind], blocks, created_at, message_id)


def _question(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "text", "text": text(value.get("text")) or ""}
    for file in objects(value.get("files")):
        yield file_block(file.get("mime"), file.get("name") or file.get("filename"))


def _command(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a command that the user ran, and its output."""
    identity, output = text(value.get("shellID")), obj(value.get("output")).get("output")
    yield tool_use(identity, "shell", {"command": value.get("command")})
    if isinstance(output, str):
        yield tool_result(identity, output)


def _reply(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for part in objects(value.get("content")):
        match part.get("type"):
            case "text":
                yield {"type": "text", "text": text(part.get("text")) or ""}
            case "reasoning":
                yield {"type": "thinking", "thinking": part.get("text")}
            case "tool":
                state, identity = obj(part.get("state")), text(part.get("id"))
                yield tool_use(identity, part.get("name"), state.get("input"))
                output = state.get("content") or state.get("output")
                output = output or text(obj(state.get("error")).get("message"))
                if isinstance(output, str | list):
                    yield tool_result(identity, output)
