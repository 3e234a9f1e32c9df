"""The server's token, and the checks of every request before any route sees it.

A page of another site in the user's browser must not reach the server, by DNS rebinding or a
cross-site request: Host, Origin and ``Sec-Fetch-Site`` are checked.
"""

import ipaddress
import re
import secrets
from collections.abc import Collection, Mapping
from pathlib import Path
from urllib.parse import unquote

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.settings import paths
from reservoir_cli.util.private_files import restrict_permissions, write_private
from reservoir_cli.util.read_files import read_regular, suggest_fix

ANY = "*"  # allows every IP address, but no name
#: ``Sec-Fetch-Site`` of requests made by our own page, or by the user typing an address.
_OWN_SITES = ("same-origin", "none")
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))  # names of this machine itself
#: The name of a host, without a port.
_HOST_NAME = re.compile(r"[^\s/@?#:\[\]\\]+")
#: A Host header: a name, or an address of version 6 in brackets, and perhaps a port.
_HOST = re.compile(rf"(?:\[([0-9a-f:.]+)\]|({_HOST_NAME.pattern}))(?::([0-9]{{1,5}}))?", re.I)
_MAX_PORT = 65_535
_FOREIGN_HOST = "this server does not accept that host name; see --allow-host"
#: A request's target that is a whole URL: its host and its path.
_ABSOLUTE = re.compile(rb"(?is)http://([^/]*)(/.*)?")
_BYTES = 24  # random bytes of a token, before encoding
_MIN_LENGTH = 16  # the fewest characters that an existing token may have
_MAX_SIZE = 1 << 20  # the largest file that is read, in bytes


class Guard:
    """Reject requests with a foreign Host, Origin or site."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        """Guard an application; ``*`` among the host names allows all addresses, but no names."""
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            host, scope = split_target(scope)
            is_known = host is None or is_known_host(host, self._hosts)
            problem = refusal(Headers(scope=scope), self._hosts) if is_known else _FOREIGN_HOST
            if problem:
                await PlainTextResponse(f"403: {problem}\n", 403)(scope, receive, send)
            else:
                await self._app(scope, receive, send)


def split_target(scope: Scope) -> tuple[str | None, Scope]:
    """Return the host and the request, if its target is a whole URL as for a proxy (RFC 9112)."""
    match = _ABSOLUTE.fullmatch(scope["raw_path"])
    if not match:
        return None, scope
    path = match[2] or b"/"
    decoded = unquote(path.decode("ascii", "replace"))
    return match[1].decode("ascii", "replace"), dict(scope, raw_path=path, path=decoded)


def refusal(headers: Headers | Mapping[str, str], hosts: Collection[str]) -> str | None:
    """Return why a request is refused, or ``None``."""
    host = headers.get("host", "")
    if not is_known_host(host, hosts):
        return _FOREIGN_HOST
    origin = headers.get("origin")
    if origin is not None and not _is_own_origin(origin, host):
        return "requests from other origins are refused"
    if headers.get("sec-fetch-site", "none").lower() not in _OWN_SITES:
        return "requests from other sites are refused"
    return None


def is_known_host(host: str, hosts: Collection[str]) -> bool:
    """Return whether a Host header names this machine, and nothing else."""
    name = _parse_host(host)
    return (name in hosts and name != ANY) or (ANY in hosts and _is_address(name))


def _parse_host(host: str) -> str:
    match = _HOST.fullmatch(host)
    if match is None or int(match[3] or 0) > _MAX_PORT:
        return ""
    if match[1] and not (":" in match[1] and _is_address(match[1])):
        return ""
    return (match[1] or match[2]).lower()


def host_names(bound: str, allowed: Collection[str]) -> frozenset[str]:
    """Return the valid host names of requests; raise UsageError if an allowed one is none."""
    for name in allowed:
        if not (_HOST_NAME.fullmatch(name) or _is_address(name)):
            raise UsageError(f"{name!r} is not a host name", hint="--allow-host my-machine.local")
    own = {*_LOOPBACK, bound.lower()}
    if _is_address(bound) and ipaddress.ip_address(bound).is_unspecified:
        own.add(ANY)
    return frozenset(own | {name.lower() for name in allowed})


def describe_access(bound: str, *, open_proxy: bool) -> str:
    """Return who but this user on this machine can use a server, and for what; empty if nobody."""
    own = bound.lower() in _LOOPBACK
    is_local = own or (_is_address(bound) and ipaddress.ip_address(bound).is_loopback)
    who = "every program and user of this machine" if is_local else "everyone on your network"
    if open_proxy:
        return f"{who} can ask models without the token, and so read what they recall"
    return "" if is_local else f"{who} who has the token can use the server and its page"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_own_origin(origin: str, host: str) -> bool:
    """Return whether an origin is this server's own; a TLS proxy with another name may serve it."""
    schemes = ("http",) if _parse_host(host) in _LOOPBACK else ("http", "https")
    return origin.lower() in [f"{scheme}://{host.lower()}" for scheme in schemes]


def load_token() -> str:
    """Return the token of this home, made at first; a ReservoirError if its file is unusable."""
    file = paths.token_file()
    try:
        restrict_permissions([file])
        if token := _read(file):
            return token
        write_private(file, secrets.token_urlsafe(_BYTES) + "\n")
        return _read(file)
    except OSError as error:
        message = f"cannot store a token in {file}: {error.strerror}"
        is_file = file.is_file() or not file.exists()
        hint = suggest_fix(error, file) if is_file else "move it away"
        raise ReservoirError(message, hint=hint) from None


def _read(file: Path) -> str:
    try:
        token = read_regular(file, _MAX_SIZE).decode("ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return ""
    safe = all(character.isalnum() or character in "-_" for character in token)
    return token if safe and len(token) >= _MIN_LENGTH else ""
