"""Where the words of a question stand: the index's own lists of places, stem by stem.

The cost of a question is bounded: rare stems are read first, and common ones only while the
places read stay below a limit.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from reservoir_cli.messages import Scope
from reservoir_cli.storage import fulltext, spelling
from reservoir_cli.storage.candidates import Candidates, Posting, Respelt
from reservoir_cli.storage.sqlite.connection import Connection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Ints = NDArray[np.int64]
#: In a scope of more messages than this, words found in more than a share of them are dropped.
LARGE, COMMON = 20_000, 0.1
#: How many places of a word are always read, and how many for one question beyond that. Reading
#: is what costs: a million places take 0.1 s. To count them takes a tenth of it.
_FEW, _READ_AT_MOST = 10_000, 250_000
#: Letters of the words that say in which scope a message is.
_SCOPE_KEY = 18


class Stem:
    """Where a stem stands, which is read when it is asked for.

    :param total: how many messages hold it.
    :param limit: how many of its places are read.
    :param is_whole: that is all of them.
    """

    def __init__(
        self, connection: Connection, name: str, total: int, limit: int, *, is_whole: bool
    ) -> None:
        self.name, self.total, self.is_whole = name, total, is_whole
        self._connection, self._limit = connection, limit

    @cached_property
    def holders(self) -> tuple[_Ints, _Ints]:
        """The ids of the messages that hold it, ascending, and how often each does."""
        return _counted(_docs(self._connection, self.name, self._limit))


def postings(
    connection: Connection,
    found: Candidates,
    scope: Scope,
    question: str,
    looked_up: list[Stem] | None = None,
) -> tuple[tuple[Posting, ...], list[str]]:
    """Find the stems of a question among the messages of a scope.

    Without stop words, and in a large scope without the most common words, which cost the most
    and say the least; never without all of them.

    :param looked_up: what :func:`look_up` has just returned for the question.
    :returns: where the stems stand, and the stems that stand nowhere.
    """
    words = fulltext.content_words(question)
    if not words or not len(found.ids):
        return (), []
    absent: list[str] = []
    kept: list[Posting] = []
    common: list[Stem] = []
    large = len(found.ids) > LARGE
    most = COMMON * len(found.ids)
    elsewhere = _last_id(connection) - len(found.ids) if large else 0
    stems = look_up(connection, words, len(found.ids)) if looked_up is None else looked_up
    for stem in stems:
        if large and (not stem.is_whole or stem.total - elsewhere > most):
            common.append(stem)  # which is certain before it is read
            continue
        if stem.is_whole:
            posting = _within(found, *stem.holders)
        else:
            posting = _held(connection, found, scope, _as_typed(connection, words)[stem.name])
        if large and len(posting.places) > most:
            common.append(stem)
        elif len(posting.places):
            kept.append(posting)
        else:
            absent.append(stem.name)
    return tuple(kept or (_within(found, *stem.holders) for stem in common[:1])), absent


def _last_id(connection: Connection) -> int:
    """Return the highest id of a message: there are no more messages than that."""
    return int(connection.execute("SELECT MAX(id) FROM messages").fetchone()[0] or 0)


def respell(
    connection: Connection, found: Candidates, question: str, absent: list[str]
) -> tuple[tuple[Respelt, ...], tuple[Posting, ...]]:
    """Find the nearest words for those of a question that stand nowhere in a scope.

    :param absent: their stems, as :func:`postings` just returned them for the same question.
    """
    words = _as_typed(connection, fulltext.content_words(question))
    typed = {stem: words[stem] for stem in absent if stem in words}
    letters = 1 if len(found.ids) <= LARGE else 2

    def vocabulary(stem: str) -> list[tuple[str, int]]:
        first, most = stem[:letters], spelling.slips_allowed(stem)
        near = connection.execute(
            """
            SELECT term, doc FROM temp.stem_counts
            WHERE term >= ? AND term < ? AND length(term) BETWEEN ? AND ?
            """,
            [first, first + "\U0010ffff", len(stem) - most, len(stem) + most],
        ).fetchall()
        for shorter in spelling.without_ending(stem):
            near += connection.execute(
                "SELECT term, doc FROM temp.stem_counts WHERE term = ?", [shorter]
            )
        return near

    def posting_of(stem: str) -> Posting:
        return _within(found, *_counted(_docs(connection, stem, _READ_AT_MOST)))

    return spelling.respell(typed, vocabulary, posting_of)


def _as_typed(connection: Connection, words: str) -> dict[str, str]:
    """Return the words of a question by their stems, which :func:`look_up` has just found."""
    typed = words.split()
    places = connection.execute("SELECT term, offset FROM temp.question_places").fetchall()
    return {stem: typed[place] for stem, place in places if place < len(typed)}


def look_up(connection: Connection, words: str, expected: int = 0) -> list[Stem]:
    """Return where the stems of some words stand.

    The rarer stems come first, so that the common ones share what may still be read.

    :param expected: the likely size of the scope; what is too common in a large one is not read
        yet.
    """
    open_vocabularies(connection)
    connection.execute("DELETE FROM temp.question")
    connection.execute("INSERT INTO temp.question VALUES (?)", [words])
    names = connection.execute("SELECT term FROM temp.question_stems ORDER BY term").fetchall()
    totals = [(name, *_totals(connection, name)) for (name,) in names]
    stems = [
        Stem(connection, name, total, _FEW + 1, is_whole=True)
        for name, total, places in totals
        if places <= _FEW
    ]
    left = _READ_AT_MOST
    for name, total, places in totals:
        if places > _FEW:
            limit = max(left, _FEW)
            stems.append(Stem(connection, name, total, limit + 1, is_whole=places <= limit))
            left -= min(places, limit + 1)
    for stem in stems:
        if expected <= LARGE or stem.total <= COMMON * expected:
            _ = stem.holders
    return stems


def _totals(connection: Connection, stem: str) -> tuple[int, int]:
    """Return how many messages hold a stem, and in how many places."""
    query = "SELECT doc, cnt FROM temp.stem_counts WHERE term = ?"
    if len(stem) == _SCOPE_KEY:  # this table counts the words of scopes, too
        query = (
            "SELECT COUNT(DISTINCT doc), COUNT(*) FROM temp.stem_places "
            "WHERE term = ? AND col = 'text'"
        )
    total, places = connection.execute(query, [stem]).fetchone() or (0, 0)
    return total, places


def _counted(docs: _Ints) -> tuple[_Ints, _Ints]:
    """Return the messages that hold a stem, ascending, and how often each does.

    :param docs: the message of each of its places; in order, unless the index is damaged.
    """
    import numpy as np

    if (docs[1:] < docs[:-1]).any():
        docs = np.sort(docs)
    starts = np.flatnonzero(np.concatenate([[True], docs[1:] != docs[:-1]])[: len(docs)])
    return docs[starts], np.diff(starts, append=len(docs))


def _within(found: Candidates, holders: _Ints, counts: _Ints) -> Posting:
    """Return where a stem stands in a scope."""
    import numpy as np

    places, known = found.places(holders)
    return Posting(places, counts[known].astype(np.int32))


def _held(connection: Connection, found: Candidates, scope: Scope, word: str) -> Posting:
    """Where a word stands, counted once a message: enough for one that stands everywhere.

    :param word: not its stem, which may have another stem itself: deployment, deploy, deploi.
    """
    import numpy as np

    docs = _numbers(
        connection,
        "SELECT group_concat(rowid) FROM messages_fts WHERE messages_fts MATCH ?",
        [fulltext.match_query([f'"{word}"'], scope, "OR")],
    )
    places, _ = found.places(docs)
    return Posting(places, np.ones(len(places), np.int32))


def _docs(connection: Connection, stem: str, limit: int) -> _Ints:
    """Return the messages that hold a stem, once for each time, up to a limit."""
    # To name the column takes as long as the rest.
    column = "AND col = 'text'" if len(stem) == _SCOPE_KEY else ""
    return _numbers(
        connection,
        f"""
        SELECT group_concat(doc) FROM (
            SELECT doc FROM temp.stem_places WHERE term = ? {column} LIMIT ?
        )
        """,
        [stem, limit],
    )


def _numbers(connection: Connection, sql: str, values: list[str | int]) -> _Ints:
    """Read numbers that a query joins by commas, three times as fast as rows."""
    import numpy as np

    text = connection.execute(sql, values).fetchone()[0]
    return np.fromstring(text or "", np.int64, sep=",")


def open_vocabularies(connection: Connection) -> None:
    """Make the tables that show the index's words, and a table that stems a question's.

    ``stem_places`` tells where each stem stands, ``stem_counts`` how often; ``question`` has the
    tokenizer of the index, ``question_stems`` and ``question_places`` show what it made of a text.
    They live in this connection only.
    """
    connection.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.question USING fts5(text, {fulltext.TOKENIZE})"
    )
    for table, of, kind in (
        ("question_stems", "temp, question", "row"),
        ("question_places", "temp, question", "instance"),
        ("stem_places", "main, messages_fts", "instance"),
        ("stem_counts", "main, messages_fts", "row"),
    ):
        connection.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{table} USING fts5vocab({of}, {kind})"
        )
