"""Connect Zed."""

import sys
from pathlib import Path

from reservoir_cli.agents.connect.client import Client, app_data, xdg_config


class Zed(Client):
    """Zed: ``settings.json`` has the servers, among all other settings."""

    name = "zed"
    title = "Zed"
    program = "zed"
    servers = "context_servers"
    next_step = "the agent panel's settings list the server"

    def settings(self) -> Path:
        """Return the user's settings file; macOS has it in the same folder as Linux."""
        if sys.platform == "win32":
            return app_data() / "Zed" / "settings.json"
        folder = Path.home() / ".config" if sys.platform == "darwin" else xdg_config()
        return folder / "zed" / "settings.json"
