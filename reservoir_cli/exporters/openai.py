"""OpenAI chat messages: a conversation a line, as it could be sent."""

import json

from reservoir_cli.exporters.threads import Thread, turns
from reservoir_cli.rendering.providers import to_openai


def write(thread: Thread) -> str:
    """``{"messages": […]}``."""
    return json.dumps(to_openai(turns(thread), None), ensure_ascii=False) + "\n"
