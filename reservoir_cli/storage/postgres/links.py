"""Links between messages of one thread on a server; which ones is chosen as in a file."""

from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.messages import Scope
from reservoir_cli.storage.base import LinkThreshold
from reservoir_cli.storage.postgres import reads
from reservoir_cli.storage.postgres.connection import Connection
from reservoir_cli.storage.postgres.vectors import read
from reservoir_cli.storage.sqlite.links import BEFORE, links_of, mean, threshold_in

_Thread = tuple[str, str | None]
_Moment = tuple[int, int]


def tie(
    connection: Connection,
    partition: str,
    message_ids: Sequence[int],
    model_id: str,
    threshold: LinkThreshold,
) -> None:
    """Tie messages of a partition that just got their vectors, and those after them."""
    least = threshold_in(partition, threshold)
    threads: dict[_Thread, list[_Moment]] = {}
    for instance, conversation, *moment in reads.rows(
        connection,
        """
        SELECT instance, conversation_id, created_at, id FROM messages
        WHERE partition = %s AND id = ANY(%s::bigint[])
        """,
        [partition, list(message_ids)],
    ):
        threads.setdefault((instance, conversation), []).append((moment[0], moment[1]))
    for thread, moments in threads.items():
        embedded = _embedded(connection, partition, thread, min(moments), max(moments), model_id)
        renewed, links = links_of(embedded, set(message_ids), least)
        connection.execute(
            "DELETE FROM synapses WHERE partition = %s AND source_id = ANY(%s::bigint[])",
            [partition, renewed],
        )
        if links:
            connection.execute(
                """
                INSERT INTO synapses (partition, source_id, target_id, score, kind)
                SELECT %s, * FROM unnest(%s::bigint[], %s::bigint[], %s::float8[], %s::text[])
                """,
                [partition, *map(list, zip(*links, strict=True))],
            )


def tied(connection: Connection, ids: Iterable[int], depth: int, scope: Scope) -> list[int]:
    """Messages that are so many links away or nearer, without those asked for."""
    in_scope, values = reads.where_scope(scope)
    in_partition, partition = reads.where_scope(Scope(scope.partition), "s")
    start = set(ids)
    reached, edge = set(start), set(start)
    for _ in range(depth):
        around = sorted(edge)
        found = reads.rows(
            connection,
            f"""
            SELECT m.id FROM (
                SELECT s.partition, s.target_id AS id FROM synapses s
                WHERE {in_partition} AND s.source_id = ANY(%s::bigint[])
                UNION SELECT s.partition, s.source_id FROM synapses s
                WHERE {in_partition} AND s.target_id = ANY(%s::bigint[])
            ) t JOIN messages m ON m.partition = t.partition AND m.id = t.id WHERE {in_scope}
            """,
            [*partition, around, *partition, around, *values],
        )
        edge = {row[0] for row in found} - reached
        reached |= edge
    return sorted(reached - start)


def _embedded(
    connection: Connection,
    partition: str,
    thread: _Thread,
    first: _Moment,
    last: _Moment,
    model_id: str,
) -> dict[int, NDArray[np.float32]]:
    """A thread's messages with their vectors, in order of time.

    They reach from 256 before a position to 256 behind another. A message of several passages
    stands at their mean.
    """
    instance, conversation = thread
    condition, values = reads.one_thread(conversation)
    embedded = f"""
        SELECT m.partition, m.id, m.created_at FROM messages m
        WHERE m.partition = %s AND m.instance = %s AND {condition}
        AND EXISTS (SELECT 1 FROM embeddings e WHERE e.partition = m.partition
                    AND e.message_id = m.id AND e.model_id = %s)
    """
    there = [partition, instance, *values, model_id]
    found = connection.execute(
        f"""
        SELECT e.message_id, e.vector FROM (
            (
                {embedded} AND (m.created_at, m.id) < (%s, %s)
                ORDER BY m.created_at DESC, m.id DESC LIMIT %s
            ) UNION ALL (
                {embedded} AND (m.created_at, m.id) >= (%s, %s) AND (m.created_at, m.id) <= (%s, %s)
            ) UNION ALL (
                {embedded} AND (m.created_at, m.id) > (%s, %s)
                ORDER BY m.created_at, m.id LIMIT %s
            )
        ) t JOIN embeddings e
        ON e.partition = t.partition AND e.message_id = t.id AND e.model_id = %s
        ORDER BY t.created_at, t.id, e.passage
        """.encode(),
        [
            *(*there, *first, BEFORE),
            *(*there, *first, *last),
            *(*there, *last, BEFORE),
            model_id,
        ],
        binary=True,
    ).fetchall()
    return {
        number: mean([read(vector) for _, vector in some])
        for number, some in groupby(found, key=lambda row: row[0])
    }
