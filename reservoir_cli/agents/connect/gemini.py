"""Connect Gemini CLI."""

import os
from collections.abc import Sequence
from pathlib import Path

from reservoir_cli.agents.connect.client import SERVER, Client

_EVENTS = {
    "SessionStart": "session-start",
    "BeforeAgent": "user-prompt",
    "AfterAgent": "stop",
    "SessionEnd": "session-end",
}


class GeminiCli(Client):
    """Gemini CLI: ``~/.gemini/settings.json`` has servers and hooks."""

    name = "gemini"
    title = "Gemini CLI"
    program = "gemini"
    history = "gemini-cli"
    trailing_commas = False
    events = _EVENTS
    hook_timeout = 3_000
    next_step = "start a new session; /mcp lists the server"

    def settings(self) -> Path:
        """Return the user's settings file."""
        home = os.environ.get("GEMINI_CLI_HOME")
        return (Path(home) if home else Path.home()) / ".gemini" / "settings.json"

    def own_command(self, command: Sequence[str]) -> list[str]:
        """Return the arguments of ``gemini mcp add`` for all projects of this user."""
        return ["mcp", "add", "--scope", "user", SERVER, *command]
