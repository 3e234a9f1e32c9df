"""One message of a request, before it is rendered for a provider."""

from enum import StrEnum
from typing import NamedTuple

from reservoir_cli.messages import ToolCall


class Section(StrEnum):
    """The sections of a context window, in order."""

    SYSTEM = "system"
    PROCEDURE = "procedure"
    KNOWLEDGE = "knowledge"
    EPISODE = "episode"
    RECALLED = "recalled"
    HISTORY = "history"
    CURRENT = "current"


#: Role of background material, which is neither an instruction nor the user's words.
CONTEXT = "context"


class Turn(NamedTuple):
    """One message of the context window, with one of the four roles, or ``context``."""

    section: Section
    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
