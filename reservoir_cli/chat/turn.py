"""One message of a request, before it takes the form of a provider."""

from dataclasses import dataclass
from enum import StrEnum

from reservoir_cli.messages import ToolCall


class Section(StrEnum):
    """The parts of a window, in their order."""

    SYSTEM = "system"
    PROCEDURE = "procedure"
    KNOWLEDGE = "knowledge"
    EPISODE = "episode"
    RECALLED = "recalled"
    HISTORY = "history"
    CURRENT = "current"


#: ``context`` is material, neither an instruction nor something the user said.
CONTEXT = "context"


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the window.

    :param role: one of the four roles, or ``context``.
    """

    section: Section
    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
