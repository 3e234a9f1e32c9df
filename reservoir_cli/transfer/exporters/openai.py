"""OpenAI chat messages: a conversation a line, as it could be sent."""

import json

from reservoir_cli.context.render.request_bodies import to_openai
from reservoir_cli.transfer.exporters.conversations import Thread, request_turns


def write(thread: Thread) -> str:
    """Write ``{"messages": […]}``; empty where nobody says anything."""
    body = to_openai(request_turns(thread), None)
    return json.dumps(body, ensure_ascii=False) + "\n" if body["messages"] else ""
