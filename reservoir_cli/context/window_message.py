"""A message of a context window in the public API."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from reservoir_cli.chat.turn import Section
from reservoir_cli.context.candidate import Tier
from reservoir_cli.context.finished_window import FinishedWindow
from reservoir_cli.context.render.json import rows


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowMessage:
    """A message of a context window, or a section given by the caller.

    :param id: ``None`` for a section; a section has no scores either.
    :param section: the part of the window that holds it.
    :param role: ``user``, ``assistant``, ``system`` or ``tool``; ``context`` for given material.
    :param tokens: as counted for this window.
    :param tier: why it is a candidate.
    :param similarity: 0 to 1, how well it fits the question.
    :param recency: 0 to 1, how new it is.
    :param priority: similarity and recency combined; the highest are chosen.
    :param row: the message as plain JSON values: a row of format ``json``.
    """

    id: int | None
    section: Section
    role: str
    content: str
    tokens: int
    partition: str
    instance: str | None
    trace_id: str | None
    conversation_id: str | None
    created_at: datetime | None
    name: str | None
    tool_call_id: str | None
    source: str | None
    source_id: str | None
    tier: Tier | None
    similarity: float | None
    cosine: float | None
    bm25: float | None
    recency: float | None
    priority: float | None
    row: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "WindowMessage":
        """Return the message described by a row of format ``json``."""
        values = {name: row[name] for name in cls.__slots__ if name != "row"}
        values["section"] = Section(row["section"])
        values["tier"] = Tier(row["tier"]) if row["tier"] else None
        created_at = row["created_at"]
        values["created_at"] = datetime.fromisoformat(created_at) if created_at else None
        return cls(**values, row=row)

    def to_row(self) -> dict[str, Any]:
        """Return the message as plain JSON values."""
        return dict(self.row)

    def __getitem__(self, name: str) -> Any:
        """Return a value of the row: deprecated, from before messages had attributes."""
        warnings.warn(
            f'message["{name}"] is deprecated: use message.{name}, or message.to_row()',
            DeprecationWarning,
            stacklevel=2,
        )
        return self.row[name]


def messages_of(window: FinishedWindow) -> tuple[WindowMessage, ...]:
    """Return everything that is printed of a window, in order."""
    return tuple(map(WindowMessage.from_row, rows(window)))
