"""Trimming the message list of a tool loop, which an agent sends again and again. Pure.

Only what lies between the first message and the current turn is ever cut, from its oldest end,
and no tool result is left without its call.
"""

import json
from collections.abc import Sequence
from typing import Any

from reservoir_cli.tokens.approximate import ApproximateCounter
from reservoir_cli.tokens.counter import TokenCounter

ChatMessage = dict[str, Any]

PER_MESSAGE = 4


def trim_history(
    messages: list[ChatMessage],
    *,
    turn_start: int,
    iteration: int,
    budget: int,
    counter: TokenCounter | None = None,
    multiplier: float = 1.0,
) -> list[ChatMessage]:
    """Return the list of messages that an iteration of a tool loop should send.

    :param messages: chat messages in OpenAI's or Anthropic's shape; never changed.
    :param turn_start: place of the current turn's first message; it and all after it stay.
    :param iteration: 1 for the first request of the turn, which is never trimmed.
    :param budget: tokens for what lies between the first message and the turn; 0 or less
        switches trimming off.
    :param counter: the approximate one by default.
    :param multiplier: factor on every count.
    :returns: the very same list if nothing is cut, else a new one.
    """
    if budget <= 0 or iteration <= 1 or turn_start <= 1:
        return messages
    counter = counter or ApproximateCounter()
    old = messages[1:turn_start]
    costs = [message_cost(each, counter) for each in old]
    total, cut = sum(costs), 0
    while cut < len(old) and round(total * multiplier, 6) > budget:
        total -= costs[cut]
        cut += 1
    if cut == 0:
        return messages
    cut += _legal_start(old[cut:])
    return [messages[0], *old[cut:], *messages[turn_start:]]


def find_turn_start(messages: Sequence[ChatMessage]) -> int:
    """Place of the last user message that is not only tool results; 0 if there is none."""
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].get("role") == "user" and not _only_results(messages[place]):
            return place
    return 0


def message_cost(message: ChatMessage, counter: TokenCounter) -> int:
    """Tokens of a message: its text, its calls and its name, and 4 for the framing.

    Text parts count as text, everything else as compact JSON.
    """
    pieces: list[str] = []
    content = message.get("content")
    if isinstance(content, list):
        pieces += [_part_text(part) for part in content]
    elif isinstance(content, str):
        pieces.append(content)
    elif content is not None:
        pieces.append(_compact(content))
    if calls := message.get("tool_calls"):
        pieces.append(_compact(calls))
    for key in ("reasoning_content", "reasoning", "name", "tool_call_id"):
        value = message.get(key)
        if isinstance(value, str):
            pieces.append(value)
        elif value:
            pieces.append(_compact(value))
    text = "\n".join(piece for piece in pieces if piece)
    return (counter.count(text) if text else 0) + PER_MESSAGE


def _legal_start(rest: Sequence[ChatMessage]) -> int:
    """How many messages to drop, so that no tool result stands without its call.

    A result whose call was not declared before it moves the start to just behind it, and the
    calls seen until then are forgotten. Results without an id are left alone.
    """
    start, declared = 0, set[str]()
    for place, message in enumerate(rest):
        declared |= _declared(message)
        answered = _answered(message)
        if any(each not in declared for each in answered):
            start, declared = place + 1, set()
    return start


def _declared(message: ChatMessage) -> set[str]:
    if message.get("role") != "assistant":
        return set()
    calls = message.get("tool_calls")
    listed = calls if isinstance(calls, list) else []
    made = [each for each in listed if isinstance(each, dict)] + _blocks(message, "tool_use")
    return {each["id"] for each in made if isinstance(each.get("id"), str)}


def _answered(message: ChatMessage) -> list[str]:
    if message.get("role") == "tool":
        number = message.get("tool_call_id")
        return [number] if isinstance(number, str) and number else []
    if message.get("role") != "user":
        return []
    found = [each.get("tool_use_id") for each in _blocks(message, "tool_result")]
    return [each for each in found if isinstance(each, str) and each]


def _only_results(message: ChatMessage) -> bool:
    content = message.get("content")
    results = _blocks(message, "tool_result")
    return isinstance(content, list) and bool(content) and len(results) == len(content)


def _blocks(message: ChatMessage, kind: str) -> list[dict[str, Any]]:
    content = message.get("content")
    if not isinstance(content, list):
        return []
    return [each for each in content if isinstance(each, dict) and each.get("type") == kind]


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and part.get("type") in ("text", "input_text", "output_text"):
        text = part.get("text")
        if isinstance(text, str):
            return text
    return _compact(part)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
