"""Find the words of a question in a text with the tokenizer of the full-text index.

The tokenizer is SQLite's, in a table in memory, so that both kinds of store mark the same words.
"""

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing

from reservoir_cli.storage import fulltext
from reservoir_cli.storage.fulltext import Span

#: The marks that FTS5 puts around words: noncharacters, which have no meaning in a text.
_START, _END = "\ufdd0", "\ufdd1"
_WORD = re.compile(r"[^\W_]+")
_MARKERS = str.maketrans({_START: "\ufffd", _END: "\ufffd"})


def find_words(texts: Sequence[str], question: str, *, typed: bool = False) -> list[list[Span]]:
    """Find the words of a question in texts, whatever their endings.

    :param typed: whether to find all that was typed, with its phrases and prefixes, as a keyword
        search does; otherwise only the words that carry meaning.
    """
    words = fulltext.content_words(question).split()
    terms = fulltext.typed_terms(question) if typed else [f'"{word}"' for word in words]
    if not terms:
        return [[] for _ in texts]
    clean = [text.translate(_MARKERS) for text in texts]
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5(text, {fulltext.TOKENIZE})")
        connection.executemany(
            "INSERT INTO texts (rowid, text) VALUES (?, ?)",
            [(rowid, fulltext.indexed_text(text)) for rowid, text in enumerate(clean)],
        )
        marked = dict(
            connection.execute(
                "SELECT rowid, highlight(texts, 0, ?, ?) FROM texts WHERE texts MATCH ?",
                [_START, _END, " OR ".join(terms)],
            )
        )
    return [_spans(text, marked.get(rowid, "")) for rowid, text in enumerate(clean)]


def word_with_stem(text: str, stem: str) -> str | None:
    """Return the first word of a text that has a stem, in the text's spelling."""
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
            [(rowid, fulltext.searched_text(word)) for rowid, word in enumerate(words)],
        )
        row = connection.execute("SELECT min(doc) FROM stems WHERE term = ?", [stem]).fetchone()
    return words[row[0]] if row[0] is not None else None


def _spans(text: str, marked: str) -> list[Span]:
    """Map the marks of an indexed text to spans of the text itself, without overlaps."""
    origins = fulltext.indexed_spans(text) if marked else []
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
