"""Read messages from a connection."""

import json
from collections.abc import Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any

from reservoir_cli.chat.tool_calls import find_unpaired
from reservoir_cli.errors import StoreCorruptError
from reservoir_cli.messages import (
    Channel,
    IdField,
    Key,
    Role,
    Scope,
    StoredMessage,
    call_from_dict,
    from_epoch_ms,
    plain_text,
    to_epoch_ms,
)
from reservoir_cli.storage.keys import by_partition
from reservoir_cli.storage.portable_sql import (
    NO_LIMIT,
    UNDECODABLE,
    Connection,
    select_messages,
    where_scope,
    where_thread,
)
from reservoir_cli.storage.tables import rows_of_tags_and_pins

COLUMNS = (
    "m.id, m.trace_id, m.conversation_id, m.partition, m.instance, m.role, m.content, m.name, "
    "m.tool_calls, m.tool_call_id, m.created_at, m.source, m.source_id, m.tokens, m.counter, "
    "m.secrets"
)
_LAST_CHARACTER = "\U0010ffff"  #: The upper end of the range of ids with a prefix.
_IDS_SHOWN = 10  #: How many ids to read for a prefix: enough to show that it is ambiguous.
#: The columns that always hold text. In a damaged row of SQLite they may hold any type.
_texts = itemgetter(1, 3, 4, 6, 11, 12, 14)
_in_time = attrgetter("created_at", "id")
_ROLES: dict[str, Role] = {role.value: role for role in Role}


def to_message(row: Sequence[Any]) -> StoredMessage:
    """Convert a row that begins with :data:`COLUMNS` to a message."""
    number, trace_id, conversation_id, partition, instance, role, content, name = row[:8]
    calls, call_id, created_at, source, source_id, tokens, counter, secrets = row[8:16]
    try:
        if "\0" in "".join(_texts(row)):  # raises TypeError if one is not a text
            raise ValueError("not a text")
        return StoredMessage(
            number,
            trace_id,
            conversation_id,
            partition,
            instance,
            _ROLES.get(role) or Role(role),
            content,
            name,
            tuple(map(call_from_dict, json.loads(calls))) if calls else (),
            call_id,
            from_epoch_ms(created_at),
            source,
            source_id,
            tokens,
            counter,
            tuple(secrets.split()) if secrets else (),
        )
    except UNDECODABLE as error:
        raise StoreCorruptError(
            f"the store is corrupt: message {number} cannot be read",
            hint="reservoir doctor lists all damage; look for the message in a backup",
        ) from error


def starting_with(
    connection: Connection, field: IdField, prefix: str, scope: Scope, most: int = _IDS_SHOWN
) -> list[str]:
    """Return up to ten ids of a scope that start with a prefix, or up to ``most``."""
    condition, values = where_scope(scope)
    rows = connection.execute(
        f"""
        SELECT DISTINCT m.{field} FROM messages m
        WHERE {condition} AND m.{field} >= ? AND m.{field} < ? ORDER BY 1 LIMIT {most}
        """,
        [*values, prefix, prefix + _LAST_CHARACTER],
    )
    return [row[0] for row in rows]


def all_ids(connection: Connection, field: IdField, scope: Scope) -> list[str]:
    """Return all trace or conversation ids of a scope."""
    return starting_with(connection, field, "", scope, NO_LIMIT)


def by_id(connection: Connection, ids: Sequence[int], scope: Scope) -> list[StoredMessage]:
    """Return these messages, if they are in the scope, oldest first."""
    in_scope, values = where_scope(scope)
    # Without the hint SQLite would scan the partition if there are many ids.
    hint = connection.index_hint(None)
    listed, bound = connection.in_list("m.id", ids)
    return _read(connection, f"messages m {hint} WHERE {listed} AND {in_scope}", [*bound, *values])


def _read(connection: Connection, source: str, values: Sequence[Any]) -> list[StoredMessage]:
    rows = connection.execute(f"SELECT {COLUMNS} FROM {source}", values).fetchall()
    return rows_of_tags_and_pins.attach(connection, sorted(map(to_message, rows), key=_in_time))


def by_key(connection: Connection, keys: Sequence[Key]) -> list[StoredMessage]:
    """Return these messages, if they still exist, oldest first."""
    messages = [
        message
        for partition, ids in by_partition(keys).items()
        for message in by_id(connection, ids, Scope(partition))
    ]
    return sorted(messages, key=_in_time)


def by_channel(messages: Sequence[StoredMessage]) -> dict[Channel, list[StoredMessage]]:
    """Return messages by their partition and instance."""
    channels: dict[Channel, list[StoredMessage]] = {}
    for message in messages:
        channels.setdefault((message.partition, message.instance), []).append(message)
    return channels


def edit_times(connection: Connection, messages: Sequence[StoredMessage]) -> dict[Key, int]:
    """Return when a person edited messages, in milliseconds, for those among these that were."""
    times: dict[Key, int] = {}
    for partition, ids in by_partition(message.key for message in messages).items():
        rows = select_messages(connection, "id, edited_at", partition, ids)
        times |= {Key(partition, number): moment for number, moment in rows if moment is not None}
    return times


def find_edited(connection: Connection, messages: Sequence[StoredMessage]) -> list[StoredMessage]:
    """Return the messages among these that a person edited."""
    times = edit_times(connection, messages)
    return [message for message in messages if message.key in times]


def unchanged(
    connection: Connection, partition: str, ids: Sequence[int], texts: Mapping[Key, str]
) -> list[int]:
    """Return the messages among these that still have their text, ascending."""
    messages = by_id(connection, ids, Scope(partition))
    return sorted(message.id for message in messages if plain_text(message) == texts[message.key])


def with_partners(connection: Connection, ids: Sequence[int], scope: Scope) -> list[StoredMessage]:
    """Return these messages and their partners: trace, tool calls and results."""
    by_number: dict[int, StoredMessage] = {}
    fresh, looked_up = set(ids), set[int]()
    while fresh:
        in_traces = _in_traces(connection, sorted(fresh), scope)
        by_number.update((message.id, message) for message in in_traces)
        messages = sorted(by_number.values(), key=_in_time)
        # Most calls and their results share a trace: query the store only for the others.
        single = [message for message in find_unpaired(messages) if message.id not in looked_up]
        looked_up |= {message.id for message in single}
        partners = set[int]()
        for message in single:
            find_partners = _find_caller if message.role is Role.TOOL else _find_results
            partners.update(find_partners(connection, message))
        fresh = partners - by_number.keys()
    return sorted(by_number.values(), key=_in_time)


def _in_traces(connection: Connection, ids: Sequence[int], scope: Scope) -> list[StoredMessage]:
    in_scope, values = where_scope(scope)
    these_in_scope, _ = where_scope(scope, "t")
    listed, bound = connection.in_list("t.id", ids)
    return _read(
        connection,
        f"""(
            SELECT DISTINCT t.partition, t.trace_id FROM messages t {connection.index_hint(None)}
            WHERE {listed} AND {these_in_scope}
        ) t {connection.ordered_join} messages m {connection.index_hint("messages_by_trace")}
        ON m.partition = t.partition AND m.trace_id = t.trace_id WHERE {in_scope}
        """,
        [*bound, *values, *values],
    )


def _find_results(connection: Connection, caller: StoredMessage) -> list[int]:
    listed, bound = connection.in_list("m.tool_call_id", [call.id for call in caller.tool_calls])
    rows = connection.execute(
        f"""
        SELECT {COLUMNS} FROM messages m {connection.index_hint("messages_by_tool_call")}
        WHERE m.partition = ? AND {listed} AND m.instance = ?
        AND {connection.null_safe("m.conversation_id")} AND (m.created_at, m.id) > (?, ?)
        """,
        [
            caller.partition,
            *bound,
            caller.instance,
            caller.conversation_id,
            to_epoch_ms(caller.created_at),
            caller.id,
        ],
    ).fetchall()
    # A call id may be reused later: a result belongs to the nearest call before it.
    results = (to_message(row) for row in rows)
    return [result.id for result in results if _find_caller(connection, result) == [caller.id]]


def _find_caller(connection: Connection, result: StoredMessage) -> list[int]:
    """Return the nearest message before a tool result that contains its call."""
    condition, values = where_thread(result.conversation_id)
    rows = connection.execute(
        f"""
        SELECT m.id FROM messages m WHERE m.partition = ? AND m.instance = ?
        AND {condition} AND (m.created_at, m.id) < (?, ?) AND m.tool_calls IS NOT NULL
        AND {connection.instr}(m.tool_calls, ?) > 0 ORDER BY m.created_at DESC, m.id DESC LIMIT 1
        """,
        [
            result.partition,
            result.instance,
            *values,
            to_epoch_ms(result.created_at),
            result.id,
            json.dumps(result.tool_call_id, ensure_ascii=False),
        ],
    )
    return [row[0] for row in rows]
