"""Link messages of one thread that are about the same topic.

Each message is linked to its predecessor and to the nearest three of the 256 before it, if their
similarity reaches a threshold. A thread is a conversation, or the messages of an instance outside
of conversations. Where the chain breaks, the topic changed. The documents call links synapses.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from reservoir_cli.messages import Scope
from reservoir_cli.storage.portable_sql import Connection, batches, decoding
from reservoir_cli.storage.scope_conditions import where_scope, where_thread

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

#: Source, target, similarity, kind.
Link = tuple[int, int, float, str]
#: Partition, instance, conversation.
_Thread = tuple[str, str, str | None]
#: Time and id of a message.
_Moment = tuple[int, int]

#: How many messages back a link can reach.
BEFORE = 256
_NEAREST = 3
#: How many messages are linked at once.
_AT_ONCE = 1_000


def add(
    connection: Connection,
    partition: str,
    ids: Sequence[int],
    model_id: str,
    link_threshold: Callable[[str], float],
) -> None:
    """Link newly embedded messages, and renew the links of the embedded messages after them.

    :param link_threshold: returns the least similarity of linked messages of a partition, on the
        scale (1 + cosine)/2.
    """
    threshold = link_threshold(partition)
    in_partition, values = connection.in_partition("synapses", partition)
    for thread, moments in _threads(connection, partition, ids).items():
        vectors = _vectors(connection, thread, min(moments), max(moments), model_id)
        renewed, links = compute_links(vectors, set(ids), threshold)
        listed, bound = connection.in_list("source_id", renewed)
        connection.execute(
            f"DELETE FROM synapses WHERE {in_partition} AND {listed}", [*values, *bound]
        )
        insert(connection, [(partition, *link) for link in links])


def add_all(connection: Connection, model_id: str, link_threshold: Callable[[str], float]) -> None:
    """Link all embedded messages, partition by partition in order of time."""
    rows = connection.execute(
        f"""
        SELECT m.partition, m.id FROM messages m WHERE NOT EXISTS
        (SELECT 1 FROM pending p WHERE {connection.of_message("p")})
        ORDER BY m.partition, m.created_at, m.id
        """
    ).fetchall()
    for partition, in_partition in groupby(rows, key=lambda row: row[0]):
        for batch in batches([row[1] for row in in_partition], _AT_ONCE):
            add(connection, partition, batch, model_id, link_threshold)


def insert(connection: Connection, links: Iterable[tuple[str, int, int, float, str]]) -> None:
    """Write links between stored messages, each preceded by its partition."""
    columns = "partition, source_id, target_id, score, kind"
    connection.insert("synapses", columns, links)


def find_linked(connection: Connection, ids: Iterable[int], depth: int, scope: Scope) -> list[int]:
    """Return the messages at most ``depth`` links away, without the given ones."""
    in_scope, values = where_scope(scope)
    in_partition, partition = connection.in_partition("s", scope.partition)
    start = set(ids)
    reached, edge = set(start), set(start)
    for _ in range(depth):
        ends: set[int] = set()
        for end, other in (("target_id", "source_id"), ("source_id", "target_id")):
            listed, bound = connection.in_list(f"s.{other}", sorted(edge))
            rows = connection.execute(
                f"SELECT s.{end} FROM synapses s WHERE {in_partition} AND {listed}",
                [*partition, *bound],
            )
            ends.update(row[0] for row in rows)
        listed, bound = connection.in_list("m.id", sorted(ends - reached))
        rows = connection.execute(
            f"""
            SELECT m.id FROM messages m {connection.index_hint(None)}
            WHERE {in_scope} AND {listed}
            """,
            [*values, *bound],
        )
        edge = {row[0] for row in rows}
        reached |= edge
    return sorted(reached - start)


def compute_links(
    thread: "Mapping[int, Vector]", fresh: Collection[int], threshold: float
) -> tuple[list[int], list[Link]]:
    """Compute the links of a thread from the first newly embedded message on.

    :param thread: vectors by message id, in order of time, starting 256 before the first fresh one.
    :param fresh: the newly embedded messages.
    :returns: the messages whose links are renewed, and the links.
    """
    import numpy as np

    ids = list(thread)
    first = next((at for at, message_id in enumerate(ids) if message_id in fresh), len(ids))
    matrix = np.stack(list(thread.values())) if thread else np.empty((0, 0), np.float32)
    links = []
    for at in range(first, len(ids)):
        links += _links(ids, matrix, at, threshold)
    return ids[first:], links


def _links(ids: Sequence[int], vectors: "Vector", at: int, threshold: float) -> list[Link]:
    """Return (source, target, score, kind) from one message of a thread to those before it.

    :param vectors: the vectors of the thread, shape (n, dimensions).
    :param at: the position of the message.
    """
    import numpy as np

    start = max(0, at - BEFORE)
    if at == start:
        return []
    scores = (1 + vectors[start:at] @ vectors[at]) / 2
    last = len(scores) - 1
    nearest = np.lexsort((-np.arange(len(scores)), -scores))[:_NEAREST]
    chosen = dict.fromkeys([last, *nearest.tolist()])
    return [
        (ids[at], ids[start + i], float(scores[i]), "previous" if i == last else "near")
        for i in chosen
        if scores[i] >= threshold
    ]


def _threads(
    connection: Connection, partition: str, ids: Sequence[int]
) -> dict[_Thread, list[_Moment]]:
    """Return the threads of messages, with the (time, id) of each message in them."""
    listed, bound = connection.in_list("m.id", ids)
    rows = connection.execute(
        f"""
        SELECT m.instance, m.conversation_id, m.created_at, m.id
        FROM messages m {connection.index_hint(None)} WHERE m.partition = ? AND {listed}
        """,
        [partition, *bound],
    )
    threads: dict[_Thread, list[_Moment]] = {}
    for instance, conversation, created_at, message_id in rows:
        threads.setdefault((partition, instance, conversation), []).append((created_at, message_id))
    return threads


def _vectors(
    connection: Connection, thread: _Thread, first: _Moment, last: _Moment, model_id: str
) -> "dict[int, Vector]":
    """Return the vectors of a thread's messages, in order of time.

    They reach from 256 messages before ``first`` to 256 after ``last``. The vector of a message
    with several passages is their mean.
    """
    *instance, conversation = thread
    hint, condition, values = where_thread(connection, conversation)
    embedded = f"""
        SELECT m.partition, m.id, m.created_at FROM messages m {hint}
        WHERE m.partition = ? AND m.instance = ? AND {condition} AND EXISTS
        (SELECT 1 FROM embeddings e WHERE {connection.of_message("e")} AND e.model_id = ?)
    """
    bound = [*instance, *values, model_id]
    rows = connection.with_vectors(
        f"""
        SELECT e.message_id, e.vector FROM (
            SELECT * FROM (
                {embedded} AND (m.created_at, m.id) < (?, ?)
                ORDER BY m.created_at DESC, m.id DESC LIMIT ?
            ) a UNION ALL SELECT * FROM (
                {embedded} AND (m.created_at, m.id) >= (?, ?) AND (m.created_at, m.id) <= (?, ?)
            ) b UNION ALL SELECT * FROM (
                {embedded} AND (m.created_at, m.id) > (?, ?)
                ORDER BY m.created_at, m.id LIMIT ?
            ) c
        ) t JOIN embeddings e ON {connection.of_message("e", "t")} AND e.model_id = ?
        ORDER BY t.created_at, t.id, e.passage
        """,
        [*bound, *first, BEFORE, *bound, *first, *last, *bound, *last, BEFORE, model_id],
    )
    vectors = {
        message_id: [vector for _, vector in passages]
        for message_id, passages in groupby(rows, key=lambda row: row[0])
    }
    with decoding("vectors"):  # a damaged store may mix lengths
        return dict(zip(vectors, map(mean, vectors.values()), strict=True))


def mean(vectors: "Sequence[Vector]") -> "Vector":
    """Return the mean of a message's vectors, shape (dimensions,), length 1."""
    import numpy as np

    if len(vectors) == 1:
        return vectors[0]
    center = np.mean(vectors, axis=0)
    return np.asarray(center / max(float(np.linalg.norm(center)), 1e-12), np.float32)
