"""Writing messages to a server: the row, its words, and that its vector is still to come."""

from collections.abc import Sequence

from reservoir_cli.messages import Message, Scope, StoredMessage, clean_text
from reservoir_cli.storage.postgres import keyword_search, locks, properties, reads
from reservoir_cli.storage.postgres.connection import Connection
from reservoir_cli.storage.postgres.ids import IdSource
from reservoir_cli.storage.postgres.stemmer import Stemmer
from reservoir_cli.storage.sqlite.vector_blocks import thread_key
from reservoir_cli.storage.sqlite.writes import COLUMNS, Prepared, open_until, prepare, source_of
from reservoir_cli.tokens import TokenCounter

_NAMES = COLUMNS.split(", ")
_FORMS = dict.fromkeys(_NAMES, "text") | {
    "id": "bigint",
    "created_at": "bigint",
    "tokens": "int",
    "terms": "int",
    "asks": "smallint",
    "thread": "bigint",
}


def add(
    connection: Connection,
    stemmer: Stemmer,
    ids: IdSource,
    scope: Scope,
    messages: Sequence[Message],
    counter: TokenCounter,
    now_ms: int,
    *,
    pair: bool,
) -> list[StoredMessage | None]:
    """Store messages in a partition and instance; call it inside a write transaction.

    :param now_ms: the time of messages without one; a reply comes behind its own question.
    :param pair: an assistant message without a trace id answers the newest open question.
    :returns: one entry a message; ``None`` where its source id was there already.
    """
    place = (str(scope.partition), str(scope.instance))
    locks.partitions(connection, [place[0]])
    numbers = ids.take(connection, place[0])
    added: list[StoredMessage | None] = []
    # A reply may answer a question that comes with it.
    for some in [[each] for each in messages] if pair else [messages]:
        made = prepare(
            scope,
            some,
            counter,
            now_ms=now_ms,
            there=present(connection, place, [source_of(m) for m in some if m.source_id]),
            numbers=numbers,
            question=lambda: _open_question(connection, place, now_ms) if pair else None,
            asked=lambda trace_id: _asked(connection, place, trace_id),
        )
        store(connection, stemmer, place, made)
        added += made.added
    return added


def store(connection: Connection, stemmer: Stemmer, place: tuple[str, str], made: Prepared) -> None:
    """Write rows of one partition and instance, and their words; they are pending."""
    if not made.rows:
        return
    insert_rows(connection, [dict(zip(_NAMES, row, strict=True)) for row in made.rows])
    keyword_search.index(connection, stemmer, place, made.texts)
    lacking = ["pending"]
    if properties.get(connection, properties.NEXT_ID):  # another model is being built
        lacking.append("rebuilding")
    for table in lacking:
        connection.execute(
            f"INSERT INTO {table} (partition, message_id) SELECT %s, unnest(%s::bigint[])".encode(),
            [place[0], [number for number, _ in made.texts]],
        )


def insert_rows(connection: Connection, some: Sequence[dict[str, object]]) -> None:
    """Write rows of messages, each with all of its columns by name but its thread."""
    rows = [
        {
            **each,
            "thread": thread_key(
                str(each["partition"]),
                str(each["instance"]),
                None if each["conversation_id"] is None else str(each["conversation_id"]),
            ),
        }
        for each in some
    ]
    names = [*_NAMES, "thread"]
    forms = ", ".join(f"%s::{_FORMS[name]}[]" for name in names)
    connection.execute(
        f"INSERT INTO messages ({', '.join(names)}) SELECT * FROM unnest({forms})".encode(),
        [[row[name] for row in rows] for name in names],
    )


def present(
    connection: Connection, place: tuple[str, str], asked: Sequence[tuple[str, str]]
) -> set[tuple[str, str]]:
    """Return those of some (source, source id) that a partition and instance has already."""
    if not asked:
        return set()
    found = reads.rows(
        connection,
        """
        SELECT m.source, m.source_id FROM unnest(%s::text[], %s::text[]) AS t (source, source_id)
        JOIN messages m ON m.partition = %s AND m.instance = %s
        AND m.source = t.source AND m.source_id = t.source_id
        """,
        [[source for source, _ in asked], [own for _, own in asked], *place],
    )
    return set(found)


def _asked(connection: Connection, place: tuple[str, str], trace_id: str) -> int | None:
    """Return when the newest user message of a trace was said."""
    found = reads.rows(
        connection,
        """
        SELECT max(created_at) FROM messages
        WHERE partition = %s AND trace_id = %s AND role = 'user'
        """,
        [place[0], clean_text(trace_id)],
    )
    return None if found[0][0] is None else int(found[0][0])


def _open_question(connection: Connection, place: tuple[str, str], now_ms: int) -> str | None:
    """The trace of the newest user message without a reply, among the last thousand."""
    for until in open_until(now_ms):
        found = reads.rows(
            connection,
            """
            SELECT q.trace_id FROM (
                SELECT partition, trace_id, created_at, id FROM messages
                WHERE partition = %s AND instance = %s AND role = 'user' AND created_at <= %s
                ORDER BY created_at DESC, id DESC LIMIT 1000
            ) q WHERE NOT EXISTS (
                SELECT 1 FROM messages r WHERE r.partition = q.partition
                AND r.trace_id = q.trace_id AND r.role = 'assistant'
            ) ORDER BY q.created_at DESC, q.id DESC LIMIT 1
            """,
            [*place, until],
        )
        if found:
            return str(found[0][0])
    return None
