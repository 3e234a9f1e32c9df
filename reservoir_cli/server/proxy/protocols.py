"""The providers' protocols: their paths, with or without a scope, options, and forms of errors."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import check_name
from reservoir_cli.transfer.importers.foreign_values import obj

#: Paths whose requests are enriched.
CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
COUNT_TOKENS, OLLAMA_CHAT, OLLAMA_GENERATE = (
    "/v1/messages/count_tokens",
    "/api/chat",
    "/api/generate",
)
#: Words that cannot be a partition in a path.
RESERVED = ("v1", "api", "mcp", "ui", "k", "partition")
#: The scope in a path: the original system's form, or just the two names.
_ORIGINAL = re.compile(r"(?:/v1)?/partition/([^/]+)/instance/([^/]+)(/.*)?")
_SCOPED = re.compile(r"/([^/]+)/([^/]+)(/(?:v1|api)/.+)")
_PROVIDER = re.compile(r"/(?:v1|api)/.+")
#: The start of a provider's path that lacks ``/v1/``, which the original's form allows.
_WITHOUT_VERSION = re.compile(r"\A/(?!v1/|api/)")


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


def ollama_options(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options of a request to Ollama; none if they are malformed.

    :param values: the members of the request.
    """
    return obj(values.get("options"))


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed path.

    :param path: the provider's path, still percent-encoded: starts with ``/v1/`` or ``/api/``.
    """

    path: str
    partition: str | None = None
    instance: str | None = None


def parse_path(path: str) -> Target | None:
    """Parse a path; return ``None`` if the proxy has no such path.

    :param path: percent-encoded, without the query.
    """
    if any(unquote(part) in (".", "..") for part in path.split("/")):
        return None
    if original := _ORIGINAL.fullmatch(path):
        rest = original[3] or ""
        return _scoped_target(original[1], original[2], _WITHOUT_VERSION.sub("/v1/", rest, count=1))
    scoped = _SCOPED.fullmatch(path)
    if scoped and unquote(scoped[1]) not in RESERVED:
        return _scoped_target(scoped[1], scoped[2], scoped[3])
    return Target(path) if _PROVIDER.fullmatch(path) else None


def _scoped_target(partition: str, instance: str, path: str) -> Target | None:
    if not _PROVIDER.fullmatch(path):
        return None
    try:
        names = [check_name(unquote(name, errors="strict")) for name in (partition, instance)]
    except (UsageError, UnicodeDecodeError):
        return None
    return Target(path, *names)
