"""Read and validate the query parameters of a view."""

from collections.abc import Mapping
from dataclasses import dataclass

from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.messages import Role, Scope, clean_text, parse_role
from reservoir_cli.reservoir import Filter
from reservoir_cli.server.web.rendering import now
from reservoir_cli.util.parse_time_options import parse_time

#: The largest number that SQLite can store.
_MAX_NUMBER = 2**63 - 1

Query = Mapping[str, str]


class MissingError(ReservoirError):
    """The conversation or message that an address names is not in the store."""


def text_of(query: Query, name: str) -> str:
    """Return a parameter as text; ``""`` if it is absent."""
    return clean_text(query.get(name, "")).strip()


def name_of(query: Query, name: str) -> str | None:
    """Return a parameter that is a name, without stripping it; ``None`` if it is empty."""
    return clean_text(query.get(name, "")) or None


def number_of(query: Query, name: str, default: int | None = None) -> int | None:
    """Return a parameter that is a positive integer.

    :raises UsageError: it is not.
    """
    typed = text_of(query, name).replace(",", "")
    if not typed:
        return default
    is_short = typed.isascii() and typed.isdigit() and len(typed) <= len(str(_MAX_NUMBER))
    if not is_short or not 1 <= int(typed) <= _MAX_NUMBER:
        raise UsageError(f"{name} is not a positive number")
    return int(typed)


def fraction_of(query: Query, name: str, most: float = 1.0) -> float | None:
    """Return a parameter that is a number from 0 to ``most``.

    :raises UsageError: it is not.
    """
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


@dataclass(frozen=True, slots=True)
class ListQuery:
    """The filter of a list; an empty text does not filter."""

    partition: str | None
    instance: str | None
    role: str
    since: str
    until: str
    text: str
    page: int

    @classmethod
    def of(cls, query: Query) -> "ListQuery":
        """Read the query parameters of a list.

        :raises UsageError: a parameter is invalid.
        """
        role = text_of(query, "role")
        return cls(
            partition := name_of(query, "p"),
            name_of(query, "i") if partition else None,
            parse_role(role).value if role else "",
            text_of(query, "since"),
            text_of(query, "until"),
            text_of(query, "q"),
            number_of(query, "page", 1) or 1,
        )

    @property
    def scope(self) -> Scope:
        """The partition and instance."""
        return Scope(self.partition, self.instance)

    @property
    def where(self) -> Filter:
        """The filter by role and time.

        :raises UsageError: ``since`` or ``until`` is not a time.
        """
        return Filter(
            role=self.role or None,
            since=parse_time(self.since, now()) if self.since else None,
            until=parse_time(self.until, now()) if self.until else None,
        )

    def parameters(self, **changed: object) -> dict[str, object]:
        """Return the query parameters of this list, with some changed."""
        return {
            "p": self.partition,
            "i": self.instance,
            "role": self.role,
            "since": self.since,
            "until": self.until,
            "q": self.text,
            **changed,
        }


ROLES = tuple(role.value for role in Role)
