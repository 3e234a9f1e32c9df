"""The tables of a store: one description for both databases."""

from collections.abc import Callable, Container, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

VERSION = 1  #: The number of the schema. A later one is reached by a migration of each database.
#: The types of columns: text, integers of 64 bits, floats of 64 bits, bytes.
TYPES = ("text", "integer", "real", "blob")


class Table(NamedTuple):
    """A table of a store.

    :param columns: their names and types, separated by commas; a type that ends with ``?`` allows
        null.
    :param key: the columns of the primary key.
    :param unique: columns that no two rows share.
    :param check: a condition on every row.
    :param indexes: the columns of each index by its name, maybe with a condition.
    """

    columns: str
    key: str
    unique: str | None = None
    check: str | None = None
    indexes: Mapping[str, str] = MappingProxyType({})

    def types(self) -> dict[str, str]:
        """Return the types of the columns by name, with ``?`` where null is allowed."""
        pairs = (column.split() for column in self.columns.split(","))
        return {name: kind for name, kind in pairs}  # noqa: C416 - of two each


#: The tables, those without a partition last.
TABLES: Mapping[str, Table] = {
    "messages": Table(
        """
        partition text, id integer, trace_id text, conversation_id text?, instance text,
        role text, content text, name text?, tool_calls text?, tool_call_id text?,
        created_at integer, source text, source_id text, tokens integer, counter text,
        secrets text?, word_count integer, has_question_mark integer, edited_at integer?
        """,
        key="partition, id",
        unique="partition, instance, source, source_id",
        check="role IN ('user', 'assistant', 'system', 'tool')",
        indexes={
            "messages_by_time": "created_at, id",
            "messages_by_instance": "partition, instance, created_at, id",
            "messages_by_partition": "partition, created_at, id",
            "messages_by_trace": "partition, trace_id",
            # The instance comes second: a session of a partition is found without it.
            "messages_by_conversation": "partition, conversation_id, instance, created_at, id",
            "messages_by_tool_call": "partition, tool_call_id WHERE tool_call_id IS NOT NULL",
            "messages_with_secrets": "created_at, id WHERE secrets IS NOT NULL",
        },
    ),
    "conversations": Table(
        "partition text, instance text, id text, title text?, source text?, model text?, "
        "project text?, branch text?",
        key="partition, instance, id",
    ),
    # The messages that the active model has not embedded yet, and the next model.
    "pending": Table(
        "partition text, message_id integer",
        key="partition, message_id",
        indexes={"pending_by_id": "message_id"},
    ),
    "rebuilding": Table(
        "partition text, message_id integer",
        key="partition, message_id",
        indexes={"rebuilding_by_id": "message_id"},
    ),
    "tags": Table(
        "partition text, message_id integer, name text",
        key="partition, message_id, name",
        indexes={"tags_by_name": "partition, name, message_id"},
    ),
    "pins": Table(
        "partition text, message_id integer, pinned_at integer", key="partition, message_id"
    ),
    # The vector is little-endian float32, by the model ``model_id``.
    "summaries": Table(
        "partition text, instance text, conversation_id text, digest text, text text, "
        "made_by text, first_at integer, model_id text?, vector blob?",
        key="partition, instance, conversation_id",
    ),
    # How far the files of other tools were read.
    "sources": Table(
        "partition text, machine text, path text, tool text, version integer, size integer, "
        "mtime_ns integer, head text, tail text, bytes_read integer, state text, settled integer",
        key="partition, machine, path",
    ),
    # The blocks that the proxy added to questions, and the messages that they quote.
    "ledger": Table(
        "partition text, conversation text, ordinal integer, question text, block text, "
        "tokens integer, masked integer, at integer",
        key="partition, conversation, ordinal, question",
    ),
    "ledger_messages": Table(
        "partition text, message_id integer, conversation text, ordinal integer, question text",
        key="partition, message_id, conversation, ordinal, question",
        indexes={"ledger_messages_by_entry": "partition, conversation, ordinal, question"},
    ),
    # Numbers and names only, never the text of a question or a message.
    "context_runs": Table(
        """
        partition text, id integer, at integer, instance text, model text?, format text,
        counter text, context_window integer, reserve integer, reserve_used integer,
        available integer, input_tokens integer, sections text, kept integer, dropped integer,
        truncations integer, utilisation real, ms real
        """,
        key="partition, id",
        indexes={"context_runs_by_time": "at"},
    ),
    "properties": Table("key text, value text", key="key"),
    # Fingerprints of forgotten messages: HMACs with the property ``forgotten_key`` as their key.
    "tombstones": Table("mark blob", key="mark"),
}

#: The tables with a row for each message that has what they hold.
OF_MESSAGES = ("pending", "rebuilding", "tags", "pins")


def statements(
    tables: Mapping[str, Table],
    define: Callable[[str, Table], str],
    ending_with_id: Container[str] = (),
) -> Iterator[str]:
    """Yield the statements that create the tables and their indexes.

    :param ending_with_id: tables to whose index entries the database appends the id, so that no
        index names it last.
    """
    for name, table in tables.items():
        yield define(name, table)
        for index, columns in table.indexes.items():
            columns, where, condition = columns.partition(" WHERE ")
            if name in ending_with_id:
                columns = columns.removesuffix(", id")
            yield f"CREATE INDEX {index} ON {name} ({columns}){where}{condition}"


def define_columns(table: Table, types: Mapping[str, str]) -> list[str]:
    """Return the definitions of columns."""
    return [
        f'"{name}" {types[kind.rstrip("?")]}{"" if kind.endswith("?") else " NOT NULL"}'
        for name, kind in table.types().items()
    ]
