"""Import Reservoir's own export: rows with partition, instance and source."""

import json
import math
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from reservoir_cli.messages import (
    Conversation,
    Message,
    Role,
    call_from_dict,
    clean_name,
    clean_text,
    content_hash,
    from_epoch_ms,
    plain_text,
    title_of,
)
from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.foreign_values import obj, require_list, require_object
from reservoir_cli.transfer.reading.importer import Importer, Record, Skipped, SourceIds, Vectors
from reservoir_cli.transfer.reading.json_stream import read_entries
from reservoir_cli.transfer.reading.times import moment

#: Fields that only our rows have; OpenAI's messages have the others, too.
_OWN_IDS = frozenset({"conversation_id", "trace_id", "source_id"})

#: The earliest time of a row as text: east of Greenwich, 1970 began when it was still 1969 in UTC.
_EARLIEST = datetime(1969, 12, 31, tzinfo=UTC)

_Name = tuple[str | None, str | None, str | None]


class Native(Importer):
    """Reads the output of ``reservoir view --json`` and ``reservoir export``."""

    name = "reservoir"
    title = "Reservoir"
    instance = None

    def detect(self, head: Head) -> bool:
        return head.has_all("partition", "role") or (head.has(*_OWN_IDS) and _is_row(head.start))

    def read(self, file: File) -> Iterator[Record | Skipped]:
        identities = SourceIds()
        conversations: dict[_Name, Conversation] = {}
        traces: dict[_Name, str] = {}
        previous: dict[_Name, str] = {}

        def read(place: str, value: dict[str, Any]) -> Iterator[Record | Skipped]:
            listed = value.get("messages")
            for number, row in enumerate(listed if isinstance(listed, list) else [value], 1):
                try:
                    record = _set_trace(_set_id(_read_row(row), identities, previous), traces)
                    yield _set_conversation(record, conversations)
                except (ValueError, TypeError, OverflowError) as error:
                    where = f"{place}, message {number}" if isinstance(listed, list) else place
                    is_known = type(error) is ValueError
                    reason = str(error) if is_known else "a value of the wrong type"
                    yield Skipped(where, reason)

        return read_entries(file, read)


def _is_row(head: str) -> bool:
    """Return whether the first object of a JSON text is a message with one of our own ids."""
    try:
        first, _ = json.JSONDecoder().raw_decode(head.removeprefix("[").lstrip())
    except (ValueError, RecursionError):
        return False
    if not isinstance(first, dict) or not isinstance(first.get("content"), str):
        return False
    return first.get("role") in list(Role) and not _OWN_IDS.isdisjoint(first)


def _set_trace(record: Record, traces: dict[_Name, str]) -> Record:
    """Set the trace of a row without one: a new trace for each question of a conversation."""
    message, name = record.message, _name_of(record)
    if message.trace_id is not None or message.conversation_id is None:
        return record
    if message.role == Role.USER or name not in traces:
        traces[name] = str(uuid.uuid5(uuid.NAMESPACE_OID, str(message.source_id)))
    return replace(record, message=replace(message, trace_id=traces[name]))


def _name_of(record: Record) -> _Name:
    return record.partition, record.instance, record.message.conversation_id


def _set_conversation(record: Record, conversations: dict[_Name, Conversation]) -> Record:
    """Set a row's conversation, which only its first row names, even if that is not imported."""
    name = _name_of(record)
    if record.conversation is not None:
        conversations[name] = record.conversation
    message, about = record.message, record.conversation
    if about and message.role == Role.USER and about.title == title_of(message.content):
        # The title was derived from this question, and would outlive a forgotten question.
        conversations[name] = replace(about, title=None)
    return replace(record, conversation=conversations.get(name))


def _set_id(record: Record, identities: SourceIds, previous: dict[_Name, str]) -> Record:
    message, name = record.message, _name_of(record)
    if message.source_id is not None:
        previous[name] = message.source_id
        return record
    previous[name] = content_hash(message, previous.get(name, ""))
    source_id = identities.unique(previous[name])
    return replace(record, message=replace(message, source_id=source_id))


def _read_row(row: Any) -> Record:
    role, content = require_object(row).get("role"), row.get("content")
    if role not in list(Role):
        raise ValueError("unknown role")
    calls = require_list(row.get("tool_calls") or [], "tool_calls is not a list of calls")
    # A message that was stored before may be empty.
    may_be_empty = calls or role == Role.TOOL or row.get("source_id")
    if not isinstance(content, str) or not (content.strip() or may_be_empty):
        raise ValueError("no content")
    message = Message(
        str(role),
        content,
        created_at=_time(row.get("created_at", row.get("timestamp"))),
        trace_id=_text(row, "trace_id"),
        name=_text(row, "name"),
        tool_calls=tuple(call_from_dict(item) for item in calls),
        tool_call_id=_text(row, "tool_call_id", empty=""),
        source=_text(row, "source") or Native.name,
        source_id=_text(row, "source_id"),
        conversation_id=_text(row, "conversation_id"),
        tags=_tags(row),
        pinned_at=_time(row.get("pinned_at")),
    )
    partition, instance = _scope_name(row, "partition"), _scope_name(row, "instance")
    vectors = _vectors(row, len(plain_text(message)))
    return Record(message, partition, instance, _conversation(row), vectors)


def _conversation(row: dict[str, Any]) -> Conversation | None:
    fields, conversation_id = row.get("conversation"), _text(row, "conversation_id")
    if not isinstance(fields, dict) or not conversation_id:
        return None
    return Conversation(
        conversation_id,
        *(_text(fields, name) for name in ("title", "source", "model", "project", "branch")),
    )


def _vectors(row: dict[str, Any], length: int) -> Vectors | None:
    """Return the vectors of a row; ``None`` if they do not fit the length of its message."""
    model, items = row.get("embedding_model"), row.get("passages")
    model_id = model.get("id") if isinstance(model, dict) else None
    if not isinstance(model_id, str):
        return None
    if not isinstance(items, list):
        items = [{"start": 0, "end": length, "embedding": row.get("embedding")}]
    passages = []
    for passage in items:
        start, end, vector = (obj(passage).get(key) for key in ("start", "end", "embedding"))
        if not (type(start) is type(end) is int and 0 <= start < end <= length):
            return None
        if not isinstance(vector, list) or not all(type(part) is float for part in vector):
            return None
        passages.append((start, end, tuple(vector)))
    return Vectors(model_id, tuple(passages)) if passages else None


def _tags(row: dict[str, Any]) -> tuple[str, ...]:
    names = row.get("tags") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("tags is not a list of names")
    return tuple(clean_name(name) for name in names if name.strip())


def _text(row: dict[str, Any], key: str, *, empty: str | None = None) -> str | None:
    """Return a text of a row, ``None`` without one, or raise ValueError for another value."""
    value = row.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError(f"{key} is not a text")
    return clean_text(value) or empty


def _scope_name(row: dict[str, Any], key: str) -> str | None:
    """Return the name of a partition or instance; ``None`` if it is blank."""
    name = _text(row, key)
    return name if name and name.strip() else None


def _time(value: Any) -> datetime | None:
    """Parse a time in ISO 8601 (UTC without a zone), or a number since 1970, in UTC.

    Our own numbers are milliseconds; smaller numbers, written by hand, are seconds.
    """
    if value is None:
        return None
    earliest = _EARLIEST
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            time, earliest = moment(value) or from_epoch_ms(int(value)), from_epoch_ms(0)
        else:
            time = datetime.fromisoformat(value)
            # Convert to UTC here: the last day of the year 9999 may overflow in another zone.
            time = (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        raise ValueError("created_at is not a time from 1970 to 9999") from None
    except (TypeError, ValueError):
        raise ValueError("created_at is not a time") from None
    if time < earliest:
        raise ValueError("created_at is before 1970")
    return time
