"""The hits of a search, and the reading of their messages."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import EVERYTHING, Filter, Scope, StoredMessage
from reservoir_cli.redaction import Redactor
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.store import Store

MODES = ("hybrid", "keyword", "semantic")


@dataclass(frozen=True, slots=True)
class Hit:
    """A message found by a search.

    :param score: the value that orders hits: similarity, BM25, or cosine.
    :param cosine: ``None`` if the message or the question has no vector.
    :param linked: messages linked to it or of its trace, if requested.
    :param all_words: whether it contains all the words of a keyword search, not just any.
    :param passage: the span of the passage nearest to the question, if requested and the message
        has more than one.
    :param words: the spans of the question's words in the text, or in one part of a long text, if
        requested.
    :param title: of its conversation, if requested.
    """

    message: StoredMessage
    rank: int
    score: float
    similarity: float | None = None
    cosine: float | None = None
    bm25: float | None = None
    linked: tuple[StoredMessage, ...] = ()
    all_words: bool = True
    passage: tuple[int, int] | None = None
    words: tuple[tuple[int, int], ...] = ()
    title: str | None = None
    notes: tuple[str, ...] = ()

    def masked(self, redactor: Redactor) -> "Hit":
        """Return the hit with secrets redacted."""
        message = redactor.message(self.message)
        return replace(
            self,
            message=message,
            linked=tuple(redactor.messages(self.linked)),
            passage=self.passage if message is self.message else None,
            title=self.title and redactor.text(message.partition, self.title),
        )

    def to_row(self) -> dict[str, Any]:
        """Return the hit as plain JSON values."""
        return {
            **self.message.to_row(),
            "rank": self.rank,
            "score": self.score,
            "similarity": self.similarity,
            "cosine": self.cosine,
            "bm25": self.bm25,
            "linked": [message.to_row() for message in self.linked],
        }


@dataclass(frozen=True, slots=True)
class SearchCriteria:
    """The criteria for hits, and what to add to them.

    :raises UsageError: the mode is unknown or has no threshold, or that is not from 0 to 1.
    """

    term: str
    scope: Scope
    mode: str  # ``hybrid``, ``keyword`` or ``semantic``
    limit: int
    threshold: float | None  # list only hits above it, on the scale (1 + cosine)/2
    link: bool  # add to each hit the messages linked to it, or of its trace
    deduplicate: bool  # list only the best of hits with equal contents
    where: Filter  # list only messages that match; scores are those of the whole scope
    passages: bool  # add the best passage of each hit, and the title of its conversation
    redactor: Redactor  # redacts secrets in words that replaced misspelt ones
    link_cosine: Callable[[str], float] = lambda _: Settings().link_cosine  # the least

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise UsageError(f"unknown mode {self.mode!r}", hint=f"modes are {', '.join(MODES)}")
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise UsageError(
                f"the threshold cannot be {self.threshold}", hint="it must be from 0 to 1"
            )
        if self.mode == "keyword" and self.threshold is not None:
            raise UsageError(
                "a threshold cannot be used with a keyword search",
                hint="omit the threshold, or search by meaning as well",
            )


def read_rows(store: Store, numbers: list[int], criteria: SearchCriteria) -> list[StoredMessage]:
    """Return the first messages of a ranking; of an id that several partitions use, all of them."""
    numbers = list(dict.fromkeys(numbers))
    chosen: list[StoredMessage] = []
    contents: set[str] = set()
    limit = criteria.limit
    while numbers and len(chosen) < limit:
        batch, numbers = numbers[: 2 * limit], numbers[2 * limit :]
        rows: dict[int, list[StoredMessage]] = {}
        for row in _drop_foreign(store.by_id(batch, criteria.scope), store, criteria):
            rows.setdefault(row.id, []).append(row)
        for row in (row for number in batch for row in rows[number]):
            if not criteria.deduplicate or row.content.strip() not in contents:
                contents.add(row.content.strip())
                chosen.append(row)
    return chosen[:limit]


def _drop_foreign(
    rows: list[StoredMessage], store: Store, criteria: SearchCriteria
) -> list[StoredMessage]:
    """Drop messages of other partitions that share an id with one that matches the filter."""
    if criteria.where == EVERYTHING or criteria.scope.partition is not None:
        return rows
    passing = set(store.find(criteria.scope, criteria.where))
    return [row for row in rows if row.key in passing]


def read_linked(
    store: Store, row: StoredMessage, criteria: SearchCriteria
) -> tuple[StoredMessage, ...]:
    """Return the messages linked to a hit, if requested."""
    if not criteria.link:
        return ()
    scope = Scope(row.partition, criteria.scope.instance)
    threshold = criteria.link_cosine(row.partition)
    ids = [row.id, *store.linked([row.id], 1, scope, threshold)]
    return tuple(message for message in store.with_partners(ids, scope) if message.id != row.id)
