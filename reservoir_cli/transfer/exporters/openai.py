"""Export conversations as request bodies of OpenAI's API, one per line."""

import json

from reservoir_cli.context.render.request_bodies import to_openai
from reservoir_cli.transfer.exporters.build_turns import Thread, build_turns


def write(thread: Thread) -> str:
    """Return the line ``{"messages": […]}``; empty without messages."""
    body = to_openai(build_turns(thread), None)
    return json.dumps(body, ensure_ascii=False) + "\n" if body["messages"] else ""
