"""The MCP server: the SDK handles the protocol, and a worker answers tool calls."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp.types import Tool as ListedTool

from reservoir_cli import __version__
from reservoir_cli.agents.mcp.tools import INSTRUCTIONS, Tool
from reservoir_cli.agents.mcp.unload_when_idle import Worker
from reservoir_cli.errors import ReservoirError

#: Returns the partition of a call, given its request.
ScopeOf = Callable[[ServerRequestContext[Any, Any]], Awaitable[str]]


def build_server(tools: Mapping[str, Tool], worker: Worker, scope_of: ScopeOf) -> Server:
    """Return a server that offers tools.

    :param scope_of: returns the partition of a call that does not name one.
    """
    _silence_libraries()
    tool_list = ListToolsResult(tools=[describe(tool) for tool in tools.values()])

    async def list_tools(
        _context: ServerRequestContext[Any, Any], _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return tool_list

    async def call_tool(
        context: ServerRequestContext[Any, Any], params: CallToolRequestParams
    ) -> CallToolResult:
        tool = tools.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"unknown tool; there are {', '.join(tools)}")
        try:
            arguments = tool.check(params.arguments or {})
            partition = arguments.pop("partition", None) or await scope_of(context)
            return _result(await worker.answer(tool.name, arguments, partition))
        except ReservoirError as error:
            return _failure(error)
        except Exception as error:  # its text might quote a message
            return _failure(ReservoirError(f"unexpected {type(error).__name__}"))

    return Server(
        "reservoir",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _silence_libraries() -> None:
    """Keep the SDK and asyncio from logging: their tracebacks may quote messages."""
    for name in ("mcp", "asyncio"):
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False


def describe(tool: Tool) -> ListedTool:
    """Return a tool's entry in the protocol's list of tools."""
    hints = (
        ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
        if tool.writes
        else ToolAnnotations(read_only_hint=True)
    )
    return ListedTool(
        name=tool.name, description=tool.about, input_schema=tool.schema(), annotations=hints
    )


def _result(text: str, *, failed: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=failed)


def _failure(error: ReservoirError) -> CallToolResult:
    hint = f"\nhint: {error.hint}" if error.hint else ""
    return _result(f"error: {error.message}{hint}", failed=True)
