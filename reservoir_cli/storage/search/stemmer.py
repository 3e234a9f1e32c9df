"""Split texts into stems, and write them as the server's ``tsvector`` and ``tsquery``.

The tokenizer is SQLite's, in a table in memory, so that both kinds of store find the same words.
"""

import atexit
import hashlib
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

from reservoir_cli.messages import Scope
from reservoir_cli.storage.search import fulltext

#: The limits of a ``tsvector``: the highest position, the positions of one stem, and the bytes.
_POSITIONS, OF_ONE, _BYTES = 16_000, 255, 400_000
_LONGEST = 1_900  #: Bytes of the longest stem; the end of a longer one is replaced by a hash.
#: The prefix of a scope's words among the stems; the tokenizer never returns it in a stem.
_MARK = "#"
_lock = threading.Lock()  #: All threads share the tokenizer.

SplitStems = Callable[[Sequence[str]], list[list[str]]]


@cache
def _tokenizer() -> sqlite3.Connection:
    table = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    table.execute(f"CREATE VIRTUAL TABLE texts USING fts5(text, content='', {fulltext.TOKENIZE})")
    table.execute("CREATE VIRTUAL TABLE places USING fts5vocab(texts, instance)")
    atexit.register(table.close)
    return table


def split_stems(texts: Sequence[str]) -> list[list[str]]:
    """Return the stems of each text in their order."""
    stems: list[list[str]] = [[] for _ in texts]
    with _lock:
        table = _tokenizer()
        table.execute("BEGIN")
        try:
            table.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", enumerate(texts))
            for doc, stem in table.execute("SELECT doc, term FROM places ORDER BY doc, offset"):
                stems[doc].append(stem)
        finally:
            table.execute("ROLLBACK")
    return stems


def split_short_stems(texts: Sequence[str]) -> list[list[str]]:
    """Return the same, with the stems that are too long for a server shortened."""
    return [list(map(_shorten, stems)) for stems in split_stems(texts)]


def words_by_stem(words: Sequence[str], split: SplitStems = split_stems) -> dict[str, str]:
    """Return words by their stems."""
    pairs = zip(split(words), words, strict=True)
    return {stem: word for stems, word in pairs for stem in stems[:1]}


def tsvectors(texts: Iterable[str]) -> Iterator[list[tuple[int, str]]]:
    """Yield the parts of each text, mostly one, as (position offset, ``tsvector``)."""
    for stems in split_short_stems([fulltext.indexed_text(text) for text in texts]):
        yield list(_split(stems))


def _shorten(stem: str) -> str:
    if len(stem) * 4 <= _LONGEST or len(stem.encode()) <= _LONGEST:
        return stem
    rest = hashlib.blake2b(stem.encode(), digest_size=16).hexdigest()
    return stem[: _LONGEST // 4 - 32] + rest


def _split(stems: Sequence[str]) -> Iterator[tuple[int, str]]:
    start = size = 0
    positions: dict[str, list[int]] = {}
    for at, stem in enumerate(stems):
        of_stem = positions.setdefault(stem, [])
        if at - start >= _POSITIONS or len(of_stem) >= OF_ONE or size > _BYTES:
            yield start, _to_tsvector(positions)
            start, size, positions = at, 0, {}
            of_stem = positions.setdefault(stem, [])
        of_stem.append(at - start + 1)
        size += 4 + (len(stem.encode()) if len(of_stem) == 1 else 0)
    yield start, _to_tsvector(positions)


def _to_tsvector(positions: dict[str, list[int]]) -> str:
    return " ".join(
        f"{quote(stem)}:{','.join(map(str, of_stem))}"
        for stem, of_stem in positions.items()
        if of_stem
    )


def quote(stem: str) -> str:
    """Quote a stem for a ``tsvector`` or ``tsquery``."""
    escaped = stem.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def scope_stems(partition: str, instance: str) -> list[str]:
    """Return the two words that index a message's partition and instance."""
    return [_MARK + key for key in fulltext.scope_keys(partition, instance).split()]


def query(words: str, scope: Scope) -> str:
    """Return the ``tsquery`` for words inside a scope."""
    if scope.partition is None:
        return words
    in_partition, in_instance = scope_stems(scope.partition, scope.instance or "")
    return f"{quote(in_partition if scope.instance is None else in_instance)} & ({words})"
