"""Where models are: the tables ``[upstreams.NAME]`` of the settings.

    [upstreams.openai]
    url = "http://localhost:8080/v1"

A name that is a protocol stands for all requests of that protocol; any other says which one it
speaks, and a request may choose it by its name.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from reservoir_cli.errors import UsageError

TABLE = "upstreams"
PROTOCOLS = ("openai", "anthropic", "ollama")
#: A scheme, a host, perhaps a port and a path; no name, password, query or fragment.
_URL = r"https?://(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?(?:/[\w.~%!$&'()*+,;=:@/-]*)?"
DEFAULTS = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "ollama": "http://127.0.0.1:11434",
}


class Upstream(NamedTuple):
    """A server with models.

    :param url: without a slash at the end.
    """

    name: str
    protocol: str
    url: str


def check(key: str, value: Any, where: str) -> None:
    """Refuse a value that an upstream's table cannot have.

    :raises UsageError: no URL, or no protocol.
    """
    if key == "url":
        check_url(value, where)
    elif value not in PROTOCOLS:
        raise UsageError(
            f"{where} cannot be {value!r}", hint=f"it must be one of {', '.join(PROTOCOLS)}"
        )


def check_url(url: Any, where: str) -> str:
    """Return the URL of an upstream without a slash at its end.

    :raises UsageError: it is none, or has a password in it.
    """
    if not isinstance(url, str) or not re.fullmatch(_URL, url):
        raise UsageError(
            f"{where} must be the URL of a server, without a name, password or query",
            hint="such as http://localhost:8080/v1",
        )
    return url.rstrip("/")


def resolve(
    tables: Mapping[str, Mapping[str, Any]], typed: Mapping[str, str] | None = None
) -> dict[str, Upstream]:
    """Return the upstreams by name: the usual ones, those of the settings, those of this run.

    :param tables: ``[upstreams.NAME]`` as checked.
    :param typed: URLs by name.
    """
    upstreams = {name: Upstream(name, name, url) for name, url in DEFAULTS.items()}
    for name, table in tables.items():
        usual = upstreams.get(name)
        protocol = name if usual else str(table.get("protocol", "openai"))
        url = table.get("url") or (usual and usual.url)
        if not url:
            raise UsageError(
                f"{TABLE}.{name} has no url", hint=f"reservoir config set {TABLE}.{name}.url=…"
            )
        upstreams[name] = Upstream(name, protocol, check_url(url, f"{TABLE}.{name}.url"))
    for name, url in (typed or {}).items():
        protocol = upstreams[name].protocol if name in upstreams else "openai"
        upstreams[name] = Upstream(name, protocol, check_url(url, f"--upstream {name}"))
    return upstreams
