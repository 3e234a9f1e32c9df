"""The providers' protocols: their paths, and the shape of their errors."""

import json
from collections.abc import Mapping
from typing import Any

#: Paths whose requests are enriched.
CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
COUNT_TOKENS, OLLAMA_CHAT, OLLAMA_GENERATE = (
    "/v1/messages/count_tokens",
    "/api/chat",
    "/api/generate",
)


def protocol_of(path: str, headers: Mapping[str, str]) -> str:
    """Return the protocol of a request.

    :param headers: by lower-case name.
    """
    if path.startswith("/api/"):
        return "ollama"
    if path.startswith(MESSAGES) or "anthropic-version" in headers:
        return "anthropic"
    return "openai"


def error_body(protocol: str, problem: str) -> bytes:
    """Return one of our errors in the shape that clients of a protocol expect."""
    body: Any = {"error": problem}
    if protocol == "anthropic":
        body = {"type": "error", "error": {"type": "api_error", "message": problem}}
    elif protocol == "openai":
        error = {"message": problem, "type": "upstream_error", "param": None, "code": None}
        body = {"error": error}
    return json.dumps(body).encode()
