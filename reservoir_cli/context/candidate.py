"""The messages that may go into a window, and what became of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from reservoir_cli.messages import Role, StoredMessage

Span = tuple[int, int]  # the offsets of a text's characters; the second is exclusive
_WHY = {
    "newest": "newest",
    "priority": "by priority",
    "excerpt": "the best parts",
    "tier": "by tier",
    "no room": "no room left",
    "too large": "larger than the room",
    "duplicate": "said already",
    "question": "the question itself",
    "orphan result": "its call is missing",
    "unanswered call": "no result for its call",
    "below min_cosine": "not similar enough",
    "after the question": "after the last question",
}


class Tier(StrEnum):
    """The reason why a message is a candidate: the first that applies."""

    RECENT = "recent"
    SIMILAR = "similar"
    SYNAPSE = "synapse"
    OLDER = "older"
    PINNED = "pinned"  # a user pinned it, and it is kept for that reason


class Scores(NamedTuple):
    """The scores of one message; ``cosine`` is 0 if it is not embedded.

    :param parts: the components of the similarity, by name.
    """

    similarity: float
    cosine: float
    bm25: float
    recency: float
    priority: float
    embedded: bool
    parts: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A message that may go into the window.

    :param filler: included only if there is room to fill.
    :param cut: whether it is a long tool result whose text was cut.
    :param age: how many messages of history's instance are newer; ``None`` for other instances.
    :param after_gap: print ``…`` above a reply, as the question above it is not its own.
    :param left_out: for a recalled question, the id of its answer that was left out.
    :param position: its index among all messages sorted by conversation.
    :param title: of its conversation, as imported.
    :param replies: whether it replies to a stored question.
    :param about_asker: whether the question is about the user.
    :param parts: the passages of a long message, in order.
    :param cosines: the cosine of each passage with the question; empty without vectors.
    :param spans: the printed parts of its text; ``None`` for all of it.
    :param pinned: whether a user pinned it and pins count for this question.
    :param running: whether it belongs to the running session.
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
    running: bool = False


class Dropped(NamedTuple):
    """A candidate that was left out, with the reason."""

    candidate: Candidate
    reason: str

    @property
    def for_room(self) -> bool:
        """Whether it was left out for lack of room."""
        return self.reason in ("no room", "too large")


class Selection(NamedTuple):
    """The messages chosen for the window, oldest first.

    :param recalled: kept messages outside the unbroken run of the newest, which is ``history``.
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


def describe_reason(reason: str, message: StoredMessage) -> str:
    """Describe why a message was kept or left out; a call includes its results in its size."""
    if reason == "too large" and (message.role is Role.TOOL or message.tool_calls):
        return "too large with its call" if message.role is Role.TOOL else "too large with results"
    return _WHY.get(reason, reason)
