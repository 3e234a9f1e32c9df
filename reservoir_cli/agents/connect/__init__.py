"""Connect other programs to this one, and disconnect them, one module per client."""

from difflib import get_close_matches

from reservoir_cli.agents.connect.claude import ClaudeCode
from reservoir_cli.agents.connect.claude_desktop import ClaudeDesktop
from reservoir_cli.agents.connect.client import Client
from reservoir_cli.agents.connect.codex import Codex
from reservoir_cli.agents.connect.connection import Outcome, Status, connect, disconnect, status
from reservoir_cli.agents.connect.cursor import Cursor
from reservoir_cli.agents.connect.gemini import GeminiCli
from reservoir_cli.agents.connect.opencode import OpenCode
from reservoir_cli.agents.connect.vscode import VSCode
from reservoir_cli.agents.connect.windsurf import Windsurf
from reservoir_cli.agents.connect.zed import Zed
from reservoir_cli.errors import UsageError

__all__ = [
    "CLIENTS",
    "Client",
    "Outcome",
    "Status",
    "client_named",
    "connect",
    "disconnect",
    "status",
]

_CLASSES: tuple[type[Client], ...] = (
    *(ClaudeCode, Codex, GeminiCli, OpenCode, Cursor, Windsurf, VSCode, Zed, ClaudeDesktop),
)
CLIENTS: dict[str, Client] = {client.name: client() for client in _CLASSES}


def client_named(name: str) -> Client:
    """Return a client by its name.

    :raises UsageError: the name is unknown.
    """
    if name in CLIENTS:
        return CLIENTS[name]
    titles = {client.title.lower().replace(" ", "-"): client.name for client in CLIENTS.values()}
    names = titles | {known: known for known in CLIENTS}
    near = get_close_matches(name.lower(), names, 1)
    hint = f"did you mean {names[near[0]]}? " if near else ""
    raise UsageError(f"unknown client: {name}", hint=f"{hint}choose one of {', '.join(CLIENTS)}")
