"""A request for a context, and the formats it may ask for."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, get_args

from reservoir_cli.messages import Message
from reservoir_cli.storage.search.candidates import Said

Format = Literal["text", "markdown", "json", "openai", "azure", "ollama", "anthropic"]
FORMATS: tuple[str, ...] = get_args(Format)
#: Formats that are the request body of a provider.
PROVIDERS = ("openai", "azure", "ollama", "anthropic")


class Prompt(NamedTuple):
    """A prompt that messages are recalled for.

    :param in_session: whether it belongs to a session that runs elsewhere.
    """

    in_session: bool = False
    asks: bool = True


NO_PROMPT = Prompt()


class Piece(NamedTuple):
    """A named text for a section, given by the caller; an episode has no name."""

    text: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRequest:
    """A request for a context.

    :param query: the question, which becomes the current message; may be empty.
    :param instance: ``None`` if the user named none.
    :param budget: tokens for everything printed; ``None`` to use the model's limit.
    :param trace_id: of the current message, also if it is stored later.
    :param recalled_role: the role that sends recalled messages: ``user`` or ``system``.
    :param excerpts_explained: add a line on how to read the whole message of an excerpt.
    :param recall_only: print only recalled messages, each with its number.
    :param exclude_conversation: the reader's running session, which is not recalled.
    :param talk: the turns of the reader's session before it, as the client has them.
    :param shown: ids of the messages that the reader has already.
    :param recall_note: a line above the recalled messages.
    :param compact: introduce the recalled messages in one line, and shorten titles.
    """

    query: str
    partition: str
    instance: str | None
    model: str | None
    budget: int | None
    format: Format
    trace_id: str
    now: datetime
    system: str | None = None
    procedures: tuple[Piece, ...] = ()
    knowledge: tuple[Piece, ...] = ()
    episodes: tuple[Piece, ...] = ()
    summaries: tuple[Piece, ...] = ()
    recalled_role: str = "user"
    excerpts_explained: bool = False
    recall_only: bool = False
    exclude_conversation: str | None = None
    prompt: Prompt = NO_PROMPT
    talk: tuple[Said, ...] = ()
    shown: frozenset[int] = frozenset()
    recall_note: str = ""
    compact: bool = False

    def question(self) -> Message | None:
        """Return the question as a message to store; ``None`` if it is empty."""
        if not self.query.strip():
            return None
        return Message("user", self.query, trace_id=self.trace_id, source="cli")
