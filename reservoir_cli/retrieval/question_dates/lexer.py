"""Turn the words of a question into kinds: ``on DAY MONTH`` for "on 7 July"."""

import re
from datetime import date
from functools import cache
from typing import NamedTuple

from reservoir_cli.retrieval.question_dates.english_words import (
    COUNTED,
    JOINED_KINDS,
    MODALS,
    MONTH_KINDS,
    MONTHS,
    NAMES,
    SEASONS,
    SHORT_MONTHS,
    SHORT_WEEKDAYS,
    SINGULARS,
    WEEKDAYS,
    WORDY_WEEKDAYS,
)

_FIRST_YEAR = 1970
_OPENING = "([{<\"'“\u2018«*_~"
_CLOSING = ")]}>\"'”\u2019»*_~.;:!?…"


class Token(NamedTuple):
    """The kind of a word or sign, with its number."""

    kind: str  # upper case for a kind; any other word is its own kind, in lower case
    number: int = 0


#: The separator of a quarter and its year in Q3/2025 and 2025-Q3, but not in a path.
_QUARTER = (
    r"(?<!\S)(?:([Qq][1-4])[-/](?=\d{4}(?![\w/-]|\.\w))"
    r"|(\d{4})[-/](?=[Qq][1-4](?![\w/-]|\.\w)))"
)
_BREAK = Token(".")
_UNKNOWN = Token("#")


def without_code(question: str) -> str:
    """Return a question with each piece of code replaced by a mark."""
    return _pattern(r"```.*?```|`[^`\n]*`").sub(" # ", question)


def read_tokens(question: str, last_year: int) -> list[Token]:
    """Read the words of a question.

    :param last_year: the last number that can be a year; larger ones are amounts.
    """
    text = question.replace("\u2019", "'")
    text = _pattern(r",(?!\d{3}(?!\d))").sub(" , ", text).replace("—", " . ")
    text = _pattern(_QUARTER).sub(r"\1\2 ", text)
    tokens: list[Token] = []
    chunks = text.split()
    for chunk, following in zip(chunks, [*chunks[1:], ""], strict=False):
        if _pattern(r"'\d\d").fullmatch(chunk.rstrip(_CLOSING)):
            year = int(chunk[1:3])
            tokens.append(Token("YY", year + (1900 if year >= _FIRST_YEAR % 100 else 2000)))
            continue
        word = chunk.lstrip(_OPENING)
        if word != chunk:
            tokens.append(_BREAK)
        bare = word.rstrip(_CLOSING)
        tokens.extend(_read_chunk(bare, last_year) if bare else ())
        is_short_month = bare.lower() in SHORT_MONTHS and following[:1].isdigit()
        if bare != word and not (is_short_month and word == bare + "."):
            tokens.append(_BREAK)
    return [
        Token("NUM", token.number)
        if token.kind in ("YEAR", "YYYY") and following in COUNTED
        else token
        for token, following in zip(
            tokens, [after.kind for after in tokens[1:]] + [""], strict=False
        )
    ]


def _read_chunk(chunk: str, last_year: int) -> list[Token]:
    """Read the text between two spaces; text attached to a date makes it something else."""
    if chunk in ("-", "–", "/", ","):
        return [Token("-" if chunk == "–" else chunk)]
    if chunk.isalpha():
        return [_read_word(chunk)]
    if chunk.lower().endswith("'s"):
        return [_read_word(chunk[:-2]), Token("'s")]
    numeric = _read_number(chunk, last_year) or _read_numeric_date(chunk)
    return [numeric] if numeric else _read_pieces(chunk, last_year)


def _read_word(word: str) -> Token:
    lower = word.lower()
    if lower in MONTHS:
        return Token(_month_kind(word), MONTHS[lower])
    if lower in WEEKDAYS:
        return Token("WEEKDAY", WEEKDAYS[lower])
    if lower in SHORT_WEEKDAYS and (word.istitle() or lower not in WORDY_WEEKDAYS):
        return Token("SHORTDAY", SHORT_WEEKDAYS[lower])
    if lower in ("spring", "fall") and lower != word:
        return Token("SPRING", SEASONS[lower])
    return Token(SINGULARS.get(lower, lower)) if word.isalpha() else _UNKNOWN


def _month_kind(word: str) -> str:
    lower = word.lower()
    if lower in NAMES or (word.istitle() and (lower in MODALS or lower in SHORT_MONTHS)):
        return "NAME"
    if lower in MODALS:
        return "MODAL"
    return "SHORT" if lower in SHORT_MONTHS else "MONTH"


def _read_number(chunk: str, last_year: int) -> Token | None:
    match = _pattern(r"(\d{1,6})(st|nd|rd|th)?|[Qq]([1-4])").fullmatch(chunk)
    if not match:
        return None
    if match[3]:
        return Token("QUARTER", int(match[3]))
    number = int(match[1])
    if len(match[1]) <= 2 and 1 <= number <= 31:
        return Token("ORDINAL" if match[2] else "DAY", number)
    if len(match[1]) == 4 and not match[2] and 1000 <= number < 3000:
        return Token("YEAR" if _FIRST_YEAR <= number <= last_year else "YYYY", number)
    return Token("NUM", number)


def _read_numeric_date(chunk: str) -> Token | None:
    match = _pattern(r"(\d{4})([-/])(\d\d?)(?:\2(\d\d?))?|(\d\d?)/(?:(\d\d?)/)?(\d{4})").fullmatch(
        chunk
    )
    if not match:
        return None
    if match[1]:
        year, month, day = int(match[1]), int(match[3]), int(match[4] or 0)
    else:
        year, month, day = int(match[7]), int(match[5]), int(match[6] or 0)
        if month > 12:
            month, day = day, month
        elif day and day <= 12 and day != month:
            return _UNKNOWN
    try:
        ordinal = date(year, month, day or 1).toordinal()
    except ValueError:
        return _UNKNOWN
    return Token("DATE" if day else "DATEMONTH", ordinal)


def _read_pieces(chunk: str, last_year: int) -> list[Token]:
    """Split mid-March, 3–5 and July/August."""
    pieces = _pattern(r"([-–/])").split(chunk)
    if not 3 <= len(pieces) <= 5:
        return [_UNKNOWN]
    # Neither 3/4 nor 24/7 is a date.
    joint, allowed = ("/", MONTH_KINDS) if "/" in chunk else ("-", JOINED_KINDS)
    tokens: list[Token] = []
    for piece in pieces[::2]:
        token = _read_number(piece, last_year) or _read_word(piece)
        if token.kind not in allowed:
            return [_UNKNOWN]
        tokens += [token, Token(joint)]
    return tokens[:-1]


@cache
def _pattern(expression: str) -> re.Pattern[str]:
    # Compiled on first use: most commands read no dates.
    return re.compile(expression, re.ASCII | re.DOTALL)
