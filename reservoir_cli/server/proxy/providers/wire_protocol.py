"""What the proxy knows of a protocol between clients and models."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from reservoir_cli.server.proxy.answer import Answer

Values = Mapping[str, Any]


class WireProtocol(ABC):
    """A protocol: its name, which is also its upstream's, and the forms of all it exchanges.

    :cvar lists: the key of a request's messages, by the paths whose requests are enriched.
    :cvar limits: the settings of the most tokens of an answer.
    """

    name: ClassVar[str]
    lists: ClassVar[Mapping[str, str]] = {}
    limits: ClassVar[tuple[str, ...]] = ()

    def is_counting(self, path: str) -> bool:
        """Return whether requests to a path only count tokens."""
        return False

    @abstractmethod
    def collect(self, answer: Answer, value: Values) -> None:
        """Add a value of an answer's stream, or a whole answer."""

    @abstractmethod
    def error(self, status: int, problem: str) -> Any:
        """Return one of our errors in the form that clients expect."""

    def error_body(self, status: int, problem: str) -> bytes:
        """Return the body of an answer with one of our errors."""
        return json.dumps(self.error(status, problem)).encode()

    def window(self, values: Values) -> int | None:
        """Return the context window in tokens that a request sets, if any."""
        return None

    def wants_one_token(self, values: Values) -> bool:
        """Return whether a request only checks a model."""
        limits = [values.get(key) for key in self.limits]
        return any(isinstance(limit, int) and 0 <= limit <= 1 for limit in limits)  # -1: no limit

    def completes_code(self, values: Values) -> bool:
        """Return whether an editor asks for the rest of a line."""
        return False
