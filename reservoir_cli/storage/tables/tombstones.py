"""Tombstones: keyed fingerprints of forgotten messages, so that imports skip them.

One fingerprint identifies the message's source and source id. Others identify its content in its
conversation, because another program's log of the same conversation has other ids. These end with
the time of the deletion: a message with the same content but a later time is new.

An edit leaves the same fingerprints of the old content, and further ones that tell it from a
deletion: an import that brings forgotten messages back leaves out what an edit replaced.

Moved messages leave fingerprints of the channel they left, so that imports into it know them.
"""

import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import compress

from reservoir_cli.messages import Channel, Message, Scope, StoredMessage, clean_name, to_epoch_ms
from reservoir_cli.storage import properties
from reservoir_cli.storage.content_identity import parts_of, session_of
from reservoir_cli.storage.portable_sql import Connection, batches
from reservoir_cli.storage.tables.writes import source_of

#: The prefix of the source in the fingerprints of a content that was replaced by an edit.
_EDITED = "edited\n"
#: Replace the source in the fingerprints of a conversation, and of a content in a session.
_CONVERSATION, _SAID = "conversation\n", "said\n"
#: The prefix of the channel in the fingerprints of what was moved away from it.
_MOVED = "moved\n"
#: Length of the time that replaces the last bytes of a content's fingerprint, and the latest time.
_TIME, _LAST = 8, 2**63 - 1


def mark(connection: Connection, messages: Sequence[StoredMessage]) -> None:
    """Record that messages were forgotten."""
    key = _key(connection)
    sources = {fingerprint(key, message.source, message.source_id) for message in messages}
    _insert(connection, sources | _mark_contents(key, messages))


def mark_edited(connection: Connection, message: StoredMessage) -> None:
    """Record that a person replaced the content of a message."""
    kinds = _SAID, _EDITED + _SAID
    _insert(connection, _mark_contents(_key(connection), [message], kinds))


def mark_moved(
    connection: Connection, channel: Channel, messages: Iterable[Sequence[str | None]]
) -> None:
    """Record what was moved away from a partition and instance.

    :param messages: the conversation, source and source id of each.
    """
    key, scope = _key(connection), Scope(*channel)
    # The empty name says that anything was moved: most channels need no other question.
    names = {"", *(_name(*message) for message in messages)}
    for batch in batches(sorted(names)):
        _insert(connection, {_fingerprint_moved(key, scope, name) for name in batch})


def has_moved(connection: Connection, scope: Scope) -> bool:
    """Return whether anything was moved away from a channel."""
    key = properties.get(connection, properties.FORGOTTEN_KEY)
    return key is not None and bool(_find(connection, [_fingerprint_moved(key, scope, "")]))


def find_moved(connection: Connection, scope: Scope, messages: Sequence[Message]) -> list[bool]:
    """Return for each message whether it, or its session, was moved away from a channel."""
    if not messages or not has_moved(connection, scope):
        return [False] * len(messages)
    key = str(properties.get(connection, properties.FORGOTTEN_KEY))
    marks = [
        _fingerprint_moved(key, scope, _name(message.conversation_id, *source_of(message)))
        for message in messages
    ]
    moved = _find(connection, set(marks))
    return [mark in moved for mark in marks]


def _fingerprint_moved(key: str, scope: Scope, name: str) -> bytes:
    return fingerprint(key, _MOVED + json.dumps([scope.partition, scope.instance]), name)


def _name(conversation: str | None, *origin: str | None) -> str:
    """Return what identifies a moved message: its session, or else its source and id."""
    return session_of(clean_name(conversation)) if conversation else json.dumps(origin)


def _mark_contents(
    key: str, messages: Sequence[StoredMessage], kinds: Sequence[str] = (_SAID,)
) -> set[bytes]:
    now = round(time.time() * 1000)
    conversations = {message.conversation_id for message in messages if message.conversation_id}
    marks = {
        _with_time(fingerprint(key, kind + session_of(message.conversation_id), part), now)
        for message in messages
        if message.conversation_id
        for part in parts_of(message)
        for kind in kinds
    }
    sessions = {session_of(conversation) for conversation in conversations}
    return marks | {fingerprint(key, _CONVERSATION, session) for session in sessions}


def _key(connection: Connection) -> str:
    properties.put_first(connection, properties.FORGOTTEN_KEY, os.urandom(32).hex())
    return str(properties.get(connection, properties.FORGOTTEN_KEY))


def _insert(connection: Connection, marks: Collection[bytes]) -> None:
    # Without ON CONFLICT; see properties.put_first.
    new = sorted(set(marks) - _find(connection, marks))
    connection.insert("tombstones", "mark", [(mark,) for mark in new])


def remove(connection: Connection, messages: Sequence[Message]) -> None:
    """Remove the tombstones of messages that are stored again.

    Messages of a session share the fingerprints of their contents. Of a reply, only the longest
    part loses its fingerprints, since replies that stay forgotten may have the other parts.
    """
    key = properties.get(connection, properties.FORGOTTEN_KEY)
    if key is None:
        return
    sources = sorted({fingerprint(key, *source_of(message)) for message in messages})
    for marks in batches(sources):
        condition, values = connection.in_list("mark", marks)
        connection.execute(f"DELETE FROM tombstones WHERE {condition}", values)
    sessions = find_sessions(connection, (message.conversation_id for message in messages))
    ranges = {
        _range(key, _SAID, message, max(parts, key=len))
        for message in messages
        if session_of(message.conversation_id or "") in sessions and (parts := parts_of(message))
    }
    connection.executemany("DELETE FROM tombstones WHERE mark BETWEEN ? AND ?", sorted(ranges))


def _with_time(mark: bytes, moment: int) -> bytes:
    return mark[:-_TIME] + max(moment, 0).to_bytes(_TIME, "big")


def _range(key: str, kind: str, message: Message, part: str) -> tuple[bytes, bytes]:
    """Return the first and last fingerprint of a part of a message, deleted at any later time."""
    mark = fingerprint(key, kind + session_of(message.conversation_id or ""), part)
    since = to_epoch_ms(message.created_at) if message.created_at else 0
    return _with_time(mark, since), _with_time(mark, _LAST)


def find_sessions(connection: Connection, conversations: Iterable[str | None]) -> set[str]:
    """Return the sessions of those conversations that had messages forgotten."""
    sources = {(_CONVERSATION, session_of(name)) for name in conversations if name}
    return {session for _, session in find_forgotten(connection, sources)}


def check_contents(connection: Connection, messages: Sequence[Message]) -> list[bool]:
    """Return for each message whether all of its content was later forgotten in its session.

    Deleted messages of any source count. A message without a time precedes all deletions.
    """
    return _check_parts(connection, messages, _SAID, all)


def check_replaced(connection: Connection, messages: Sequence[Message]) -> list[bool]:
    """Return for each message whether its content was forgotten, a part of it by an edit."""
    forgotten = check_contents(connection, messages)
    candidates = list(compress(messages, forgotten))
    replaced = iter(_check_parts(connection, candidates, _EDITED + _SAID, any))
    return [is_forgotten and next(replaced) for is_forgotten in forgotten]


def _check_parts(
    connection: Connection,
    messages: Sequence[Message],
    kind: str,
    quantifier: Callable[[Iterable[bool]], bool],
) -> list[bool]:
    sessions = find_sessions(connection, (message.conversation_id for message in messages))
    key = str(properties.get(connection, properties.FORGOTTEN_KEY)) if sessions else ""
    between = "SELECT 1 FROM tombstones WHERE mark BETWEEN ? AND ? LIMIT 1"

    def is_marked(message: Message, part: str) -> bool:
        return bool(connection.execute(between, _range(key, kind, message, part)).fetchone())

    return [
        session_of(message.conversation_id or "") in sessions
        and bool(parts := parts_of(message))
        and quantifier(is_marked(message, part) for part in parts)
        for message in messages
    ]


def find_forgotten(
    connection: Connection, sources: Iterable[tuple[str, str]]
) -> set[tuple[str, str]]:
    """Return the (source, source id) among these that were forgotten."""
    key = properties.get(connection, properties.FORGOTTEN_KEY)
    if key is None:
        return set()
    by_mark = {fingerprint(key, *source): source for source in sources}
    return {by_mark[mark] for mark in _find(connection, by_mark)}


def _find(connection: Connection, marks: Collection[bytes]) -> set[bytes]:
    matches: set[bytes] = set()
    for batch in batches(list(marks)):
        condition, values = connection.in_list("mark", batch)
        rows = connection.execute(f"SELECT mark FROM tombstones WHERE {condition}", values)
        matches.update(row[0] for row in rows)
    return matches


def fingerprint(key: str, source: str, source_id: str) -> bytes:
    """Return an HMAC-SHA-256: without the key nobody can find out what was forgotten."""
    import hmac  # it loads OpenSSL

    identity = json.dumps([source, source_id]).encode()
    return hmac.digest(bytes.fromhex(key), identity, "sha256")
