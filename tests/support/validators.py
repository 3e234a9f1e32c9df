"""Validate request bodies by the published rules and error messages of the providers.

Written independently of the code that builds bodies. ``problems`` names every rule that a body
breaks. Two rules are Reservoir's own, and stricter than a provider: the last message is the
user's, and no content is blank.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

Body = dict[str, Any]

#: OpenAI: "string too long. Expected a string with maximum length 40"; Anthropic: "String should
#: match pattern '^[a-zA-Z0-9_-]+$'".
_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}", re.ASCII)
#: Both: "does not match pattern '^[a-zA-Z0-9_-]{1,64}$'".
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)


def problems(form: str, body: Body) -> list[str]:
    """Return every rule of a provider that a request body breaks."""
    return [*_json(body), *_common(body), *_RULES[form](body)]


def _json(body: Body) -> Iterator[str]:
    """Check that a body is strict JSON in UTF-8, without NaN and lone surrogates."""
    try:
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        yield f"the body is not JSON: {type(error).__name__}"


def _common(body: Body) -> Iterator[str]:
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "model is required"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "messages: at least one message is required"
    elif messages[-1].get("role") != "user":
        yield "the last message is not the user's"


# --- OpenAI and Azure -----------------------------------------------------------------


def _openai(body: Body) -> Iterator[str]:
    messages = body.get("messages") or []
    for message in messages:
        yield from _openai_message(message)
    yield from _openai_order(messages)


def _openai_message(message: Body) -> Iterator[str]:
    role, calls = message.get("role"), message.get("tool_calls")
    if role not in ("system", "developer", "user", "assistant", "tool"):
        yield f"role {role!r} is unknown"
    if "tool_calls" in message and role != "assistant":
        yield f"tool_calls in a message of role {role}"
    if "tool_calls" in message and not calls:
        yield "tool_calls is empty"
    yield from _openai_content(message.get("content"), bool(calls))
    for call in calls or []:
        yield from _openai_call(call)
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        yield "a tool message without tool_call_id"
    if role != "tool" and "tool_call_id" in message:
        yield f"tool_call_id in a message of role {role}"
    if "name" in message and not _NAME.fullmatch(str(message["name"])):
        yield "name of a message does not match its pattern"


def _openai_content(content: Any, has_calls: bool) -> Iterator[str]:
    if content is None and not has_calls:
        yield "content is null, and there are no calls"
    elif content is not None and not isinstance(content, str):
        yield "content is not a string"
    elif content is not None and not content.strip():
        yield "content is blank"


def _openai_call(call: Body) -> Iterator[str]:
    if not _ID.fullmatch(str(call.get("id", ""))):
        yield "id of a call does not match its pattern"
    if call.get("type") != "function":
        yield "type of a call is not function"
    function = call.get("function") or {}
    if not _NAME.fullmatch(str(function.get("name", ""))):
        yield "name of a function does not match its pattern"
    if not isinstance(function.get("arguments"), str):
        yield "arguments are not a string"
    elif not _is_json_object(function["arguments"]):
        yield "arguments are not the JSON of an object"  # vLLM and llama.cpp parse them


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _openai_order(messages: list[Body]) -> Iterator[str]:
    """Check that tool messages answer the calls right before them, each call once."""
    waiting: Counter[str] = Counter()
    for message in [*messages, {"role": "end"}]:
        if message.get("role") == "tool":
            number = message.get("tool_call_id")
            if not waiting[number]:
                yield "a tool message is not a response to a preceding message with tool_calls"
            waiting[number] -= 1
            continue
        if +waiting:
            yield "tool_calls are not followed by tool messages responding to each tool_call_id"
        waiting = Counter(call.get("id") for call in message.get("tool_calls") or [])
        if any(count > 1 for count in waiting.values()):
            yield "two calls of a message have one id"


# --- Ollama ---------------------------------------------------------------------------


def _ollama(body: Body) -> Iterator[str]:
    if body.get("stream") is not False:
        yield "stream is not false"
    messages = body.get("messages") or []
    for message in messages:
        yield from _ollama_message(message)
    yield from _ollama_order(messages)


def _ollama_message(message: Body) -> Iterator[str]:
    role, content = message.get("role"), message.get("content")
    if role not in ("system", "user", "assistant", "tool"):
        yield f"role {role!r} is unknown"
    if not isinstance(content, str):
        yield "content is not a string"
    elif not content.strip() and not message.get("tool_calls"):
        yield "content is blank"
    if "tool_calls" in message and role != "assistant":
        yield f"tool_calls in a message of role {role}"
    for call in message.get("tool_calls") or []:
        function = call.get("function") or {}
        if not isinstance(function.get("name"), str) or not function["name"]:
            yield "a call without a name"
        if not isinstance(function.get("arguments"), dict):
            yield "arguments are not an object"


def _ollama_order(messages: list[Body]) -> Iterator[str]:
    """Check that results, which have no ids, follow their calls in the same number and by name."""
    waiting: list[str] = []
    for message in [*messages, {"role": "end"}]:
        if message.get("role") == "tool":
            name = message.get("tool_name")
            if name in waiting:
                waiting.remove(name)
            else:
                yield "a result names no tool that was called right before it"
            continue
        if waiting:
            yield "a call without a result"
        waiting = [call["function"].get("name") for call in message.get("tool_calls") or []]


# --- Anthropic ------------------------------------------------------------------------


def _anthropic(body: Body) -> Iterator[str]:
    limit = body.get("max_tokens")
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        yield "max_tokens is not a whole number from 1"
    if "system" in body and not (isinstance(body["system"], str) and body["system"].strip()):
        yield "system is not a text"
    messages = body.get("messages") or []
    if messages and messages[0].get("role") != "user":
        yield "the first message is not the user's"
    for before, message in zip([{}, *messages], messages, strict=False):
        if before.get("role") == message.get("role"):
            yield "roles do not alternate"
        yield from _anthropic_message(message)
        yield from _anthropic_results(_blocks(before), _blocks(message))
    if messages and _of_type(_blocks(messages[-1]), "tool_use"):
        yield "tool_use ids were found without tool_result blocks immediately after"
    yield from _anthropic_tools(body, [block for message in messages for block in _blocks(message)])


def _blocks(message: Body) -> list[Body]:
    content = message.get("content", [])
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _of_type(blocks: list[Body], kind: str) -> list[Body]:
    return [block for block in blocks if block.get("type") == kind]


def _anthropic_message(message: Body) -> Iterator[str]:
    role, blocks = message.get("role"), _blocks(message)
    if role not in ("user", "assistant"):
        yield f"role {role!r} is unknown"
    if not blocks:
        yield "content is empty"
    for block in blocks:
        kind = block.get("type")
        if kind == "text" and not str(block.get("text", "")).strip():
            yield "text content blocks must contain non-whitespace text"
        elif kind not in ("text", "tool_use" if role == "assistant" else "tool_result"):
            yield f"a block {kind} in a message of role {role}"
        elif kind == "tool_use":
            yield from _anthropic_use(block)
        elif kind == "tool_result" and not str(block.get("content", "")).strip():
            yield "content of a tool_result is blank"
    kinds = [block.get("type") for block in blocks]
    if kinds != sorted(kinds, key=lambda kind: kind != "tool_result"):
        yield "tool_result blocks do not come first"


def _anthropic_use(block: Body) -> Iterator[str]:
    if not _ID.fullmatch(str(block.get("id", ""))):
        yield "id of a tool_use does not match its pattern"
    if not _NAME.fullmatch(str(block.get("name", ""))):
        yield "name of a tool_use does not match its pattern"
    if not isinstance(block.get("input"), dict):
        yield "input is not an object"


def _anthropic_results(before: list[Body], blocks: list[Body]) -> Iterator[str]:
    used = {block.get("id") for block in _of_type(before, "tool_use")}
    answered = Counter(block.get("tool_use_id") for block in _of_type(blocks, "tool_result"))
    if used - answered.keys():
        yield "tool_use ids were found without tool_result blocks immediately after"
    if answered.keys() - used:
        yield "a tool_result has no corresponding tool_use block in the previous message"
    if any(count > 1 for count in answered.values()):
        yield "each tool_use must have a single result"


def _anthropic_tools(body: Body, blocks: list[Body]) -> Iterator[str]:
    tools = body.get("tools") or []
    names = [tool.get("name") for tool in tools]
    used = _of_type(blocks, "tool_use")
    if any(count > 1 for count in Counter(block.get("id") for block in used).values()):
        yield "tool_use ids must be unique"
    if (used or _of_type(blocks, "tool_result")) and not tools:
        yield "requests which include tool_use or tool_result blocks must define tools"
    elif {block.get("name") for block in used} - set(names):
        yield "a tool_use of a tool that is not defined"
    if len(names) != len(set(names)):
        yield "tool names must be unique"
    for tool in tools:
        if not _NAME.fullmatch(str(tool.get("name", ""))):
            yield "name of a tool does not match its pattern"
        if (tool.get("input_schema") or {}).get("type") != "object":
            yield "input_schema of a tool is not an object"


_RULES: dict[str, Callable[[Body], Iterator[str]]] = {
    "openai": _openai,
    "azure": _openai,
    "ollama": _ollama,
    "anthropic": _anthropic,
}
