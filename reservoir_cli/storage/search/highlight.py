"""Find the words of a question in a text with the tokenizer of the full-text index.

The tokenizer is SQLite's, in a table in memory, so that both kinds of store mark the same words.
"""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice, zip_longest

from reservoir_cli.storage.search import fulltext
from reservoir_cli.storage.search.fulltext import Span
from reservoir_cli.storage.search.stemmer import split_stems

#: The marks that FTS5 puts around words: noncharacters, which have no meaning in a text.
_START, _END = "\ufdd0", "\ufdd1"
_WORD = re.compile(r"[^\W_]+")
_MOST_TERMS = 200  #: The most different words that are looked for.
#: The longest text that is examined whole, in characters, and the parts of longer ones that are
#: indexed together.
_LONGEST, _BATCH = 1 << 15, 8


def find_words(
    texts: Sequence[str],
    question: str,
    *,
    typed: bool = False,
    passages: Sequence[Span | None] = (),
) -> list[list[Span]]:
    """Find the words of a question in texts, whatever their endings.

    A search shows only a part of a long text: only its passage is examined, or else the part that
    fits the question best by words.

    :param typed: whether to find all that was typed, with its phrases and prefixes, as a keyword
        search does; otherwise only the words that carry meaning.
    :param passages: the passages of the texts, if they are known.
    """
    words = fulltext.content_words(question).split()
    terms = fulltext.typed_terms(question) if typed else [f'"{word}"' for word in words]
    terms = list(dict.fromkeys(terms))[:_MOST_TERMS]
    if not terms:
        return [[] for _ in texts]
    spans = []
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5(text, {fulltext.TOKENIZE})")
        for text, passage in zip_longest(texts, passages):
            whole = len(text) <= _LONGEST
            span = (0, len(text)) if whole else passage or _choose_part(connection, text, terms)
            spans.append(_find_within(connection, text, span, terms))
    return spans


def _choose_part(connection: sqlite3.Connection, text: str, terms: Sequence[str]) -> Span:
    best = None
    parts = _split(text)
    while batch := list(islice(parts, _BATCH)):
        row = _add_rows(connection, [text[start:end] for start, end in batch])
        if (position := _best_row(connection, row, " AND ".join(terms))) is not None:
            return batch[position]
        position = None if best else _best_row(connection, row, " OR ".join(terms))
        best = best if position is None else batch[position]
    return best or (0, _LONGEST)


def _split(text: str) -> Iterator[Span]:
    start = 0
    while start < len(text):
        end = start + _LONGEST
        blank = text.rfind(" ", start + _LONGEST // 2, end) if end < len(text) else -1
        end = blank + 1 if blank >= 0 else min(end, len(text))
        yield start, end
        start = end


def _add_rows(connection: sqlite3.Connection, texts: Iterable[str]) -> int:
    [[rows]] = connection.execute("SELECT count(*) FROM texts")
    # Without marks, but of the same length; faster than ``translate``.
    plain = (text.replace(_START, "\ufffd").replace(_END, "\ufffd") for text in texts)
    contents = [(fulltext.indexed_text(text),) for text in plain]
    connection.executemany("INSERT INTO texts (text) VALUES (?)", contents)
    return int(rows) + 1


def _best_row(connection: sqlite3.Connection, first: int, query: str) -> int | None:
    row = connection.execute(
        "SELECT rowid FROM texts WHERE texts MATCH ? AND rowid >= ? ORDER BY rank LIMIT 1",
        [query, first],
    ).fetchone()
    return int(row[0]) - first if row else None


def _find_within(
    connection: sqlite3.Connection, text: str, span: Span, terms: Sequence[str]
) -> list[Span]:
    start, end = span
    row = _add_rows(connection, [text[start:end]])
    marked = connection.execute(
        "SELECT highlight(texts, 0, ?, ?) FROM texts WHERE texts MATCH ? AND rowid = ?",
        [_START, _END, " OR ".join(terms), row],
    ).fetchone()
    spans = _spans(text[start:end], marked[0]) if marked else []
    return [(start + first, start + last) for first, last in spans]


def word_with_stem(text: str, stem: str) -> str | None:
    """Return the first word of a text that has a stem, in the text's spelling."""
    words = [
        word
        for word in dict.fromkeys(_WORD.findall(text))
        if fulltext.searched_text(word.lower())[:1] == stem[:1]
    ]
    split = split_stems([fulltext.searched_text(word) for word in words])
    return next((word for word, stems in zip(words, split, strict=True) if stem in stems), None)


def _spans(text: str, marked: str) -> list[Span]:
    origins = fulltext.indexed_spans(text)
    marks, at, start = set[Span](), 0, 0
    for character in marked:
        if character == _START:
            start = at
        elif character == _END:
            marks.add((origins[start][0], origins[at - 1][1]))
        else:
            at += 1
    spans: list[Span] = []
    for first, end in sorted(marks):
        if spans and first < spans[-1][1]:
            spans[-1] = spans[-1][0], max(end, spans[-1][1])
        else:
            spans.append((first, end))
    return spans
