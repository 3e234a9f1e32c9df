"""The hits of a search, and the reading of their messages."""

from dataclasses import dataclass, replace
from typing import Any

from reservoir_cli.messages import Scope, StoredMessage
from reservoir_cli.redaction import Redactor
from reservoir_cli.storage.filter_conditions import Filter
from reservoir_cli.storage.store import Store


@dataclass(frozen=True, slots=True)
class Hit:
    """A message found by a search.

    :param rank: 1 for the best.
    :param score: the value that orders hits: similarity, BM25, or cosine.
    :param cosine: ``None`` if the message or the question has no vector.
    :param linked: messages linked to it or of its trace, if requested.
    :param all_words: whether it contains all the words of a keyword search, not just any.
    :param passage: the span of the passage nearest to the question, if requested and the message
        has more than one.
    :param words: the spans of the question's words in the text, or in one part of a long text, if
        requested.
    :param title: of its conversation, if requested.
    :param notes: user-facing notes about the search.
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
class Wanted:
    """The criteria for hits; see :func:`reservoir_cli.retrieval.search.search`."""

    scope: Scope
    limit: int
    threshold: float | None
    link: bool
    deduplicate: bool
    where: Filter
    redactor: Redactor | None


def read_rows(store: Store, numbers: list[int], wanted: Wanted) -> list[StoredMessage]:
    """Return the first messages of a ranking, without duplicates if requested.

    If several partitions of a server use an id, all of their messages are returned.
    """
    numbers = list(dict.fromkeys(numbers))
    chosen: list[StoredMessage] = []
    contents: set[str] = set()
    limit = wanted.limit
    while numbers and len(chosen) < limit:
        batch, numbers = numbers[: 2 * limit], numbers[2 * limit :]
        rows: dict[int, list[StoredMessage]] = {}
        for row in _drop_foreign(store.by_id(batch, wanted.scope), store, wanted):
            rows.setdefault(row.id, []).append(row)
        for row in (row for number in batch for row in rows[number]):
            if not wanted.deduplicate or row.content.strip() not in contents:
                contents.add(row.content.strip())
                chosen.append(row)
    return chosen[:limit]


def _drop_foreign(rows: list[StoredMessage], store: Store, wanted: Wanted) -> list[StoredMessage]:
    """Drop messages of other partitions that share an id with one that matches the filter."""
    if wanted.where == Filter() or wanted.scope.partition is not None:
        return rows
    passing = set(store.find(wanted.scope, wanted.where))
    return [row for row in rows if row.key in passing]


def read_linked(store: Store, row: StoredMessage, wanted: Wanted) -> tuple[StoredMessage, ...]:
    """Return the messages linked to a hit, if requested."""
    if not wanted.link:
        return ()
    scope = Scope(row.partition, wanted.scope.instance)
    ids = [row.id, *store.linked([row.id], 1, scope)]
    return tuple(message for message in store.with_partners(ids, scope) if message.id != row.id)
