"""A whole store in portions, off a server and onto one; see ``copying``."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from reservoir_cli.messages import Key, clean_text, plain_text
from reservoir_cli.storage import summaries
from reservoir_cli.storage.keys import by_partition
from reservoir_cli.storage.postgres import keyword_search, locks, properties, reads, vectors, writes
from reservoir_cli.storage.postgres.connection import Connection
from reservoir_cli.storage.postgres.ids import IdSource
from reservoir_cli.storage.postgres.stemmer import Stemmer
from reservoir_cli.storage.records import Passage
from reservoir_cli.storage.replicate import Link, Portion, Remainder
from reservoir_cli.storage.sqlite.reads import CONVERSATION_COLUMNS, to_message
from reservoir_cli.storage.sqlite.vectors import pack
from reservoir_cli.storage.sqlite.writes import COLUMNS
from reservoir_cli.storage.unfinished import UNFINISHED_COPY

#: What says how a store is doing, and nothing of what it holds.
_PASSING = (
    UNFINISHED_COPY,
    properties.UNFINISHED,
    properties.INDEX,
    properties.DIMENSIONS,
)
_WAITING = ("pending", "rebuilding")


def portion(connection: Connection, after: Key | None, count: int) -> Portion:
    """Return the messages behind a key, of one partition, and what belongs to them."""
    partition, number = after or (None, 0)
    rows = _behind(connection, partition, number, count) if partition is not None else []
    while not rows:
        partition = _next_partition(connection, partition)
        if partition is None:
            return Portion([], [], ([], []))
        rows = _behind(connection, partition, 0, count)
    numbers = [row[0] for row in rows]
    found = connection.execute(
        """
        SELECT message_id, model_id, passage, start, "end", vector FROM embeddings
        WHERE partition = %s AND message_id = ANY(%s::bigint[]) ORDER BY 1, 2, 3
        """,
        [partition, numbers],
        binary=True,
    ).fetchall()
    first, second = (
        [
            row[0]
            for row in reads.rows(
                connection,
                f"""
                SELECT message_id FROM {table} WHERE partition = %s
                AND message_id = ANY(%s::bigint[]) ORDER BY 1
                """,
                [partition, numbers],
            )
        ]
        for table in _WAITING
    )
    packed = [(*row, pack(vectors.read(vector))) for *row, vector in found]
    return Portion(rows, packed, (first, second))


def _behind(connection: Connection, partition: str, number: int, count: int) -> list[Any]:
    return reads.rows(
        connection,
        f"SELECT {COLUMNS} FROM messages WHERE partition = %s AND id > %s ORDER BY id LIMIT %s",
        [partition, number, count],
    )


def _next_partition(connection: Connection, partition: str | None) -> str | None:
    """Return the partition behind one in order of name; the first behind ``None``."""
    behind = "" if partition is None else "WHERE partition > %s"
    found = reads.rows(
        connection,
        f"SELECT partition FROM messages {behind} ORDER BY partition LIMIT 1",
        [] if partition is None else [partition],
    )
    return str(found[0][0]) if found else None


def put_portion(connection: Connection, stemmer: Stemmer, given: Portion) -> None:
    """Write messages with their ids, and index them."""
    names = COLUMNS.split(", ")
    rows = [dict(zip(names, row, strict=True)) for row in given.messages]
    writes.insert_rows(connection, rows)
    partitions = {row["id"]: str(row["partition"]) for row in rows}
    locks.partitions(connection, partitions.values())
    messages = sorted(
        (to_message(row) for row in given.messages),
        key=lambda each: (each.partition, each.instance, each.id),
    )
    for place, of_place in groupby(messages, key=lambda each: (each.partition, each.instance)):
        texts = [(each.id, clean_text(plain_text(each))) for each in of_place]
        keyword_search.index(connection, stemmer, place, texts)
    by_model = sorted(given.vectors, key=lambda row: (row[1], partitions[row[0]]))
    for (model_id, partition), some in groupby(
        by_model, key=lambda row: (row[1], partitions[row[0]])
    ):
        passages: dict[int, list[Passage]] = {}
        for number, _, passage, start, end, vector in some:
            passages.setdefault(number, []).append(
                Passage(number, passage, start, end, np.frombuffer(vector, "<f4"))
            )
        vectors.add(connection, partition, model_id, passages)
    for table, waiting in zip(_WAITING, given.waiting, strict=True):
        connection.execute(
            f"""
            INSERT INTO {table} (partition, message_id)
            SELECT * FROM unnest(%s::text[], %s::bigint[])
            """.encode(),
            [[partitions[each] for each in waiting], waiting],
        )


def links(connection: Connection, keys: Sequence[Key]) -> list[Link]:
    """Return the links from messages to those before them."""
    return [
        link
        for partition, ids in by_partition(keys).items()
        for link in reads.rows(
            connection,
            """
            SELECT partition, source_id, target_id, score, kind FROM synapses
            WHERE partition = %s AND source_id = ANY(%s::bigint[]) ORDER BY 2, 3
            """,
            [partition, ids],
        )
    ]


def put_links(connection: Connection, given: Sequence[Link]) -> None:
    """Write links; both ends are there."""
    columns = list(map(list, zip(*given, strict=True))) or [[], [], [], [], []]
    connection.execute(
        """
        INSERT INTO synapses (partition, source_id, target_id, score, kind)
        SELECT * FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::float8[], %s::text[])
        """,
        columns,
    )


def remainder(connection: Connection) -> Remainder:
    """What belongs to no message."""
    kept = dict(reads.rows(connection, "SELECT key, value FROM properties"))
    return Remainder(
        reads.rows(
            connection,
            f"""
            SELECT partition, instance, {CONVERSATION_COLUMNS} FROM conversations
            ORDER BY 1, 2, 3
            """,
        ),
        [
            {name: value for name, value in sorted(run.items()) if name != "id"}
            for run in reads.runs(connection, 0)
        ],
        [row[0] for row in reads.rows(connection, "SELECT mark FROM forgotten ORDER BY 1")],
        {key: value for key, value in kept.items() if key.partition(":")[0] not in _PASSING},
        connection.execute(summaries.ALL.encode(), binary=True).fetchall(),
    )


def put_remainder(connection: Connection, ids: IdSource, given: Remainder) -> None:
    """Write what belongs to no message, in place of what is there of it."""
    for table in ("conversations", "context_runs", "forgotten", "summaries"):
        connection.execute(f"DELETE FROM {table}".encode())
    with connection.cursor() as cursor:
        cursor.executemany(
            f"""
            INSERT INTO conversations (partition, instance, {CONVERSATION_COLUMNS})
            VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
            """.encode(),
            given.conversations,
        )
        cursor.executemany(summaries.inserting("%s").encode(), given.summaries)
        numbers: dict[str, Iterator[int]] = {}
        for run in given.runs:
            partition = str(run["partition"])
            if partition not in numbers:
                numbers[partition] = ids.take(connection, partition, "context_runs")
            number = next(numbers[partition])
            marks = ", ".join(["%s"] * (1 + len(run)))
            cursor.execute(
                f"INSERT INTO context_runs (id, {', '.join(run)}) VALUES ({marks})".encode(),
                [number, *run.values()],
            )
        cursor.execute("INSERT INTO forgotten (mark) SELECT unnest(%s::bytea[])", [given.forgotten])
    for key, value in given.properties.items():
        properties.put(connection, key, value)
