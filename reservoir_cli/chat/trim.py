"""Trim the message list of a tool loop, which an agent sends again with each iteration.

Messages are cut only between the first message and the current turn, oldest first, and no tool
result is left without its call.
"""

import json
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from reservoir_cli.errors import wrong_type
from reservoir_cli.tokens.counter import PER_MESSAGE, TokenCounter
from reservoir_cli.tokens.estimates import ApproximateCounter

ChatMessage = dict[str, Any]


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
    :param turn_start: index of the current turn's first message; it and all after it stay.
    :param iteration: 1 for the first request of the turn, which is never trimmed.
    :param budget: tokens for the messages between the first message and the turn; 0 or less
        switches trimming off.
    :param counter: counts the tokens; approximately by default.
    :param multiplier: factor applied to every count.
    :returns: the same list object if nothing is cut, else a new one.
    :raises UsageError: an argument has a wrong type.
    """
    _check_arguments(messages, turn_start=turn_start, iteration=iteration, budget=budget)
    if budget <= 0 or iteration <= 1 or turn_start <= 1:
        return messages
    counter = counter or ApproximateCounter()
    old = messages[1:turn_start]
    costs = [message_cost(message, counter) for message in old]
    total, cut = sum(costs), 0
    while cut < len(old) and round(total * multiplier, 6) > budget:
        total -= costs[cut]
        cut += 1
    if cut == 0:
        return messages
    cut += _count_orphaned(old[cut:])
    return [messages[0], *old[cut:], *messages[turn_start:]]


def _check_arguments(messages: object, **numbers: object) -> None:
    if (
        not isinstance(messages, Sequence)
        or isinstance(messages, str | bytes)
        or not all(isinstance(message, Mapping) for message in messages)
    ):
        raise wrong_type("messages", "a list of chat messages, each a dict", messages)
    for name, number in numbers.items():
        if not isinstance(number, Real):
            raise wrong_type(name, "a number", number)


def find_turn_start(messages: Sequence[ChatMessage]) -> int:
    """Return the index of the last user message that is not only tool results; 0 without one."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].get("role") == "user" and not _has_only_results(messages[index]):
            return index
    return 0


def message_cost(message: ChatMessage, counter: TokenCounter) -> int:
    """Count the tokens of a message: its text, its calls, its name, and 4 for the framing.

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


def _count_orphaned(rest: Sequence[ChatMessage]) -> int:
    """Return how many leading messages to drop so that no tool result lacks its call.

    A result without an earlier call moves the start to just after it, and drops the calls before
    it. Results without an id are ignored.
    """
    start, calls = 0, set[str]()
    for index, message in enumerate(rest):
        calls |= _call_ids(message)
        if any(call_id not in calls for call_id in _answered_ids(message)):
            start, calls = index + 1, set()
    return start


def _call_ids(message: ChatMessage) -> set[str]:
    if message.get("role") != "assistant":
        return set()
    listed = message.get("tool_calls")
    calls = [call for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
    calls += _blocks(message, "tool_use")
    return {call["id"] for call in calls if isinstance(call.get("id"), str)}


def _answered_ids(message: ChatMessage) -> list[str]:
    if message.get("role") == "tool":
        call_id = message.get("tool_call_id")
        return [call_id] if isinstance(call_id, str) and call_id else []
    if message.get("role") != "user":
        return []
    call_ids = [block.get("tool_use_id") for block in _blocks(message, "tool_result")]
    return [call_id for call_id in call_ids if isinstance(call_id, str) and call_id]


def _has_only_results(message: ChatMessage) -> bool:
    content = message.get("content")
    results = _blocks(message, "tool_result")
    return isinstance(content, list) and bool(content) and len(results) == len(content)


def _blocks(message: ChatMessage, kind: str) -> list[dict[str, Any]]:
    content = message.get("content")
    if not isinstance(content, list):
        return []
    return [block for block in content if isinstance(block, dict) and block.get("type") == kind]


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and part.get("type") in ("text", "input_text", "output_text"):
        text = part.get("text")
        if isinstance(text, str):
            return text
    return _compact(part)


def _compact(value: Any) -> str:
    # Some clients put objects of their own into messages.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
