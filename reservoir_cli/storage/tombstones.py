"""What stays of a forgotten message: a keyed fingerprint of its source and id, for imports."""

import json
import os
from collections.abc import Iterable

from reservoir_cli.messages import StoredMessage
from reservoir_cli.storage import properties
from reservoir_cli.storage.sql import Connection, batches

#: Stands before the source in the fingerprint of a message that was edited.
_EDITED = "edited\n"


def mark(connection: Connection, messages: Iterable[StoredMessage]) -> None:
    """Record that messages were forgotten."""
    _mark(connection, [(message.source, message.source_id) for message in messages])


def mark_edited(connection: Connection, message: StoredMessage) -> None:
    """Record that a person edited a message, so that no import renews it."""
    _mark(connection, [(_EDITED + message.source, message.source_id)])


def edited(connection: Connection, messages: Iterable[StoredMessage]) -> list[StoredMessage]:
    """Return those of some messages that a person edited."""
    by_source = {(_EDITED + each.source, each.source_id): each for each in messages}
    known = forgotten(connection, by_source)
    return [message for source, message in by_source.items() if source in known]


def _mark(connection: Connection, sources: Iterable[tuple[str, str]]) -> None:
    properties.put_first(connection, properties.FORGOTTEN_KEY, os.urandom(32).hex())
    key = str(properties.get(connection, properties.FORGOTTEN_KEY))
    marks = {fingerprint(key, *source) for source in sources}
    connection.insert("forgotten", "mark", [(mark,) for mark in sorted(marks)], ignore=True)


def forgotten(connection: Connection, sources: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return those of some (source, source id) that were forgotten."""
    key = properties.get(connection, properties.FORGOTTEN_KEY)
    if key is None:
        return set()
    by_mark = {fingerprint(key, *source): source for source in sources}
    known: set[tuple[str, str]] = set()
    for marks in batches(list(by_mark)):
        condition, values = connection.in_list("mark", marks)
        rows = connection.execute(f"SELECT mark FROM forgotten WHERE {condition}", values)
        known.update(by_mark[row[0]] for row in rows)
    return known


def fingerprint(key: str, source: str, source_id: str) -> bytes:
    """Return an HMAC-SHA-256: without the key nobody can tell what was forgotten."""
    import hmac  # it loads OpenSSL

    named = json.dumps([source, source_id]).encode()
    return hmac.digest(bytes.fromhex(key), named, "sha256")
