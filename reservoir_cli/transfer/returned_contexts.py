"""Contexts of our own that come back in what is stored: a tool's log holds what was piped into it.

Every message passes here on its way in, whether it comes alone or with a file.
"""

import re
from dataclasses import replace
from typing import NamedTuple

from reservoir_cli.context.render import frame
from reservoir_cli.messages import Message


class Cleaned(NamedTuple):
    """A message without contexts of our own.

    :param message: ``None`` if nothing else was in it.
    :param contexts: how many were taken out.
    """

    message: Message | None
    contexts: int


def without_contexts(message: Message) -> Cleaned:
    """Take the contexts out of a message and keep their questions.

    A call, or the answer to one, is kept even if it is empty then.
    """
    found = frame.unwrap(message.content)
    if not found.contexts:
        return Cleaned(message, 0)
    kept = found.text.strip() or message.tool_calls or message.tool_call_id
    cleaned = replace(message, content=found.text) if kept else None
    return Cleaned(cleaned, found.contexts)


def quotes(title: str, content: str) -> bool:
    """Whether a title is the beginning of a content, as some tools make it: cut and in one line."""
    beginning = re.sub(r"\s+", " ", content[: 4 * len(title) + 100]).strip()
    words = re.sub(r"\s+", " ", title).strip().removesuffix("…").removesuffix("...").rstrip()
    return bool(words) and beginning.startswith(words)
