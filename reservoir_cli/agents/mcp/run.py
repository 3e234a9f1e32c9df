"""Run a server for one client, from its first message to its last."""

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

from reservoir_cli.agents.mcp import stdio
from reservoir_cli.agents.mcp.process import Wire
from reservoir_cli.agents.mcp.server import Worker, build_server
from reservoir_cli.agents.mcp.tool_schemas import Tool
from reservoir_cli.agents.mcp.tools import Answers, Opener

#: Seconds to wait for a client to say which folders it works in.
_PATIENCE = 2.0


def run(
    wire: Wire,
    open_reservoir: Opener,
    tools: Mapping[str, Tool],
    partition: str,
    partition_of: Callable[[Path], str | None] | None = None,
) -> None:
    """Serve until the client is gone.

    :param partition: the scope of calls that name none.
    :param partition_of: returns the partition of a folder, if the settings name one; it goes
        before ``partition``. ``None`` if the client's folders do not matter.
    """
    worker = Worker(Answers(open_reservoir))
    scope = _Scope(partition, partition_of)
    asyncio.run(stdio.serve(build_server(tools, worker, scope.of), wire))
    worker.close()


class _Scope:
    """Finds the partition of a client once, by the folders it works in."""

    def __init__(self, default: str, partition_of: Callable[[Path], str | None] | None) -> None:
        self._default, self._partition_of = default, partition_of
        self._known: str | None = None if partition_of else default

    async def of(self, context: ServerRequestContext[Any, Any]) -> str:
        """Return the partition of a call that names none."""
        if self._known is None:
            folders = await _folders(context)
            self._known = self._first(folders)
        return self._known

    def _first(self, folders: list[Path]) -> str:
        assert self._partition_of
        named = (self._partition_of(folder) for folder in folders)
        return next((partition for partition in named if partition), self._default)


async def _folders(context: ServerRequestContext[Any, Any]) -> list[Path]:
    """Return the folders a client works in: those it names, and the one it started us in."""
    session, folders = context.session, [Path.cwd()]
    capabilities = session.client_capabilities
    if not session.can_send_request or capabilities is None or capabilities.roots is None:
        return folders
    try:
        listed = await session.send_request(ListRootsRequest(), ListRootsResult, _PATIENCE)
    except (MCPError, ValidationError):  # it does not answer, or not as it should
        return folders
    parts = [urlsplit(str(root.uri)) for root in listed.roots]
    named = [url2pathname(unquote(each.path)) for each in parts if each.scheme == "file"]
    return [*map(Path, named), *folders]
