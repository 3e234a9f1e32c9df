"""The filter of messages: which ones to view, search, recall, export or forget."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from reservoir_cli.messages import check_text, check_time, check_valid_text

#: The conditions that are names or ids.
_NAMES = "role trace_id conversation_id source project tag session".split()
#: The text ids that may be abbreviated to a prefix.
IdField = Literal["trace_id", "conversation_id"]


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions on the messages of a scope; ``None`` matches every message.

    :param text: a literal text in their content or tool calls; case is ignored.
    :param session: the id of their conversation, or its beginning up to a slash: sub-agents
        append a slash and an id of their own.
    :param project: the folder that their conversation was about.
    :param documents: whether to include the documents of an ingested folder.
    :raises UsageError: a text is something else or not valid, or a time has no zone.
    """

    role: str | None = None
    trace_id: str | None = None
    conversation_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    text: str | None = None
    source: str | None = None
    project: str | None = None
    tag: str | None = None
    pinned: bool = False
    secrets: bool = False
    documents: bool = True
    session: str | None = None

    def __post_init__(self) -> None:
        if self.text is not None:
            check_text("text", self.text)
        for name in _NAMES:
            if (value := getattr(self, name)) is not None:
                check_valid_text(name, value)
        for name in ("since", "until"):
            if (value := getattr(self, name)) is not None:
                check_time(name, value)


EVERYTHING = Filter()  #: The filter that every message matches.
