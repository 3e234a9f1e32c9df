"""Connect Windsurf."""

from pathlib import Path

from reservoir_cli.agents.connect.client import Client


class Windsurf(Client):
    """Windsurf: ``~/.codeium/windsurf/mcp_config.json`` has the servers, on all systems."""

    name = "windsurf"
    title = "Windsurf"
    program = "windsurf"
    comments = trailing_commas = False
    next_step = "refresh the servers in the MCP settings of Cascade, or start Windsurf again"

    def settings(self) -> Path:
        """Return the servers of this user."""
        return Path.home() / ".codeium" / "windsurf" / "mcp_config.json"
