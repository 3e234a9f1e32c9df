"""Read the filter of the list of conversations from an address, and write it into links."""

from dataclasses import dataclass
from datetime import UTC, datetime

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import Filter, Role, Scope, parse_role
from reservoir_cli.server.web.check_parameters import Query, name_of, number_of, text_of
from reservoir_cli.util.parse_time_options import parse_time

ROLES = tuple(role.value for role in Role)  # the roles that the list can be filtered by


@dataclass(frozen=True, slots=True)
class ConversationFilter:
    """The filter of a list; an empty text does not filter."""

    partition: str | None
    instance: str | None
    role: str
    since: str
    until: str
    text: str
    page: int

    @classmethod
    def of(cls, query: Query) -> "ConversationFilter":
        """Read the query parameters of a list; raise UsageError if one is invalid."""
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
        """The filter by role and time; UsageError if ``since`` or ``until`` is not a time."""
        now = datetime.now(UTC)
        return Filter(
            role=self.role or None,
            since=parse_time(self.since, now) if self.since else None,
            until=parse_time(self.until, now) if self.until else None,
        )

    @property
    def problem(self) -> UsageError | None:
        """Why a typed time is invalid."""
        try:
            _ = self.where
        except UsageError as error:
            return error
        return None

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
