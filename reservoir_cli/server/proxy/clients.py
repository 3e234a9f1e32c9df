"""Which program a request comes from, as far as that decides where and whether it is stored."""

from collections.abc import Mapping

from reservoir_cli.settings.config import Config

#: Beginnings of ``User-Agent``, and the tools whose histories ``sync`` reads.
_AGENTS = {
    "claude-cli": "claude-code",
    "claude-code": "claude-code",
    "codex": "codex",
    "opencode": "opencode",
    "geminicli": "gemini-cli",
}
#: Headers that one client alone sends.
_OWN_HEADERS = {"x-claude-code-session-id": "claude-code"}
#: The instance of what other programs ask.
OTHER = "proxy"


def client_of(headers: Mapping[str, str]) -> str:
    """Return the name of a client, which is the instance that it is stored under.

    :param headers: by lower-case name.
    """
    for header, client in _OWN_HEADERS.items():
        if header in headers:
            return client
    agents = (headers.get("user-agent", ""), headers.get("originator", ""))
    for agent in map(str.lower, agents):
        for beginning, client in _AGENTS.items():
            if agent.startswith(beginning):
                return client
    return OTHER


def is_stored(client: str, config: Config) -> bool:
    """Return whether the settings let the proxy store what a client asks."""
    if config.proxy_store != "unless-synced":
        return config.proxy_store == "always"
    synced = {str(table.get("tool", name)) for name, table in config.sources.items()}
    return client not in synced
