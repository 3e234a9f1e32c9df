"""The immutable values used to build a context window."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal, NamedTuple, get_args

from reservoir_cli.chat.turn import Section
from reservoir_cli.messages import Message, StoredMessage

Format = Literal["text", "markdown", "json", "openai", "azure", "ollama", "anthropic"]
FORMATS: tuple[str, ...] = get_args(Format)
#: Formats that are the request body of a provider.
PROVIDERS = ("openai", "azure", "ollama", "anthropic")


#: The offsets of a text's characters; the second is exclusive.
Span = tuple[int, int]


class Tier(StrEnum):
    """The reason why a message is a candidate: the first that applies."""

    RECENT = "recent"
    SIMILAR = "similar"
    SYNAPSE = "synapse"
    OLDER = "older"
    #: A user pinned it, and it is kept for that reason.
    PINNED = "pinned"


class Piece(NamedTuple):
    """A text for a section, given by the caller.

    :param name: of the procedure or the source; an episode has none.
    """

    text: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRequest:
    """A request for a context.

    :param query: the question, which becomes the current message; may be empty.
    :param instance: ``None`` if the user named none.
    :param budget: tokens for everything printed; ``None`` to use the model's limit.
    :param trace_id: of the current message, also if it is stored later.
    :param now: the time of the request, aware.
    :param system: the system prompt.
    :param recalled_role: the role that sends recalled messages: ``user`` or ``system``.
    :param excerpts_explained: add a line on how to read the whole message of an excerpt.
    :param recall_only: print only recalled messages, each with its number.
    :param exclude_conversation: the reader's running session, which is not recalled.
    :param recall_note: a line above the recalled messages.
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
    recall_note: str = ""

    def question(self) -> Message | None:
        """Return the question as a message to store; ``None`` if it is empty."""
        if not self.query.strip():
            return None
        return Message("user", self.query, trace_id=self.trace_id, source="cli")


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of one message; ``cosine`` is 0 if it is not embedded.

    :param parts: the components of the similarity, by name; empty unless requested.
    """

    similarity: float
    cosine: float
    bm25: float
    recency: float
    priority: float
    embedded: bool
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A message that may go into the window.

    :param filler: included only if there is room to fill.
    :param cut: whether it is a long tool result whose text was cut.
    :param age: how many messages of history's instance are newer, 0 for the newest; ``None`` for
        messages of other instances.
    :param after_gap: whether ``…`` is printed above a recalled reply because the question above it
        is not its own.
    :param left_out: for a recalled question, the id of its answer that was left out.
    :param position: its index among all messages sorted by conversation; the next message of its
        conversation has the next one.
    :param title: of its conversation, as imported.
    :param replies: whether it replies to a stored question.
    :param about_asker: whether the question is about the user.
    :param parts: the passages of a long message, in order.
    :param cosines: the cosine of each passage with the question; empty without vectors.
    :param spans: the printed parts of its text; ``None`` for all of it.
    :param pinned: whether a user pinned it and pins count for this question.
    """

    message: StoredMessage
    tier: Tier
    filler: bool
    scores: Scores
    age: int | None
    cut: bool = False
    after_gap: bool = False
    left_out: int | None = None
    position: int | None = None
    title: str | None = None
    replies: bool = False
    about_asker: bool = True
    parts: tuple[Span, ...] = ()
    cosines: tuple[float, ...] = ()
    spans: tuple[Span, ...] | None = None
    pinned: bool = False


class Dropped(NamedTuple):
    """A candidate that was left out, with the reason."""

    candidate: Candidate
    reason: str

    @property
    def for_room(self) -> bool:
        """Whether it was left out for lack of room."""
        return self.reason in ("no room", "too large")


class Selection(NamedTuple):
    """The messages chosen for the window.

    :param recalled: kept messages outside the unbroken run of the newest, oldest first.
    :param history: the unbroken run of the newest messages, oldest first.
    :param dropped: candidates that were left out.
    :param passed_over: fillers that were read but left out.
    :param reasons: why a message was kept, by its id.
    :param not_reached: how many messages of the scope were not read because the budget was spent.
    """

    recalled: tuple[Candidate, ...]
    history: tuple[Candidate, ...]
    dropped: tuple[Dropped, ...]
    passed_over: tuple[Dropped, ...]
    reasons: "Mapping[int, str]"
    not_reached: int


class TokenBudget(NamedTuple):
    """The tokens of a context window and their distribution.

    :param window: tokens of the model's context window.
    :param reserve: tokens kept for the answer.
    :param available: tokens for everything printed.
    :param sections: tokens of the sections that are never pruned.
    :param history: tokens left for recalled messages and history.
    :param borrowed: tokens of the reserve that history may take.
    :param notes: user-facing notes.
    """

    window: int
    reserve: int
    available: int
    sections: Mapping[Section, int]
    history: int
    borrowed: int = 0
    notes: tuple[str, ...] = ()

    @property
    def overflow(self) -> int:
        """By how much the sections and the question alone exceed what is available."""
        return max(0, sum(self.sections.values()) - self.available)

    @property
    def overfull(self) -> bool:
        """Whether the sections and the question alone exceed what is available."""
        return self.overflow > 0
