"""A home with settings of other programs, none of which is on PATH."""

from collections.abc import Callable
from pathlib import Path

import pytest

from reservoir_cli.agents.connect.client import Client

#: Variables that move the settings of a client.
MOVED = (
    *("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"),
    *("APPDATA", "LOCALAPPDATA"),
)
#: Typical settings files, with every syntax that the client reads.
SETTINGS = {
    "claude": '{\n  "numStartups": 7,\n  "projects": {"/a": {"allowedTools": []}}\n}',
    "codex": (
        '# my model\nmodel = "m" # the best\n\n[mcp_servers.other]\ncommand = "x"\n'
        'args = [\n  "a",\n]\n\n[projects."/x y"]\ntrust_level = "trusted"\n'
    ),
    "gemini": '{\n\t// mine\n\t"ui": {"theme": "GitHub"} /* dark */\n}\n',
    "opencode": '{\n  // mine\n  "theme": "x",\n}\n',
    "cursor": '{\r\n  "mcpServers": {\r\n    "other": {"command": "x"}\r\n  }\r\n}\r\n',
    "windsurf": '{\n  "mcpServers": {\n    "other": {"serverUrl": "https://mcp.example"}\n  }\n}',
    "vscode": '{\n    "inputs": [],\n    "servers": {}\n}\n',
    "zed": (
        '// Zed settings\n//\n{\n  "context_servers": {\n    // notes\n'
        '    "other": {"command": "x", "args": []}, // keep\n  },\n  "vim_mode": true,\n}\n'
    ),
    "claude-desktop": '{"mcpServers": {"other": {"command": "x", "args": ["ä"]}}}',
}


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home folder of a user without any client."""
    folder, programs = tmp_path / "user", tmp_path / "programs"
    folder.mkdir()
    programs.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    monkeypatch.setenv("PATH", str(programs))
    for name in MOVED:
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def write_settings(user: Path) -> Callable[[Client], bytes]:
    """Write typical settings of a client."""

    def write(client: Client) -> bytes:
        client.folder().mkdir(parents=True, exist_ok=True)
        client.settings().parent.mkdir(parents=True, exist_ok=True)
        data = SETTINGS[client.name].encode("utf-8")
        client.settings().write_bytes(data)
        client.settings().chmod(0o640)
        return data

    return write
