"""Single values of other tools' files, which may be of any type."""

import json
import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from reservoir_cli.messages import ToolCall, clean_text

_YEAR_10000 = 253_402_300_800
#: From here on a number is one of milliseconds.
_LEAST_MS = 100_000_000_000
_NUMBER = re.compile(r"\d{9,16}(?:\.\d+)?", re.ASCII)
#: Names of a message's time in lists of messages, the most particular first.
_TIMES = ("created_at", "timestamp", "created", "create_time", "createdAt")


def text(value: Any) -> str | None:
    """Return a text that is not blank; ``None`` for anything else."""
    return clean_text(value) if isinstance(value, str) and value.strip() else None


def folder_name(path: Any) -> str | None:
    """Return the last component of a path of any system."""
    said = text(path)
    if said is None:
        return None
    names = re.split(r"/" if said.startswith("/") else r"[/\\]", said.strip())
    return next((name for name in reversed(names) if name), None)


def uri_folder_name(uri: Any) -> str | None:
    """Return the last name of the path of a URI such as ``file:///home/ann/my%20app``."""
    said = text(uri)
    return folder_name(unquote(said.split("://", 1)[-1])) if said else None


def branch_name(value: Any) -> str | None:
    """Return the name of a branch; ``None`` if none is checked out."""
    said = text(value)
    return None if said == "HEAD" else said


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list; none if it is no list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def obj(value: Any) -> dict[str, Any]:
    """Return an object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def parsed(value: Any) -> Any:
    """Return what a value says that should be JSON; ``None`` if it is none."""
    try:
        return json.loads(value) if isinstance(value, str | bytes) else None
    except (ValueError, RecursionError):
        return None


def parsed_object(value: Any) -> dict[str, Any] | None:
    """Return the object that a value says in JSON, if it does."""
    made = parsed(value)
    return made if isinstance(made, dict) else None


def moment(value: Any) -> datetime | None:
    """Parse a time in ISO 8601 (UTC without a zone) or in seconds since 1970, in UTC.

    What is no time between 1970 and 9999 is none: a message is worth more than its time.
    """
    try:
        if isinstance(value, str):
            read = datetime.fromisoformat(value.strip())
            aware = read if read.tzinfo else read.replace(tzinfo=UTC)
            found = aware.astimezone(UTC)
            return found if found.year >= 1970 else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        seconds = float(value)
        if math.isfinite(seconds) and 0 < seconds < _YEAR_10000 - 1:
            return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def moment_ms(value: Any) -> datetime | None:
    """Return a time given in milliseconds since 1970, or in ISO 8601."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return moment(value)
    try:
        return moment(value / 1000)
    except OverflowError:
        return None


def any_moment(value: Any) -> datetime | None:
    """Return a time of unknown unit: ISO 8601, or seconds or milliseconds since 1970.

    Numbers may stand in a text. No message is of the years before 1973 or after 5138.
    """
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return moment_ms(value) if is_number and abs(value) >= _LEAST_MS else moment(value)


def time_of(value: Any) -> datetime | None:
    """Return the time that an object of a list gives under one of the usual names."""
    times = (any_moment(obj(value).get(name)) for name in _TIMES)
    return next((time for time in times if time is not None), None)


def with_neighbours(
    times: Sequence[datetime | None], start: datetime | None
) -> list[datetime | None]:
    """Return times for the messages of a conversation; one without takes its neighbour's.

    That is the message before it, and for the first ones the message after them.

    :param start: when the conversation began, for the case that no message says anything.
    """
    last = next((each for each in times if each), start)
    filled = []
    for each in times:
        last = each or last
        filled.append(last)
    return filled


def call(identity: Any, name: Any, arguments: Any) -> ToolCall:
    """Make a tool call; arguments that are not text are written as JSON.

    :raises ValueError: it has no name.
    """
    said = text(name)
    if said is None:
        raise ValueError("a tool call without a name")
    if arguments is None:
        arguments = ""
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(text(identity) or "", said, arguments)
