"""The registry of the protocols between clients and models, and what a path leads to."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from reservoir_cli.server.proxy.providers.anthropic import MESSAGES, VERSION_HEADER, Anthropic
from reservoir_cli.server.proxy.providers.gemini import Gemini
from reservoir_cli.server.proxy.providers.ollama import Ollama
from reservoir_cli.server.proxy.providers.openai_chat import OpenAIChat
from reservoir_cli.server.proxy.providers.openai_responses import OpenAIResponses
from reservoir_cli.server.proxy.providers.wire_protocol import WireProtocol

_OPENAI, _ANTHROPIC, _OLLAMA, _GEMINI = OpenAIChat(), Anthropic(), Ollama(), Gemini()
#: The protocols by the paths whose requests are enriched.
_BY_PATH: dict[str, WireProtocol] = {
    path: protocol
    for protocol in (_OPENAI, OpenAIResponses(), _ANTHROPIC, _OLLAMA, _GEMINI)
    for path in protocol.lists
}
_AZURE = "/openai/"  # paths of Azure, which has OpenAI's protocols under other paths
#: Paths of Gemini: a version before the first stable one, or a method of a model.
_GEMINI_PATH = re.compile(r"/v1(?:alpha|beta)\d*/.*|/v1/(?:models|tunedModels)/[^/]+:\w+")
#: OpenAI's protocols under the paths of other providers, by the end of the path.
_AS_OPENAI = re.compile(
    r"/openai/(?:v1/|deployments/[^/]+/)?(chat/completions|responses)"
    r"|/v1beta/openai/(chat/completions)"
)


@dataclass(frozen=True, slots=True)
class Route:
    """What a path leads to: the form of errors, and the protocol and name of the usual upstream.

    :param shape: the path in :data:`_BY_PATH` whose form a request has; ``None`` for no known one.
    """

    protocol: WireProtocol
    speaks: str
    upstream: str
    shape: str | None


def route_of(path: str, headers: Mapping[str, str]) -> Route:
    """Return what a provider's path leads to."""
    as_openai = _AS_OPENAI.fullmatch(path)
    shape = f"/v1/{as_openai[1] or as_openai[2]}" if as_openai else path
    protocol = _protocol_of(path, shape, headers)
    speaks = _GEMINI.name if _GEMINI_PATH.fullmatch(path) else protocol.name
    upstream = "azure" if path.startswith(_AZURE) else speaks
    return Route(protocol, speaks, upstream, shape if shape in _BY_PATH else None)


def _protocol_of(path: str, shape: str, headers: Mapping[str, str]) -> WireProtocol:
    if path.startswith("/api/"):
        return _OLLAMA
    if VERSION_HEADER in headers or path.startswith(MESSAGES):
        return _ANTHROPIC
    if shape not in _BY_PATH and _GEMINI_PATH.fullmatch(path):
        return _GEMINI
    return _BY_PATH.get(shape, _OPENAI)


def protocol_at(shape: str) -> WireProtocol:
    """Return the protocol of a path whose requests are enriched."""
    return _BY_PATH[shape]
