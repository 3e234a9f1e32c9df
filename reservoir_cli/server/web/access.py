"""Restrict the page to sessions, and set the security headers of every response."""

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.server.web.read_conversations import MissingError
from reservoir_cli.server.web.rendering import render
from reservoir_cli.server.web.sessions import Session, Sessions

COOKIE = "reservoir_session"
#: The largest form in bytes; forms hold names and numbers.
_MAX_FORM = 64 * 1024
_MAX_FIELDS = 200
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


@dataclass(slots=True)
class PageState:
    """The state of one server's page; ``app.state.page``.

    :param violations: the number of policy violations that browsers reported.
    """

    sessions: Sessions = field(default_factory=Sessions)
    violations: int = 0


def page_of(request: Request) -> PageState:
    """Return the state of this server's page."""
    state = request.app.state
    if not hasattr(state, "page"):
        state.page = PageState()
    page: PageState = state.page
    return page


def open_to_all(view: View) -> View:
    """Serve a view to everyone; it must not show anything from the store."""

    async def answer(request: Request) -> Response:
        response = await view(request)
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


async def read_form(request: Request) -> Form:
    """Return the fields of a form; none if the body is not a form."""
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return {}
    body = await _read_body(request)
    try:
        return dict(parse_qsl(body.decode("ascii"), max_num_fields=_MAX_FIELDS))
    except ValueError:
        return {}


async def _read_body(request: Request) -> bytes:
    """Return a body; ``b""`` if it is too large for a form."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_FORM:
            return b""
    return body


def problem(request: Request, status: int, message: str, hint: str | None = None) -> Response:
    """Return an error page."""
    return render(request, "error.html", status_code=status, message=message, hint=hint)


def _session_of(request: Request) -> Session | None:
    name = request.cookies.get(COOKIE, "")
    return page_of(request).sessions.find(name, request.headers.get("host", ""))


async def make_code(request: Request) -> Response:
    """Return a one-time code to a program that knows the token."""
    return Response(page_of(request).sessions.new_code(), media_type="text/plain")


async def enter(request: Request) -> Response:
    """Show the form that redeems a code; redeem the code when the form is submitted.

    A GET never redeems it, so that link previews do not use it up.
    """
    if request.method != "POST":
        return render(request, "enter_code.html", code=request.query_params.get("code", ""))
    code, host = (await read_form(request)).get("code", ""), request.headers.get("host", "")
    name = page_of(request).sessions.redeem(code, host)
    if name is None:
        return render(request, "locked.html", status_code=401, spent=True)
    response = RedirectResponse("/ui/", 303)
    response.set_cookie(COOKIE, name, path="/ui", httponly=True, samesite="strict")
    return response


async def leave(request: Request) -> Response:
    """End the session."""
    page_of(request).sessions.end(request.cookies.get(COOKIE, ""))
    response = RedirectResponse("/ui/", 303)
    response.delete_cookie(COOKIE, path="/ui", httponly=True, samesite="strict")
    return response


async def count_violation(request: Request) -> Response:
    """Count a report of a policy violation, without reading it."""
    page_of(request).violations += 1
    return Response(status_code=204)
