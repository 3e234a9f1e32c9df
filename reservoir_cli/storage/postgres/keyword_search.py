"""Read the postings of a question's words on a server, and search for typed terms and phrases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from reservoir_cli.messages import Channel, Scope, StoredMessage, clean_text, searchable_text
from reservoir_cli.storage import portable_sql
from reservoir_cli.storage.keys import Keys
from reservoir_cli.storage.postgres.connection import Connection
from reservoir_cli.storage.search import correct_misspelt_words, fulltext, rank_by_words
from reservoir_cli.storage.search.candidates import Candidates, Correction, Posting
from reservoir_cli.storage.search.stemmer import (
    OF_ONE,
    query,
    quote,
    scope_stems,
    split_short_stems,
    tsvectors,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Ints = NDArray[np.int64]
_FEW = 40  #: Up to this number of stems, ranking each of them is faster than unpacking the rows.
_OFTEN = 32  #: Few texts contain a word more often.
#: A misspelled word is compared with words that share this many first letters, in this many rows.
_BEGINNING, _SAMPLED = 3, 500


def index(connection: Connection, channel: Channel, messages: Sequence[StoredMessage]) -> None:
    """Index the words of messages of one partition and instance."""
    keys = " ".join(map(quote, scope_stems(*channel)))
    rows: list[tuple[str, int, int, int, str]] = []
    vectors = tsvectors(clean_text(searchable_text(message)) for message in messages)
    for message, parts in zip(messages, vectors, strict=True):
        for part, (start, vector) in enumerate(parts):
            rows.append((channel[0], message.id, part, start, f"{keys} {vector}"))
    connection.insert("words", "partition, message_id, part, start, stems", rows)


def read_postings(
    connection: Connection, candidates: Candidates, scope: Scope, question: str
) -> tuple[tuple[Posting, ...], list[str]]:
    """Read the postings of a question's stems in a scope.

    Stop words are left out, and in a large scope the most common words, which mean the least,
    unless no other word is left.

    :returns: the postings, and the stems that no message of the scope contains.
    """
    words = fulltext.content_words(question)
    if not words or not len(candidates.ids):
        return (), []
    stems = sorted(set(split_short_stems([words])[0]))
    if not stems:
        return (), []
    ids, counts = _counts(connection, scope, stems)
    positions, is_candidate = candidates.positions(ids)
    counts = counts[:, is_candidate]
    postings: list[Posting] = []
    common: list[Posting] = []
    total = len(candidates.ids)
    for stem, row in zip(stems, counts, strict=True):
        holds = row > 0
        posting = Posting(positions[holds], row[holds], stem)
        if total > rank_by_words.LARGE and holds.sum() > rank_by_words.COMMON * total:
            common.append(posting)
        elif holds.any():
            postings.append(posting)
    absent = [stem for stem, row in zip(stems, counts, strict=True) if not row.any()]
    return tuple(postings or common[:1]), absent


def correct_misspelt(
    connection: Connection,
    candidates: Candidates,
    scope: Scope,
    question: str,
    absent: list[str],
) -> tuple[tuple[Correction, ...], tuple[Posting, ...]]:
    """Correct the words of a question that no message of a scope contains.

    The server has no list of its words: candidates come from a sample of the scope's rows that
    contain a word with the same beginning.
    """

    def vocabulary(stem: str) -> list[tuple[str, int]]:
        first = stem[:_BEGINNING]
        where, values = _where(scope, f"{quote(first)}:*")
        return connection.rows(
            f"""
            SELECT u.lexeme, count(*) FROM (
                SELECT w.stems FROM words w WHERE {where} LIMIT {_SAMPLED}
            ) s CROSS JOIN LATERAL unnest(s.stems) u
            WHERE starts_with(u.lexeme, ?) GROUP BY u.lexeme
            """,
            [*values, first],
        )

    def posting_of(stem: str) -> Posting:
        ids, counts = _counts(connection, scope, [stem])
        positions, is_candidate = candidates.positions(ids)
        return Posting(positions, counts[0][is_candidate])

    split = split_short_stems
    return correct_misspelt_words.correct(question, absent, split, vocabulary, posting_of)


def _counts(
    connection: Connection, scope: Scope, stems: Sequence[str]
) -> tuple[_Ints, NDArray[np.int32]]:
    """Return the messages that contain any of these stems, and the count of each stem in them."""
    import numpy as np

    ranked = _counts_by_rank(connection, scope, stems) if len(stems) <= _FEW else None
    docs, counts = ranked or _counts_by_unpacking(connection, scope, stems)
    ids, inverse = np.unique(docs, return_inverse=True)
    joined = np.zeros((len(stems), len(ids)), np.int32)
    for row, of_stem in zip(joined, counts, strict=True):  # a long text has several rows
        np.add.at(row, inverse, of_stem)
    return ids, joined


def _where(scope: Scope, tsquery: str) -> tuple[str, list[str]]:
    condition, values = portable_sql.where_scope(Scope(scope.partition), "w")
    return f"{condition} AND w.stems @@ ?::tsquery", [*values, query(tsquery, scope)]


def _ranks(connection: Connection, most: int) -> NDArray[np.float32] | None:
    """Return the server's rank of a row for each count of a stem: 0, 1, 2, ….

    Deriving the count from the rank takes a tenth of the time of unpacking the row.

    :returns: ascending, shape (most + 1,); ``None`` if different counts have the same rank.
    """
    import numpy as np

    positive = connection.arrays(
        {"ranks": ("ts_rank('{1, 1, 1, 1}', t.stems, 'a'::tsquery, 0)", "f4")},
        """
        FROM (
            SELECT ('a:' || array_to_string(ARRAY(SELECT generate_series(1, i)), ','))::tsvector
            AS stems FROM generate_series(1, ?) i ORDER BY i
        ) t
        """,
        [most],
    )["ranks"]
    ranks = np.concatenate([np.zeros(1, np.float32), positive])
    return ranks if (np.diff(ranks) > 0).all() else None


def _counts_by_rank(
    connection: Connection, scope: Scope, stems: Sequence[str]
) -> tuple[_Ints, NDArray[np.int32]] | None:
    import numpy as np

    where, values = _where(scope, " | ".join(map(quote, stems)))
    columns = connection.arrays(
        {
            "docs": ("w.message_id", "i8"),
            **{
                f"rank {at}": ("ts_rank('{1, 1, 1, 1}', w.stems, ?::tsquery, 0)", "f4")
                for at in range(len(stems))
            },
        },
        f"FROM words w WHERE {where}",
        [*map(quote, stems), *values],
    )
    of_stems = np.stack([columns[f"rank {at}"] for at in range(len(stems))])
    for most in (_OFTEN, OF_ONE):
        ranks = _ranks(connection, most)
        if ranks is None:
            return None
        if of_stems.max(initial=0) <= ranks[-1]:
            counts = np.searchsorted(ranks, of_stems)
            return columns["docs"], counts.astype(np.int32)
    return None


def _counts_by_unpacking(
    connection: Connection, scope: Scope, stems: Sequence[str]
) -> tuple[_Ints, NDArray[np.int32]]:
    import numpy as np

    where, values = _where(scope, " | ".join(map(quote, stems)))
    columns = connection.arrays(
        {
            "docs": ("w.message_id", "i8"),
            "stem": ("array_position(?::text[], u.lexeme)", "i4"),
            "count": ("array_length(u.positions, 1)", "i4"),
        },
        f"""
        FROM words w CROSS JOIN LATERAL unnest(w.stems) u
        WHERE {where} AND u.lexeme = ANY(?)
        """,
        [list(stems), *values, list(stems)],
    )
    counts = np.zeros((len(stems), len(columns["docs"])), np.int32)
    counts[columns["stem"] - 1, np.arange(len(columns["docs"]))] = columns["count"]
    return columns["docs"], counts


def search(
    connection: Connection, text: str, scope: Scope, limit: int, matching: Keys | None = None
) -> tuple[list[tuple[int, float]], bool]:
    """See :func:`reservoir_cli.storage.search.rank_by_words.search`."""
    condition, values = portable_sql.where_scope(scope)
    scoped = connection.arrays(
        {"ids": ("t.id", "i8"), "terms": ("t.word_count", "i4")},
        f"FROM (SELECT m.id, m.word_count FROM messages m WHERE {condition} ORDER BY m.id) t",
        values,
    )
    lengths = dict(zip(scoped["ids"].tolist(), scoped["terms"].tolist(), strict=True))
    count = partial(_count_matches, connection, scope)
    return rank_by_words.search(text, split_short_stems, count, lengths, limit, matching)


def _count_matches(
    connection: Connection, scope: Scope, stems: list[str], is_prefix: bool
) -> Counter[int]:
    """Count how often each message contains stems in sequence, the last one maybe as a prefix."""
    names = [quote(stem) for stem in stems]
    names[-1] += ":*" if is_prefix else ""
    where, values = _where(scope, " | ".join(dict.fromkeys(names)))
    starts: list[set[tuple[int, int]]] = [set() for _ in stems]
    for message_id, start, lexeme, positions in connection.rows(
        f"""
        SELECT w.message_id, w.start, u.lexeme, u.positions
        FROM words w CROSS JOIN LATERAL unnest(w.stems) u WHERE {where}
        AND (u.lexeme = ANY(?) OR (? AND starts_with(u.lexeme, ?)))
        """,
        [*values, stems, is_prefix, stems[-1]],
    ):
        for at, stem in enumerate(stems):
            is_open = is_prefix and at == len(stems) - 1
            if lexeme == stem or (is_open and lexeme.startswith(stem)):
                starts[at].update((message_id, start + position - at) for position in positions)
    return Counter(message for message, _ in set.intersection(*starts))
