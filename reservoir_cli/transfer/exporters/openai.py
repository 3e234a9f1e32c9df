"""OpenAI chat messages: a conversation a line, as it could be sent."""

import json

from reservoir_cli.chat.providers import to_openai
from reservoir_cli.transfer.exporters.conversations import Thread, turns


def write(thread: Thread) -> str:
    """``{"messages": […]}``."""
    return json.dumps(to_openai(turns(thread), None), ensure_ascii=False) + "\n"
