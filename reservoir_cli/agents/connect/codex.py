"""Connect Codex."""

from collections.abc import Sequence
from pathlib import Path

from reservoir_cli.agents.connect.client import HOOK_EVENTS, SERVER, Client
from reservoir_cli.transfer.importers import discover_histories


class Codex(Client):
    """Codex: ``~/.codex/config.toml`` has the servers, ``hooks.json`` beside it the hooks."""

    name = "codex"
    title = "Codex"
    comments = trailing_commas = False
    program = "codex"
    history = "codex"
    servers = "mcp_servers"
    events = HOOK_EVENTS
    next_step = "start a new session; /mcp lists the server"
    hooks_step = "Codex runs new hooks only after you trust them: type /hooks in it"

    def settings(self) -> Path:
        """Return ``config.toml``."""
        return discover_histories.codex_sessions().with_name("config.toml")

    def hooks_settings(self) -> Path:
        """Return ``hooks.json``."""
        return self.settings().with_name("hooks.json")

    def own_command(self, command: Sequence[str]) -> list[str]:
        """Return the arguments of ``codex mcp add``."""
        return ["mcp", "add", SERVER, "--", *command]
