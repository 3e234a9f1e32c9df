"""Where the words of a question stand: the index's own lists of places, stem by stem.

The cost of a question is bounded: rare stems are read first, and common ones only while the
places read stay below a limit.
"""

import sqlite3
from typing import TYPE_CHECKING

import numpy as np

from reservoir_cli.store import fulltext
from reservoir_cli.window import Posting

if TYPE_CHECKING:
    from reservoir_cli.window import Candidates

#: In a scope of more messages than this, words found in more than a share of them are dropped.
_LARGE, _COMMON = 20_000, 0.1
#: How many places are read for one question, about 0.1 s of reading.
_READ_AT_MOST = 250_000


def postings(
    connection: sqlite3.Connection, found: "Candidates", question: str
) -> tuple[Posting, ...]:
    """Where the stems of a question stand among messages.

    Without stop words, and in a large scope without the most common words, which cost the most
    and say the least; never without all of them.
    """
    words = fulltext.content_words(question)
    if not words or not len(found.ids):
        return ()
    open_vocabularies(connection)
    connection.execute("DELETE FROM temp.question")
    connection.execute("INSERT INTO temp.question VALUES (?)", [words])
    stems = connection.execute(
        """
        SELECT s.term, f.cnt FROM temp.question_stems s JOIN temp.stems f ON f.term = s.term
        ORDER BY f.cnt, s.term
        """
    ).fetchall()
    read, kept, common = 0, [], []
    for stem, count in stems:
        if read + count > _READ_AT_MOST and read:
            break
        read += count
        posting = _posting(connection, found, stem)
        if len(found.ids) > _LARGE and len(posting.places) > _COMMON * len(found.ids):
            common.append(posting)
        elif len(posting.places):
            kept.append(posting)
    return tuple(kept or common[:1])


def _posting(connection: sqlite3.Connection, found: "Candidates", stem: str) -> Posting:
    docs = connection.execute(
        "SELECT doc FROM temp.stem_places WHERE term = ? AND col = 'text'", [stem]
    ).fetchall()
    holders, counts = np.unique(
        np.fromiter((row[0] for row in docs), np.int64, len(docs)), return_counts=True
    )
    places, known = found.places(holders)
    return Posting(places, counts[known].astype(np.int32))


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
