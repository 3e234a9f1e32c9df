"""Read and write the records of built contexts, which hold no text."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from reservoir_cli.messages import FIRST_MS, Scope, to_epoch_ms
from reservoir_cli.storage.portable_sql import Connection, placeholders, where_scope


def add(connection: Connection, run: Mapping[str, Any]) -> None:
    """Record a built context: numbers and names, never text."""
    connection.lock([run["partition"]])
    run_id = next(connection.new_ids(run["partition"], "context_runs"))
    connection.execute(
        f"INSERT INTO context_runs (id, {', '.join(run)}) VALUES (?, {placeholders(list(run))})",
        [run_id, *run.values()],
    )


def read_answer_counts(
    connection: Connection, kind: str, since: datetime, most: int, partition: str | None = None
) -> list[tuple[str, str, int, int]]:
    """Return model, counter, reported and own tokens of answers, the newest first."""
    where, values = where_scope(Scope(partition), "r")
    return connection.execute(
        "SELECT model, counter, input_tokens, available FROM context_runs r "
        f"WHERE {where} AND at >= ? AND format = ? AND model IS NOT NULL "
        "ORDER BY at DESC, id DESC LIMIT ?",
        [*values, to_epoch_ms(since), kind, most],
    ).fetchall()


def read(
    connection: Connection, since: datetime | None, partition: str | None = None
) -> list[dict[str, Any]]:
    """Return the records of built contexts, oldest first."""
    where, values = where_scope(Scope(partition), "r")
    cursor = connection.execute(
        f"SELECT * FROM context_runs r WHERE {where} AND at >= ? ORDER BY id, partition",
        [*values, to_epoch_ms(since) if since else FIRST_MS],
    )
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]
