"""Convert values of other tools' files, which may be of any type."""

import json
import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from reservoir_cli.messages import ToolCall, clean_text

_YEAR_10000 = 253_402_300_800
#: Times from this number on are in milliseconds.
_LEAST_MS = 100_000_000_000
_NUMBER = re.compile(r"\d{9,16}(?:\.\d+)?", re.ASCII)
#: Names of a message's time in lists of messages, the most specific first.
_TIMES = ("created_at", "timestamp", "created", "create_time", "createdAt")


def text(value: Any) -> str | None:
    """Return a non-blank text; ``None`` for anything else."""
    return clean_text(value) if isinstance(value, str) and value.strip() else None


def folder_name(path: Any) -> str | None:
    """Return the last component of a POSIX or Windows path."""
    clean = text(path)
    if clean is None:
        return None
    names = re.split(r"/" if clean.startswith("/") else r"[/\\]", clean.strip())
    return next((name for name in reversed(names) if name), None)


def uri_folder_name(uri: Any) -> str | None:
    """Return the last component of the path of a URI such as ``file:///home/ann/my%20app``."""
    clean = text(uri)
    return folder_name(unquote(clean.split("://", 1)[-1])) if clean else None


def branch_name(value: Any) -> str | None:
    """Return the name of a branch; ``None`` if no branch is checked out."""
    name = text(value)
    return None if name == "HEAD" else name


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list; an empty list for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def obj(value: Any) -> dict[str, Any]:
    """Return a JSON object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def parse_json(value: Any) -> Any:
    """Parse a JSON text; return ``None`` for anything else."""
    try:
        return json.loads(value) if isinstance(value, str | bytes) else None
    except (ValueError, RecursionError):
        return None


def parse_object(value: Any) -> dict[str, Any] | None:
    """Parse a JSON text with an object; return ``None`` for anything else."""
    parsed_value = parse_json(value)
    return parsed_value if isinstance(parsed_value, dict) else None


def moment(value: Any) -> datetime | None:
    """Parse a time in ISO 8601 (UTC without a zone) or in seconds since 1970, in UTC.

    Return ``None`` for anything but a time from 1970 to 9999: a message without a time is still
    useful.
    """
    try:
        if isinstance(value, str):
            parsed_time = datetime.fromisoformat(value.strip())
            aware = parsed_time if parsed_time.tzinfo else parsed_time.replace(tzinfo=UTC)
            utc = aware.astimezone(UTC)
            return utc if utc.year >= 1970 else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        seconds = float(value)
        if math.isfinite(seconds) and 0 < seconds < _YEAR_10000 - 1:
            return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def moment_ms(value: Any) -> datetime | None:
    """Parse a time in milliseconds since 1970, or in ISO 8601."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return moment(value)
    try:
        return moment(value / 1000)
    except OverflowError:
        return None


def any_moment(value: Any) -> datetime | None:
    """Parse a time of unknown unit: ISO 8601, or seconds or milliseconds since 1970.

    Numbers may be given as text. Times in milliseconds are after 1973, those in seconds before
    5138.
    """
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return moment_ms(value) if is_number and abs(value) >= _LEAST_MS else moment(value)


def time_of(value: Any) -> datetime | None:
    """Return the time that an object has under one of the usual names."""
    times = (any_moment(obj(value).get(name)) for name in _TIMES)
    return next((time for time in times if time is not None), None)


def fill_gaps(times: Sequence[datetime | None], start: datetime | None) -> list[datetime | None]:
    """Return the times of a conversation's messages, with gaps filled in.

    A gap is filled with the previous time, or at the beginning with the next one.

    :param start: when the conversation began, used if no message has a time.
    """
    last = next((time for time in times if time), start)
    filled = []
    for time in times:
        last = time or last
        filled.append(last)
    return filled


def call(identity: Any, name: Any, arguments: Any) -> ToolCall:
    """Return a tool call; arguments that are not text are converted to JSON.

    :raises ValueError: the call has no name.
    """
    tool = text(name)
    if tool is None:
        raise ValueError("a tool call without a name")
    if arguments is None:
        arguments = ""
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(text(identity) or "", tool, arguments)
