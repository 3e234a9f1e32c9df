"""Connect opencode."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reservoir_cli.agents.connect.client import Client, xdg_config


class OpenCode(Client):
    """opencode: ``opencode.jsonc`` or ``opencode.json`` has the servers.

    Its own ``opencode mcp add`` reformats the whole file, so the file is edited instead.
    """

    name = "opencode"
    title = "opencode"
    program = "opencode"
    history = "opencode"
    servers = "mcp"
    next_step = "start it again; opencode mcp list shows the server"

    def settings(self) -> Path:
        """Return ``opencode.jsonc`` if it exists, else ``opencode.json``; opencode reads both."""
        folder = xdg_config() / "opencode"
        with_comments = folder / "opencode.jsonc"
        return with_comments if with_comments.exists() else folder / "opencode.json"

    def entry(self, command: Sequence[str]) -> dict[str, Any]:
        """Return an entry with command and arguments in one list."""
        return {"type": "local", "command": list(command), "enabled": True}

    def command_of(self, entry: Any) -> list[str] | None:
        """Return the entry's command list."""
        command = entry.get("command") if isinstance(entry, dict) else None
        return list(map(str, command)) if command and isinstance(command, list) else None
