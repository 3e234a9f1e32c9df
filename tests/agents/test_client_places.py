"""Paths of each client's settings, by operating system and environment variables."""

import sys

from each import each

from reservoir_cli.agents.connect import CLIENTS

#: Settings files in which each client looks for servers.
PLACES = {
    "linux": {
        "claude": ".claude.json",
        "codex": ".codex/config.toml",
        "gemini": ".gemini/settings.json",
        "opencode": ".config/opencode/opencode.json",
        "cursor": ".cursor/mcp.json",
        "windsurf": ".codeium/windsurf/mcp_config.json",
        "vscode": ".config/Code/User/mcp.json",
        "zed": ".config/zed/settings.json",
        "claude-desktop": ".config/Claude/claude_desktop_config.json",
    },
    "darwin": {
        "opencode": ".config/opencode/opencode.json",
        "windsurf": ".codeium/windsurf/mcp_config.json",
        "vscode": "Library/Application Support/Code/User/mcp.json",
        "zed": ".config/zed/settings.json",
        "claude-desktop": "Library/Application Support/Claude/claude_desktop_config.json",
    },
    "win32": {
        "claude": ".claude.json",
        "opencode": ".config/opencode/opencode.json",
        "windsurf": ".codeium/windsurf/mcp_config.json",
        "vscode": "AppData/Roaming/Code/User/mcp.json",
        "zed": "AppData/Roaming/Zed/settings.json",
        "claude-desktop": "AppData/Roaming/Claude/claude_desktop_config.json",
    },
}


@each("system, name", [(system, name) for system in PLACES for name in PLACES[system]])
def test_settings_paths_of_each_system(user, monkeypatch, system, name):
    monkeypatch.setattr(sys, "platform", system)
    assert CLIENTS[name].settings() == user / PLACES[system][name]


def test_a_packaged_claude_desktop_on_windows_has_its_own_folder(user, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(user))
    folder = user / "Packages" / "Claude_abc" / "LocalCache" / "Roaming" / "Claude"
    folder.mkdir(parents=True)
    assert CLIENTS["claude-desktop"].settings().parent == folder


def test_environment_variables_move_the_settings(user, monkeypatch):
    for variable in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"):
        monkeypatch.setenv(variable, str(user / variable))
    assert CLIENTS["claude"].settings() == user / "CLAUDE_CONFIG_DIR" / ".claude.json"
    assert CLIENTS["claude"].hooks_settings() == user / "CLAUDE_CONFIG_DIR" / "settings.json"
    assert CLIENTS["codex"].settings() == user / "CODEX_HOME" / "config.toml"
    assert CLIENTS["gemini"].settings() == user / "GEMINI_CLI_HOME" / ".gemini" / "settings.json"
    assert CLIENTS["opencode"].settings().is_relative_to(user / "XDG_CONFIG_HOME")


def test_opencode_prefers_its_settings_with_comments(user):
    folder = user / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.jsonc").write_text("{}")
    (folder / "opencode.json").write_text("{}")
    assert CLIENTS["opencode"].settings().name == "opencode.jsonc"
