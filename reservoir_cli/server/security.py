"""Who may ask: every request is checked before any route sees it.

A page of another site that is open in the user's browser must not reach the server, neither under
a name of its own that it lets point here (DNS rebinding) nor by a request across sites.
"""

import ipaddress
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

#: Stands for every address, but for no name.
ANY = "*"
#: What browsers say of a request that a page of ours, or the user by hand, has made.
_OWN_SITES = ("same-origin", "none")


class Guard:
    """Refuses requests with a foreign Host, Origin or site."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        """Guard an application.

        :param hosts: names by which requests may call this machine; ``*`` allows all
            addresses, but no names.
        """
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with 403."""
        if scope["type"] == "http" and (problem := refusal(Headers(scope=scope), self._hosts)):
            await PlainTextResponse(f"403: {problem}\n", 403)(scope, receive, send)
        elif scope["type"] in ("http", "lifespan"):
            await self._app(scope, receive, send)


def refusal(headers: Headers | Mapping[str, str], hosts: Collection[str]) -> str | None:
    """Return why a request is refused, or ``None``."""
    host = headers.get("host", "")
    if not is_known_host(host, hosts):
        return "this server is not known by that name; see --allow-host"
    origin = headers.get("origin")
    if origin is not None and not _is_same(origin, host):
        return "requests of other origins are refused"
    if headers.get("sec-fetch-site", "none").lower() not in _OWN_SITES:
        return "requests of other sites are refused"
    return None


def is_known_host(host: str, hosts: Collection[str]) -> bool:
    """Return whether a Host header names this machine."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if any(character in host for character in "/@?#\\ "):
        return False
    return (name in hosts and name != ANY) or (ANY in hosts and _is_address(name))


def names_of(bound: str, allowed: Collection[str]) -> frozenset[str]:
    """Return the names by which requests may call a server that is bound to an address.

    :param bound: a name, an address, or one that stands for all addresses.
    """
    own = {"localhost", "127.0.0.1", "::1", bound.lower()}
    if _is_address(bound) and ipaddress.ip_address(bound).is_unspecified:
        own.add(ANY)
    return frozenset(own | {name.lower() for name in allowed})


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_same(origin: str, host: str) -> bool:
    """Return whether an origin is that of the page which this server itself serves."""
    parts = urlsplit(origin)
    return parts.scheme == "http" and parts.netloc.lower() == host.lower()
