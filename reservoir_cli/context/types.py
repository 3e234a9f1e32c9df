"""The values that pass from a question to a context window. Each is made once and not changed."""

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


#: Characters from the first offset up to, and not with, the second.
Span = tuple[int, int]


class Tier(StrEnum):
    """Why a message is a candidate: the first of these that holds."""

    RECENT = "recent"
    SIMILAR = "similar"
    SYNAPSE = "synapse"
    OLDER = "older"
    #: A person pinned it, and it is kept for that.
    PINNED = "pinned"


class Piece(NamedTuple):
    """A text given by hand for a section.

    :param name: of the procedure or the source; an episode has none.
    """

    text: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRequest:
    """What is asked for.

    :param query: the question; it becomes the current message. Empty: none.
    :param instance: ``None`` when the user named none.
    :param budget: tokens for all that is printed; ``None`` to go by the model's limit.
    :param trace_id: the one the current message has, or will have when it is stored.
    :param now: the moment of asking, aware.
    :param system: the system prompt.
    :param recalled_role: who recalled messages are sent by: ``user`` or ``system``.
    :param excerpts_explained: say how to read a message whole of which an excerpt is printed.
    :param recall_only: print recalled messages alone, each with its number.
    :param exclude_conversation: the running session of the reader, which is not recalled.
    :param recall_note: a line about the recalled messages.
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
    """The scores of one message; ``cosine`` is 0 where it is not embedded.

    :param parts: what the similarity is made of, by name; empty unless it was asked for.
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
    """One message that may go into the window.

    :param filler: not a candidate by itself, but there is room to fill.
    :param cut: the text is not whole: a long tool result.
    :param age: its place among the messages of its instance, 0 for the newest; ``None`` for
        one of another instance than history comes from.
    :param after_gap: a recalled reply that ``…`` stands above: the question above it is not its
        own.
    :param left_out: of a recalled question, the id of its answer that was left out.
    :param place: its place when every conversation is brought together; the next message of its
        conversation has the next one.
    :param title: of its conversation, as an import gave it.
    :param replies: it is the reply to a question that is stored, too.
    :param about_asker: the question speaks of the one who asks.
    :param parts: the passages that a long message may be printed by, in order.
    :param cosines: how near each of them is to the question; empty without vectors.
    :param spans: what is printed of its text; ``None`` for all of it.
    :param pinned: a person pinned it, and pins count for this question.
    """

    message: StoredMessage
    tier: Tier
    filler: bool
    scores: Scores
    age: int | None
    cut: bool = False
    after_gap: bool = False
    left_out: int | None = None
    place: int | None = None
    title: str | None = None
    replies: bool = False
    about_asker: bool = True
    parts: tuple[Span, ...] = ()
    cosines: tuple[float, ...] = ()
    spans: tuple[Span, ...] | None = None
    pinned: bool = False


class Dropped(NamedTuple):
    """A candidate that was left out, and why."""

    candidate: Candidate
    reason: str

    @property
    def for_room(self) -> bool:
        """Whether it would be in the window if there were room."""
        return self.reason in ("no room", "too large")


class Selection(NamedTuple):
    """What goes into the window.

    :param recalled: kept messages outside the unbroken newest run, oldest first.
    :param history: the unbroken run of the newest messages, oldest first.
    :param dropped: candidates that were left out.
    :param passed_over: what filling read but did not take.
    :param reasons: why a message was kept, by its id.
    :param not_reached: messages of the scope that are in none of these: the budget was spent.
    """

    recalled: tuple[Candidate, ...]
    history: tuple[Candidate, ...]
    dropped: tuple[Dropped, ...]
    passed_over: tuple[Dropped, ...]
    reasons: "Mapping[int, str]"
    not_reached: int


class TokenBudget(NamedTuple):
    """How many tokens there are, and who has them.

    :param window: what the model reads and writes at once.
    :param reserve: kept for the answer.
    :param available: for everything that is printed.
    :param sections: tokens of the parts that are never pruned.
    :param history: what is left for recalled messages and history.
    :param borrowed: tokens of the reserve that history may take.
    :param notes: what a person should know about it.
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
