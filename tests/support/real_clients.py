"""Run real clients in an empty home, without input, and with our fake provider only."""

import json
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reservoir_cli.agents.connect import CLIENTS

#: The folder with the programs of the clients; ``make clients`` sets it.
PROGRAMS = os.environ.get("RESERVOIR_TEST_CLIENTS")
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
    "ENABLE_TOOL_SEARCH": "false",  # show the model all tools at once
    "MCP_CONNECTION_NONBLOCKING": "0",  # wait for slow machines, too
    "GEMINI_CLI_TRUST_WORKSPACE": "true",
    "GEMINI_TELEMETRY_ENABLED": "false",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
}
KEYS = {"ANTHROPIC_API_KEY": "sk-ant-test", "OPENAI_API_KEY": "x", "GEMINI_API_KEY": "x"}


@dataclass
class Person:
    """A user with a client and its settings."""

    home: Path
    client: str
    env: dict[str, str] = field(default_factory=dict)

    def run(self, *command: str | Path, stdin: str | None = None) -> str:
        """Run a command to its end; return its output without escape sequences."""
        source: dict[str, Any] = (
            {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
        )
        result = subprocess.run(
            command,
            env=self.env,
            cwd=self.home / "project",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=180,
            check=False,
            **source,
        )
        assert result.returncode == 0, f"{command}: {result.stdout}"
        return re.sub(r"\x1b\[[\d;]*m", "", result.stdout)

    def files(self) -> dict[str, bytes]:
        """Return the settings files, without the other files of the client."""
        client = CLIENTS[self.client]
        names = (client.settings(), client.hooks_settings())
        return {str(path): path.read_bytes() for path in names if path.exists()}


def write_settings(name: str, url: str) -> None:
    """Write settings that make a client use our provider."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "x"},
        "models": {"m": {}},
    }
    text = {
        "claude": '{\n  "numStartups": 3\n}\n',
        "codex": (
            'model = "m" # mine\nmodel_provider = "fake"\n\n[model_providers.fake]\n'
            f'name = "fake"\nbase_url = "{url}/v1"\nwire_api = "responses"\n'
            'env_key = "OPENAI_API_KEY"\n'
        ),
        "gemini": '{\n\t// mine\n\t"security": {"auth": {"selectedType": "gemini-api-key"}}\n}\n',
        "opencode": (
            '{\n  // mine\n  "$schema": "https://opencode.ai/config.json",\n  "model": "fake/m",\n'
            f'  "provider": {{"fake": {json.dumps(provider)}}},\n}}\n'
        ),
    }[name]
    path = CLIENTS[name].settings()
    if name == "opencode":
        path = path.with_suffix(".jsonc")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    if name == "claude":
        CLIENTS[name].folder().mkdir()
        CLIENTS[name].hooks_settings().write_text('{"theme": "dark"}', encoding="utf-8")
