"""Pair tool calls with their results."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from reservoir_cli.messages import Role, StoredMessage


def pair_calls(messages: Sequence[StoredMessage]) -> dict[int, tuple[int, int]]:
    """Pair each tool result with the call before it that it answers, in its conversation.

    Only the first result of a call counts, and a reused call id is a new call.

    :returns: for the index of each result that has a call, the index of the calling message and
        the index of the call within that message.
    """
    open_calls: dict[tuple[str, str | None, str], tuple[int, int]] = {}
    pairs: dict[int, tuple[int, int]] = {}
    for index, message in enumerate(messages):
        instance, conversation = message.instance, message.conversation_id
        if message.role is Role.ASSISTANT:
            for call_index, call in enumerate(message.tool_calls):
                open_calls[instance, conversation, call.id] = (index, call_index)
        elif message.role is Role.TOOL:
            call_at = open_calls.pop((instance, conversation, message.tool_call_id or ""), None)
            if call_at is not None:
                pairs[index] = call_at
    return pairs


def find_unpaired(messages: Sequence[StoredMessage]) -> Iterator[StoredMessage]:
    """Yield results without a call, and messages reduced to their calls without a result."""
    pairs = pair_calls(messages)
    answered_calls = set(pairs.values())
    for index, message in enumerate(messages):
        if message.role is Role.TOOL:
            if index not in pairs and message.tool_call_id:
                yield message
        elif message.tool_calls:
            calls = tuple(
                call
                for call_index, call in enumerate(message.tool_calls)
                if (index, call_index) not in answered_calls
            )
            if calls:
                yield replace(message, tool_calls=calls)
