"""The errors of a server as ours, which quote neither secrets nor message text."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from reservoir_cli.errors import ReservoirError, StoreError, StoreLockedError

if TYPE_CHECKING:
    import psycopg

#: Parts of messages of a server or a pool that has no connection left.
FULL = ("too many", "remaining connection slots", "no more connections allowed")
#: Conflicts with another writer: the transaction can be run again. A duplicate key comes from a
#: writer that took no lock; the next attempt uses other ids.
_CONFLICTS = ("40001", "40P01", "23505")
_BUSY = "55P03"
#: How Citus names the machine on which a statement failed.
_WORKER = re.compile(r"(?:remote node (?:\S+@)?|command on )([^\s@]+:\d+)")
_MOST_SHOWN = 200  #: The most characters of the server's own words in an error.
_LOST = ("57P", "08")  #: The server or a proxy in front of it has closed the connection.
#: The message and the hint for an SQLSTATE, by its beginning.
_MEANINGS = {
    "28": ("the server {location} refused the user or the password", "check the URL, or ~/.pgpass"),
    "3D000": ("there is no database {location}", "create it with createdb"),
    "25006": ("the store {location} cannot be written to", "the server or the user is read-only"),
    "42501": ("the user may not do this in the store {location}", "ask the owner of the database"),
    "23514": ("a time or a number is out of range", "check the time of the message"),
    "53100": ("the disk of the server is full", "make room, then run the command again"),
    "53300": ("the server {location} has too many connections", "try again later, or use a pool"),
    "57014": (
        "the server {location} ended a statement that took too long",
        "raise its statement_timeout, or that of the user or the database",
    ),
    "25P03": (
        "the server {location} ended a transaction that was idle for too long",
        "raise its idle_in_transaction_session_timeout, or that of the user or the database",
    ),
    "25P04": (
        "the server {location} ended a transaction that took too long",
        "raise its transaction_timeout, or that of the user or the database",
    ),
    "57P": ("the server {location} was stopped or is starting", "run the command again"),
    "08": ("lost the connection to the server {location}", "run the command again"),
    "XX001": ("the store {location} is corrupt", "restore it from a backup"),
    "42P01": ("the store {location} has lost a table", "restore it from a backup"),
}


class Holder(NamedTuple):
    """A process of the server that holds a lock.

    :param tables: the tables that it locks, separated by commas; empty if that is unknown.
    """

    user: str
    process: int
    tables: str

    def __str__(self) -> str:
        locks = f", which locks {self.tables}" if self.tables else ""
        return f"the user {self.user} (process {self.process}{locks})"


class ConflictError(StoreLockedError):
    """The transaction conflicted with another writer's, was rolled back, and can be run again."""


class ConnectionLostError(StoreError):
    """The connection was lost; the transaction is rolled back and can be run again."""


class UncertainCommitError(StoreError):
    """The connection was lost during a commit, so the write may or may not be stored."""

    def __init__(self, location: str, worker: str | None = None) -> None:
        lost = f"a worker of the cluster at {worker}" if worker else f"the server {location}"
        super().__init__(
            f"lost the connection to {lost} during a write, which may or may not be stored",
            hint="check whether it was stored (reservoir view), and run the command again if not",
        )


def unreachable_error(error: "psycopg.OperationalError", location: str) -> StoreError:
    """Return our error for a failed attempt to connect."""
    text = str(error)
    for sign, state in (
        *((sign, "53300") for sign in FULL),
        ("password", "28"),
        ("authentication", "28"),
        ("pg_hba", "28"),
        ("role ", "28"),
        ("does not exist", "3D000"),
        ("starting up", "57P"),
        ("shutting down", "57P"),
        ("login has been failing", "57P"),
        ("session is read-only", "25006"),
    ):
        if sign in text:
            message, hint = _MEANINGS[state]
            return StoreError(message.format(location=location), hint=hint)
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
        if sign in text:
            return StoreError(
                f"cannot reach the server {location}: {reason}",
                hint="check the URL, and that the server runs",
            )
    return StoreError(f"cannot reach the server {location}", hint="check the URL of the store")


@contextmanager
def errors(location: str) -> Iterator[None]:
    """Translate the server's errors to ours, which never contain message text."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        # Without its cause, in which the server quotes the values of a row.
        raise _translate_error(error, location) from None


def locked_error(holders: Sequence[Holder] = ()) -> StoreLockedError:
    """Return the error for a lock that others kept for too long."""
    if not holders:
        return StoreLockedError(
            "the store is locked by another process", hint="try again when it has finished"
        )
    processes = ", ".join(f"pg_terminate_backend({holder.process})" for holder in holders)
    return StoreLockedError(
        f"the store is locked by {' and '.join(map(str, holders))}",
        hint=f"try again when it has finished, or let an administrator run SELECT {processes}",
    )


def _translate_error(error: "psycopg.Error", location: str) -> ReservoirError:
    import psycopg

    lost = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    state = error.sqlstate or ("08" if lost else "")
    if state in _CONFLICTS:
        return ConflictError(
            "another process changed the same data at the same time", hint="run the command again"
        )
    if state == _BUSY:
        return locked_error()
    worker = find_worker(error)
    if worker and state.startswith(_LOST):
        return ConnectionLostError(
            f"a worker of the cluster at {worker} does not answer",
            hint="start it or wait for its standby, then run the command again",
        )
    for beginning, (message, hint) in _MEANINGS.items():
        if state.startswith(beginning):
            kind = ConnectionLostError if beginning in _LOST else StoreError
            return kind(message.format(location=location), hint=hint)
    name = f"{type(error).__name__} {state}".strip()
    return StoreError(f"the store {location} failed: {name}{_reason(error)}")


def find_worker(error: "psycopg.Error") -> str | None:
    """Return the host and port of the machine of a cluster on which a statement failed."""
    for text in (error.diag.message_primary, error.diag.context):
        if match := _WORKER.search(text or ""):
            return match[1]
    return None


def _reason(error: "psycopg.Error") -> str:
    """Return the server's own words without what it quotes, which may be the text of a message."""
    words = " ".join((error.diag.message_primary or "").split())
    before, quote, rest = words.partition('"')
    after = rest.rpartition('"')[2]
    reason = f"{before}…{after}" if quote else words
    return f": {reason[:_MOST_SHOWN]}" if reason else ""
