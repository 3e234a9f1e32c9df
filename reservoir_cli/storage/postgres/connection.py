"""Reaching the server, and saying what went wrong without quoting anything that is secret.

psycopg is loaded here, and only for a store that is named by the URL of a server.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from reservoir_cli.errors import ReservoirError, StoreError, StoreLockedError

try:
    import psycopg
    from psycopg import conninfo
except ImportError as missing:  # pragma: no cover - the tests install it
    raise StoreError(
        "a store on a server needs psycopg, which is not installed",
        hint="pip install 'psycopg[binary]'",
    ) from missing

Connection = psycopg.Connection[Any]

#: Tries to connect while the server starts or starts again, and seconds before the first next one.
_TRIES, _PAUSE = 5, 0.1
#: Seconds that one try may take, unless the URL says otherwise.
_TIMEOUT = 10
_USUAL: dict[str, Any] = {"connect_timeout": _TIMEOUT, "application_name": "reservoir"}
#: The server ends a transaction so that another can go on; it can be run again.
#: A key that is there already came from a writer whom no lock kept away: of ids others are taken.
_CONFLICTS = ("40001", "40P01", "23505")
_BUSY = ("55P03", "57014")

#: What the state of an error means, by how it begins: a message and a hint.
_MEANINGS = {
    "28": ("the server {place} refused the user or the password", "check the URL, or ~/.pgpass"),
    "3D000": ("there is no database {place}", "createdb makes one"),
    "25006": ("the store {place} cannot be written to", "the server or the user is read-only"),
    "42501": ("the user may not do this in the store {place}", "ask the owner of the database"),
    "23514": (
        "a time or a number is outside of what a store holds",
        "check the time of the message",
    ),
    "53100": ("the disk of the server is full", "make room, then run the command again"),
    "53300": ("the server {place} has too many connections", "try again, or use a pool"),
    "57P": ("the server {place} was stopped or starts just now", "run the command again"),
    "08": ("lost the connection to the server {place}", "run the command again"),
    "XX001": ("the store {place} is corrupt", "restore it from a backup"),
    "42P01": ("the store {place} has lost a table", "restore it from a backup"),
}


class ConflictError(StoreLockedError):
    """Two writers stood in each other's way, and the server chose this one to begin again."""


def place_of(url: str) -> str:
    """The URL of a store without its password and its parameters.

    :raises StoreError: it is no URL of a server.
    """
    try:
        parts = conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        # Not what libpq says of it: that quotes the URL.
        raise StoreError(
            "the URL of the store is not valid",
            hint="it has the form postgresql://USER@HOST:PORT/DATABASE",
        ) from None
    user = f"{quote(str(parts['user']))}@" if parts.get("user") else ""
    port = f":{parts['port']}" if parts.get("port") else ""
    database = f"/{quote(str(parts['dbname']))}" if parts.get("dbname") else ""
    host = quote(str(parts.get("host") or ""), safe="/,.:[]")
    return f"postgresql://{user}{host}{port}{database}"


def connect(url: str, place: str) -> Connection:
    """Connect; a server that starts just now is waited for.

    :raises StoreError: it cannot be reached, or refuses.
    """
    # Whatever PGCLIENTENCODING or the URL says, and in a database of any encoding.
    parts = {**_USUAL, **conninfo.conninfo_to_dict(url), "client_encoding": "UTF8"}
    for left in reversed(range(_TRIES)):
        try:
            return psycopg.connect(
                conninfo.make_conninfo(**parts),
                autocommit=True,
                # Statements are not kept on the server, so that a pool may stand in between.
                prepare_threshold=None,
            )
        except psycopg.OperationalError as error:
            if not left or not _may_come(error):
                raise _unreachable(error, place) from None
            time.sleep(_PAUSE * 2 ** (_TRIES - 1 - left))
    raise AssertionError("the last try returns or raises")


def _may_come(error: psycopg.OperationalError) -> bool:
    said = str(error)
    return any(each in said for each in ("refused", "starting up", "shutting down", "recovery"))


def _unreachable(error: psycopg.OperationalError, place: str) -> StoreError:
    said = str(error)
    for sign, state in (
        ("password", "28"),
        ("authentication", "28"),
        ("pg_hba", "28"),
        ("role ", "28"),
        ("does not exist", "3D000"),
        ("too many", "53300"),
        ("starting up", "57P"),
        ("shutting down", "57P"),
    ):
        if sign in said:
            message, hint = _MEANINGS[state]
            return StoreError(message.format(place=place), hint=hint)
    for sign, reason in (
        ("refused", "nothing listens there"),
        ("timeout", "it does not answer"),
        ("resolve", "there is no such host"),
        ("translate", "there is no such host"),
        ("invalid port", "its port is not valid"),
        ("SSL", "TLS failed"),
        ("certificate", "TLS failed"),
        ("No such file", "nothing listens there"),
    ):
        if sign in said:
            return StoreError(
                f"cannot reach the server {place}: {reason}",
                hint="check the URL, and that the server runs",
            )
    return StoreError(f"cannot reach the server {place}", hint="check the URL of the store")


@contextmanager
def errors(place: str) -> Iterator[None]:
    """Turn what the server says into an error of ours; it never contains message text."""
    try:
        yield
    except psycopg.Error as error:
        # Without its cause: the server quotes the values of a row.
        raise translated(error, place) from None


def translated(error: psycopg.Error, place: str) -> ReservoirError:
    """An error of the server in our words."""
    state = error.sqlstate or ("08" if isinstance(error, psycopg.OperationalError) else "")
    if state in _CONFLICTS:
        return ConflictError(
            "another process wrote the same at the same time", hint="run the command again"
        )
    if state in _BUSY:
        return StoreLockedError(
            "the store is locked by another process", hint="try again when it has finished"
        )
    for beginning, (message, hint) in _MEANINGS.items():
        if state.startswith(beginning):
            return StoreError(message.format(place=place), hint=hint)
    name = f"{type(error).__name__} {state}".strip()
    return StoreError(f"the store {place} failed: {name}")
