"""Anthropic messages: a conversation a line, its system text at the top."""

import json

from reservoir_cli.context.render.request_bodies import to_anthropic
from reservoir_cli.transfer.exporters.conversations import Thread, request_turns


def write(thread: Thread) -> str:
    """Write ``{"system", "messages", "tools"}``; empty where nobody says anything.

    How long an answer may be is for the sender to say.
    """
    body = to_anthropic(request_turns(thread), None, 0)
    del body["max_tokens"]
    if not body["messages"]:
        return ""
    return json.dumps(body, ensure_ascii=False) + "\n"
