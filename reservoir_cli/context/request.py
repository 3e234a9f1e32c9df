"""A request for a context, and the formats it may ask for."""

from datetime import datetime
from typing import Literal, NamedTuple, get_args

from reservoir_cli.messages import Message
from reservoir_cli.storage.search.candidates import Said

Format = Literal["text", "markdown", "json", "openai", "azure", "ollama", "anthropic"]
FORMATS: tuple[str, ...] = get_args(Format)
#: Formats that are the request body of a provider.
PROVIDERS = ("openai", "azure", "ollama", "anthropic")


class Piece(NamedTuple):
    """A named text for a section, given by the caller; an episode has no name."""

    text: str
    name: str = ""


class ContextRequest(NamedTuple):
    """A request for a context."""

    query: str  # the question, which becomes the current message; may be empty
    partition: str
    instance: str | None  # ``None`` if the user named none
    model: str | None
    budget: int | None  # tokens for everything printed; ``None`` to use the model's limit
    format: Format
    trace_id: str  # of the current message, also if it is stored later
    now: datetime
    system: str | None = None
    procedures: tuple[Piece, ...] = ()
    knowledge: tuple[Piece, ...] = ()
    episodes: tuple[Piece, ...] = ()
    summaries: tuple[Piece, ...] = ()
    recalled_role: str = "user"  # the role that sends recalled messages: ``user`` or ``system``
    excerpts_explained: bool = False  # add a line on how to read the whole message of an excerpt
    recall_only: bool = False  # print only recalled messages, each with its number
    exclude_conversation: str | None = None  # the reader's running session, which is not recalled
    in_session: bool = False  # whether it is a prompt of a session that runs elsewhere
    asks: bool = True  # whether that is a question
    talk: tuple[Said, ...] = ()  # turns of the reader's session before it, as the client has them
    shown: frozenset[int] = frozenset()  # ids of the messages that the reader has already
    recall_note: str = ""  # a line above the recalled messages
    compact: bool = False  # introduce the recalled messages in one line, and shorten titles

    def question(self) -> Message | None:
        """Return the question as a message to store; ``None`` if it is empty."""
        if not self.query.strip():
            return None
        return Message("user", self.query, trace_id=self.trace_id, source="cli")
