"""The routes of the page, with and without the token."""

from collections.abc import Sequence
from pathlib import Path

from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from reservoir_cli.server.web import access, handlers

_STATIC = Path(__file__).parent / "static"


def routes() -> Sequence[BaseRoute]:
    """Return the routes below ``/ui``."""
    return [
        _view("/", handlers.index),
        _view("/conversation", handlers.conversation),
        _view("/message", handlers.message),
        _view("/delete", handlers.delete, "GET", "POST"),
        _view("/window", handlers.ask),
        _view("/use", handlers.use),
        _view("/leave", access.leave, "POST"),
        Route("/enter", access.open_to_all(access.enter), methods=["GET", "POST"]),
        Route("/csp", access.open_to_all(access.count_violation), methods=["POST"]),
        Mount("/static", app=StaticFiles(directory=_STATIC)),
    ]


def _view(path: str, view: access.View, *methods: str) -> Route:
    return Route(path, access.for_sessions(view), methods=list(methods or ("GET",)))


def token_routes() -> Sequence[BaseRoute]:
    """Return the routes below ``/k/TOKEN/ui``."""
    return [Route("/codes", access.open_to_all(access.make_code), methods=["POST"])]
