"""Every read of the store but the vectors: small functions from a connection to values."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from reservoir_cli.messages import (
    Role,
    Scope,
    StoredMessage,
    call_from_dict,
    from_epoch_ms,
    to_epoch_ms,
)
from reservoir_cli.store import Filter, fulltext

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from reservoir_cli.window import Candidates, Posting

COLUMNS = (
    "m.id, m.trace_id, m.conversation_id, m.partition, m.instance, m.role, m.content, m.name, "
    "m.tool_calls, m.tool_call_id, m.created_at, m.source, m.source_id, m.tokens, m.counter"
)
#: SQLite takes 32,766 values in one statement; we stay far below.
_AT_ONCE = 5_000


def where_scope(scope: Scope) -> tuple[str, list[str]]:
    """The condition on ``messages m`` that keeps a statement inside a scope."""
    if scope.partition is None:
        return "1", []
    if scope.instance is None:
        return "m.partition = ?", [scope.partition]
    return "m.partition = ? AND m.instance = ?", [scope.partition, scope.instance]


def to_message(row: Sequence[Any]) -> StoredMessage:
    """A row of :data:`COLUMNS` as a value."""
    calls = json.loads(row[8]) if row[8] else ()
    return StoredMessage(
        id=row[0],
        trace_id=row[1],
        conversation_id=row[2],
        partition=row[3],
        instance=row[4],
        role=Role(row[5]),
        content=row[6],
        name=row[7],
        tool_calls=tuple(call_from_dict(call) for call in calls),
        tool_call_id=row[9],
        created_at=from_epoch_ms(row[10]),
        source=row[11],
        source_id=row[12],
        tokens=row[13],
        counter=row[14],
    )


def last(
    connection: sqlite3.Connection, scope: Scope, count: int, where: Filter
) -> list[StoredMessage]:
    """The newest messages of a scope, oldest first; all when ``count`` is 0."""
    condition, values = where_scope(scope)
    parts: list[str] = [condition]
    bound: list[str | int] = [*values]
    for column, value in (
        ("role = ?", where.role),
        ("trace_id = ?", where.trace_id),
        ("conversation_id = ?", where.conversation_id),
        ("created_at >= ?", to_epoch_ms(where.since) if where.since else None),
        ("created_at <= ?", to_epoch_ms(where.until) if where.until else None),
    ):
        if value is not None:
            parts.append(f"m.{column}")
            bound.append(value)
    rows = connection.execute(
        f"""
        SELECT {COLUMNS} FROM messages m WHERE {" AND ".join(parts)}
        ORDER BY m.created_at DESC, m.id DESC LIMIT ?
        """,
        [*bound, count or -1],
    ).fetchall()
    return [to_message(row) for row in reversed(rows)]


def by_id(connection: sqlite3.Connection, ids: Sequence[int], scope: Scope) -> list[StoredMessage]:
    """These messages, where they are in the scope, oldest first."""
    condition, values = where_scope(scope)
    found = []
    for some in portions(ids):
        found += connection.execute(
            f"SELECT {COLUMNS} FROM messages m WHERE m.id IN ({marks(some)}) AND {condition}",
            [*some, *values],
        ).fetchall()
    return sorted((to_message(row) for row in found), key=lambda each: (each.created_at, each.id))


def with_partners(
    connection: sqlite3.Connection, ids: Sequence[int], scope: Scope
) -> list[StoredMessage]:
    """These messages and what belongs to them: their trace, their tool calls and results."""
    found = {message.id: message for message in by_id(connection, ids, scope)}
    fresh = list(found.values())
    while fresh:
        partners = _partner_ids(connection, fresh, scope) - found.keys()
        fresh = by_id(connection, sorted(partners), scope)
        found.update((message.id, message) for message in fresh)
    return sorted(found.values(), key=lambda each: (each.created_at, each.id))


def _partner_ids(
    connection: sqlite3.Connection, messages: Iterable[StoredMessage], scope: Scope
) -> set[int]:
    condition, values = where_scope(scope)
    partners: set[int] = set()
    traces = sorted({(each.partition, each.trace_id) for each in messages})
    for start in range(0, len(traces), _AT_ONCE // 2):
        some = traces[start : start + _AT_ONCE // 2]
        rows = connection.execute(
            f"""
            SELECT m.id FROM messages m WHERE (m.partition, m.trace_id) IN
            (VALUES {", ".join("(?, ?)" for _ in some)}) AND {condition}
            """,
            [*(each for pair in some for each in pair), *values],
        )
        partners.update(row[0] for row in rows)
    for each in messages:
        if each.role is Role.TOOL and each.tool_call_id:
            partners.update(_caller(connection, each))
        elif each.tool_calls:
            partners.update(_results(connection, each))
    return partners


def _results(connection: sqlite3.Connection, caller: StoredMessage) -> list[int]:
    """The tool results whose call a message made."""
    called = [call.id for call in caller.tool_calls]
    rows = connection.execute(
        f"""
        SELECT {COLUMNS} FROM messages m
        WHERE m.partition = ? AND m.tool_call_id IN ({marks(called)})
        AND m.instance = ? AND m.conversation_id IS ? AND (m.created_at, m.id) > (?, ?)
        """,
        [
            caller.partition,
            *called,
            caller.instance,
            caller.conversation_id,
            to_epoch_ms(caller.created_at),
            caller.id,
        ],
    ).fetchall()
    # The id may be used again later: a result belongs to the nearest call before it.
    results = (to_message(row) for row in rows)
    return [each.id for each in results if _caller(connection, each) == [caller.id]]


def _caller(connection: sqlite3.Connection, result: StoredMessage) -> list[int]:
    """The nearest message before a tool result that made its call."""
    rows = connection.execute(
        """
        SELECT m.id FROM messages m
        WHERE m.partition = ? AND m.instance = ? AND m.tool_calls IS NOT NULL
        AND (m.created_at, m.id) < (?, ?) AND m.conversation_id IS ?
        AND instr(m.tool_calls, ?) ORDER BY m.created_at DESC, m.id DESC LIMIT 1
        """,
        [
            result.partition,
            result.instance,
            to_epoch_ms(result.created_at),
            result.id,
            result.conversation_id,
            json.dumps(result.tool_call_id, ensure_ascii=False),
        ],
    )
    return [row[0] for row in rows]


def pending(
    connection: sqlite3.Connection, scope: Scope, limit: int, *, newest: bool
) -> list[StoredMessage]:
    """Messages without vectors, oldest first unless ``newest``."""
    condition, values = where_scope(scope)
    order = "DESC" if newest else "ASC"
    rows = connection.execute(
        f"""
        SELECT {COLUMNS} FROM pending p JOIN messages m ON m.id = p.message_id
        WHERE {condition} ORDER BY m.created_at {order}, m.id {order} LIMIT ?
        """,
        [*values, limit],
    )
    return [to_message(row) for row in rows]


def pending_count(connection: sqlite3.Connection, scope: Scope) -> int:
    """How many messages of a scope have no vectors yet."""
    condition, values = where_scope(scope)
    join = "JOIN messages m ON m.id = p.message_id" if values else ""
    row = connection.execute(f"SELECT COUNT(*) FROM pending p {join} WHERE {condition}", values)
    return int(row.fetchone()[0])


def candidates(
    connection: sqlite3.Connection,
    scope: Scope,
    own: str | None,
    question: str,
    compared: "tuple[NDArray[np.int64], NDArray[np.float32]] | None",
) -> "Candidates":
    """Every message of a scope with what ranking needs, in order of time.

    :param own: the instance that history comes from.
    :param compared: ids and cosines of the messages that have vectors.
    """
    import numpy as np

    from reservoir_cli.window import Candidates

    condition, values = where_scope(scope)
    threads: dict[tuple[str, str, str | None], int] = {}
    rows = [
        (*row[:6], threads.setdefault(row[6:], len(threads)), row[8] is None)
        for row in connection.execute(
            f"""
            SELECT m.id, m.created_at, m.tokens, m.terms, m.asks, m.instance IS ?,
            m.partition, m.instance, m.conversation_id FROM messages m WHERE {condition}
            ORDER BY m.created_at, m.id
            """,
            [own, *values],
        )
    ]
    table = np.array(rows, np.int64).reshape(-1, 8)
    ids = table[:, 0]
    cosine = np.full(len(ids), np.nan, np.float32)
    if compared is not None:
        places, known = _places(ids, compared[0])
        cosine[places] = compared[1][known]
    return Candidates(
        ids=ids,
        created_at=table[:, 1],
        tokens=table[:, 2].astype(np.int32),
        terms=table[:, 3].astype(np.int32),
        asks=table[:, 4].astype(bool),
        own=table[:, 5].astype(bool),
        thread=table[:, 6],
        loose=table[:, 7].astype(bool),
        cosine=cosine,
        postings=_postings(connection, ids, fulltext.content_words(question)),
    )


def _postings(
    connection: sqlite3.Connection, ids: "NDArray[np.int64]", words: str
) -> "tuple[Posting, ...]":
    """Where each stem of some words stands among messages."""
    import numpy as np

    from reservoir_cli.window import Posting

    if not words or not len(ids):
        return ()
    open_vocabularies(connection)
    connection.execute("DELETE FROM temp.question")
    connection.execute("INSERT INTO temp.question VALUES (?)", [words])
    stems = [row[0] for row in connection.execute("SELECT term FROM temp.question_stems")]
    found = []
    for stem in stems:
        rows = connection.execute(
            "SELECT doc FROM temp.stem_places WHERE term = ? AND col = 'text'", [stem]
        ).fetchall()
        holders, counts = np.unique(np.array(rows, np.int64).ravel(), return_counts=True)
        places, known = _places(ids, holders)
        if len(places):
            found.append(Posting(places, counts[known].astype(np.int32)))
    return tuple(found)


def open_vocabularies(connection: sqlite3.Connection) -> None:
    """Make the tables that show the index's words, and a table that stems a question's.

    ``stem_places`` tells where each stem stands; ``question`` has the tokenizer of the index,
    ``question_stems`` and ``question_places`` show what it made of a text. They live in this
    connection only.
    """
    connection.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.question USING fts5(text, {fulltext.TOKENIZE})"
    )
    for table, of, kind in (
        ("question_stems", "temp, question", "row"),
        ("question_places", "temp, question", "instance"),
        ("stem_places", "main, messages_fts", "instance"),
    ):
        connection.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{table} USING fts5vocab({of}, {kind})"
        )


def _places(
    ids: "NDArray[np.int64]", wanted: "NDArray[np.int64]"
) -> "tuple[NDArray[np.intp], NDArray[np.bool_]]":
    """Where ids stand, and which of those wanted are there at all."""
    import numpy as np

    if not len(ids) or not len(wanted):
        return np.empty(0, np.intp), np.zeros(len(wanted), bool)
    order = np.argsort(ids, kind="stable")
    at = order[np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)]
    known = ids[at] == wanted
    return at[known], known


def newest_instance(connection: sqlite3.Connection, partition: str) -> str | None:
    """The instance of a partition that was written to last."""
    row = connection.execute(
        """
        SELECT instance FROM messages WHERE partition = ? ORDER BY created_at DESC, id DESC LIMIT 1
        """,
        [partition],
    ).fetchone()
    return row[0] if row else None


def places(connection: sqlite3.Connection) -> list[tuple[str, str, int]]:
    """(partition, instance, messages), the fullest first."""
    return connection.execute(
        "SELECT partition, instance, COUNT(*) FROM messages GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2"
    ).fetchall()


def marks(values: Sequence[object]) -> str:
    """A placeholder for each value."""
    return ", ".join("?" * len(values))


def portions(values: Sequence[int]) -> Iterator[Sequence[int]]:
    """Values in portions that one statement can take."""
    for start in range(0, len(values), _AT_ONCE):
        yield values[start : start + _AT_ONCE]


def runs(connection: sqlite3.Connection, since: int) -> list[dict[str, Any]]:
    """The records of contexts that were built since a moment, oldest first."""
    cursor = connection.execute("SELECT * FROM context_runs WHERE at >= ? ORDER BY id", [since])
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def holdings(connection: sqlite3.Connection) -> dict[str, int]:
    """How much of each kind the store holds."""
    counts = {
        "messages": "SELECT COUNT(*) FROM messages",
        "conversations": "SELECT COUNT(*) FROM conversations",
        "embedded": "SELECT COUNT(DISTINCT message_id) FROM embeddings",
        "pending": "SELECT COUNT(*) FROM pending",
        "synapses": "SELECT COUNT(*) FROM synapses",
        "tokens": "SELECT coalesce(SUM(tokens), 0) FROM messages",
    }
    return {name: int(connection.execute(sql).fetchone()[0]) for name, sql in counts.items()}
