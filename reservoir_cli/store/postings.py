"""Where the words of a question stand: the index's own lists of places, stem by stem.

The cost of a question is bounded: rare stems are read first, and common ones only while the
places read stay below a limit.
"""

import sqlite3
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.messages import Scope
from reservoir_cli.store import fulltext
from reservoir_cli.window import Posting

if TYPE_CHECKING:
    from reservoir_cli.window import Candidates

#: In a scope of more messages than this, words found in more than a share of them are dropped.
_LARGE, _COMMON = 20_000, 0.1
#: How many places of the index are read for one question: a million take 0.15 s.
_READ_AT_MOST = 250_000


def postings(
    connection: sqlite3.Connection, found: "Candidates", scope: Scope, question: str
) -> tuple[Posting, ...]:
    """Where the stems of a question stand among the messages of a scope.

    Without stop words, and in a large scope without the most common words, which cost the most
    and say the least; never without all of them.
    """
    words = fulltext.content_words(question)
    if not words or not len(found.ids):
        return ()
    read = 0
    kept: list[Posting] = []
    common: list[Posting] = []
    for stem, count in _stems(connection, words):
        if (not kept and not common) or read + count <= _READ_AT_MOST:
            read += count
            posting = _counted(connection, found, stem)
        elif len(found.ids) <= _LARGE:
            posting = _held(connection, found, scope, stem)
        else:
            break
        if len(found.ids) > _LARGE and len(posting.places) > _COMMON * len(found.ids):
            common.append(posting)
        elif len(posting.places):
            kept.append(posting)
    return tuple(kept or common[:1])


def _stems(connection: sqlite3.Connection, words: str) -> list[tuple[str, int]]:
    """The stems of some words that the index has, and at how many places, the rarest first."""
    open_vocabularies(connection)
    connection.execute("DELETE FROM temp.question")
    connection.execute("INSERT INTO temp.question VALUES (?)", [words])
    return connection.execute(
        """
        SELECT s.term, f.cnt FROM temp.question_stems s JOIN temp.stems f ON f.term = s.term
        ORDER BY f.cnt, s.term
        """
    ).fetchall()


def _counted(connection: sqlite3.Connection, found: "Candidates", stem: str) -> Posting:
    """Where a stem stands and how often, from all of its places in the index."""
    docs = _numbers(
        connection,
        "SELECT group_concat(doc) FROM temp.stem_places WHERE term = ? AND col = 'text'",
        stem,
    )
    holders, counts = np.unique(docs, return_counts=True)
    places, known = found.places(holders)
    return Posting(places, counts[known].astype(np.int32))


def _held(connection: sqlite3.Connection, found: "Candidates", scope: Scope, stem: str) -> Posting:
    """Where a stem stands, counted once a message: enough for one that stands everywhere."""
    docs = _numbers(
        connection,
        "SELECT group_concat(rowid) FROM messages_fts WHERE messages_fts MATCH ?",
        fulltext.match_query([f'"{stem}"'], scope, "OR"),
    )
    places, _ = found.places(docs)
    return Posting(places, np.ones(len(places), np.int32))


def _numbers(connection: sqlite3.Connection, sql: str, value: str) -> NDArray[np.int64]:
    """The numbers that a query joins by commas: a third of the time that rows of them take."""
    text = connection.execute(sql, [value]).fetchone()[0]
    return np.fromstring(text or "", np.int64, sep=",")


def open_vocabularies(connection: sqlite3.Connection) -> None:
    """Make the tables that show the index's words, and a table that stems a question's.

    ``stem_places`` tells where each stem stands and ``stems`` how often in all; ``question`` has
    the tokenizer of the index, ``question_stems`` and ``question_places`` show what it made of a
    text. They live in this connection only.
    """
    connection.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.question USING fts5(text, {fulltext.TOKENIZE})"
    )
    for table, of, kind in (
        ("question_stems", "temp, question", "row"),
        ("question_places", "temp, question", "instance"),
        ("stem_places", "main, messages_fts", "instance"),
        ("stems", "main, messages_fts", "row"),
    ):
        connection.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{table} USING fts5vocab({of}, {kind})"
        )
