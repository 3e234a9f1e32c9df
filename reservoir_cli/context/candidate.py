"""The messages that may go into a window, and what became of each."""

from collections.abc import Callable, Hashable, Mapping
from enum import StrEnum
from typing import NamedTuple, TypeVar

from reservoir_cli.context import window_constants as constants
from reservoir_cli.messages import Role, StoredMessage

Value = TypeVar("Value")
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
    """The scores of one message; ``cosine`` is 0 if it is not embedded."""

    similarity: float
    cosine: float
    bm25: float
    recency: float
    priority: float
    embedded: bool
    parts: Mapping[str, float] | None = None  # the components of the similarity, by name


class Candidate(NamedTuple):
    """A message that may go into the window."""

    message: StoredMessage
    tier: Tier
    filler: bool  # included only if there is room to fill
    scores: Scores
    age: int | None  # how many messages of history's instance are newer; ``None`` for others
    cut: bool = False  # whether it is a long tool result whose text was cut
    after_gap: bool = False  # print ``…`` above a reply, as the question above it is not its own
    left_out: int | None = None  # for a recalled question, the id of its answer that was left out
    position: int | None = None  # its index among all messages sorted by conversation
    title: str | None = None  # of its conversation, as imported
    replies: bool = False  # whether it replies to a stored question
    about_asker: bool = True  # whether the question is about the user
    parts: tuple[Span, ...] = ()  # the passages of a long message, in order
    cosines: tuple[float, ...] = ()  # of each passage with the question; empty without vectors
    spans: tuple[Span, ...] | None = None  # the printed parts of its text; ``None`` for all of it
    pinned: bool = False  # whether a user pinned it and pins count for this question
    running: bool = False  # whether it belongs to the running session


class Dropped(NamedTuple):
    """A candidate that was left out, with the reason."""

    candidate: Candidate
    reason: str

    @property
    def for_room(self) -> bool:
        """Whether it was left out for lack of room."""
        return self.reason in ("no room", "too large")


class Selection(NamedTuple):
    """The messages chosen for the window, oldest first."""

    recalled: tuple[Candidate, ...]  # kept messages outside the newest run, which is ``history``
    history: tuple[Candidate, ...]
    dropped: tuple[Dropped, ...]
    passed_over: tuple[Dropped, ...]  # fillers that were read but left out
    reasons: "Mapping[int, str]"  # why a message was kept, by its id
    not_reached: int  # how many messages of the scope were not read because the budget was spent


def discount(candidate: Candidate, part: int) -> float:
    """Return the share of a message's priority that its parts have, starting with this one."""
    if not candidate.replies:
        return constants.FIRST_SHARE * constants.NEXT_FACTOR**part
    first = constants.REPLY_SHARE_ABOUT_USER if candidate.about_asker else constants.REPLY_SHARE
    return first * constants.NEXT_REPLY_FACTOR**part


def cache_by(
    key: Callable[[Candidate], Hashable], function: Callable[[Candidate], Value]
) -> Callable[[Candidate], Value]:
    """Return a function that computes its value once for all candidates with the same key."""
    values: dict[Hashable, Value] = {}

    def compute_once(candidate: Candidate) -> Value:
        form = key(candidate)
        if form not in values:
            values[form] = function(candidate)
        return values[form]

    return compute_once


def describe_reason(reason: str, message: StoredMessage) -> str:
    """Describe why a message was kept or left out; a call includes its results in its size."""
    if reason == "too large" and (message.role is Role.TOOL or message.tool_calls):
        return "too large with its call" if message.role is Role.TOOL else "too large with results"
    return _WHY.get(reason, reason)
