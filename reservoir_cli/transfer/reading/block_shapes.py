"""Convert the parts of a message, which programs name differently, into Anthropic's blocks."""

import json
from typing import Any

from reservoir_cli.transfer.reading.content_blocks import file_block, tool_result, tool_use
from reservoir_cli.transfer.reading.foreign_values import obj, text

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
        return tool_use(text(identity), name, _first(part, _ARGUMENTS))
    if kind in _RESULTS:
        return tool_result(text(_first(part, _CALL_IDS)), _result(part))
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
        return tool_use(text(call.get("id")), call.get("name"), call.get("args"))
    if answer:
        return tool_result(text(answer.get("id")), _output(answer.get("response")))
    data = obj(part.get("inlineData")) or obj(part.get("fileData"))
    return file_block(data.get("mimeType"), data.get("displayName"))


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
