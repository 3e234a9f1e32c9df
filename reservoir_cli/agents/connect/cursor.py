"""Connect Cursor."""

from pathlib import Path

from reservoir_cli.agents.connect.client import Client


class Cursor(Client):
    """Cursor: ``~/.cursor/mcp.json`` has the servers, on all systems."""

    name = "cursor"
    title = "Cursor"
    history = "cursor"
    program = "cursor"
    next_step = "switch the server on in Cursor Settings, MCP, if it asks"

    def settings(self) -> Path:
        """Return the file of the servers for all projects."""
        return Path.home() / ".cursor" / "mcp.json"
