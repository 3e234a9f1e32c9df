"""``reservoir mcp``: serve an agent over the Model Context Protocol."""

from importlib.util import find_spec
from typing import Annotated

import typer

from reservoir_cli.agents.mcp.reserve_pipes import end_on_signals, take_wire
from reservoir_cli.cli import console, open_store, options
from reservoir_cli.cli.app import terminated_by
from reservoir_cli.cli.options import flag
from reservoir_cli.errors import UsageError
from reservoir_cli.util.installation import install_hint


def mcp(
    ctx: typer.Context,
    partition: options.Partition = None,
    read_only: Annotated[bool, flag("--read-only", "Offer only tools that read.")] = False,
) -> None:
    """Serve the store to an agent over MCP; its client starts this.

    It speaks on stdin and stdout. The agent can recall, search and read messages of one partition,
    and store notes there. Without -p, this is the partition that [projects] in the settings assigns
    to the agent's working folder, else the default partition. Needs the extra mcp.
    """
    end_on_signals()
    if terminated_by:
        raise typer.Exit(143)
    if find_spec("mcp_types") is None:  # mcp 1 has no such package
        raise UsageError(
            "reservoir mcp needs the MCP SDK, version 2.3 or newer", hint=install_hint("mcp")
        )
    config = options.load_config(ctx)
    if options.can_ask():
        console.note("waiting for an MCP client on stdin; Ctrl-C ends it")
    wire = take_wire()
    from reservoir_cli.agents.mcp import server, tools

    server.run(
        wire,
        open_store.opener(ctx, config),
        tools.offered_tools(
            () if partition else config.mcp_partitions,
            read_only=read_only,
            corrects=config.mcp_correct,
        ),
        partition or str(config.lookup("partition")[0]),
        None if partition or not config.projects else config.partition_of,
    )
