"""What stays of a forgotten message: a keyed fingerprint of its source and id, for imports."""

import hmac
import json
import secrets
import sqlite3
from collections.abc import Iterable

from reservoir_cli.messages import StoredMessage
from reservoir_cli.storage.sqlite import properties, reads


def mark(connection: sqlite3.Connection, messages: Iterable[StoredMessage]) -> None:
    """Note that messages were forgotten."""
    key = properties.get(connection, properties.FORGOTTEN_KEY)
    if key is None:
        key = secrets.token_hex(32)
        properties.put(connection, properties.FORGOTTEN_KEY, key)
    connection.executemany(
        "INSERT OR IGNORE INTO forgotten (mark) VALUES (?)",
        [(fingerprint(key, each.source, each.source_id),) for each in messages],
    )


def forgotten(
    connection: sqlite3.Connection, sources: Iterable[tuple[str, str]]
) -> set[tuple[str, str]]:
    """Those of some (source, source id) that were forgotten."""
    key = properties.get(connection, properties.FORGOTTEN_KEY)
    if key is None:
        return set()
    marks = {fingerprint(key, *each): each for each in sources}
    found: set[tuple[str, str]] = set()
    for some in reads.portions(list(marks)):
        rows = connection.execute(
            f"SELECT mark FROM forgotten WHERE mark IN ({reads.marks(some)})", some
        )
        found.update(marks[row[0]] for row in rows)
    return found


def fingerprint(key: str, source: str, source_id: str) -> bytes:
    """HMAC-SHA-256, so that nobody without the key can tell what was forgotten."""
    named = json.dumps([source, source_id]).encode()
    return hmac.digest(bytes.fromhex(key), named, "sha256")
