"""Tell what a message of a list is, in the shapes of OpenAI, Anthropic and Ollama. Pure.

In a list of OpenAI's Responses API, calls, outputs and reasoning are items of their own, by type.
"""

from typing import Any

ChatMessage = dict[str, Any]

_INSTRUCTIONS = ("system", "developer")  # roles of instructions, which are never left out
#: Types of Responses items that form a pair, as a call and its output do.
_APPROVAL_REQUEST, _APPROVAL_RESPONSE = "mcp_approval_request", "mcp_approval_response"


def is_instruction(message: ChatMessage) -> bool:
    """Return whether this is a system or developer message."""
    return message.get("role") in _INSTRUCTIONS


def is_question(message: ChatMessage) -> bool:
    """Return whether the user speaks, and no tool result stands in the same message."""
    return message.get("role") == "user" and not _blocks(message, "tool_result")


def is_result(message: ChatMessage) -> bool:
    """Return whether a message or item holds the results of tools."""
    if (role := message.get("role")) is not None:
        return role in ("tool", "function") or bool(
            role == "user" and _blocks(message, "tool_result")
        )
    kind = message.get("type")
    return isinstance(kind, str) and (kind.endswith("_output") or kind == _APPROVAL_RESPONSE)


def is_item(message: ChatMessage) -> bool:
    """Return whether this is an item of the Responses API other than a message."""
    return "role" not in message and isinstance(message.get("type"), str)


def has_calls(message: ChatMessage) -> bool:
    """Return whether a message or item calls a tool, with an id or, as in Ollama's, without."""
    if is_item(message):
        return bool(call_ids(message))
    legacy = message.get("role") == "assistant" and message.get("function_call")
    return bool(legacy or _calls(message))


def call_ids(message: ChatMessage) -> list[str]:
    """Return the ids of the tool calls in a message or item."""
    if is_item(message):
        if message["type"] == _APPROVAL_REQUEST:
            return _texts([message.get("id")])
        return _texts([message.get("call_id")]) if message["type"].endswith("_call") else []
    return _texts([call.get("id") for call in _calls(message)])


def _calls(message: ChatMessage) -> list[dict[str, Any]]:
    if message.get("role") != "assistant":
        return []
    listed = message.get("tool_calls")
    calls = [call for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
    return calls + _blocks(message, "tool_use")


def answered_ids(message: ChatMessage) -> list[str]:
    """Return the ids of the calls that a message or item answers, as far as it names them."""
    if not is_result(message):
        return []
    if is_item(message):
        keys = ("call_id", "approval_request_id", "id")
        return _texts([message.get(key) for key in keys])[:1]
    if message.get("role") == "user":
        return _texts([block.get("tool_use_id") for block in _blocks(message, "tool_result")])
    return _texts([message.get("tool_call_id")])


def _texts(values: list[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str) and value]


def _blocks(message: ChatMessage, kind: str) -> list[dict[str, Any]]:
    content = message.get("content")
    if not isinstance(content, list):
        return []
    return [block for block in content if isinstance(block, dict) and block.get("type") == kind]
