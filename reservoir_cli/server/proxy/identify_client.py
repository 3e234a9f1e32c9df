"""Identify the client of a request: it decides where and whether the exchange is stored."""

from collections.abc import Mapping

from reservoir_cli.settings.config import Config

#: Prefixes of ``User-Agent``, and the tool whose histories ``sync`` reads.
_AGENTS = {
    "claude-cli": "claude-code",
    "claude-code": "claude-code",
    "codex": "codex",
    "opencode": "opencode",
    "geminicli": "gemini-cli",
}
#: Headers that only one client sends.
_OWN_HEADERS = {"x-claude-code-session-id": "claude-code"}
#: The instance for all other clients.
OTHER = "proxy"


def client_of(headers: Mapping[str, str]) -> str:
    """Return the name of a request's client, which is also the instance of its messages.

    :param headers: by lower-case name.
    """
    for header, client in _OWN_HEADERS.items():
        if header in headers:
            return client
    agents = (headers.get("user-agent", ""), headers.get("originator", ""))
    for agent in map(str.lower, agents):
        for prefix, client in _AGENTS.items():
            if agent.startswith(prefix):
                return client
    return OTHER


def is_stored(client: str, config: Config) -> bool:
    """Return whether the settings let the proxy store a client's exchanges."""
    if config.proxy_store != "unless-synced":
        return config.proxy_store == "always"
    synced = {str(table.get("tool", name)) for name, table in config.sources.items()}
    return client not in synced
