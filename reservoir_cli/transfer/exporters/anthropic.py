"""Export conversations as request bodies of Anthropic's API, one per line."""

import json

from reservoir_cli.context.render.request_bodies import to_anthropic
from reservoir_cli.transfer.exporters.build_turns import Thread, build_turns


def write(thread: Thread) -> str:
    """Return the line ``{"system", "messages", "tools"}``; empty without messages.

    ``max_tokens`` is left to the sender.
    """
    body = to_anthropic(build_turns(thread), None, 0)
    del body["max_tokens"]
    if not body["messages"]:
        return ""
    return json.dumps(body, ensure_ascii=False) + "\n"
