"""Connect Claude Desktop."""

import os
import sys
from pathlib import Path

from reservoir_cli.agents.connect.client import Client, app_data


class ClaudeDesktop(Client):
    """Claude Desktop: ``claude_desktop_config.json`` has the servers."""

    name = "claude-desktop"
    title = "Claude Desktop"
    comments = trailing_commas = False
    next_step = "quit Claude Desktop and start it again"

    def settings(self) -> Path:
        """Return the settings file; on Windows, packaged apps have separate folders."""
        return _folder() / "claude_desktop_config.json"


def _folder() -> Path:
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        for pattern in ("Claude-Data/[Cc]laude*", "Packages/Claude_*/LocalCache/Roaming/Claude"):
            for folder in sorted(Path(local).glob(pattern)):
                return folder
    return app_data() / "Claude"
