"""Write rows of messages, and track the messages without vectors."""

import uuid
from collections.abc import Sequence

from reservoir_cli.messages import Key, Message, Scope, clean_text
from reservoir_cli.storage import properties
from reservoir_cli.storage.portable_sql import Connection, select_by_source

#: The columns of ``messages`` in a new row.
COLUMNS = (
    "id, trace_id, conversation_id, partition, instance, role, content, name, tool_calls, "
    "tool_call_id, created_at, source, source_id, tokens, counter, secrets, word_count, "
    "has_question_mark, edited_at"
)

#: The tables of messages without vectors: of the active model, and of the one being built.
WAITING = ("pending", "rebuilding")


def join_kinds(kinds: Sequence[str]) -> str | None:
    """Join kinds of secrets to the text that is stored."""
    return " ".join(sorted(set(kinds))) or None


def source_of(message: Message) -> tuple[str, str]:
    """Return the (source, source id) of a message, with a new id if it has none."""
    own = message.source_id
    return clean_text(message.source or "python"), clean_text(own) if own else str(uuid.uuid4())


def find_present(
    connection: Connection, scope: Scope, sources: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], int]:
    """Return the messages of a partition and instance among these, by source and source id."""
    by_source: dict[str, list[str]] = {}
    for source, own in sources:
        by_source.setdefault(source, []).append(own)
    return {
        (source, own): message_id
        for source, ids in by_source.items()
        for own, message_id in select_by_source(connection, scope, source, ids).items()
    }


def set_edited(connection: Connection, key: Key, moment: int) -> None:
    """Record when a person gave a message its text, so that no import overwrites it."""
    connection.execute(
        "UPDATE messages SET edited_at = ? WHERE partition = ? AND id = ?", [moment, *key]
    )


def read_waiting_tables(connection: Connection) -> Sequence[str]:
    """Return the tables of the messages that have to be embedded, two while a model is built."""
    return WAITING if properties.get(connection, properties.NEXT_ID) else WAITING[:1]


def add_waiting(
    connection: Connection, tables: Sequence[str], partition: str, ids: Sequence[int]
) -> None:
    """Record that messages have to be embedded."""
    for table in tables:
        rows = [(partition, message_id) for message_id in ids]
        connection.insert(table, "partition, message_id", rows)


def find_waiting(
    connection: Connection, table: str, partition: str, ids: Sequence[int]
) -> list[int]:
    """Return the messages among these that have to be embedded, ascending."""
    listed, bound = connection.in_list("message_id", ids)
    rows = connection.execute(
        f"SELECT message_id FROM {table} WHERE partition = ? AND {listed} ORDER BY 1",
        [partition, *bound],
    )
    return [row[0] for row in rows]


def delete_rows(connection: Connection, table: str, partition: str, ids: Sequence[int]) -> None:
    """Delete the rows of messages in a table of derived data."""
    connection.delete(table, partition, *connection.in_list("message_id", ids))
