"""Links: which messages of a thread are about the same topic. The documents say synapses.

Each message is linked to its predecessor and to the nearest three of the 256 before it, if their
cosine reaches a threshold; a thread is a conversation, or the rest of an instance.

Links are not stored, but computed when asked for from the vectors of the messages around.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from reservoir_cli.messages import Channel, Scope
from reservoir_cli.storage.portable_sql import Connection, of_message, where_scope, where_thread

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: The message of each vector, ascending, shape (n,), and the vectors, shape (n, dimensions).
Vectors = tuple["NDArray[np.int64]", "NDArray[np.float32]"]
#: Reads the vectors of those messages of a channel that have any.
ReadVectors = Callable[[Channel, Sequence[int]], Vectors | None]

BEFORE = 256  #: How many messages back a link can reach.
_NEAREST = 3
#: Cosines are compared after rounding, so that equal texts are equally near on every machine.
_DECIMALS = 6


class _Moment(NamedTuple):
    """A message, and its position in its thread."""

    partition: str
    instance: str
    conversation_id: str | None
    created_at: int
    id: int


def find_linked(
    connection: Connection,
    read_vectors: ReadVectors,
    ids: Iterable[int],
    depth: int,
    scope: Scope,
    min_cosine: float,
) -> list[int]:
    """Return the messages at most ``depth`` links away, without the given ones."""
    start = set(ids)
    reached, edge = set(start), set(start)
    for _ in range(depth):
        around = {
            moment: _read_around(connection, moment) for moment in _moments(connection, edge, scope)
        }
        ids_by_channel: dict[Channel, set[int]] = {}
        for moment, thread in around.items():
            ids_by_channel.setdefault((moment.partition, moment.instance), set()).update(thread)
        means = {
            channel: mean_vectors(*vectors)
            for channel, numbers in ids_by_channel.items()
            if (vectors := read_vectors(channel, sorted(numbers))) is not None
        }
        ends: set[int] = set()
        for moment, thread in around.items():
            if vectors := means.get((moment.partition, moment.instance)):
                ends.update(_link(thread, moment.id, *vectors, min_cosine))
        edge = ends - reached
        reached |= edge
    return sorted(reached - start)


def _moments(connection: Connection, ids: Iterable[int], scope: Scope) -> list[_Moment]:
    in_scope, values = where_scope(scope)
    listed, bound = connection.in_list("m.id", sorted(ids))
    rows = connection.execute(
        f"""
        SELECT m.partition, m.instance, m.conversation_id, m.created_at, m.id
        FROM messages m {connection.index_hint(None)} WHERE {in_scope} AND {listed}
        """,
        [*values, *bound],
    )
    return [_Moment(*row) for row in rows.fetchall()]


def _read_around(connection: Connection, moment: _Moment) -> list[int]:
    """Return the embedded messages of a thread around one, and itself, in order of time."""
    condition, values = where_thread(moment.conversation_id)
    thread = f"""
        SELECT m.id FROM messages m WHERE m.partition = ? AND m.instance = ?
        AND {condition} AND NOT EXISTS
        (SELECT 1 FROM pending p WHERE {of_message("p")})
    """
    bound = [moment.partition, moment.instance, *values, moment.created_at, moment.id, BEFORE]
    before = connection.execute(
        f"{thread} AND (m.created_at, m.id) < (?, ?) ORDER BY m.created_at DESC, m.id DESC LIMIT ?",
        bound,
    ).fetchall()
    after = connection.execute(
        f"{thread} AND (m.created_at, m.id) > (?, ?) ORDER BY m.created_at, m.id LIMIT ?", bound
    ).fetchall()
    return [*(row[0] for row in reversed(before)), moment.id, *(row[0] for row in after)]


def _link(
    thread: Sequence[int],
    message_id: int,
    ids: "NDArray[np.int64]",
    vectors: "NDArray[np.float32]",
    min_cosine: float,
) -> list[int]:
    """Return the messages of a thread that are linked to one of them, in either direction."""
    import numpy as np

    numbers = np.array(thread, np.int64)
    at = ids.searchsorted(numbers).clip(max=len(ids) - 1)
    embedded = ids[at] == numbers
    numbers, matrix = numbers[embedded], vectors[at[embedded]]
    [position] = np.flatnonzero(numbers == message_id).tolist() or [-1]
    if position < 0:
        return []
    cosines = (matrix @ matrix[position]).round(_DECIMALS)
    linked = choose(cosines[max(0, position - BEFORE) : position], min_cosine)
    chosen = [*(max(0, position - BEFORE) + linked)]
    near = position + 1 + np.flatnonzero(cosines[position + 1 :] >= min_cosine)
    for later, products in zip(near.tolist(), matrix[near] @ matrix.T, strict=True):
        first = max(0, later - BEFORE)
        if position - first in choose(products[first:later].round(_DECIMALS), min_cosine):
            chosen.append(later)
    return [int(number) for number in numbers[chosen]]


def choose(cosines: "NDArray[np.float32]", min_cosine: float) -> "NDArray[np.intp]":
    """Return the positions of the messages that a message is linked to."""
    import numpy as np

    order = np.lexsort((-np.arange(len(cosines)), -cosines))[:_NEAREST]
    chosen = np.array(sorted({*order.tolist(), *range(len(cosines))[-1:]}), np.intp)
    return chosen[cosines[chosen] >= min_cosine]


def mean_vectors(ids: "NDArray[np.int64]", vectors: "NDArray[np.float32]") -> Vectors:
    """Return the mean vector of each message, of length 1.

    :param ids: the message of each vector, ascending, shape (n,).
    """
    import numpy as np

    first = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
    if len(first) == len(ids):
        return ids, vectors
    counts, means = np.diff(first, append=len(ids)), vectors[first]
    several = counts > 1
    ends = np.cumsum(counts[several])
    sums = np.add.reduceat(vectors[several.repeat(counts)], ends - counts[several], axis=0)
    means[several] = sums / np.linalg.norm(sums, axis=1, keepdims=True).clip(min=1e-12)
    return ids[first], means
