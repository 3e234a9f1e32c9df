"""Render the window as a provider's request body. Pure.

Every body is valid: results follow their calls, ids and names are allowed, no text is empty.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

from reservoir_cli.chat.turn import CONTEXT, Section, Turn
from reservoir_cli.messages import Role, ToolCall

_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_NO_OUTPUT = "[no output]"
_DEEP = 64  # arguments nested deeper than this are sent as raw text
Body = dict[str, Any]


def to_openai(turns: Sequence[Turn], model: str | None) -> Body:
    """Render a chat completion request for OpenAI or Azure OpenAI."""
    valid_turns = _replace_invalid_ids(_merge_recalled(turns))
    return {**_model_field(model), "messages": [_openai_message(turn) for turn in valid_turns]}


def to_ollama(turns: Sequence[Turn], model: str | None, window: int | None = None) -> Body:
    """Render a request for Ollama's chat API: arguments are objects, results name their tool.

    Without ``num_ctx``, a model's window in tokens, Ollama truncates to its own default.
    """
    valid_turns = _replace_invalid_ids(_merge_recalled(turns))
    names = {call.id: call.name for turn in valid_turns for call in turn.tool_calls}
    messages = [_ollama_message(turn, names) for turn in valid_turns]
    options = {"options": {"num_ctx": window}} if model and window else {}
    return {**_model_field(model), "messages": messages, "stream": False, **options}


def to_anthropic(turns: Sequence[Turn], model: str | None, max_tokens: int) -> Body:
    """Render an Anthropic messages request: one system text, then alternating roles.

    Called tools are declared with an open schema: blocks of undeclared tools are rejected.
    """
    valid_turns = _replace_invalid_ids(turns)
    system = [turn.content for turn in valid_turns if turn.role == Role.SYSTEM]
    messages: list[Body] = []
    for turn in valid_turns:
        if turn.role == Role.SYSTEM:
            continue
        role = "assistant" if turn.role == Role.ASSISTANT else "user"
        if not messages or messages[-1]["role"] != role:
            messages.append({"role": role, "content": []})
        messages[-1]["content"] += _anthropic_blocks(turn)
    names = sorted({call.name for turn in valid_turns for call in turn.tool_calls})
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in names]
    return {
        **_model_field(model),
        "max_tokens": max_tokens,
        **({"system": "\n---\n".join(system)} if system else {}),
        "messages": messages,
        **({"tools": tools} if tools else {}),
    }


def message_texts(body: Body) -> list[str]:
    """Return the text of each message, charged beside its framing; the first has all other text."""
    outside = [body.get("system", ""), _compact(body["tools"]) if "tools" in body else ""]
    texts = [_collect_text(message) for message in body["messages"]]
    first = "\n".join(filter(None, [*outside, *texts[:1]]))
    return [first, *texts[1:]] if first else texts


def _merge_recalled(turns: Sequence[Turn]) -> list[Turn]:
    """Merge recalled messages into the first turn of history: roles must alternate."""
    merged: list[Turn] = []
    for turn in turns:
        previous = merged[-1] if merged else None
        is_recalled = previous and (previous.section, previous.role) == (
            Section.RECALLED,
            Role.USER,
        )
        if previous and is_recalled and (turn.section, turn.role) == (Section.HISTORY, Role.USER):
            merged[-1] = turn._replace(content=f"{previous.content}\n---\n{turn.content}")
        else:
            merged.append(turn)
    return merged


def _model_field(model: str | None) -> Body:
    return {"model": model} if model else {}


def _openai_message(turn: Turn) -> Body:
    message: Body = {"role": _role(turn), "content": turn.content}
    if turn.tool_calls:
        message["content"] = turn.content if turn.content.strip() else None
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _arguments_text(call)},
            }
            for call in turn.tool_calls
        ]
    if turn.role == Role.TOOL:
        message["content"] = turn.content if turn.content.strip() else _NO_OUTPUT
        message["tool_call_id"] = turn.tool_call_id
    return message


def _ollama_message(turn: Turn, names: dict[str, str]) -> Body:
    message: Body = {"role": _role(turn), "content": turn.content}
    if turn.tool_calls:
        message["tool_calls"] = [
            {"function": {"name": call.name, "arguments": _arguments(call)}}
            for call in turn.tool_calls
        ]
    if turn.role == Role.TOOL:
        message["content"] = turn.content if turn.content.strip() else _NO_OUTPUT
        message["tool_name"] = names[turn.tool_call_id or ""]
    return message


def _anthropic_blocks(turn: Turn) -> list[Body]:
    if turn.role == Role.TOOL:
        content = turn.content if turn.content.strip() else _NO_OUTPUT
        return [{"type": "tool_result", "tool_use_id": turn.tool_call_id, "content": content}]
    text = [{"type": "text", "text": turn.content}] if turn.content.strip() else []
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _arguments(call)}
        for call in turn.tool_calls
    ]
    return text + calls


def _role(turn: Turn) -> str:
    return Role.SYSTEM.value if turn.role == CONTEXT else turn.role


def _arguments(call: ToolCall) -> Body:
    try:
        parsed = json.loads(call.arguments or "{}")
        _compact(parsed).encode()  # rejects infinities and lone surrogates
        if isinstance(parsed, dict) and _depth(parsed) <= _DEEP:
            return parsed
    except (ValueError, RecursionError):
        pass
    return {"_raw": call.arguments}


def _arguments_text(call: ToolCall) -> str:
    """Wrap anything but a JSON object, which servers that parse arguments would refuse."""
    arguments = _arguments(call)
    unchanged = call.arguments and arguments != {"_raw": call.arguments}
    return call.arguments if unchanged else _compact(arguments)


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


def _replace_invalid_ids(turns: Sequence[Turn]) -> list[Turn]:
    new_ids: dict[str, str] = {}
    used: set[str] = set()
    valid = []
    for turn in turns:
        calls = []
        for call in turn.tool_calls:
            new_ids[call.id] = _valid_id(call.id, used)
            used.add(new_ids[call.id])
            name = re.sub(r"[^A-Za-z0-9_-]", "_", call.name)[:64]
            calls.append(ToolCall(new_ids[call.id], name, call.arguments))
        result_id = new_ids.get(turn.tool_call_id or "") if turn.role == Role.TOOL else None
        valid.append(
            Turn(turn.section, turn.role, turn.content, tuple(calls), result_id, turn.name)
        )
    return valid


def _valid_id(text: str, used: set[str]) -> str:
    new_id, salt = text, 0
    while not _ID.fullmatch(new_id) or new_id in used:
        new_id = "call_" + hashlib.sha256(f"{salt} {text}".encode()).hexdigest()[:24]
        salt += 1
    return new_id


def _collect_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(_collect_text(item) for item in value)
    if not isinstance(value, dict):
        return ""
    texts = [
        _compact(item)
        if key in ("input", "arguments") and isinstance(item, dict)
        else _collect_text(item)
        for key, item in value.items()
        if key not in ("role", "type")
    ]
    return "\n".join(filter(None, texts))


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
