"""Connect Visual Studio Code."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reservoir_cli.agents.connect.client import SERVER, Client, app_data


class VSCode(Client):
    """VS Code: ``mcp.json`` in the user's folder has the servers."""

    name = "vscode"
    title = "VS Code"
    program = "code"
    servers = "servers"
    next_step = "VS Code asks once whether you trust the server when it first starts it"

    def settings(self) -> Path:
        """Return the file of the default profile's servers."""
        return app_data() / "Code" / "User" / "mcp.json"

    def own_command(self, command: Sequence[str]) -> list[str]:
        """Return the arguments of ``code --add-mcp``."""
        return ["--add-mcp", json.dumps({"name": SERVER, **super().entry(command)})]

    def entry(self, command: Sequence[str]) -> dict[str, Any]:
        """Return an entry with its transport."""
        return {"type": "stdio", **super().entry(command)}
