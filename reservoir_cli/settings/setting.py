"""One setting: its type and range, and how its values are parsed, checked and printed."""

from collections.abc import Callable
from typing import Any, NamedTuple

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import is_text
from reservoir_cli.util.parse_time_options import format_duration, parse_age, parse_duration
from reservoir_cli.util.unicode_text import plain_digits, plain_number

Value = str | int | float | bool | list[str] | None

_TYPES = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}
_BOOLEANS = {
    **dict.fromkeys(("true", "on", "yes", "1"), True),
    **dict.fromkeys(("false", "off", "no", "0"), False),
}
_MAX_DAYS = 100_000_000


class Setting(NamedTuple):
    """A setting of the command line, the environment and the settings file.

    :param kind: the type of its values: ``bool``, ``int``, ``float``, ``str``, or ``list`` of
        strings.
    :param duration: whether it is stored in seconds and written like ``4h``.
    :param days: whether it is stored in days and also written as an age such as ``90d``.
    :param convert: a further check of a value of the right type, which returns the value to store;
        it gets the value and the name to use in errors.
    """

    name: str
    kind: type
    default: Value = None
    about: str = ""
    low: float = 0
    high: float = 0
    above: float | None = None
    choices: tuple[str, ...] = ()
    duration: bool = False
    days: bool = False
    in_partitions: bool = False
    in_models: bool = False
    convert: Callable[[Any, str], Value] | None = None

    def parse(self, text: str, where: str) -> Value:
        """Parse a value from the command line or the environment."""
        value: Any = text
        if self.kind is bool:
            value = _BOOLEANS.get(text.strip().lower(), text)
        elif self.kind is list:
            value = _parse_list(text)
        elif self.kind in (int, float) and not self.duration:
            try:
                value = int(plain_number(text)) if self.kind is int else float(plain_digits(text))
            except ValueError:
                value = text
        return self.check(value, where)

    def check(self, value: Any, where: str) -> Value:
        """Check the type and range of a value, and return it as it is stored."""
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and ("\0" in text or not is_text(text)):
                raise UsageError(f"{where} is not valid text", hint="it must be UTF-8, without NUL")
        value = self._to_kind(value, where)
        if not isinstance(value, self.kind) or (isinstance(value, bool) and self.kind is not bool):
            is_plain_text = self.kind is str and not self.choices
            hint = f'write {self.name} = "…"' if is_plain_text else f"it {self.rule}"
            raise UsageError(f"{where} must be {_TYPES[self.kind]}, not {value!r}", hint=hint)
        if not self._is_in_range(value):
            raise UsageError(f"{where} cannot be {value!r}", hint=f"it {self.rule}")
        if self.convert is not None:
            value = self.convert(value, where)
        checked: Value = value
        return checked

    def format(self, value: Value) -> str:
        """Format a value for ``config get``, in the form that ``config set`` accepts."""
        if value is None:
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        if self.duration and isinstance(value, float):
            return format_duration(value)
        return ", ".join(value) if isinstance(value, list) else str(value)

    @property
    def rule(self) -> str:
        """The rule for values, as the end of a hint that begins with "it"."""
        if self.duration:
            return "must be a time such as 30m, 4h or 7d"
        if self.kind is bool:
            return "must be true or false"
        if self.kind is str:
            choices = ", ".join(self.choices)
            return f"must be one of {choices}" if choices else "must not be empty"
        days = ", or an age such as 90d, '6 months' or 1y" if self.days else ""
        return f"must be from {self.low:,} to {self.high:,}{days}"

    def _to_kind(self, value: Any, where: str) -> Any:
        if self.kind is list:
            return _check_list(value, where)
        if self.duration and isinstance(value, str):
            try:
                value = parse_duration(value)
            except ValueError as error:
                raise UsageError(f"{where}: {error}", hint=f"it {self.rule}") from None
        if self.days and isinstance(value, str):
            value = _parse_days(value)
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        return float(value) if self.kind is float and is_whole else value

    def _is_in_range(self, value: Any) -> bool:
        if isinstance(value, str):
            return value in self.choices if self.choices else bool(value.strip())
        if isinstance(value, bool | list):
            return True
        return bool(self.low <= value <= self.high and (self.above is None or value > self.above))


def _parse_days(text: str) -> int | str:
    days = (parse_age(text.strip().lower()) or 0) / 86_400
    return int(days) if 1 <= days < _MAX_DAYS else text


def _check_list(value: Any, where: str) -> list[str]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise UsageError(f"{where} must be a list of strings", hint='write ["one", "two"]')
    return texts


def _parse_list(text: str) -> Any:
    """Return a list whose items are separated by commas, or written as in the settings file.

    Items in brackets may have any type; ``None`` if they cannot be parsed.
    """
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return [part.strip() for part in text.split(",") if part.strip()]
    import tomllib

    try:
        parsed = tomllib.loads(f"items = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):  # the latter if nested too deeply
        return None
    return parsed["items"] if len(parsed) == 1 else None
