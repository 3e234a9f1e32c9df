"""What stays of a forgotten message on a server: a keyed fingerprint of its source and id."""

import secrets
from collections.abc import Iterable

from reservoir_cli.messages import StoredMessage
from reservoir_cli.storage.postgres import properties, reads
from reservoir_cli.storage.postgres.connection import Connection
from reservoir_cli.storage.sqlite.tombstones import fingerprint


def mark(connection: Connection, messages: Iterable[StoredMessage]) -> None:
    """Note that messages were forgotten."""
    properties.put_first(connection, properties.FORGOTTEN_KEY, secrets.token_hex(32))
    key = str(properties.get(connection, properties.FORGOTTEN_KEY))
    connection.execute(
        "INSERT INTO forgotten (mark) SELECT unnest(%s::bytea[]) ON CONFLICT DO NOTHING",
        [sorted({fingerprint(key, each.source, each.source_id) for each in messages})],
    )


def forgotten(connection: Connection, sources: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Those of some (source, source id) that were forgotten."""
    key = properties.get(connection, properties.FORGOTTEN_KEY)
    if key is None:
        return set()
    marks = {fingerprint(key, *each): each for each in sources}
    found = reads.rows(
        connection, "SELECT mark FROM forgotten WHERE mark = ANY(%s::bytea[])", [list(marks)]
    )
    return {marks[row[0]] for row in found}
