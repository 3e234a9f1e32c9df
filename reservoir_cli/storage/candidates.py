"""Every message of a scope with what ranking needs, and the question they are gathered for."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from reservoir_cli.messages import Scope
from reservoir_cli.storage.compact_keys import Keys

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Ids are found by a table if there are at most so many for each message.
_DENSE = 8


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


class Asked(NamedTuple):
    """A question for which every message of a scope is gathered.

    :param own: the instance that history comes from; its documents are not marked as own.
    :param model_id: the model whose vectors are compared; ``None`` before the first.
    :param vector: of the question, by that model.
    :param talk: what was said just before, to be compared in the same scan.
    """

    scope: Scope
    own: str | None
    question: str
    model_id: str | None
    vector: "NDArray[np.float32] | None"
    talk: Talk | None

    def matrix(self) -> "NDArray[np.float32] | None":
        """Return the vectors to compare with, shape (vectors, dimensions); the question's first."""
        import numpy as np

        if self.vector is None or self.model_id is None:
            return None
        said = self.talk.vector if self.talk else None
        return np.stack([self.vector] if said is None else [self.vector, said])


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
    known: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)

    def mark(self, keys: Keys | None) -> "Candidates":
        """Return the same candidates, marking these messages as those that match a filter."""
        import numpy as np

        if keys is None:
            return self
        return replace(self, matching=np.isin(self.ids, keys.ids))

    def without(self, keys: "Keys") -> "Candidates":
        """Return the same candidates, marking these messages as ones that do not match."""
        import numpy as np

        if not len(keys):
            return self
        rest = ~np.isin(self.ids, keys.ids)
        return replace(self, matching=rest if self.matching is None else self.matching & rest)

    def places(self, wanted: "NDArray[np.int64]") -> "tuple[NDArray[np.intp], NDArray[np.bool_]]":
        """Where messages stand.

        :param wanted: ids, shape (m,).
        :returns: the places of those that are there, and of each one wanted whether it is.
        """
        import numpy as np

        if not len(self.ids):
            return self.by_id, wanted != wanted
        last = len(self.ids) - 1
        lowest, highest = int(self.ids[self.by_id[0]]), int(self.ids[self.by_id[-1]])
        if highest - lowest < _DENSE * len(self.ids):
            # Ids with few gaps: a table of all takes a tenth of the time of a search.
            if "places" not in self.known:
                table = np.full(highest - lowest + 3, -1, np.int32)
                table[self.ids - lowest + 1] = np.arange(len(self.ids))
                self.known["places"] = table
            at = self.known["places"][(wanted - lowest + 1).clip(0, highest - lowest + 2)]
            known = at >= 0
            return at[known].astype(np.intp), known
        spots = self.ids.searchsorted(wanted, sorter=self.by_id).clip(max=last)
        at = self.by_id[spots]
        known = self.ids[at] == wanted
        return at[known], known


def with_words(
    found: Candidates,
    asked: Asked,
    said: "NDArray[np.float32]",
    postings: Callable[[str], tuple[tuple[Posting, ...], list[str]]],
    respell: Callable[[list[str]], tuple[tuple[Respelt, ...], tuple[Posting, ...]]],
) -> Candidates:
    """Add where the words of a question stand, and those of the talk before it.

    :param said: the cosine of each message with the question and the talk.
    :param postings: finds the stems of a text, and those that stand nowhere.
    :param respell: finds the nearest words for stems that stand nowhere.
    """
    stems, absent = postings(asked.question)
    respelt, near = respell(absent) if absent else ((), ())
    talk = None
    if asked.talk is not None:
        turns = ((weight, postings(text)[0]) for weight, text in asked.talk.turns)
        talk = TalkScores(said, tuple(turns))
    missing = len(absent) - len(near)
    return replace(found, postings=(*stems, *near), absent=missing, respelt=respelt, talk=talk)
