"""Requests that a client makes for itself, such as for the title of a conversation."""

import re
from collections.abc import Mapping
from typing import Any

from reservoir_cli.server.proxy import request_messages

#: What a client asks for itself, such as the title of a conversation.
_SIDE = re.compile(
    r"(?is)\btitle generator\b|\b(?:generate|write|create|produce)\b[^.\n]{0,60}\btitle\b"
    r"|\bisNewTopic\b"
)
_TASK = re.compile(r"(?s)\s*### Task:\s")
#: What opencode asks first, in a message of its own.
_TITLE = re.compile(r"\s*Generate a title for this conversation:\s*")
_LOOKED_AT = 1_000


def is_side_request(values: Mapping[str, Any], first: str, newest: str) -> bool:
    """Return whether a client asks for itself: for a title, or only whether a model is there.

    :param first: its first question; ``newest``, its last.
    """
    for key in ("max_tokens", "max_completion_tokens", "max_output_tokens"):
        if isinstance(values.get(key), int) and values[key] <= 1:
            return True
    system = _system_of(values)[:_LOOKED_AT]
    return bool(_SIDE.search(system) or _TASK.match(newest) or _TITLE.fullmatch(first))


def _system_of(values: Mapping[str, Any]) -> str:
    listed = [values.get("system"), values.get("instructions")]
    for key in ("messages", "input"):
        elements = values.get(key)
        if isinstance(elements, list):
            listed += [
                each.get("content") for each in elements[:3] if request_messages.is_system(each)
            ]
    return "\n".join(request_messages.text_of(value) for value in listed)
