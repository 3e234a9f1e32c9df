"""Parse, check and format the values of settings."""

import tomllib
from typing import Any, get_args

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import is_text
from reservoir_cli.settings import upstreams
from reservoir_cli.settings.paths import check_location
from reservoir_cli.settings.schema import (
    MODEL_ONLY,
    RESCALED,
    SETTINGS,
    SOURCE_KEYS,
    UPSTREAM_KEYS,
    Value,
    setting_of,
)
from reservoir_cli.util.parse_time_options import format_duration, parse_age, parse_duration
from reservoir_cli.util.unicode_text import plain_digits

_TABLE_KEYS = SOURCE_KEYS | UPSTREAM_KEYS
#: Settings in days, which also accept an age such as 90d.
_IN_DAYS = ("retention_days",)
_MAX_DAYS = 100_000_000
_BOOLEANS = {
    **dict.fromkeys(("true", "on", "yes", "1"), True),
    **dict.fromkeys(("false", "off", "no", "0"), False),
}


def parse_value(key: str, text: str, where: str) -> Value:
    """Parse a setting's value from the command line or the environment.

    :param key: a setting or an alias; the value is on its scale.
    :param where: the name to use in errors.
    :raises UsageError: the value has the wrong type or is out of range.
    """
    kind = _kind(key)
    if not is_text(text):
        raise UsageError(f"{where} is not valid text")
    value: Any = text
    if kind is bool:
        value = _BOOLEANS.get(text.strip().lower(), text)
    elif kind is list:
        value = parse_list(text)
    elif kind in (int, float) and not is_duration(key):
        try:
            value = kind(plain_digits(text))
        except ValueError:
            value = text
    return check_value(key, value, where)


def check_value(key: str, value: Any, where: str) -> Value:
    """Check the type and range of a setting's value.

    :raises UsageError: the value has the wrong type or is out of range; the hint has the rule.
    """
    kind: Any = _kind(key)
    if kind is list:
        return _check_list(value, where)
    if is_duration(key) and isinstance(value, str):
        try:
            value = parse_duration(value)
        except ValueError as error:
            raise UsageError(f"{where}: {error}", hint=f"it {_rule(key)}") from None
    if key in _IN_DAYS and isinstance(value, str):
        value = _parse_days(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        types = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}
        is_text_wanted = kind is str and not _choices(key)
        hint = f'write {key} = "…"' if is_text_wanted else f"it {_rule(key)}"
        raise UsageError(f"{where} must be {types[kind]}, not {value!r}", hint=hint)
    if not _in_range(key, value):
        raise UsageError(f"{where} cannot be {value!r}", hint=f"it {_rule(key)}")
    if key == "database":
        check_location(str(value), where)
    if key in UPSTREAM_KEYS:
        upstreams.check(key, value, where)
    checked: Value = value
    return checked


def _check_list(value: Any, where: str) -> list[str]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise UsageError(f"{where} must be a list of strings", hint='write ["one", "two"]')
    return texts


def format_value(key: str, value: Value) -> str:
    """Format a value for ``config get``, in the form that ``config set`` accepts."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if is_duration(key) and isinstance(value, float):
        return format_duration(value)
    return ", ".join(value) if isinstance(value, list) else str(value)


def _kind(key: str) -> type:
    if key in MODEL_ONLY:
        return int
    if key in _TABLE_KEYS:
        return _TABLE_KEYS[key]
    declared: Any = SETTINGS[setting_of(key)].type
    kind: type = next(iter(get_args(declared)), declared)  # the first type of a union
    return kind


def is_duration(key: str) -> bool:
    """Return whether a setting is a duration: stored in seconds, written like ``4h``."""
    return key in SETTINGS and bool(SETTINGS[key].metadata["duration"])


def _parse_days(text: str) -> int | str:
    """Return the whole days of an age of at least a day; return any other text unchanged."""
    days = (parse_age(text.strip().lower()) or 0) / 86_400
    return int(days) if 1 <= days < _MAX_DAYS else text


def _in_range(key: str, value: Any) -> bool:
    if isinstance(value, str):
        choices = _choices(key)
        return value in choices if choices else bool(value.strip())
    if isinstance(value, bool):
        return True
    low, high = _bounds(key)
    above = None if key in MODEL_ONLY else SETTINGS[setting_of(key)].metadata["above"]
    return bool(low <= value <= high and (above is None or value > above))


def _choices(key: str) -> tuple[str, ...]:
    """Return the values that a setting may have; empty if it may have others."""
    choices: tuple[str, ...] = () if key in _TABLE_KEYS else SETTINGS[key].metadata["choices"]
    return choices


def _rule(key: str) -> str:
    """Return the rule for a setting's values, as the end of a hint that begins with "it"."""
    kind = _kind(key)
    if is_duration(key):
        return "must be a time such as 30m, 4h or 7d"
    if kind is bool:
        return "must be true or false"
    if kind is str:
        choices = _choices(key)
        return f"must be one of {', '.join(choices)}" if choices else "must not be empty"
    low, high = _bounds(key)
    days = ", or an age such as 90d, '6 months' or 1y" if key in _IN_DAYS else ""
    return f"must be from {low:,} to {high:,}{days}"


def _bounds(key: str) -> tuple[float, float]:
    if key in MODEL_ONLY:
        return MODEL_ONLY[key]
    if key in RESCALED:
        return 0, 1
    metadata = SETTINGS[setting_of(key)].metadata
    return metadata["low"] or 0, metadata["high"]


def parse_list(text: str) -> Any:
    """Return a list whose items are separated by commas, or written as in the settings file.

    Items in brackets may have any type; ``None`` if they cannot be parsed.
    """
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return [part.strip() for part in text.split(",") if part.strip()]
    try:
        parsed = tomllib.loads(f"items = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):  # the latter if nested too deeply
        return None
    return parsed["items"] if len(parsed) == 1 else None
