"""Who may see the page: one-time codes, and the sessions that they are redeemed for.

Everything is kept in the memory of the process: when it ends, all sessions end.
"""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

#: Seconds in which a code can be redeemed, and in which an unused session ends.
CODE_LIFETIME, SESSION_LIFETIME = 60.0, 12 * 3600.0
#: The most codes, and the most sessions, that are open at once; the oldest ends first.
_MOST = 32
_BYTES = 32
Value = TypeVar("Value")


@dataclass(slots=True)
class Session:
    """A browser that may see the page.

    :param host: the name it calls the server by; under another name it is no session.
    :param csrf: what every form of this session carries.
    :param used: when it was used last.
    """

    host: str
    csrf: str
    used: float


@dataclass(slots=True)
class Sessions:
    """The open codes and sessions of a server.

    :param clock: gives seconds that never go back.
    """

    clock: Callable[[], float] = time.monotonic
    _codes: dict[str, float] = field(default_factory=dict)
    _sessions: dict[str, Session] = field(default_factory=dict)

    def new_code(self) -> str:
        """Return a code that can be redeemed once, soon."""
        code = secrets.token_urlsafe(_BYTES)
        _add(self._codes, code, self.clock())
        return code

    def redeem(self, code: str, host: str) -> str | None:
        """Begin a session; return its id, or ``None`` if the code is used, old or wrong."""
        now, made = self.clock(), self._codes.pop(code, None)
        if made is None or now - made > CODE_LIFETIME:
            return None
        name = secrets.token_urlsafe(_BYTES)
        _add(self._sessions, name, Session(host, secrets.token_urlsafe(_BYTES), now))
        return name

    def find(self, name: str, host: str) -> Session | None:
        """Return the session of an id, if it was begun under this name of the server."""
        session, now = self._sessions.get(name), self.clock()
        if session is None or session.host != host or now - session.used > SESSION_LIFETIME:
            return None
        session.used = now
        return session

    def end(self, name: str) -> None:
        """End a session."""
        self._sessions.pop(name, None)


def _add(values: dict[str, Value], name: str, value: Value) -> None:
    """Add a value; forget the oldest if there are too many."""
    values[name] = value
    while len(values) > _MOST:
        del values[next(iter(values))]
