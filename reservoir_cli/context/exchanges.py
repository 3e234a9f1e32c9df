"""Group messages into questions and their replies, and find repeated exchanges. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from reservoir_cli.chat.tool_calls import pair_calls
from reservoir_cli.messages import Role, StoredMessage


class Exchanges(NamedTuple):
    """Questions with all messages in reply to them, by message id.

    An exchange has the id of its question; a reply to no question is an exchange of its own.
    """

    exchange_of: Mapping[int, int]
    answer_of: Mapping[int, int]  # for a question, its last reply that calls no tool
    call_of: Mapping[int, tuple[int, int]]  # of a tool result, its caller and the index of the call
    copy_of: Mapping[int, int]  # for an exchange, the first one with the same question and replies

    @classmethod
    def of(cls, messages: Sequence[StoredMessage]) -> "Exchanges":
        """Find the exchanges among messages in order of time."""
        calls = pair_calls(messages)
        callers = {caller for caller, _ in calls.values()}
        questions: dict[tuple[str, str], int] = {}
        exchange_of: dict[int, int] = {}
        answer_of: dict[int, int] = {}
        for index, message in enumerate(messages):
            trace = (message.instance, message.trace_id)
            exchange = number = message.id
            if message.role is Role.USER:
                questions[trace] = number
            elif message.role is Role.ASSISTANT and trace in questions:
                exchange = questions[trace]
                if index not in callers and message.content.strip():
                    answer_of[exchange] = number
            elif index in calls:
                exchange = exchange_of[messages[calls[index][0]].id]
            exchange_of[number] = exchange
        call_of = {
            messages[index].id: (messages[caller].id, number)
            for index, (caller, number) in calls.items()
        }
        with_tools = {exchange_of[messages[index].id] for index in (*calls, *callers)}
        return cls(exchange_of, answer_of, call_of, _find_copies(messages, exchange_of, with_tools))


def _find_copies(
    messages: Iterable[StoredMessage], exchange_of: Mapping[int, int], with_tools: set[int]
) -> dict[int, int]:
    """Map each exchange to the first with equal texts; one with tool calls equals only itself."""
    texts_of: dict[int, list[str]] = {}
    for message in messages:
        if text := message.content.strip():
            texts_of.setdefault(exchange_of[message.id], []).extend((message.role, text))
    first: dict[tuple[str, ...], int] = {}
    return {
        exchange: exchange if exchange in with_tools else first.setdefault(tuple(texts), exchange)
        for exchange, texts in texts_of.items()
    }
