"""Requests and replies for the tests of the proxy."""

import json
from typing import Any

from proxied import Served
from upstream import Reply

from reservoir_cli.messages import Scope
from reservoir_cli.reservoir import Reservoir

ANSWER = "It lost jobs when it restarted."
QUESTION = "why did we drop Redis for the job queue?"
OLDER = "We drop Redis for the job queue because it lost jobs in March."
HELLO: dict[str, Any] = {"role": "user", "content": QUESTION}


def completion(text: str = ANSWER, id: str = "chatcmpl-1") -> Reply:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = json.dumps({"id": id, "choices": [choice]}).encode()
    return Reply([body], "application/json", framing="length")


def chat(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages), "temperature": 1.0, **more}


def assistant(text: str = ANSWER) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def texts(
    served: Served, requests: int, instance: str = "proxy", partition: str = "default"
) -> list[str]:
    served.settle(requests)
    with Reservoir.open(served.store) as reservoir:
        rows = reservoir.view(Scope(partition, instance), 0)
    return [f"{row.role}: {row.content}" for row in rows]
