"""Connect Claude Code."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reservoir_cli.agents.connect.client import HOOK_EVENTS, SERVER, Client
from reservoir_cli.transfer.importers import discover_histories


class ClaudeCode(Client):
    """Claude Code: ``~/.claude.json`` has the servers, ``~/.claude/settings.json`` the hooks."""

    name = "claude"
    title = "Claude Code"
    comments = trailing_commas = False
    program = "claude"
    history = "claude-code"
    events = HOOK_EVENTS
    next_step = "start a new session; /mcp lists the server"

    def settings(self) -> Path:
        """Return ``.claude.json``: in the home folder, or in the one of ``CLAUDE_CONFIG_DIR``."""
        folder = self.folder() if os.environ.get("CLAUDE_CONFIG_DIR") else Path.home()
        return folder / ".claude.json"

    def folder(self) -> Path:
        """Return ``~/.claude``, or the folder of ``CLAUDE_CONFIG_DIR``."""
        return discover_histories.claude_code_sessions().parent

    def hooks_settings(self) -> Path:
        """Return the settings for all projects."""
        return self.folder() / "settings.json"

    def own_command(self, command: Sequence[str]) -> list[str]:
        """Return the arguments of ``claude mcp add`` for all projects of this user."""
        return ["mcp", "add", "--scope", "user", SERVER, "--", *command]

    def entry(self, command: Sequence[str]) -> dict[str, Any]:
        """Return an entry in the form that ``claude mcp add`` writes."""
        return {"type": "stdio", **super().entry(command), "env": {}}
