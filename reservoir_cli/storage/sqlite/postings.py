"""Read the postings of a question's words from the full-text index, stem by stem.

The cost of a question is bounded: rare stems are read first, and common ones only until a limit
of occurrences is reached.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from reservoir_cli.messages import Scope
from reservoir_cli.storage.search import correct_misspelt_words, fulltext, rank_by_words
from reservoir_cli.storage.search.candidates import Candidates, Correction, Posting
from reservoir_cli.storage.search.stemmer import split_stems, words_by_stem
from reservoir_cli.storage.sqlite.connection import Connection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Ints = NDArray[np.int64]
#: How many occurrences of a word are always read, and how many for one question beyond that.
#: Reading a million occurrences takes 0.1 s, and counting them a tenth of that.
_FEW, _READ_AT_MOST = 10_000, 250_000


class Stem:
    """The occurrences of a stem, read on first use."""

    def __init__(
        self, connection: Connection, name: str, total: int, limit: int, *, is_whole: bool
    ) -> None:
        self.name, self.total, self.is_whole = name, total, is_whole
        self._connection, self._limit = connection, limit

    @cached_property
    def holders(self) -> tuple[_Ints, _Ints]:
        """The ids of the messages that contain it, ascending, and its count in each."""
        return _count(_docs(self._connection, self.name, self._limit))


def read_postings(
    connection: Connection, candidates: Candidates, scope: Scope, question: str
) -> tuple[tuple[Posting, ...], list[str]]:
    """Read the postings of a question's stems in a scope.

    Stop words are left out, and in a large scope the most common words, which cost the most and
    mean the least, unless no other word is left.

    :returns: the postings, and the stems that no message of the scope contains.
    """
    words = fulltext.content_words(question)
    if not words or not len(candidates.ids):
        return (), []
    absent: list[str] = []
    postings: list[Posting] = []
    common: list[Stem] = []
    large = len(candidates.ids) > rank_by_words.LARGE
    most = rank_by_words.COMMON * len(candidates.ids)
    elsewhere = 0
    if large:  # at most as many as the highest id
        [last] = connection.execute("SELECT MAX(id) FROM messages").fetchone()
        elsewhere = (last or 0) - len(candidates.ids)
    for stem in look_up(connection, words):
        if large and (not stem.is_whole or stem.total - elsewhere > most):
            common.append(stem)  # its count alone proves that
            continue
        if stem.is_whole:
            posting = _in_scope(candidates, *stem.holders)
        else:
            typed = words_by_stem(words.split())[stem.name]
            posting = _match(connection, candidates, scope, typed)
        if large and len(posting.positions) > most:
            common.append(stem)
        elif len(posting.positions):
            postings.append(posting._replace(stem=stem.name))
        else:
            absent.append(stem.name)
    return tuple(postings or (_in_scope(candidates, *stem.holders) for stem in common[:1])), absent


def correct_misspelt(
    connection: Connection, candidates: Candidates, question: str, absent: list[str]
) -> tuple[tuple[Correction, ...], tuple[Posting, ...]]:
    """Correct the words of a question that no message of a scope contains."""
    letters = 1 if len(candidates.ids) <= rank_by_words.LARGE else 2

    def vocabulary(stem: str) -> list[tuple[str, int]]:
        first, most = stem[:letters], correct_misspelt_words.slips_allowed(stem)
        near = connection.execute(
            """
            SELECT term, doc FROM temp.stem_counts
            WHERE term >= ? AND term < ? AND length(term) BETWEEN ? AND ?
            """,
            [first, first + "\U0010ffff", len(stem) - most, len(stem) + most],
        ).fetchall()
        for shorter in correct_misspelt_words.stems_without_ending(stem):
            near += connection.execute(
                "SELECT term, doc FROM temp.stem_counts WHERE term = ?", [shorter]
            )
        return near

    def posting_of(stem: str) -> Posting:
        return _in_scope(candidates, *_count(_docs(connection, stem, _READ_AT_MOST)))

    return correct_misspelt_words.correct(question, absent, split_stems, vocabulary, posting_of)


def look_up(connection: Connection, words: str) -> list[Stem]:
    """Return the stems of words."""
    open_vocabularies(connection)
    names = sorted({*split_stems([words])[0]})
    totals = [(name, *_totals(connection, name)) for name in names]
    stems = [
        Stem(connection, name, total, _FEW + 1, is_whole=True)
        for name, total, occurrences in totals
        if occurrences <= _FEW
    ]
    budget = _READ_AT_MOST
    for name, total, occurrences in totals:
        if occurrences > _FEW:
            limit = max(budget, _FEW)
            stems.append(Stem(connection, name, total, limit + 1, is_whole=occurrences <= limit))
            budget -= min(occurrences, limit + 1)
    return stems


def _totals(connection: Connection, stem: str) -> tuple[int, int]:
    query = "SELECT doc, cnt FROM temp.stem_counts WHERE term = ?"
    total, occurrences = connection.execute(query, [stem]).fetchone() or (0, 0)
    return total, occurrences


def _count(docs: _Ints) -> tuple[_Ints, _Ints]:
    """Return the messages that contain a stem, ascending, and its count in each."""
    import numpy as np

    if (docs[1:] < docs[:-1]).any():
        docs = np.sort(docs)
    starts = np.flatnonzero(np.concatenate([[True], docs[1:] != docs[:-1]])[: len(docs)])
    return docs[starts], np.diff(starts, append=len(docs))


def _in_scope(candidates: Candidates, holders: _Ints, counts: _Ints) -> Posting:
    import numpy as np

    positions, is_candidate = candidates.positions(holders)
    return Posting(positions, counts[is_candidate].astype(np.int32))


def _match(connection: Connection, candidates: Candidates, scope: Scope, word: str) -> Posting:
    """Return the posting of a very common word, counted once per message.

    :param word: not its stem, which may be stemmed further: deployment, deploy, deploi.
    """
    import numpy as np

    docs = _numbers(
        connection,
        "SELECT group_concat(rowid) FROM messages_fts WHERE messages_fts MATCH ?",
        [fulltext.match_query(word, scope)],
    )
    positions, _ = candidates.positions(docs)
    return Posting(positions, np.ones(len(positions), np.int32))


def _docs(connection: Connection, stem: str, limit: int) -> _Ints:
    # Words of the column scope count, too: a condition on the column doubles the time.
    return _numbers(
        connection,
        """
        SELECT group_concat(doc) FROM (
            SELECT doc FROM temp.stem_places WHERE term = ? LIMIT ?
        )
        """,
        [stem, limit],
    )


def _numbers(connection: Connection, sql: str, values: list[str | int]) -> _Ints:
    """Read numbers that a query joins by commas, which is three times as fast as rows."""
    import numpy as np

    text = connection.execute(sql, values).fetchone()[0]
    return np.fromstring(text or "", np.int64, sep=",")


def open_vocabularies(connection: Connection) -> None:
    """Create the temporary tables that list the index's stems.

    ``stem_places`` has a row for each occurrence of a stem, ``stem_counts`` one for each stem.
    """
    for table, kind in (("stem_places", "instance"), ("stem_counts", "row")):
        connection.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{table} "
            f"USING fts5vocab(main, messages_fts, {kind})"
        )
