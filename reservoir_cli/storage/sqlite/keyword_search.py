"""Searching for exactly what was typed: words, phrases and prefixes, by BM25 over the scope.

The words are looked up in the index's own lists of places. FTS5's ranking would do nearly the
same, but it takes frequencies of the whole file, so that text in other partitions moves scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import Scope, StoredMessage, clean_text, plain_text
from reservoir_cli.storage import fulltext
from reservoir_cli.storage.keys import Keys
from reservoir_cli.storage.sqlite import candidates, postings
from reservoir_cli.storage.sqlite.connection import Connection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Ints = NDArray[np.int64]

#: Places in the index as one number: the message's place in the scope above, position below.
#: Not its id, which takes 53 bits where it comes from a server.
_SHIFT = 32
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
    ids, lengths = candidates.lengths(connection, scope, model_id)
    if not terms or not len(ids):
        return [], True
    stemmed = _stems(connection, terms)
    if sum(len(stems) for stems, _ in stemmed) > MOST_STEMS:
        raise too_many()
    found = (_held(connection, ids, *each) for each in stemmed)
    return ranked(ids, lengths, found, limit, matching)


def too_many() -> UsageError:
    """Return the error for a query of too many words."""
    return UsageError(f"a keyword search takes {MOST_STEMS:,} words at most")


def ranked(
    ids: _Ints,
    lengths: NDArray[np.int32],
    found: Iterable[tuple[_Ints, _Ints]],
    limit: int,
    matching: Keys | None = None,
) -> tuple[list[tuple[int, float]], bool]:
    """Find the messages that hold all terms, or else any of them.

    :param ids: of the messages of a scope, ascending.
    :param lengths: their words.
    :param found: of each term the messages that hold it, and how often they do.
    :param matching: the only messages that may be hits.
    :returns: (id, BM25) best first, ties newest first, and whether the hits hold all terms.
    """
    import numpy as np

    from reservoir_cli.util import bm25  # it loads numpy

    allowed = None if matching is None else np.isin(ids, matching.ids)
    norms = bm25.norms(lengths)
    scores, held = np.zeros(len(ids)), []
    for messages, counts in found:
        places = np.minimum(np.searchsorted(ids, messages), len(ids) - 1)
        known = ids[places] == messages
        places, counts = places[known], counts[known]
        gain = bm25.saturated(counts, norms[places])
        scores[places] += bm25.rarity(len(ids), len(places)) * gain
        held.append(places if allowed is None else places[allowed[places]])
    hits = reduce(np.intersect1d, held)
    all_words = len(hits) > 0
    if not all_words:
        hits = reduce(np.union1d, held)
    best = hits[np.lexsort((-ids[hits], -scores[hits]))]
    best = best[:limit] if limit >= 0 else best
    return [(int(ids[at]), float(scores[at])) for at in best], all_words or not len(hits)


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


def _held(
    connection: Connection, ids: _Ints, stems: list[str], is_prefix: bool
) -> tuple[_Ints, _Ints]:
    """Find the messages that hold stems in sequence, the last as a prefix, and how often."""
    import numpy as np

    last = len(stems) - 1
    found = [
        _occurrences(connection, ids, stem, is_prefix and at == last) - at
        for at, stem in enumerate(stems)
    ]
    together = reduce(np.intersect1d, found)
    places, counts = np.unique(together >> _SHIFT, return_counts=True)
    return ids[places], counts


def _occurrences(connection: Connection, ids: _Ints, stem: str, is_prefix: bool) -> _Ints:
    import numpy as np

    condition, values = ("term = ?", [stem])
    if is_prefix:
        condition, values = ("term >= ? AND term < ?", [stem, stem + "\U0010ffff"])
    rows = connection.execute(
        f"SELECT doc, offset FROM temp.stem_places WHERE {condition} AND col = 'text'", values
    ).fetchall()
    docs, offsets = np.array(rows, np.int64).reshape(-1, 2).T
    places = np.minimum(ids.searchsorted(docs), len(ids) - 1)
    known = ids[places] == docs
    return np.unique((places[known] << _SHIFT) + offsets[known])
