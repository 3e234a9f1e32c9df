"""Anthropic messages: a conversation a line, its system text at the top."""

import json

from reservoir_cli.chat.providers import to_anthropic
from reservoir_cli.transfer.exporters.conversations import Thread, turns


def write(thread: Thread) -> str:
    """``{"system", "messages", "tools"}``; how long an answer may be is for the sender to say."""
    body = to_anthropic(turns(thread), None, 0)
    del body["max_tokens"]
    return json.dumps(body, ensure_ascii=False) + "\n"
