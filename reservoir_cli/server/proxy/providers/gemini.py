"""Gemini's own protocol: its requests are passed on as they are."""

from typing import Any

from reservoir_cli.server.proxy.answer import Answer
from reservoir_cli.server.proxy.providers.wire_protocol import Values, WireProtocol

_STATUS = "UNAVAILABLE"  # Google's name for an answer with a status of 500 and above


class Gemini(WireProtocol):
    """``generateContent`` and its relatives."""

    name = "gemini"

    def error(self, status: int, problem: str) -> Any:
        return {"error": {"code": status, "message": problem, "status": _STATUS}}

    def collect(self, answer: Answer, value: Values) -> None:
        """Read nothing: no request of this protocol is enriched, and no answer stored."""
