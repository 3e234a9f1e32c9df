"""The tables ``[upstreams.NAME]`` of the settings: servers with models.

One that is named after a protocol gets all its requests; any other has a setting ``protocol``.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from reservoir_cli.errors import UsageError

TABLE = "upstreams"
#: A scheme, a host, an optional port and path; no user, password, query or fragment.
_URL = r"https?://(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?(?:/[\w.~%!$&'()*+,;=:@/-]*)?"
DEFAULTS = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "ollama": "http://127.0.0.1:11434",
    "gemini": "https://generativelanguage.googleapis.com",
}
PROTOCOLS = tuple(DEFAULTS)


class Upstream(NamedTuple):
    """A server with models."""

    name: str
    protocol: str
    url: str


def check_url(url: Any, where: str) -> str:
    """Return the URL of an upstream without its trailing slash."""
    if not isinstance(url, str) or not re.fullmatch(_URL, url):
        raise UsageError(
            f"{where} must be the URL of a server, without a name, password or query",
            hint="such as http://localhost:8080/v1",
        )
    return url.rstrip("/")


def resolve(
    tables: Mapping[str, Mapping[str, Any]], typed: Mapping[str, str] | None = None
) -> dict[str, Upstream]:
    """Return the upstreams by name: the defaults, overridden by the settings and by this run."""
    upstreams = {name: Upstream(name, name, url) for name, url in DEFAULTS.items()}
    for name, table in tables.items():
        default = upstreams.get(name)
        protocol = name if default else str(table.get("protocol", "openai"))
        url = table.get("url") or (default and default.url)
        if not url:
            raise UsageError(
                f"{TABLE}.{name} has no url", hint=f"reservoir config set {TABLE}.{name}.url=…"
            )
        upstreams[name] = Upstream(name, protocol, check_url(url, f"{TABLE}.{name}.url"))
    for name, url in (typed or {}).items():
        protocol = upstreams[name].protocol if name in upstreams else "openai"
        upstreams[name] = Upstream(name, protocol, check_url(url, f"--upstream {name}"))
    return upstreams
