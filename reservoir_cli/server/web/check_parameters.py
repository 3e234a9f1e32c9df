"""Read and validate the query parameters of a view."""

from collections.abc import Mapping

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import LARGEST_ID, clean_text

Query = Mapping[str, str]


def text_of(query: Query, name: str) -> str:
    """Return a parameter as text; ``""`` if it is absent."""
    return clean_text(query.get(name, "")).strip()


def name_of(query: Query, name: str) -> str | None:
    """Return a parameter that is a name, without stripping it; ``None`` if it is empty."""
    return clean_text(query.get(name, "")) or None


def number_of(query: Query, name: str, default: int | None = None) -> int | None:
    """Return a parameter that is a whole number above 0, or raise UsageError."""
    typed = text_of(query, name).replace(",", "")
    if not typed:
        return default
    if not (typed.isascii() and typed.isdigit() and typed.strip("0")):
        raise UsageError(f"{name} is not a whole number above 0")
    if len(typed) > len(str(LARGEST_ID)) or int(typed) > LARGEST_ID:
        raise UsageError(f"{name} is too large")
    return int(typed)


def fraction_of(query: Query, name: str, most: float = 1.0) -> float | None:
    """Return a parameter that is a number from 0 to ``most``, or raise UsageError."""
    typed = text_of(query, name)
    if not typed:
        return None
    try:
        value = float(typed)
    except ValueError:
        value = -1.0
    if not 0 <= value <= most:
        raise UsageError(f"{name} is not a number from 0 to {most:g}")
    return value
