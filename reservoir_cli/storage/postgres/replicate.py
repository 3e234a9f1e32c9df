"""A whole store in portions, off a server and onto one; see ``copying``."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from reservoir_cli.messages import clean_text, plain_text
from reservoir_cli.storage.postgres import (
    ids,
    keyword_search,
    locks,
    properties,
    reads,
    vectors,
    writes,
)
from reservoir_cli.storage.postgres.connection import Connection
from reservoir_cli.storage.postgres.stemmer import Stemmer
from reservoir_cli.storage.records import Passage
from reservoir_cli.storage.replicate import Link, Portion, Remainder
from reservoir_cli.storage.sqlite.reads import CONVERSATION_COLUMNS, to_message
from reservoir_cli.storage.sqlite.vectors import pack
from reservoir_cli.storage.sqlite.writes import COLUMNS
from reservoir_cli.storage.unfinished import UNFINISHED_COPY

#: What says how a store is doing, and nothing of what it holds.
_PASSING = (UNFINISHED_COPY, properties.UNFINISHED, properties.LAST_ID, properties.INDEX)
_WAITING = ("pending", "rebuilding")


def portion(connection: Connection, after: int, count: int) -> Portion:
    """The messages behind an id, and what belongs to them."""
    rows = reads.rows(
        connection,
        f"SELECT {COLUMNS} FROM messages WHERE id > %s ORDER BY id LIMIT %s",
        [after, count],
    )
    numbers = [row[0] for row in rows]
    found = connection.execute(
        """
        SELECT e.message_id, e.model_id, e.passage, e.start, e."end", e.vector FROM messages m
        JOIN embeddings e ON e.partition = m.partition AND e.message_id = m.id
        WHERE m.id = ANY(%s::bigint[]) ORDER BY 1, 2, 3
        """,
        [numbers],
        binary=True,
    ).fetchall()
    first, second = (
        [
            row[0]
            for row in reads.rows(
                connection,
                f"SELECT message_id FROM {table} WHERE message_id = ANY(%s) ORDER BY 1",
                [numbers],
            )
        ]
        for table in _WAITING
    )
    packed = [(*row, pack(vectors.read(vector))) for *row, vector in found]
    return Portion(rows, packed, (first, second))


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
        passages = [
            Passage(number, passage, start, end, np.frombuffer(vector, "<f4"))
            for number, _, passage, start, end, vector in some
        ]
        vectors.add(connection, partition, model_id, passages)
    for table, waiting in zip(_WAITING, given.waiting, strict=True):
        connection.execute(
            f"""
            INSERT INTO {table} (partition, message_id)
            SELECT * FROM unnest(%s::text[], %s::bigint[])
            """.encode(),
            [[partitions[each] for each in waiting], waiting],
        )


def links(connection: Connection, numbers: Sequence[int]) -> list[Link]:
    """The links from messages to those before them."""
    return reads.rows(
        connection,
        """
        SELECT s.source_id, s.target_id, s.score, s.kind FROM messages m
        JOIN synapses s ON s.partition = m.partition AND s.source_id = m.id
        WHERE m.id = ANY(%s::bigint[]) ORDER BY 1, 2
        """,
        [list(numbers)],
    )


def put_links(connection: Connection, given: Sequence[Link]) -> None:
    """Write links; both ends are there."""
    columns = list(map(list, zip(*given, strict=True))) or [[], [], [], []]
    connection.execute(
        """
        INSERT INTO synapses (partition, source_id, target_id, score, kind)
        SELECT m.partition, t.source_id, t.target_id, t.score, t.kind
        FROM unnest(%s::bigint[], %s::bigint[], %s::float8[], %s::text[])
        AS t (source_id, target_id, score, kind) JOIN messages m ON m.id = t.source_id
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
    )


def put_remainder(connection: Connection, given: Remainder) -> None:
    """Write what belongs to no message, in place of what is there of it."""
    for table in ("conversations", "context_runs", "forgotten"):
        connection.execute(f"DELETE FROM {table}".encode())
    with connection.cursor() as cursor:
        cursor.executemany(
            f"""
            INSERT INTO conversations (partition, instance, {CONVERSATION_COLUMNS})
            VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
            """.encode(),
            given.conversations,
        )
        first = ids.now() - len(given.runs)
        for number, run in enumerate(given.runs, start=first):
            marks = ", ".join(["%s"] * (1 + len(run)))
            cursor.execute(
                f"INSERT INTO context_runs (id, {', '.join(run)}) VALUES ({marks})".encode(),
                [number, *run.values()],
            )
        cursor.execute("INSERT INTO forgotten (mark) SELECT unnest(%s::bytea[])", [given.forgotten])
    for key, value in given.properties.items():
        properties.put(connection, key, value)
