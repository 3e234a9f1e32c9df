"""Recognise requests that a client makes for itself, such as for a conversation's title."""

import re
from collections.abc import Mapping
from typing import Any

from reservoir_cli.server.proxy import request_messages
from reservoir_cli.server.proxy.protocols import ollama_options

#: System prompts of such requests.
_SIDE = re.compile(
    r"(?is)\btitle generator\b|\b(?:generate|write|create|produce)\b[^.\n]{0,60}\btitle\b"
    r"|\bisNewTopic\b"
)
#: Open WebUI's requests for titles, tags and the like. A question about documents begins alike.
_TASK = re.compile(r"\s*### Task:\s(?=(?s:.*)<chat_history>)")
#: The first message of opencode's title requests.
_TITLE = re.compile(r"\s*Generate a title for this conversation:\s*")
#: The settings of the most tokens of an answer.
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
#: Characters of the system prompt that are searched.
_SEARCHED = 1_000


def is_side_request(
    values: Mapping[str, Any], first: str, newest: str, *, has_answers: bool
) -> bool:
    """Return whether a request asks for a title or completes code, or checks a model.

    :param first: its first question.
    :param newest: its last question.
    :param has_answers: whether it contains answers: then its system prompt only mentions titles.
    """
    limits = [values.get(key) for key in _LIMITS]
    if any(isinstance(limit, int) and 0 <= limit <= 1 for limit in limits):  # -1 means no limit
        return True
    if ollama_options(values).get("num_predict") == 1:  # 0 means no limit, too
        return True
    if values.get("raw") is True or values.get("suffix"):  # Ollama: an editor completes code
        return True
    if _TASK.match(newest) or _TITLE.fullmatch(first):
        return True
    return not has_answers and bool(_SIDE.search(_system_prompt(values)[:_SEARCHED]))


def _system_prompt(values: Mapping[str, Any]) -> str:
    contents = [values.get("system"), values.get("instructions")]
    for key in ("messages", "input"):
        elements = values.get(key)
        if isinstance(elements, list):
            first = elements[:3]
            contents += [item.get("content") for item in first if request_messages.is_system(item)]
    return "\n".join(map(request_messages.text_of, contents))
