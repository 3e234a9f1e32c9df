"""Cut tool results that are too long: only their beginning is printed. Pure."""

import shlex
from dataclasses import replace

from reservoir_cli.messages import StoredMessage
from reservoir_cli.tokens.counter import TokenCounter


def cut_tool_result(message: StoredMessage, limit: int, counter: TokenCounter) -> StoredMessage:
    """Cut a tool result to so many tokens with its marker, at a line end if it has one."""
    text = message.content
    room = limit - counter.count("\n" + _mark(message, message.tokens))
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if counter.count(text[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
    head = text[:low]
    if "\n" in head:
        head = head[: head.rindex("\n")]
    marker = _mark(message, message.tokens - counter.count(head))
    shortened = f"{head}\n{marker}" if head else marker
    return replace(message, content=shortened, tokens=counter.count(shortened))


def _mark(message: StoredMessage, missing: int) -> str:
    partition = shlex.quote(message.partition)
    return (
        f"[… {missing:,} of {message.tokens:,} tokens left out: "
        f"reservoir view -p {partition} --id {message.id}]"
    )
