"""What a store takes and gives: values that pass between it and its callers."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from reservoir_cli.messages import Conversation
from reservoir_cli.storage.keys import Keys

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Called with what is being done, how much of it is done, and how much there is (0: unknown).
Progress = Callable[[str, int, int], None]


def no_progress(_what: str, _done: int, _total: int) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which messages of a scope are meant; ``None`` leaves a field open.

    :param text: they say this, word for word, in content or tool calls; case is ignored.
    :param session: they are of this conversation, or of a part of it: an id that goes on with
        a slash, as those of sub-agents do.
    :param source: the tool they came from.
    :param project: the folder that their conversation was about.
    :param tag: a name that a person gave them.
    :param pinned: only those that are pinned.
    :param secrets: only those in which secrets were found.
    :param documents: whether texts of a folder count as well.
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


#: Ids of texts that may be given by their beginnings.
IdField = Literal["trace_id", "conversation_id"]


class Passage(NamedTuple):
    """A part of a message that has a vector of its own.

    :param start: offset of its first character in the message's text.
    :param end: offset behind its last.
    :param vector: float32, shape (dimensions,), length 1.
    """

    message_id: int
    number: int
    start: int
    end: int
    vector: "NDArray[np.float32]"


class Problem(NamedTuple):
    """Something wrong with a store.

    :param detail: what it is, without any text of a message.
    :param repairable: ``repair`` mends it; else a backup is needed.
    """

    detail: str
    repairable: bool


#: Partition, instance, and conversation: ``None`` for what an instance has outside of any.
ThreadName = tuple[str, str, str | None]


class PlaceSummary(NamedTuple):
    """What a partition holds in one instance.

    :param bytes: of text, in UTF-8.
    """

    partition: str
    instance: str
    messages: int
    bytes: int
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """A conversation, how many messages it has, and when they were said.

    :param question: the beginning of its first question, if it has no title.
    """

    partition: str
    instance: str
    conversation: Conversation
    messages: int
    first: datetime
    last: datetime
    question: str | None = None


class Posting(NamedTuple):
    """Where a stem of the question stands.

    :param places: intp, shape (m,), places among the candidates, each once.
    :param counts: int32, shape (m,), how often it stands there.
    """

    places: "NDArray[np.intp]"
    counts: "NDArray[np.int32]"


class Talk(NamedTuple):
    """What was said just before a question.

    :param turns: texts, and what their words count beside the question's.
    :param vector: of the question together with them, shape (dimensions,), length 1.
    """

    turns: tuple[tuple[float, str], ...]
    vector: "NDArray[np.float32] | None"


class TalkScores(NamedTuple):
    """How the candidates compare with a question and the talk before it.

    :param cosine: float32, shape (n,), with the vector of both; NaN where there is none.
    :param postings: of each turn what its words count, and where its stems stand.
    """

    cosine: "NDArray[np.float32]"
    postings: tuple[tuple[float, tuple[Posting, ...]], ...]


class Respelt(NamedTuple):
    """A word of a question that stands nowhere, and the stem of the index that was taken for it.

    :param place: a message that holds the stem, the newest.
    """

    typed: str
    stem: str
    place: int


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
    :param absent: how many stems of the question are not found.
    :param passages: int32, in how many passages it is embedded; 1 where there is no vector.
    :param respelt: words of the question that other words were searched for instead of.
    :param talk: the same for the question and what was said before it, if that was asked for.
    :param matching: bool, whether the filter lets a message through; ``None`` without a filter.
    :param known: what was computed of them that no question changes.
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
    absent: int
    passages: "NDArray[np.int32]"
    respelt: tuple[Respelt, ...] = ()
    talk: TalkScores | None = None
    matching: "NDArray[np.bool_] | None" = None
    known: dict[int, Any] = field(default_factory=dict, repr=False, compare=False)

    def mark(self, keys: Keys | None) -> "Candidates":
        """Return the same candidates, marking these messages as those that match a filter."""
        import numpy as np

        if keys is None:
            return self
        return replace(self, matching=np.isin(self.ids, keys.ids))

    def without(self, keys: "Keys") -> "Candidates":
        """Return the same candidates, marking these messages as ones that do not match."""
        import numpy as np

        rest = ~np.isin(self.ids, keys.ids)
        return replace(self, matching=rest if self.matching is None else self.matching & rest)

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


class LedgerEntry(NamedTuple):
    """What the proxy added to one question.

    :param ordinal: the question's number in its conversation.
    :param question: a hash of the question and of those before it.
    :param masked: secrets are hidden in it.
    """

    ordinal: int
    question: str
    block: str
    tokens: int
    masked: bool = True
