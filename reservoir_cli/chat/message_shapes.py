"""Tell what a message of a list is, in the shapes of several providers. Pure.

In a list of OpenAI's Responses API, calls, outputs and reasoning are items of their own, by type.
"""

from typing import Any

ChatMessage = dict[str, Any]

_INSTRUCTIONS = ("system", "developer")  # roles of instructions, which are never left out
#: Types of Responses items that form a pair, as a call and its output do.
#: What marks a block as a call or a result: its type, or the key that holds all of it.
_CALLS = ("tool_use", "tool-call", "functionCall", "function_call", "toolUse")
_RESULTS = ("tool_result", "tool-result", "functionResponse", "function_response", "toolResult")
#: The keys of a block's id.
_CALL_IDS = ("id", "toolCallId", "toolUseId")
_RESULT_IDS = ("tool_use_id", "toolCallId", "toolUseId", "id")
_APPROVAL_REQUEST, _APPROVAL_RESPONSE = "mcp_approval_request", "mcp_approval_response"


def is_instruction(message: ChatMessage) -> bool:
    """Return whether this is a system or developer message."""
    return message.get("role") in _INSTRUCTIONS


def is_question(message: ChatMessage) -> bool:
    """Return whether the user speaks, and no tool result stands in the same message."""
    return message.get("role") == "user" and not _blocks(message, _RESULTS)


def is_result(message: ChatMessage) -> bool:
    """Return whether a message or item holds the results of tools."""
    if (role := message.get("role")) is not None:
        return role in ("tool", "function") or bool(role == "user" and _blocks(message, _RESULTS))
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
    return _texts([_id_of(call, _CALL_IDS) for call in _calls(message)])


def _calls(message: ChatMessage) -> list[dict[str, Any]]:
    if message.get("role") not in ("assistant", "model"):
        return []
    listed = message.get("tool_calls")
    calls = [call for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
    return calls + _blocks(message, _CALLS)


def answered_ids(message: ChatMessage) -> list[str]:
    """Return the ids of the calls that a message or item answers, as far as it names them."""
    if not is_result(message):
        return []
    if is_item(message):
        keys = ("call_id", "approval_request_id", "id")
        return _texts([message.get(key) for key in keys])[:1]
    blocks = [_id_of(block, _RESULT_IDS) for block in _blocks(message, _RESULTS)]
    return _texts([message.get("tool_call_id"), *blocks])


def _id_of(block: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return next((block[key] for key in keys if block.get(key)), None)


def _texts(values: list[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str) and value]


def content_of(message: ChatMessage) -> Any:
    """Return the content of a message, which Gemini calls its parts."""
    content = message.get("content")
    return message.get("parts") if content is None else content


def _blocks(message: ChatMessage, marks: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the blocks that one of these types or keys marks, without such a key."""
    content, blocks = content_of(message), []
    for block in content if isinstance(content, list) else []:
        if isinstance(block, dict):
            held = [block[mark] for mark in marks if isinstance(block.get(mark), dict)]
            blocks += held or ([block] if block.get("type") in marks else [])
    return blocks
