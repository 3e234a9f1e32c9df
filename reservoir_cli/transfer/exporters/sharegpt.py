"""Export conversations in ShareGPT's format, one per line."""

import json
from collections.abc import Iterator

from reservoir_cli.chat.turn import Turn
from reservoir_cli.messages import Role, ToolCall
from reservoir_cli.transfer.exporters.build_turns import Thread, build_turns

_NAMES = {
    Role.USER.value: "human",
    Role.ASSISTANT.value: "gpt",
}


def write(thread: Thread) -> str:
    """Return the line ``{"id", "title", "model", "conversations": [{"from", "value"}]}``.

    Empty without messages.
    """
    about = thread.about
    fields = {
        "id": thread.name[2],
        "title": about.title if about else None,
        "model": about.model if about else None,
    }
    entries = list(_entries(build_turns(thread)))
    row = {key: value for key, value in fields.items() if value} | {"conversations": entries}
    return json.dumps(row, ensure_ascii=False) + "\n" if entries else ""


def _entries(turns: list[Turn]) -> Iterator[dict[str, str]]:
    """Yield the entries of a conversation, each call right before its result.

    The format has no ids for calls.
    """
    for index, turn in enumerate(turns):
        if turn.role == Role.TOOL:
            continue  # written with its call
        if turn.content.strip():
            yield {"from": _NAMES.get(turn.role, "system"), "value": turn.content}
        results = turns[index + 1 : index + 1 + len(turn.tool_calls)]
        for call, result in zip(turn.tool_calls, results, strict=True):
            yield {"from": "function_call", "value": _call_json(call)}
            yield {"from": "observation", "value": result.content}


def _call_json(call: ToolCall) -> str:
    """Return a call as JSON; arguments that are not a strict JSON object stay text."""
    try:
        parsed = json.loads(call.arguments)
        if isinstance(parsed, dict):
            text = json.dumps(
                {"name": call.name, "arguments": parsed}, ensure_ascii=False, allow_nan=False
            )
            text.encode()  # raises for unpaired surrogates
            return text
    except (ValueError, RecursionError):
        pass
    return json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)
