"""One-time codes, and the sessions that they are exchanged for.

Both are kept in memory only, so all sessions end with the process.
"""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

#: Seconds for which a code is valid, and after which an idle session ends.
CODE_LIFETIME, SESSION_LIFETIME = 60.0, 12 * 3600.0
#: The most codes, and the most sessions, that are valid at a time; the oldest is dropped.
_LIMIT = 32
_BYTES = 32
Value = TypeVar("Value")


@dataclass(slots=True)
class Session:
    """A browser's session.

    :param host: the Host header that it began with; it is invalid with any other.
    :param csrf: the token that every form of this session must contain.
    :param used: when it was last used, by the clock of the sessions.
    """

    host: str
    csrf: str
    used: float


@dataclass(slots=True)
class Sessions:
    """The valid codes and sessions of a server.

    :param clock: a monotonic clock in seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _codes: dict[str, float] = field(default_factory=dict)
    _sessions: dict[str, Session] = field(default_factory=dict)

    def new_code(self) -> str:
        """Return a new one-time code."""
        code = secrets.token_urlsafe(_BYTES)
        _add(self._codes, code, self.clock())
        return code

    def redeem(self, code: str, host: str) -> str | None:
        """Start a session; return its id, or ``None`` if the code is used, expired or wrong."""
        now, created = self.clock(), self._codes.pop(code, None)
        if created is None or now - created > CODE_LIFETIME:
            return None
        name = secrets.token_urlsafe(_BYTES)
        _add(self._sessions, name, Session(host, secrets.token_urlsafe(_BYTES), now))
        return name

    def find(self, name: str, host: str) -> Session | None:
        """Return a session by its id, if it is still valid and was started with this Host."""
        session, now = self._sessions.get(name), self.clock()
        if session is None or session.host != host or now - session.used > SESSION_LIFETIME:
            return None
        session.used = now
        return session

    def end(self, name: str) -> None:
        """End a session."""
        self._sessions.pop(name, None)


def _add(values: dict[str, Value], name: str, value: Value) -> None:
    """Add a value; drop the oldest if there are too many."""
    values[name] = value
    while len(values) > _LIMIT:
        del values[next(iter(values))]
