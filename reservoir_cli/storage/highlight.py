"""Where the words of a question stand in a text, by the tokenizer of the full-text index.

The tokenizer is SQLite's own, in a table in memory, so that every kind of store marks the words
that it finds.
"""

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing

from reservoir_cli.storage import fulltext

#: From the first character of a word up to, and not with, the one behind its last.
Span = tuple[int, int]
#: They stand around words in what FTS5 gives back: noncharacters, which mean nothing in a text.
_START, _END = "\ufdd0", "\ufdd1"
_WORD = re.compile(r"[^\W_]+")
_MARKERS = str.maketrans({_START: "\ufffd", _END: "\ufffd"})


def find_words(texts: Sequence[str], question: str, *, typed: bool = False) -> list[list[Span]]:
    """Find the words of a question in texts, whatever their endings.

    :param typed: take all that was typed, with its phrases and prefixes, as a keyword search
        does; else only the words that carry meaning.
    """
    terms = fulltext.typed_terms(question) if typed else _terms(question)
    if not terms:
        return [[] for _ in texts]
    clean = [text.translate(_MARKERS) for text in texts]
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5(text, {fulltext.TOKENIZE})")
        connection.executemany(
            "INSERT INTO texts (rowid, text) VALUES (?, ?)",
            [(number, fulltext.indexed_text(text)) for number, text in enumerate(clean)],
        )
        marked = dict(
            connection.execute(
                "SELECT rowid, highlight(texts, 0, ?, ?) FROM texts WHERE texts MATCH ?",
                [_START, _END, " OR ".join(terms)],
            )
        )
    return [_spans(text, marked.get(number, "")) for number, text in enumerate(clean)]


def word_with_stem(text: str, stem: str) -> str | None:
    """Return the first word of a text that has a stem, as it is written there."""
    words = [
        word
        for word in dict.fromkeys(_WORD.findall(text))
        if fulltext.searched_text(word.lower())[:1] == stem[:1]
    ]
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE VIRTUAL TABLE spellings USING fts5(text, {fulltext.TOKENIZE})")
        connection.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(spellings, instance)")
        connection.executemany(
            "INSERT INTO spellings (rowid, text) VALUES (?, ?)",
            [(number, fulltext.searched_text(word)) for number, word in enumerate(words)],
        )
        row = connection.execute("SELECT min(doc) FROM stems WHERE term = ?", [stem]).fetchone()
    return words[row[0]] if row[0] is not None else None


def _terms(question: str) -> list[str]:
    return [f'"{word}"' for word in fulltext.content_words(question).split()]


def _spans(text: str, marked: str) -> list[Span]:
    """Find the marks of an indexed text in the text itself, which has fewer spaces."""
    spans, at, start = [], 0, 0
    for character in marked:
        if character == _START:
            start = at
        elif character == _END:
            spans.append((start, at))
        elif at < len(text) and text[at] == character:
            at += 1
    # A space may have been put in front of the first character of a mark.
    return [_trimmed(text, *span) for span in spans]


def _trimmed(text: str, start: int, end: int) -> Span:
    word = text[start:end]
    return end - len(word.lstrip()), start + len(word.rstrip())
