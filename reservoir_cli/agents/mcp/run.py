"""Run a server for one client until it disconnects."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import ListRootsRequest, ListRootsResult
from pydantic import ValidationError

from reservoir_cli.agents.kept_store import Opener
from reservoir_cli.agents.mcp import stdio
from reservoir_cli.agents.mcp.reserve_pipes import Wire
from reservoir_cli.agents.mcp.server import build_server
from reservoir_cli.agents.mcp.tools import Answers, Tool
from reservoir_cli.agents.mcp.unload_when_idle import Worker

#: Seconds to wait for a client's list of the folders it works in.
_PATIENCE = 2.0


def run(
    wire: Wire,
    open_reservoir: Opener,
    tools: Mapping[str, Tool],
    partition: str,
    partition_of: Callable[[Path], str | None] | None = None,
) -> None:
    """Serve until the client disconnects.

    :param partition: the default partition of calls.
    :param partition_of: returns the partition of a folder, if the settings name one, which takes
        precedence over ``partition``. ``None`` to ignore the client's folders.
    """
    worker = Worker(Answers(open_reservoir))
    scope = _Scope(partition, partition_of)
    asyncio.run(stdio.serve(build_server(tools, worker, scope.of), wire))
    worker.close()


class _Scope:
    """Determine the partition of a client from the folders it works in, once."""

    def __init__(self, default: str, partition_of: Callable[[Path], str | None] | None) -> None:
        self._default, self._partition_of = default, partition_of
        self._known: str | None = None if partition_of else default

    async def of(self, context: ServerRequestContext[Any, Any]) -> str:
        """Return the partition of a call that does not name one."""
        if self._known is None:
            folders = await _folders(context)
            self._known = self._first(folders)
        return self._known

    def _first(self, folders: list[Path]) -> str:
        assert self._partition_of
        named = (self._partition_of(folder) for folder in folders)
        return next((partition for partition in named if partition), self._default)


async def _folders(context: ServerRequestContext[Any, Any]) -> list[Path]:
    """Return the folders a client works in: its roots, and the folder that it started us in."""
    session, folders = context.session, [Path.cwd()]
    capabilities = session.client_capabilities
    if not session.can_send_request or capabilities is None or capabilities.roots is None:
        return folders
    try:
        listed = await session.send_request(ListRootsRequest(), ListRootsResult, _PATIENCE)
    except (MCPError, ValidationError):  # no answer, or an invalid one
        return folders
    urls = [urlsplit(str(root.uri)) for root in listed.roots]
    roots = [url2pathname(unquote(url.path)) for url in urls if url.scheme == "file"]
    return [*map(Path, roots), *folders]
