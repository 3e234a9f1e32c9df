"""Restrict the page to sessions, which are kept in memory only, and set security headers."""

import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.server import limits
from reservoir_cli.server.handshake import ServerIdentity
from reservoir_cli.server.request_body import BodyTooLarge, BodyTooSlow, read_body
from reservoir_cli.server.web.read_conversations import MissingError
from reservoir_cli.server.web.rendering import render

_BYTES = 32


@dataclass(slots=True)
class BrowserSession:
    """A browser's session: its Host header, the token of its forms, and when it was last used."""

    host: str
    csrf: str
    used: float


@dataclass(slots=True)
class BrowserSessions:
    """The used codes and the valid sessions of a server; the clock is monotonic, in seconds.

    :param violations: how many policy violations browsers reported.
    """

    server: ServerIdentity
    clock: Callable[[], float] = time.monotonic
    violations: int = 0
    _used: dict[str, int] = field(default_factory=dict)
    _sessions: dict[str, BrowserSession] = field(default_factory=dict)

    def prove(self, nonce: str) -> str | None:
        """Return a proof that this server knows the token; ``None`` if the nonce is invalid."""
        return self.server.prove(nonce, int(self.clock()))

    def redeem(self, code: str, host: str) -> str | None:
        """Start a session; return its id, or ``None`` if the code is used, expired or wrong."""
        now, parts = self.clock(), self.server.check_code(code)
        earliest = now - limits.CODE_LIFETIME
        self._used = {nonce: made for nonce, made in self._used.items() if made >= earliest}
        if parts is None or parts[0] in self._used or not earliest <= parts[1] <= now:
            return None
        self._used[parts[0]] = parts[1]
        name = secrets.token_urlsafe(_BYTES)
        self._sessions[name] = BrowserSession(host, secrets.token_urlsafe(_BYTES), now)
        while len(self._sessions) > limits.MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return name

    def find(self, name: str, host: str) -> BrowserSession | None:
        """Return a session by its id, if it is still valid and was started with this Host."""
        session, now = self._sessions.get(name), self.clock()
        if session is None or session.host != host or now - session.used > limits.SESSION_LIFETIME:
            return None
        session.used = now
        return session

    def end(self, name: str) -> None:
        """End a session."""
        self._sessions.pop(name, None)


COOKIE = "reservoir_session"
#: The page runs and loads only files of this server.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "report-uri /ui/csp"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Not no-referrer: with it, browsers send forms with the origin "null".
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

View = Callable[[Request], Awaitable[Response]]
Form = dict[str, str]


def sessions_of(request: Request) -> BrowserSessions:
    """Return the sessions of this server's page."""
    state = request.app.state
    if not hasattr(state, "page"):
        state.page = BrowserSessions(state.server.identity)
    sessions: BrowserSessions = state.page
    return sessions


def open_to_all(view: View) -> View:
    """Serve a view to everyone; it must not show anything from the store."""

    async def answer(request: Request) -> Response:
        try:
            response = await view(request)
        except BodyTooSlow as error:
            response = problem(request, error.status, str(error))
        response.headers.update(HEADERS)
        return response

    return answer


def for_sessions(view: View) -> View:
    """Serve a view to sessions only; a form must carry the session's token."""

    async def answer(request: Request) -> Response:
        session = _session_of(request)
        if session is None:
            return render(request, "locked.html", status_code=401)
        request.state.session = session
        try:
            if request.method == "POST":
                request.state.form = form = await read_form(request)
                if not secrets.compare_digest(form.get("csrf", "").encode(), session.csrf.encode()):
                    return problem(request, 403, "This form has expired. Reload the page.")
            return await view(request)
        except UsageError as error:
            return problem(request, 400, error.message, error.hint)
        except MissingError as error:
            return problem(request, 404, error.message, error.hint)
        except ReservoirError as error:
            return problem(request, 500, error.message, error.hint)

    return open_to_all(answer)


async def missing(request: Request, _error: Exception) -> Response:
    """Answer an address or a method that the page does not have, like a view."""

    async def answer(request: Request) -> Response:
        return problem(request, 404, "There is no such page.", "Choose a view above.")

    return await for_sessions(answer)(request)


async def read_form(request: Request) -> Form:
    """Return the fields of a form; none if the body is not a form."""
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return {}
    try:
        body = await read_body(request.scope, request.receive, limits.MAX_FORM)
        return dict(parse_qsl(body.decode("ascii"), max_num_fields=limits.MAX_FIELDS))
    except (BodyTooLarge, ValueError):
        return {}


def problem(request: Request, status: int, message: str, hint: str | None = None) -> Response:
    """Return an error page."""
    return render(request, "error.html", status_code=status, message=message, hint=hint)


def _session_of(request: Request) -> BrowserSession | None:
    name = request.cookies.get(COOKIE, "")
    return sessions_of(request).find(name, request.headers.get("host", ""))


async def prove(request: Request) -> Response:
    """Prove to a program that this server knows the token."""
    proof = sessions_of(request).prove(request.query_params.get("nonce", ""))
    return PlainTextResponse(proof or "400: not a nonce\n", 200 if proof else 400)


async def enter(request: Request) -> Response:
    """Show the form that redeems a code: a GET never does, so link previews do not use it up."""
    if request.method != "POST":
        return render(request, "enter_code.html", code=request.query_params.get("code", ""))
    code, host = (await read_form(request)).get("code", ""), request.headers.get("host", "")
    name = sessions_of(request).redeem(code, host)
    if name is None:
        return render(request, "locked.html", status_code=401, spent=True)
    response = RedirectResponse("/ui/", 303)
    response.set_cookie(COOKIE, name, path="/ui", httponly=True, samesite="strict")
    return response


async def leave(request: Request) -> Response:
    """End the session."""
    sessions_of(request).end(request.cookies.get(COOKIE, ""))
    response = RedirectResponse("/ui/", 303)
    response.delete_cookie(COOKIE, path="/ui", httponly=True, samesite="strict")
    return response


async def count_violation(request: Request) -> Response:
    """Count a report of a policy violation, without reading it."""
    sessions_of(request).violations += 1
    return Response(status_code=204)
