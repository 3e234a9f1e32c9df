"""Remove contexts that come back with the log of a tool into which they were piped."""

import re
from dataclasses import replace
from typing import NamedTuple

from reservoir_cli.context.render import context_frame
from reservoir_cli.messages import Message

#: A tag around a context, which clients leave behind; what else is left of a tool's answer.
_EMPTY_TAG = re.compile(r"<untrusted_context>\s*+</untrusted_context>\s*+")
_SHELL = re.compile(r"(?:\s|Wall time: [^\n]*+|Output:(?=\s|\Z))*+")


class Cleaned(NamedTuple):
    """A message without contexts, ``None`` if nothing remains, and how many contexts it had."""

    message: Message | None
    contexts: int


def remove_contexts(message: Message) -> Cleaned:
    """Remove the contexts from a message and keep their questions, and calls of tools.

    Of a tool's answer nothing is kept if only a client's frame is left: ``Wall time: 0.1 seconds``.
    """
    unwrapped = context_frame.unwrap(message.content)
    if not unwrapped.contexts:
        return Cleaned(message, 0)
    text = _EMPTY_TAG.sub("", unwrapped.text)
    is_shell = _SHELL.fullmatch(text) if message.role == "tool" else not text.strip()
    cleaned = None if is_shell and not message.tool_calls else replace(message, content=text)
    return Cleaned(cleaned, unwrapped.contexts)


def is_excerpt(title: str, content: str) -> bool:
    """Return whether a title is the beginning of a content, truncated and joined to one line."""
    beginning = re.sub(r"\s+", " ", content[: 4 * len(title) + 100]).strip()
    visible = re.sub(r"\s+", " ", title).strip().removesuffix("…").removesuffix("...").rstrip()
    return bool(visible) and beginning.startswith(visible)
