"""The candidates for a question: every message of a scope with its ranking data."""

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

from reservoir_cli.messages import Role, Scope
from reservoir_cli.storage.keys import Keys

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Positions are looked up in a table if the range of ids is at most this many times their number.
_DENSE = 8


class Posting(NamedTuple):
    """The messages that contain a stem of the question.

    :param positions: intp, shape (m,), unique positions among the candidates.
    :param counts: int32, shape (m,), the occurrences of the stem in each.
    :param titled: intp, the positions of messages whose conversation has it in its title.
    """

    positions: "NDArray[np.intp]"
    counts: "NDArray[np.int32]"
    stem: str = ""
    titled: "NDArray[np.intp] | None" = None

    def at(self, chosen: "NDArray[np.bool_]") -> "Posting":
        """Return the posting with some of its messages."""
        return self._replace(positions=self.positions[chosen], counts=self.counts[chosen])

    def all_positions(self) -> "NDArray[np.intp]":
        """Return the positions of all messages that contain the stem or are titled with it."""
        import numpy as np

        if self.titled is None:
            return self.positions
        return np.concatenate([self.positions, self.titled[~np.isin(self.titled, self.positions)]])


class QuestionVector(NamedTuple):
    """The embedding of a question by the active model, which another thread may still compute."""

    dimensions: int
    wait: "Callable[[], NDArray[np.float32]]"


class Said(NamedTuple):
    """A turn of the reader's session, as its client has it."""

    role: Role
    content: str


class Talk(NamedTuple):
    """The turns just before a question.

    :param turns: (weight of its words relative to the question's, text) of each turn.
    :param vectors: the embeddings of those that have one, multiplied by their weights.
    """

    turns: tuple[tuple[float, str], ...]
    vectors: "tuple[NDArray[np.floating], ...]" = ()


class TalkScores(NamedTuple):
    """The scores of the candidates for a question and the turns before it.

    :param cosine: float32, shape (n,), with the vector of both; NaN for messages without one.
    :param postings: (weight, postings of the stems) of each turn.
    """

    cosine: "NDArray[np.float32]"
    postings: tuple[tuple[float, tuple[Posting, ...]], ...]


class Correction(NamedTuple):
    """A word of a question that no message contains, and the stem searched instead.

    :param absent: its own stem.
    :param position: the position of the newest message that contains the stem.
    """

    typed: str
    stem: str
    position: int
    absent: str


class Query(NamedTuple):
    """A question to rank every message of a scope for.

    :param own: the instance that history comes from; its documents are not marked as own.
    :param model_id: the active model; ``None`` if there is none yet.
    :param vector: the question's embedding by that model.
    :param talk: the preceding turns, compared in the same scan.
    """

    scope: Scope
    own: str | None
    question: str
    model_id: str | None
    vector: QuestionVector | None
    talk: Talk | None

    def matrix(self) -> "NDArray[np.float32]":
        """Return the vectors to compare with, shape (vectors, dimensions), the question's first.

        The second one is the sum of the question's and the turns' before it.
        """
        import numpy as np

        assert self.vector
        vector = self.vector.wait()
        if self.talk is None:
            return vector[None]
        total = sum(self.talk.vectors, vector.astype(np.float64))
        return np.stack([vector, (total / max(float(np.linalg.norm(total)), 1e-12)).astype("f4")])


class Candidates(NamedTuple):
    """Every message of the scope with its ranking data; all arrays have shape (n,).

    They are in order of time, then id.

    :param ids: int64.
    :param created_at: int64, milliseconds since 1970.
    :param tokens: int32, as stored with the message.
    :param terms: int32, the number of words in its text.
    :param asks: bool, whether it contains a question mark.
    :param own: bool, whether it belongs to the instance that history comes from.
    :param thread: int64, a number for its conversation, or for its instance outside of one.
    :param loose: bool, whether it is outside of a conversation.
    :param cosine: float32, of its best passage with the question; NaN if it has no vector.
    :param by_id: intp, the positions in order of id.
    :param postings: one for each stem of the question that some message contains.
    :param absent: the stems of the question that no message contains.
    :param passages: int32, the number of its embedded passages; 1 if it has no vector.
    :param corrections: the words of the question that were replaced by similar ones.
    :param talk: the scores with the turns before the question, if there are any.
    :param matching: bool, whether it matches the filter; ``None`` without a filter.
    :param cache: values that do not depend on the question.
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
    absent: tuple[str, ...]
    passages: "NDArray[np.int32]"
    cache: dict[Hashable, Any]
    corrections: tuple[Correction, ...] = ()
    talk: TalkScores | None = None
    matching: "NDArray[np.bool_] | None" = None

    def mark(self, keys: Keys | None) -> "Candidates":
        """Return the candidates with exactly these messages marked as matching."""
        return self if keys is None else self._replace(matching=self._contain(keys))

    def without(self, keys: "Keys") -> "Candidates":
        """Return the candidates with these messages marked as not matching."""
        if not len(keys):
            return self
        rest = ~self._contain(keys)
        return self._replace(matching=rest if self.matching is None else self.matching & rest)

    def _contain(self, keys: Keys) -> "NDArray[np.bool_]":
        import numpy as np

        contained = np.zeros(len(self.ids), bool)
        contained[self.positions(np.array(keys.ids, np.int64))[0]] = True
        return contained

    def count_matching(self) -> int:
        """Return how many messages match the filter."""
        import numpy as np

        return len(self.ids) if self.matching is None else int(np.count_nonzero(self.matching))

    def positions(self, ids: "NDArray[np.int64]") -> "tuple[NDArray[np.intp], NDArray[np.bool_]]":
        """Look up the positions of messages that match the filter.

        :param ids: shape (m,).
        :returns: the positions of those that exist, and for each id whether it exists.
        """
        import numpy as np

        if not len(self.ids):
            return self.by_id, ids != ids
        last = len(self.ids) - 1
        lowest, highest = int(self.ids[self.by_id[0]]), int(self.ids[self.by_id[-1]])
        if highest - lowest < _DENSE * len(self.ids):
            # For ids with few gaps a table takes a tenth of the time of a search.
            if "positions" not in self.cache:
                table = np.full(highest - lowest + 3, -1, np.int32)
                table[self.ids - lowest + 1] = np.arange(len(self.ids))
                self.cache["positions"] = table
            at = self.cache["positions"][(ids - lowest + 1).clip(0, highest - lowest + 2)]
            exists = at >= 0
        else:
            ranks = self.ids.searchsorted(ids, sorter=self.by_id).clip(max=last)
            at = self.by_id[ranks]
            exists = self.ids[at] == ids
        if self.matching is not None:
            exists &= self.matching[at]
        return at[exists].astype(np.intp, copy=False), exists


class Uncompared(NamedTuple):
    """Candidates that were not yet compared with the question.

    :param candidates: the cosines of all are NaN.
    :param compare: waits for the question's vector, and returns the cosines with the vectors of
        :meth:`Query.matrix`, shape (n, vectors); ``None`` if there is nothing to compare.
    """

    candidates: Candidates
    compare: "Callable[[], NDArray[np.float32]] | None" = None

    def compared(self) -> Candidates:
        """Return the candidates with their cosines."""
        import numpy as np

        if self.compare is None:
            return self.candidates
        cosine, talk = self.compare(), self.candidates.talk
        if talk is not None:
            talk = talk._replace(cosine=np.ascontiguousarray(cosine[:, -1]))
        return self.candidates._replace(cosine=np.ascontiguousarray(cosine[:, 0]), talk=talk)


def add_postings(
    candidates: Candidates,
    query: Query,
    postings: Callable[[str], tuple[tuple[Posting, ...], list[str]]],
    find_titled: "Callable[[list[str]], dict[str, NDArray[np.intp]]]",
    correct_misspelt: Callable[[list[str]], tuple[tuple[Correction, ...], tuple[Posting, ...]]],
) -> Candidates:
    """Return the candidates with the postings of a question and of the turns before it."""
    stems, absent = postings(query.question)
    titled = find_titled([*(posting.stem for posting in stems), *absent])
    if titled:
        nowhere = Posting(candidates.by_id[:0], candidates.terms[:0])
        only = [nowhere._replace(stem=stem) for stem in absent if stem in titled]
        stems = tuple(row._replace(titled=titled.get(row.stem)) for row in (*only, *stems))
        absent = [stem for stem in absent if stem not in titled]
    corrections, near = correct_misspelt(absent) if absent else ((), ())
    talk = None
    if query.talk is not None:
        turns = ((weight, postings(text)[0]) for weight, text in query.talk.turns)
        talk = TalkScores(candidates.cosine, tuple(turns))
    corrected = {correction.absent for correction in corrections}
    missing = tuple(stem for stem in absent if stem not in corrected)
    return candidates._replace(
        postings=(*stems, *near), absent=missing, corrections=corrections, talk=talk
    )


def sort(columns: "dict[str, NDArray[Any]]") -> "dict[str, NDArray[Any]]":
    """Sort by time, then id.

    A stable sort is fast for nearly sorted data: a million, of which a tenth come late, take 4 ms.
    """
    import numpy as np

    for name in ("ids", "created_at"):
        keys = columns[name]
        if len(keys) and (keys[1:] < keys[:-1]).any():
            order = np.argsort(keys, kind="stable")
            columns = {column: values[order] for column, values in columns.items()}
    return columns
