"""Texts as stems, by the tokenizer of the store in a file, and as what the server keeps of them.

The tokenizer is SQLite's own, in a table in memory: both stores find the same words.
"""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from reservoir_cli.messages import Scope
from reservoir_cli.storage import fulltext

#: What one ``tsvector`` can hold: places up to a number, so many of a stem, and some bytes.
_PLACES, OF_ONE, _BYTES = 16_000, 255, 400_000
#: Bytes of the longest stem; of a longer one the rest becomes a fingerprint.
_LONGEST = 1_900
#: Stands before the names of a scope among the stems; the tokenizer lets it stand in none.
_MARK = "#"


class Stemmer:
    """Cuts texts into stems."""

    def __init__(self) -> None:
        self._table = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        self._table.execute(
            f"CREATE VIRTUAL TABLE texts USING fts5(text, content='', {fulltext.TOKENIZE})"
        )
        self._table.execute("CREATE VIRTUAL TABLE places USING fts5vocab(texts, instance)")

    def close(self) -> None:
        """Let go of the tokenizer."""
        self._table.close()

    def stems(self, texts: Sequence[str]) -> list[list[str]]:
        """Stem texts, keeping their order."""
        self._table.execute("BEGIN")
        self._table.executemany(
            "INSERT INTO texts (rowid, text) VALUES (?, ?)", enumerate(texts, start=1)
        )
        found: list[list[str]] = [[] for _ in texts]
        for doc, term in self._table.execute("SELECT doc, term FROM places ORDER BY doc, offset"):
            found[doc - 1].append(_short(term))
        self._table.execute("ROLLBACK")
        return found

    def vectors(self, texts: Iterable[str]) -> Iterator[list[tuple[int, str]]]:
        """Return the parts of each text as (position offset, ``tsvector``).

        Nearly every text has one part, which may be empty.
        """
        for stems in self.stems([fulltext.indexed_text(each) for each in texts]):
            yield list(_parts(stems))


def _short(stem: str) -> str:
    if len(stem) * 4 <= _LONGEST or len(stem.encode()) <= _LONGEST:
        return stem
    rest = hashlib.blake2b(stem.encode(), digest_size=16).hexdigest()
    return stem[: _LONGEST // 4 - 32] + rest


def _parts(stems: Sequence[str]) -> Iterator[tuple[int, str]]:
    start = size = 0
    places: dict[str, list[int]] = {}
    for at, stem in enumerate(stems):
        known = places.setdefault(stem, [])
        if at - start >= _PLACES or len(known) >= OF_ONE or size > _BYTES:
            yield start, _written(places)
            start, size, places = at, 0, {}
            known = places.setdefault(stem, [])
        known.append(at - start + 1)
        size += 4 + (len(stem.encode()) if len(known) == 1 else 0)
    yield start, _written(places)


def _written(places: dict[str, list[int]]) -> str:
    return " ".join(
        f"{quoted(stem)}:{','.join(map(str, some))}" for stem, some in places.items() if some
    )


def quoted(stem: str) -> str:
    """Write a stem as a ``tsvector`` or ``tsquery`` holds it."""
    escaped = stem.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def scope_stems(partition: str, instance: str) -> list[str]:
    """Return the two words that index where a message lies: its partition and its instance."""
    return [_MARK + key for key in fulltext.scope_keys(partition, instance).split()]


def query(words: str, scope: Scope) -> str:
    """Write a ``tsquery`` for words inside a scope.

    :param words: a ``tsquery``.
    """
    if scope.partition is None:
        return words
    in_partition, in_instance = scope_stems(scope.partition, scope.instance or "")
    return f"{quoted(in_partition if scope.instance is None else in_instance)} & ({words})"
