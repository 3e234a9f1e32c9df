"""Remove contexts printed by Reservoir from incoming messages.

They come back when the log of a tool contains the context that was piped into the tool.
"""

import re
from dataclasses import replace
from typing import NamedTuple

from reservoir_cli.context.render import frame
from reservoir_cli.messages import Message


class Cleaned(NamedTuple):
    """A message without contexts printed by Reservoir.

    :param message: ``None`` if nothing else remains.
    :param contexts: how many contexts were removed.
    """

    message: Message | None
    contexts: int


def remove_contexts(message: Message) -> Cleaned:
    """Remove the contexts from a message and keep their questions.

    A tool call or result is kept even if its text is empty.
    """
    unwrapped = frame.unwrap(message.content)
    if not unwrapped.contexts:
        return Cleaned(message, 0)
    keep = unwrapped.text.strip() or message.tool_calls or message.tool_call_id
    cleaned = replace(message, content=unwrapped.text) if keep else None
    return Cleaned(cleaned, unwrapped.contexts)


def is_excerpt(title: str, content: str) -> bool:
    """Return whether a title is the beginning of a content, truncated and joined to one line."""
    beginning = re.sub(r"\s+", " ", content[: 4 * len(title) + 100]).strip()
    visible = re.sub(r"\s+", " ", title).strip().removesuffix("…").removesuffix("...").rstrip()
    return bool(visible) and beginning.startswith(visible)
