"""The clients of ``connect``: where each keeps its settings, and the form of its entries."""

import json
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from reservoir_cli.agents.connect.client import (
    HOOK_EVENTS,
    POWERSHELL_CALL,
    SERVER,
    Client,
    app_data,
    xdg_config,
)
from reservoir_cli.errors import UsageError
from reservoir_cli.transfer.reading.platform_folders import claude_config_dirs, tool_dir


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
        folder = self.folder() if os.environ.get("CLAUDE_CONFIG_DIR") else Path.home()
        return folder / ".claude.json"

    def folder(self) -> Path:
        return claude_config_dirs()[0]

    def hooks_settings(self) -> Path:
        return self.folder() / "settings.json"

    def own_command(self, command: Sequence[str]) -> list[str]:
        return ["mcp", "add", "--scope", "user", SERVER, "--", *command]

    def entry(self, command: Sequence[str]) -> dict[str, Any]:
        return {"type": "stdio", **super().entry(command), "env": {}}


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
        return tool_dir("CODEX_HOME", ".codex") / "config.toml"

    def hooks_settings(self) -> Path:
        return self.settings().with_name("hooks.json")

    def own_command(self, command: Sequence[str]) -> list[str]:
        return ["mcp", "add", SERVER, "--", *command]


#: Our hook events by those of Gemini CLI.
_GEMINI_EVENTS = {
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
    events = _GEMINI_EVENTS
    hook_timeout = 3_000
    next_step = "start a new session; /mcp lists the server"

    def hook_command(self, command: Sequence[str], *, windows: bool = os.name == "nt") -> str:
        words = super().hook_command(command, windows=windows)
        return f"{POWERSHELL_CALL}{words}" if windows and words.startswith('"') else words

    def settings(self) -> Path:
        return tool_dir("GEMINI_CLI_HOME", Path.home()) / ".gemini" / "settings.json"

    def own_command(self, command: Sequence[str]) -> list[str]:
        return ["mcp", "add", "--scope", "user", SERVER, *command]


class OpenCode(Client):
    """opencode: ``opencode.jsonc`` or ``opencode.json`` has the servers."""

    name = "opencode"
    title = "opencode"
    program = "opencode"
    history = "opencode"
    servers = "mcp"
    next_step = "start it again; opencode mcp list shows the server"

    def settings(self) -> Path:
        folder = xdg_config() / "opencode"
        with_comments = folder / "opencode.jsonc"
        return with_comments if with_comments.exists() else folder / "opencode.json"

    def entry(self, command: Sequence[str]) -> dict[str, Any]:
        return {"type": "local", "command": list(command), "enabled": True}

    def command_of(self, entry: Any) -> list[str] | None:
        command = entry.get("command") if isinstance(entry, dict) else None
        return list(map(str, command)) if command and isinstance(command, list) else None


class Cursor(Client):
    """Cursor: ``~/.cursor/mcp.json`` has the servers, on all systems."""

    name = "cursor"
    title = "Cursor"
    history = "cursor"
    program = "cursor"
    next_step = "switch the server on in Cursor Settings, MCP, if it asks"

    def settings(self) -> Path:
        return Path.home() / ".cursor" / "mcp.json"


class Windsurf(Client):
    """Windsurf: ``~/.codeium/windsurf/mcp_config.json`` has the servers, on all systems."""

    name = "windsurf"
    title = "Windsurf"
    program = "windsurf"
    comments = trailing_commas = False
    next_step = "refresh the servers in the MCP settings of Cascade, or start Windsurf again"

    def settings(self) -> Path:
        return Path.home() / ".codeium" / "windsurf" / "mcp_config.json"


class VSCode(Client):
    """VS Code: ``mcp.json`` in the user's folder has the servers."""

    name = "vscode"
    title = "VS Code"
    program = "code"
    servers = "servers"
    next_step = "VS Code asks once whether you trust the server when it first starts it"

    def settings(self) -> Path:
        return app_data() / "Code" / "User" / "mcp.json"

    def own_command(self, command: Sequence[str]) -> list[str]:
        return ["--add-mcp", json.dumps({"name": SERVER, **super().entry(command)})]

    def entry(self, command: Sequence[str]) -> dict[str, Any]:
        return {"type": "stdio", **super().entry(command)}


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


class ClaudeDesktop(Client):
    """Claude Desktop: ``claude_desktop_config.json`` has the servers."""

    name = "claude-desktop"
    title = "Claude Desktop"
    comments = trailing_commas = False
    next_step = "quit Claude Desktop and start it again"

    def settings(self) -> Path:
        return _claude_desktop_folder() / "claude_desktop_config.json"


def _claude_desktop_folder() -> Path:
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        for pattern in ("Claude-Data/[Cc]laude*", "Packages/Claude_*/LocalCache/Roaming/Claude"):
            for folder in sorted(Path(local).glob(pattern)):
                return folder
    return app_data() / "Claude"


_CLASSES: tuple[type[Client], ...] = (
    *(ClaudeCode, Codex, GeminiCli, OpenCode, Cursor, Windsurf, VSCode, Zed, ClaudeDesktop),
)
CLIENTS: dict[str, Client] = {client.name: client() for client in _CLASSES}


def client_named(name: str) -> Client:
    """Return a client by its name."""
    if name in CLIENTS:
        return CLIENTS[name]
    titles = {client.title.lower().replace(" ", "-"): client.name for client in CLIENTS.values()}
    names = titles | {key: key for key in CLIENTS}
    near = get_close_matches(name.lower(), names, 1)
    hint = f"did you mean {names[near[0]]}? " if near else ""
    raise UsageError(f"unknown client: {name}", hint=f"{hint}choose one of {', '.join(CLIENTS)}")
