"""What stays of a forgotten message: keyed fingerprints, by which imports leave it out.

One is of its source and id. Others are of what it said in its conversation, for another program
that tells of the same conversation has ids of its own. These end with the time of the deletion:
what was said later is new, even if it is the same.
"""

import json
import os
import time
from collections.abc import Iterable, Sequence

from reservoir_cli.messages import Message, StoredMessage, to_epoch_ms
from reservoir_cli.storage import properties
from reservoir_cli.storage.content_identity import parts_of, session_of
from reservoir_cli.storage.portable_sql import Connection, batches

#: Stands before the source in the fingerprint of a message that was edited.
_EDITED = "edited\n"
#: Stand for the source in the fingerprints of a conversation, and of what was said in one.
_CONVERSATION, _SAID = "conversation\n", "said\n"
#: Bytes of a time behind a fingerprint that is shortened for it, and the last time.
_TIME, _LAST = 8, 2**63 - 1


def mark(connection: Connection, messages: Sequence[StoredMessage]) -> None:
    """Record that messages were forgotten."""
    _mark(connection, [(message.source, message.source_id) for message in messages])
    _mark_said(connection, messages)


def mark_edited(connection: Connection, message: StoredMessage) -> None:
    """Record that a person edited a message, so that no import renews it."""
    _mark(connection, [(_EDITED + message.source, message.source_id)])
    _mark_said(connection, [message])


def edited(connection: Connection, messages: Iterable[StoredMessage]) -> list[StoredMessage]:
    """Return those of some messages that a person edited."""
    by_source = {(_EDITED + each.source, each.source_id): each for each in messages}
    known = forgotten(connection, by_source)
    return [message for source, message in by_source.items() if source in known]


def _mark(connection: Connection, sources: Iterable[tuple[str, str]]) -> None:
    key = _key(connection)
    _insert(connection, {fingerprint(key, *source) for source in sources})


def _mark_said(connection: Connection, messages: Sequence[StoredMessage]) -> None:
    """Record that what messages say in their conversations is forgotten as of now."""
    talks = {session_of(each.conversation_id) for each in messages if each.conversation_id}
    if not talks:
        return
    key, now = _key(connection), round(time.time() * 1000)
    marks = {
        _timed(key, session_of(message.conversation_id), part, now)
        for message in messages
        if message.conversation_id
        for part in parts_of(message)
    }
    _insert(connection, marks | {fingerprint(key, _CONVERSATION, talk) for talk in talks})


def _key(connection: Connection) -> str:
    properties.put_first(connection, properties.FORGOTTEN_KEY, os.urandom(32).hex())
    return str(properties.get(connection, properties.FORGOTTEN_KEY))


def _insert(connection: Connection, marks: Iterable[bytes]) -> None:
    connection.insert("forgotten", "mark", [(mark,) for mark in sorted(marks)], ignore=True)


def _timed(key: str, session: str, part: str, moment: int) -> bytes:
    whole = fingerprint(key, _SAID + session, part)
    return whole[:-_TIME] + max(moment, 0).to_bytes(_TIME, "big")


def sessions(connection: Connection, conversations: Iterable[str | None]) -> set[str]:
    """Return the sessions of conversations of which something was forgotten."""
    talks = {(_CONVERSATION, session_of(each)) for each in conversations if each}
    return {session for _, session in forgotten(connection, talks)}


def said(connection: Connection, messages: Sequence[Message]) -> list[bool]:
    """Return of each message whether all that it says was forgotten in its conversation.

    :param messages: what has no time was said before.
    """
    some = sessions(connection, (message.conversation_id for message in messages))
    key = str(properties.get(connection, properties.FORGOTTEN_KEY)) if some else ""
    return [
        session_of(message.conversation_id or "") in some and _is_said(connection, key, message)
        for message in messages
    ]


def _is_said(connection: Connection, key: str, message: Message) -> bool:
    session, parts = session_of(message.conversation_id or ""), parts_of(message)
    since = to_epoch_ms(message.created_at) if message.created_at else 0
    between = "SELECT 1 FROM forgotten WHERE mark BETWEEN ? AND ? LIMIT 1"
    return bool(parts) and all(
        connection.execute(
            between, [_timed(key, session, part, moment) for moment in (since, _LAST)]
        ).fetchone()
        for part in parts
    )


def forgotten(connection: Connection, sources: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return those of some (source, source id) that were forgotten."""
    key = properties.get(connection, properties.FORGOTTEN_KEY)
    if key is None:
        return set()
    by_mark = {fingerprint(key, *source): source for source in sources}
    known: set[tuple[str, str]] = set()
    for marks in batches(list(by_mark)):
        condition, values = connection.in_list("mark", marks)
        rows = connection.execute(f"SELECT mark FROM forgotten WHERE {condition}", values)
        known.update(by_mark[row[0]] for row in rows)
    return known


def fingerprint(key: str, source: str, source_id: str) -> bytes:
    """Return an HMAC-SHA-256: without the key nobody can tell what was forgotten."""
    import hmac  # it loads OpenSSL

    named = json.dumps([source, source_id]).encode()
    return hmac.digest(bytes.fromhex(key), named, "sha256")
