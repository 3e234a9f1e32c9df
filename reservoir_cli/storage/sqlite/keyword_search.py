"""Searching for exactly what was typed: words, phrases and prefixes, by BM25 over the scope.

The words are looked up in the index's own lists of places. FTS5's ranking would do nearly the
same, but it takes frequencies of the whole file, so that text in other partitions moves scores.

Without numpy: loading it takes longer than the search.
"""

import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import Scope, StoredMessage, clean_text, plain_text
from reservoir_cli.storage import filter_conditions, fulltext
from reservoir_cli.storage.compact_keys import Keys
from reservoir_cli.storage.portable_sql import decoding
from reservoir_cli.storage.sqlite import postings
from reservoir_cli.storage.sqlite.connection import Connection
from reservoir_cli.util import bm25_formula

#: More words take seconds, and nobody types them.
MOST_STEMS = 10_000


def index(connection: Connection, place: tuple[str, str], texts: Sequence[tuple[int, str]]) -> None:
    """Add (id, text) of messages of one place to the full text.

    All at once behind their rows: FTS5 writes out what it has gathered whenever a statement on
    another table comes in between, which took three times as long.
    """
    insert = "INSERT INTO messages_fts (rowid, text, scope)"
    _write(connection, f"{insert} VALUES (?, ?, ?)", place, texts)


def unindex(
    connection: Connection, place: tuple[str, str], texts: Sequence[tuple[int, str]]
) -> None:
    """Take messages out of the full text, which needs what it was given."""
    delete = "INSERT INTO messages_fts (messages_fts, rowid, text, scope)"
    _write(connection, f"{delete} VALUES ('delete', ?, ?, ?)", place, texts)


def _write(
    connection: Connection, sql: str, place: tuple[str, str], texts: Sequence[tuple[int, str]]
) -> None:
    keys = fulltext.scope_keys(*place)
    connection.executemany(
        sql, ((number, fulltext.indexed_text(text), keys) for number, text in texts)
    )


def texts_of(messages: Iterable[StoredMessage]) -> dict[tuple[str, str], list[tuple[int, str]]]:
    """Return (id, indexed text) of messages by their place."""
    texts: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for message in messages:
        text = clean_text(plain_text(message))
        texts.setdefault((message.partition, message.instance), []).append((message.id, text))
    return texts


def search(
    connection: Connection,
    text: str,
    scope: Scope,
    limit: int,
    model_id: str | None,
    matching: Keys | None = None,
) -> tuple[list[tuple[int, float]], bool]:
    """Messages with all that was typed, else with any of it.

    :param model_id: the model whose chunks tell how long messages are.
    :param matching: the only messages that may be hits; scores stay those of the scope.
    :raises UsageError: too many words.
    :returns: (id, BM25) best first, ties newest first, and whether the hits hold all of it.
    """
    terms = list(dict.fromkeys(fulltext.typed_terms(text)))
    lengths = _lengths(connection, scope, model_id)
    if not terms or not lengths:
        return [], True
    stemmed = _stems(connection, terms)
    if sum(len(stems) for stems, _ in stemmed) > MOST_STEMS:
        raise too_many()
    found = (_held(connection, *each) for each in stemmed)
    return ranked(lengths, found, limit, matching)


def too_many() -> UsageError:
    """Return the error for a query of too many words."""
    return UsageError(f"a keyword search takes {MOST_STEMS:,} words at most")


def ranked(
    lengths: Mapping[int, int],
    found: Iterable[Mapping[int, int]],
    limit: int,
    matching: Keys | None = None,
) -> tuple[list[tuple[int, float]], bool]:
    """Find the messages that hold all terms, or else any of them.

    :param lengths: the words of each message of a scope, by its id.
    :param found: for each term how often a message holds it, by its id; of any scope.
    :param matching: the only messages that may be hits.
    :returns: (id, BM25) best first, ties newest first, and whether the hits hold all terms.
    """
    allowed = lengths.keys() if matching is None else lengths.keys() & matching.ids
    terms = [(counts, counts.keys() & lengths.keys()) for counts in found]
    held = [known & allowed for _, known in terms]
    whole = set.intersection(*held) if held else set()
    hits = whole or set().union(*held)
    mean = sum(lengths.values()) / len(lengths)
    weighted = [(bm25_formula.rarity(len(lengths), len(known)), counts) for counts, known in terms]

    def score(message: int) -> float:
        norm = bm25_formula.norm(lengths[message], mean)
        gains = (
            rarity * bm25_formula.saturate(counts[message], norm)
            for rarity, counts in weighted
            if message in counts
        )
        return sum(gains)

    best = sorted((-score(message), -message) for message in hits)
    best = best[:limit] if limit >= 0 else best
    return [(-message, -score) for score, message in best], bool(whole or not hits)


def _lengths(connection: Connection, scope: Scope, model_id: str | None) -> dict[int, int]:
    """Return the words of each message of a scope, by its id."""
    where, values = filter_conditions.where_scope(scope)
    lengths: dict[int, int] = dict(
        connection.execute(
            "SELECT m.id, m.terms FROM pending p CROSS JOIN messages m ON m.id = p.message_id "
            f"WHERE {where}",
            values,
        )
    )
    blocks = connection.execute(
        f"SELECT m.ids, m.terms FROM vector_chunks m WHERE m.model_id = ? AND {where}",
        [model_id, *values],
    )
    with decoding("blocks of vectors"):
        for ids, terms in blocks:
            lengths.update(zip(_unpacked("q", ids), _unpacked("i", terms), strict=True))
    return lengths


def _unpacked(kind: str, blob: bytes) -> "array[int]":
    """Return the integers of a column of a block, which are little-endian."""
    integers = array(kind, blob)
    if sys.byteorder == "big":
        integers.byteswap()
    return integers


def _stems(connection: Connection, terms: list[str]) -> list[tuple[list[str], bool]]:
    """Return the stems of each term in their order, and whether its last is a prefix."""
    postings.open_vocabularies(connection)
    connection.execute("DELETE FROM temp.question")
    connection.executemany(
        "INSERT INTO temp.question (rowid, text) VALUES (?, ?)",
        [(number, term.rstrip("*").strip('"')) for number, term in enumerate(terms)],
    )
    found: dict[int, list[str]] = {}
    for number, stem in connection.execute(
        "SELECT doc, term FROM temp.question_places ORDER BY doc, offset"
    ):
        found.setdefault(number, []).append(stem)
    return [(stems, terms[number].endswith("*")) for number, stems in found.items()]


def _held(connection: Connection, stems: list[str], is_prefix: bool) -> Counter[int]:
    """Return how often each message holds stems in sequence, the last as a prefix, by its id."""
    last = len(stems) - 1
    starts = [
        _starts(connection, stem, at, is_prefix and at == last) for at, stem in enumerate(stems)
    ]
    return Counter(message for message, _ in set.intersection(*starts))


def _starts(connection: Connection, stem: str, before: int, is_prefix: bool) -> set[Any]:
    """Return (id, position) of where a sequence may start.

    :param before: how many stems of the sequence stand before this one.
    """
    condition, values = "term = ?", [stem]
    if is_prefix:
        condition, values = "term >= ? AND term < ?", [stem, stem + "\U0010ffff"]
    places = f"SELECT doc, offset - ? FROM temp.stem_places WHERE {condition} AND col = 'text'"
    return set(connection.execute(places, [before, *values]))
