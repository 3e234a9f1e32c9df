"""The page, which the server mounts.

``routes()`` are served under ``/ui/`` and must each ask for a session themselves; Host, Origin and
site are checked before. ``token_routes()`` are served under ``/k/TOKEN/ui/`` and are reached by
programs that know the token only. Both find the running server in
``request.app.state.server``, a :class:`~reservoir_cli.server.state.ServerState`.
"""

from collections.abc import Sequence

from starlette.routing import BaseRoute


def routes() -> Sequence[BaseRoute]:
    """Return the routes below ``/ui``."""
    return ()


def token_routes() -> Sequence[BaseRoute]:
    """Return the routes below ``/k/TOKEN/ui``."""
    return ()
