"""Identify the client and folder of a request, which decide where and whether it is stored."""

import re
from collections.abc import Iterable, Mapping

from reservoir_cli.settings.config import Config

#: Prefixes of ``User-Agent``, and the tool whose histories ``sync`` reads.
_AGENTS = {
    "claude-cli": "claude-code",
    "claude-code": "claude-code",
    "codex": "codex",
    "opencode": "opencode",
    "geminicli": "gemini-cli",
}
_OWN_HEADERS = {"x-claude-code-session-id": "claude-code"}  # headers that only one client sends
#: How clients name their working folder in a system prompt, and Codex in its first message. Only
#: absolute paths of this machine count: looking at another's would send it the user's name.
_FOLDER = re.compile(
    r"(?im)^(?:[^\w\n]|_)*+(?:(?:primary|current) )?work(?:ing|space) directory:[ \t]*+"
    r"`?((?:/(?!/)|~/|[A-Z]:[\\/])[^\n`]*+)`?[ \t]*$"
)
_CODEX_FOLDER = re.compile(
    r"\s*<environment_context>(?:(?!</environment_context>)[\s\S])*?"
    r"<cwd>((?:/(?!/)|[A-Za-z]:[\\/])[^<\n]*)</cwd>"
)
#: The longest path of a folder, and how much of a system prompt is searched for one.
_LONGEST, _SEARCHED = 1_000, 200_000
OTHER = "proxy"  # the instance for all other clients


def client_of(headers: Mapping[str, str]) -> str:
    """Return the name of a request's client, which is also the instance of its messages."""
    for header, client in _OWN_HEADERS.items():
        if header in headers:
            return client
    agents = (headers.get("user-agent", ""), headers.get("originator", ""))
    for agent in map(str.lower, agents):
        for prefix, client in _AGENTS.items():
            if agent.startswith(prefix):
                return client
    return OTHER


def folder_of(system: str, first: Iterable[str]) -> str | None:
    """Return the working folder that a client names, if it does."""
    matches = [_FOLDER.search(system[:_SEARCHED]), *map(_CODEX_FOLDER.match, first)]
    folder = next((match[1].strip() for match in matches if match), "")
    return folder if 0 < len(folder) <= _LONGEST else None


def is_stored(client: str, config: Config) -> bool:
    """Return whether the settings let the proxy store a client's exchanges."""
    if config.proxy_store != "unless-synced":
        return config.proxy_store == "always"
    synced = {str(table.get("tool", name)) for name, table in config.sources.items()}
    return client not in synced
