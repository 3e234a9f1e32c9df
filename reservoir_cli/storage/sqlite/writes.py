"""Writing messages: the row, its full text, and that its vector is still to come."""

import json
import sqlite3
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any

from reservoir_cli.messages import (
    Message,
    Scope,
    StoredMessage,
    call_to_dict,
    check_name,
    clean_name,
    clean_text,
    parse_role,
    plain_text,
    to_epoch_ms,
)
from reservoir_cli.storage import fulltext
from reservoir_cli.storage.sqlite import properties, reads
from reservoir_cli.tokens import TokenCounter, counter_id
from reservoir_cli.util.times import FAR_AHEAD

#: The columns of ``messages``, as a new row has them.
COLUMNS = (
    "id, trace_id, conversation_id, partition, instance, role, content, name, tool_calls, "
    "tool_call_id, created_at, source, source_id, tokens, counter, secrets, terms, asks"
)

#: No message is later.
LATEST = 2**62


def add(
    connection: sqlite3.Connection,
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
    if pair and len(messages) > 1:  # a reply may answer a question that comes with it
        one_by_one = (
            add(connection, scope, [each], counter, now_ms, pair=True) for each in messages
        )
        return [stored for some in one_by_one for stored in some]
    made = prepare(
        scope,
        messages,
        counter,
        now_ms=now_ms,
        there=_present(connection, scope, messages),
        numbers=count(_last_id(connection) + 1),
        question=lambda: _open_question(connection, scope, now_ms) if pair else None,
        asked=lambda trace_id: _asked(connection, scope, trace_id),
    )
    _insert(connection, made.rows)
    _index(connection, scope, made.texts)
    return made.added


@dataclass(frozen=True, slots=True)
class Prepared:
    """Messages on their way into a store.

    :param added: one entry a message; ``None`` where its source id is there already.
    :param rows: of those that are new, in the order of :data:`COLUMNS`.
    :param texts: (id, what is indexed of it) of those.
    """

    added: list[StoredMessage | None]
    rows: list[tuple[Any, ...]]
    texts: list[tuple[int, str]]


def prepare(
    scope: Scope,
    messages: Sequence[Message],
    counter: TokenCounter,
    *,
    now_ms: int,
    there: set[tuple[str, str]],
    numbers: Iterator[int],
    question: Callable[[], str | None],
    asked: Callable[[str], int | None],
) -> Prepared:
    """Make the rows of messages that are not there yet.

    :param now_ms: the time of messages without one; a reply comes behind its own question.
    :param there: (source, source id) of those that are stored; what is new is added to it.
    :param numbers: the ids they get.
    :param question: the trace that a reply without one answers.
    :param asked: when the question of a trace was asked, as far as it is stored.
    """
    for name in (scope.partition, scope.instance):
        check_name(str(name))
    counted_by = counter_id(counter)
    made = Prepared([], [], [])
    here: dict[str, int] = {}
    for each in messages:
        trace_id = each.trace_id
        if trace_id is None and each.role == "assistant":
            trace_id = question()
        moment = _moment(each, trace_id, now_ms, lambda trace: here.get(trace) or asked(trace))
        if each.role == "user" and trace_id:
            here[trace_id] = moment
        row = _row(scope, each, trace_id, moment)
        if row[-2:] in there:
            made.added.append(None)
            continue
        there.add(row[-2:])
        number = next(numbers)
        text = clean_text(plain_text(each))
        marks = " ".join(sorted(set(each.secrets))) or None
        row = (number, *row, counter.count(text), counted_by, marks)
        made.rows.append((*row, fulltext.count_terms(text), int(fulltext.asks(text))))
        made.texts.append((number, text))
        made.added.append(reads.to_message(row))
    return made


def _moment(
    message: Message, trace_id: str | None, now_ms: int, asked: Callable[[str], int | None]
) -> int:
    """Return a message's own time, else now, or 1 ms behind its question if that is later than now.

    What is said in the same millisecond stays in the order of the ids.
    """
    if message.created_at:
        return to_epoch_ms(message.created_at)
    question = asked(trace_id) if trace_id and message.role in ("assistant", "tool") else None
    return now_ms if question is None or question <= now_ms else question + 1


def _row(scope: Scope, message: Message, trace_id: str | None, moment: int) -> tuple[Any, ...]:
    calls = [call_to_dict(call) for call in message.tool_calls]
    return (
        clean_name(trace_id) if trace_id else str(uuid.uuid4()),
        clean_name(message.conversation_id) if message.conversation_id else message.conversation_id,
        scope.partition,
        scope.instance,
        parse_role(message.role).value,
        clean_text(message.content),
        _cleaned(message.name),
        clean_text(json.dumps(calls, ensure_ascii=False)) if calls else None,
        _cleaned(message.tool_call_id),
        moment,
        *source_of(message),
    )


def source_of(message: Message) -> tuple[str, str]:
    """What an import knows a message by; a message without an id of its own gets a new one."""
    own = message.source_id
    return clean_text(message.source or "python"), clean_text(own) if own else str(uuid.uuid4())


def _cleaned(text: str | None) -> str | None:
    return None if text is None else clean_text(text)


def _present(
    connection: sqlite3.Connection, scope: Scope, messages: Sequence[Message]
) -> set[tuple[str, str]]:
    """(source, source id) of those of the messages that are there already."""
    asked: dict[str, list[str]] = {}
    for source, own in (source_of(each) for each in messages if each.source_id):
        asked.setdefault(source, []).append(own)
    found: set[tuple[str, str]] = set()
    for source, ids in asked.items():
        for some in reads.portions(ids):
            found.update(
                connection.execute(
                    f"""
                    SELECT source, source_id FROM messages WHERE partition = ? AND instance = ?
                    AND source = ? AND source_id IN ({reads.marks(some)})
                    """,
                    [scope.partition, scope.instance, source, *some],
                )
            )
    return found


def _last_id(connection: sqlite3.Connection) -> int:
    """The greatest id that was ever given; the next ones are ours while we hold the lock."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'messages'").fetchone()
    return row[0] if row else 0


def _insert(connection: sqlite3.Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    connection.executemany(
        f"INSERT INTO messages ({COLUMNS}) VALUES ({reads.marks(COLUMNS.split(', '))})",
        rows,
    )


def insert_copied(connection: sqlite3.Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    """Write rows of :data:`COLUMNS` that another store had, with their ids, and their words."""
    _insert(connection, rows)
    connection.executemany(
        "INSERT INTO messages_fts (rowid, text, scope) VALUES (?, ?, ?)",
        [
            (
                each.id,
                fulltext.indexed_text(clean_text(plain_text(each))),
                fulltext.scope_keys(each.partition, each.instance),
            )
            for each in (reads.to_message(row) for row in rows)
        ],
    )


def _index(connection: sqlite3.Connection, scope: Scope, texts: Sequence[tuple[int, str]]) -> None:
    """Index the words of messages, and note that they are to be embedded.

    All at once behind the rows: FTS5 writes out what it has gathered whenever a statement on
    another table comes in between, which took three times as long.
    """
    keys = fulltext.scope_keys(str(scope.partition), str(scope.instance))
    connection.executemany(
        "INSERT INTO messages_fts (rowid, text, scope) VALUES (?, ?, ?)",
        [(number, fulltext.indexed_text(text), keys) for number, text in texts],
    )
    lacking = ["pending"]
    if properties.get(connection, properties.NEXT_ID):  # another model is being built
        lacking.append("rebuilding")
    for table in lacking:
        connection.executemany(
            f"INSERT INTO {table} (message_id) VALUES (?)", [(number,) for number, _ in texts]
        )


def _asked(connection: sqlite3.Connection, scope: Scope, trace_id: str) -> int | None:
    """Return when the newest user message of a trace was said."""
    row = connection.execute(
        "SELECT MAX(created_at) FROM messages WHERE partition = ? AND trace_id = ? "
        "AND role = 'user'",
        (scope.partition, clean_text(trace_id)),
    ).fetchone()
    return None if row[0] is None else int(row[0])


def open_until(now_ms: int) -> tuple[int, int]:
    """Return up to when open questions are looked for; those far ahead are the last resort."""
    return now_ms + FAR_AHEAD // timedelta(milliseconds=1), LATEST


def _open_question(connection: sqlite3.Connection, scope: Scope, now_ms: int) -> str | None:
    """The trace of the newest user message without a reply, among the last thousand."""
    for until in open_until(now_ms):
        row = connection.execute(
            """
            SELECT q.trace_id FROM (
                SELECT trace_id, created_at, id FROM messages
                WHERE partition = :partition AND instance = :instance AND role = 'user'
                AND created_at <= :until
                ORDER BY created_at DESC, id DESC LIMIT 1000
            ) q WHERE NOT EXISTS (
                SELECT 1 FROM messages r WHERE r.partition = :partition
                AND r.trace_id = q.trace_id AND r.role = 'assistant'
            ) ORDER BY q.created_at DESC, q.id DESC LIMIT 1
            """,
            {"partition": scope.partition, "instance": scope.instance, "until": until},
        ).fetchone()
        if row:
            return str(row[0])
    return None
