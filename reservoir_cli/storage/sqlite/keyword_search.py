"""Search for words, phrases and prefixes as typed, ranked by BM25 over the scope, without numpy.

FTS5's own ranking uses the whole file: text in other partitions would change the scores.
"""

import sys
from array import array
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from reservoir_cli.messages import Channel, Scope, StoredMessage, clean_text, searchable_text
from reservoir_cli.storage import portable_sql
from reservoir_cli.storage.keys import Keys
from reservoir_cli.storage.portable_sql import decoding
from reservoir_cli.storage.search import fulltext, rank_by_words
from reservoir_cli.storage.search.stemmer import split_stems
from reservoir_cli.storage.sqlite import postings
from reservoir_cli.storage.sqlite.connection import Connection


def index(connection: Connection, channel: Channel, messages: Sequence[StoredMessage]) -> None:
    """Add messages of one partition and instance to the full-text index.

    Call it once after all rows are inserted: FTS5 flushes whenever a statement on another table
    comes between, which takes three times as long.
    """
    insert = "INSERT INTO messages_fts (rowid, text, scope)"
    _write(connection, f"{insert} VALUES (?, ?, ?)", channel, messages)


def unindex(connection: Connection, channel: Channel, messages: Sequence[StoredMessage]) -> None:
    """Remove messages from the full-text index, which needs the texts that were indexed."""
    delete = "INSERT INTO messages_fts (messages_fts, rowid, text, scope)"
    _write(connection, f"{delete} VALUES ('delete', ?, ?, ?)", channel, messages)


def _write(
    connection: Connection, sql: str, channel: Channel, messages: Sequence[StoredMessage]
) -> None:
    keys = fulltext.scope_keys(*channel)
    rows = []
    for message in messages:
        text = clean_text(searchable_text(message))
        rows.append((message.id, fulltext.indexed_text(text), keys))
    connection.executemany(sql, rows)


def search(
    connection: Connection,
    text: str,
    scope: Scope,
    limit: int,
    model_id: str | None,
    matching: Keys | None = None,
) -> tuple[list[tuple[int, float]], bool]:
    """See :func:`reservoir_cli.storage.search.rank_by_words.search`."""
    postings.open_vocabularies(connection)
    count = partial(_count_matches, connection)
    lengths = _lengths(connection, scope, model_id)
    return rank_by_words.search(text, split_stems, count, lengths, limit, matching)


def _lengths(connection: Connection, scope: Scope, model_id: str | None) -> dict[int, int]:
    where, values = portable_sql.where_scope(scope)
    lengths: dict[int, int] = dict(
        connection.execute(
            "SELECT m.id, m.word_count FROM pending p CROSS JOIN messages m ON m.id = p.message_id "
            f"WHERE {where}",
            values,
        )
    )
    blocks = connection.execute(
        f"SELECT m.ids, m.word_counts FROM blocks m WHERE m.model_id = ? AND {where}",
        [model_id, *values],
    )
    with decoding("blocks of vectors"):
        for ids, terms in blocks:
            lengths.update(zip(_unpack("q", ids), _unpack("i", terms), strict=True))
    return lengths


def _unpack(kind: str, blob: bytes) -> "array[int]":
    integers = array(kind, blob)
    if sys.byteorder == "big":
        integers.byteswap()
    return integers


def _count_matches(connection: Connection, stems: list[str], is_prefix: bool) -> Counter[int]:
    starts: list[set[Any]] = []
    for before, stem in enumerate(stems):
        condition, values = "term = ?", [stem]
        if is_prefix and before == len(stems) - 1:
            condition, values = "term >= ? AND term < ?", [stem, stem + "\U0010ffff"]
        query = f"SELECT doc, offset - ? FROM temp.stem_places WHERE {condition} AND col = 'text'"
        starts.append(set(connection.execute(query, [before, *values])))
    return Counter(message for message, _ in set.intersection(*starts))
