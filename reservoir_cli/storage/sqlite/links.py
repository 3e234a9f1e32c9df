"""Synapses: links between messages of one thread that are about the same thing.

Each message is tied to the one before it and to the nearest of the 256 before it, where their
likeness reaches a threshold. A thread is a conversation, or what an instance has outside of
conversations. Where the chain breaks, the topic changed.
"""

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.messages import Scope
from reservoir_cli.storage.base import LinkThreshold
from reservoir_cli.storage.sqlite import reads

#: How far back a message is tied.
BEFORE = 256
_NEAREST = 3

#: Source, target, likeness, kind.
Link = tuple[int, int, float, str]
_Place = tuple[str, str, str | None]
_Vectors = NDArray[np.float32]


def tie(
    connection: sqlite3.Connection,
    message_ids: Sequence[int],
    model_id: str,
    threshold: LinkThreshold,
) -> None:
    """Tie messages that just got their vectors, and those after them that had theirs before."""
    for place, positions in _threads(connection, message_ids).items():
        thread = _embedded_thread(connection, place, min(positions), max(positions), model_id)
        renewed, links = links_of(thread, set(message_ids), threshold_in(place[0], threshold))
        connection.executemany(
            "DELETE FROM synapses WHERE source_id = ?", [(number,) for number in renewed]
        )
        connection.executemany("INSERT INTO synapses VALUES (?, ?, ?, ?)", links)


def threshold_in(partition: str, threshold: LinkThreshold) -> float:
    """Return the likeness from which on messages of a partition are linked."""
    return threshold(partition) if callable(threshold) else threshold


def tied(connection: sqlite3.Connection, ids: Iterable[int], depth: int, scope: Scope) -> list[int]:
    """Messages that are so many links away or nearer, without those asked for."""
    condition, values = reads.where_scope(scope)
    start = set(ids)
    reached, edge = set(start), set(start)
    for _ in range(depth):
        found: set[int] = set()
        for some in reads.portions(sorted(edge)):
            marks = reads.marks(some)
            rows = connection.execute(
                f"""
                SELECT m.id FROM (
                    SELECT target_id AS id FROM synapses WHERE source_id IN ({marks})
                    UNION SELECT source_id FROM synapses WHERE target_id IN ({marks})
                ) t CROSS JOIN messages m ON m.id = t.id WHERE {condition}
                """,
                [*some, *some, *values],
            )
            found.update(row[0] for row in rows)
        edge = found - reached
        reached |= edge
    return sorted(reached - start)


def links_of(
    thread: Mapping[int, _Vectors], fresh: Collection[int], threshold: float
) -> tuple[list[int], list[Link]]:
    """The links of a thread from the first of some messages on.

    :param thread: messages with their vectors, in order of time, from 256 before the first.
    :param fresh: messages that just got their vectors.
    :returns: the messages whose links are made anew, and the links.
    """
    numbers = list(thread)
    first = next((at for at, number in enumerate(numbers) if number in fresh), len(numbers))
    matrix = np.stack(list(thread.values())) if thread else np.empty((0, 0), np.float32)
    links = []
    for at in range(first, len(numbers)):
        links += _links(numbers, matrix, at, threshold)
    return numbers[first:], links


def _links(numbers: Sequence[int], vectors: _Vectors, at: int, threshold: float) -> list[Link]:
    """(source, target, score, kind) from one message of a thread to those before it.

    :param vectors: of the thread, shape (n, dimensions).
    """
    start = max(0, at - BEFORE)
    if at == start:
        return []
    scores = (1 + vectors[start:at] @ vectors[at]) / 2
    last = len(scores) - 1
    nearest = np.lexsort((-np.arange(len(scores)), -scores))[:_NEAREST]
    chosen = dict.fromkeys([last, *nearest.tolist()])
    return [
        (numbers[at], numbers[start + each], float(scores[each]), _kind(each == last))
        for each in chosen
        if scores[each] >= threshold
    ]


def _kind(is_previous: bool) -> str:
    return "previous" if is_previous else "near"


def _threads(
    connection: sqlite3.Connection, message_ids: Sequence[int]
) -> dict[_Place, list[tuple[int, int]]]:
    """The threads of messages, with the (time, id) of each message in them."""
    threads: dict[_Place, list[tuple[int, int]]] = {}
    for some in reads.portions(message_ids):
        rows = connection.execute(
            f"""
            SELECT partition, instance, conversation_id, created_at, id FROM messages
            WHERE id IN ({reads.marks(some)})
            """,
            some,
        )
        for row in rows:
            threads.setdefault(row[:3], []).append(row[3:])
    return threads


def _embedded_thread(
    connection: sqlite3.Connection,
    place: _Place,
    first: tuple[int, int],
    last: tuple[int, int],
    model_id: str,
) -> dict[int, _Vectors]:
    """A thread's messages with their vectors, in order of time.

    They reach from 256 before a position to 256 behind another. A message of several passages
    stands at their mean.
    """
    *instance, conversation = place
    index, condition, values = reads.one_thread(conversation)
    embedded = f"""
        SELECT m.id, m.created_at FROM messages m INDEXED BY {index}
        WHERE m.partition = ? AND m.instance = ? AND {condition}
        AND EXISTS (SELECT 1 FROM embeddings e WHERE e.message_id = m.id AND e.model_id = ?)
    """
    there = [*instance, *values, model_id]
    rows = connection.execute(
        f"""
        SELECT e.message_id, e.vector FROM (
            SELECT * FROM ({embedded} AND (m.created_at, m.id) < (?, ?)
                           ORDER BY m.created_at DESC, m.id DESC LIMIT ?)
            UNION ALL
            SELECT * FROM ({embedded} AND (m.created_at, m.id) BETWEEN (?, ?) AND (?, ?))
            UNION ALL
            SELECT * FROM ({embedded} AND (m.created_at, m.id) > (?, ?)
                           ORDER BY m.created_at, m.id LIMIT ?)
        ) t JOIN embeddings e ON e.message_id = t.id AND e.model_id = ?
        ORDER BY t.created_at, t.id, e.passage
        """,
        [
            *(*there, *first, BEFORE),
            *(*there, *first, *last),
            *(*there, *last, BEFORE),
            model_id,
        ],
    )
    vectors: dict[int, list[_Vectors]] = {}
    for number, vector in rows:
        vectors.setdefault(number, []).append(np.frombuffer(vector, "<f4"))
    return {number: mean(some) for number, some in vectors.items()}


def mean(vectors: Sequence[_Vectors]) -> _Vectors:
    """Where a message of several passages stands."""
    if len(vectors) == 1:
        return vectors[0]
    mean = np.mean(vectors, axis=0)
    return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-12), np.float32)
