"""Reservoir's own export: rows with partition, instance and source, one a line or in an array."""

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from reservoir_cli.importers import File, Record, Skipped, has_key, is_json
from reservoir_cli.importers.jsontext import entries
from reservoir_cli.importers.threads import SourceIds
from reservoir_cli.messages import (
    Conversation,
    Message,
    Role,
    call_from_dict,
    clean_text,
    from_epoch_ms,
)


class Native:
    """Reads what ``reservoir view --json`` and ``reservoir export`` write."""

    name = "reservoir"
    instance = None

    def detect(self, head: str) -> bool:
        """Its rows name a partition and a role."""
        return is_json(head) and has_key(head, "partition") and has_key(head, "role")

    def read(self, file: File) -> Iterator[Record | Skipped]:
        """Each row keeps its place, its time and its identity; one without gets its own."""
        identities = SourceIds()
        for found in entries(file):
            if isinstance(found, Skipped):
                yield found
                continue
            place, value = found
            listed = value.get("messages")
            for number, row in enumerate(listed if isinstance(listed, list) else [value], 1):
                try:
                    yield _identified(_record(row), identities)
                except (ValueError, TypeError, OverflowError) as error:
                    where = f"{place}, message {number}" if isinstance(listed, list) else place
                    reason = str(error) if type(error) is ValueError else "a value of a wrong type"
                    yield Skipped(where, reason)


def _identified(record: Record, identities: SourceIds) -> Record:
    message = record.message
    thread = (record.partition, record.instance, message.conversation_id)
    if message.source_id is not None:
        identities.follow(thread, message.source_id)
        return record
    return replace(record, message=replace(message, source_id=identities.new(thread, message)))


def _record(row: Any) -> Record:
    if not isinstance(row, dict):
        raise ValueError("not a message")
    role, content = row.get("role"), row.get("content")
    if role not in list(Role):
        raise ValueError("unknown role")
    calls = row.get("tool_calls") or []
    if not isinstance(calls, list):
        raise ValueError("tool_calls is not a list of calls")
    if not isinstance(content, str) or not (content.strip() or calls or role == Role.TOOL):
        raise ValueError("no content")
    message = Message(
        str(role),
        content,
        created_at=_time(row.get("created_at", row.get("timestamp"))),
        trace_id=_text(row, "trace_id"),
        name=_text(row, "name"),
        tool_calls=tuple(call_from_dict(each) for each in calls),
        tool_call_id=_text(row, "tool_call_id"),
        source=_text(row, "source") or Native.name,
        source_id=_text(row, "source_id"),
        conversation_id=_text(row, "conversation_id"),
    )
    return Record(message, _text(row, "partition"), _text(row, "instance"), _conversation(row))


def _conversation(row: dict[str, Any]) -> Conversation | None:
    about, number = row.get("conversation"), _text(row, "conversation_id")
    if not isinstance(about, dict) or not number:
        return None
    return Conversation(
        number, _text(about, "title"), _text(about, "source"), _text(about, "model")
    )


def _text(row: dict[str, Any], key: str) -> str | None:
    value = row.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError(f"{key} is not a text")
    return clean_text(value) or None


def _time(value: Any) -> datetime | None:
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return from_epoch_ms(int(value))
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError("created_at is not a time") from None
    # In UTC at once: a zone can carry the last day of the year 9999 into the next.
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
