"""The values that pass from a question to a context window. Each is made once and not changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, get_args

from reservoir_cli.messages import StoredMessage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Format = Literal["text", "markdown", "json", "openai", "azure", "ollama", "anthropic"]
FORMATS: tuple[str, ...] = get_args(Format)
#: Formats that are the request body of a provider.
PROVIDERS = ("openai", "azure", "ollama", "anthropic")


class Tier(StrEnum):
    """Why a message is a candidate: the first of these that holds."""

    RECENT = "recent"
    SIMILAR = "similar"
    SYNAPSE = "synapse"
    OLDER = "older"


class Section(StrEnum):
    """The parts of a window, in their order."""

    SYSTEM = "system"
    PROCEDURE = "procedure"
    KNOWLEDGE = "knowledge"
    EPISODE = "episode"
    RECALLED = "recalled"
    HISTORY = "history"
    CURRENT = "current"


@dataclass(frozen=True, slots=True)
class Piece:
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
    recalled_role: str = "user"


@dataclass(frozen=True, slots=True)
class Posting:
    """Where a stem of the question stands.

    :param places: intp, shape (m,), places among the candidates, each once.
    :param counts: int32, shape (m,), how often it stands there.
    """

    places: "NDArray[np.intp]"
    counts: "NDArray[np.int32]"


@dataclass(frozen=True, slots=True)
class Candidates:
    """Every message of the scope with what ranking needs; all arrays have shape (n,).

    They are in order of time, then id.

    :param ids: int64.
    :param created_at: int64, milliseconds since 1970.
    :param tokens: int32, as stored with the message.
    :param terms: int32, words of its text.
    :param asks: bool, whether it contains a question mark.
    :param own: bool, whether it is of the instance that history comes from.
    :param thread: int64, a number for its conversation, or for its instance outside of one.
    :param loose: bool, whether it is outside of a conversation.
    :param cosine: float32, of its best passage with the question; NaN where there is no vector.
    :param by_id: intp, the places in order of id.
    :param postings: one for each stem of the question that is found at all.
    """

    ids: "NDArray[np.int64]"
    created_at: "NDArray[np.int64]"
    tokens: "NDArray[np.int32]"
    terms: "NDArray[np.int32]"
    asks: "NDArray[np.bool_]"
    own: "NDArray[np.bool_]"
    thread: "NDArray[np.int64]"
    loose: "NDArray[np.bool_]"
    cosine: "NDArray[np.float32]"
    by_id: "NDArray[np.intp]"
    postings: tuple[Posting, ...]

    def places(self, wanted: "NDArray[np.int64]") -> "tuple[NDArray[np.intp], NDArray[np.bool_]]":
        """Where messages stand.

        :param wanted: ids, shape (m,).
        :returns: the places of those that are there, and of each one wanted whether it is.
        """
        if not len(self.ids):
            return self.by_id, wanted != wanted
        last = len(self.ids) - 1
        spots = self.ids.searchsorted(wanted, sorter=self.by_id).clip(max=last)
        at = self.by_id[spots]
        known = self.ids[at] == wanted
        return at[known], known


@dataclass(frozen=True, slots=True)
class Scored:
    """Candidates with their scores, each of shape (n,), float64.

    :param bm25: raw, with the words of neighbours.
    :param dates: nearness to a date the question names, in 0…1.
    :param similarity: in 0…1.
    :param recency: in 0…1.
    :param priority: in 0…1 for weights that add up to 1.
    """

    candidates: Candidates
    bm25: "NDArray[np.float64]"
    dates: "NDArray[np.float64]"
    similarity: "NDArray[np.float64]"
    recency: "NDArray[np.float64]"
    priority: "NDArray[np.float64]"


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of one message; ``cosine`` is 0 where it is not embedded."""

    similarity: float
    cosine: float
    bm25: float
    recency: float
    priority: float
    embedded: bool


@dataclass(frozen=True, slots=True)
class Candidate:
    """One message that may go into the window.

    :param filler: not a candidate by itself, but there is room to fill.
    :param cut: the text is not whole: a long tool result.
    :param age: its place among the messages of its instance, 0 for the newest; ``None`` for
        one of another instance than history comes from.
    :param place: its place when every conversation is brought together; the next message of its
        conversation has the next one.
    :param title: of its conversation, as an import gave it.
    """

    message: StoredMessage
    tier: Tier
    filler: bool
    scores: Scores
    age: int | None
    cut: bool = False
    place: int | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """A candidate that was left out, and why."""

    candidate: Candidate
    reason: str

    @property
    def for_room(self) -> bool:
        """Whether it would be in the window if there were room."""
        return self.reason in ("no room", "too large")


@dataclass(frozen=True, slots=True)
class Selection:
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


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """How many tokens there are, and who has them.

    :param window: what the model reads and writes at once.
    :param reserve: kept for the answer.
    :param available: for everything that is printed.
    :param sections: tokens of the parts that are never pruned.
    :param history: what is left for recalled messages and history.
    :param overfull: sections and question alone exceed what is available.
    :param notes: what a person should know about it.
    """

    window: int
    reserve: int
    available: int
    sections: Mapping[Section, int]
    history: int
    overfull: bool = False
    notes: tuple[str, ...] = ()
