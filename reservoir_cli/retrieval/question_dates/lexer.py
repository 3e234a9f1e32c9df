"""Turn the English words of a question into kinds: ``on DAY MONTH`` for "on 7 July"."""

import re
from datetime import date
from functools import cache
from typing import NamedTuple

from reservoir_cli.retrieval.question_dates.calendar_days import MONTH_NAMES

MONTHS = {name.lower(): number for number, name in enumerate(MONTH_NAMES, 1)}
SHORT_MONTHS = {name[:3]: number for name, number in MONTHS.items() if name != "may"}
SHORT_MONTHS["sept"] = 9
MONTHS |= SHORT_MONTHS
MODALS = frozenset({"may", "march"})
NAMES = frozenset({"april", "june", "august"})
_FULL_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
WEEKDAYS = {name: number for number, name in enumerate(_FULL_WEEKDAYS)}
SHORT_WEEKDAYS = {name[:3]: number for name, number in WEEKDAYS.items()}
SHORT_WEEKDAYS |= {"tues": 1, "thur": 3, "thurs": 3}
WORDY_WEEKDAYS = frozenset({"mon", "wed", "sat", "sun"})
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_NUMBERS = "one two three four five six seven eight nine ten eleven twelve".split()
COUNTS = {name: (number, number) for number, name in enumerate(_NUMBERS, 1)}
COUNTS |= {"a": (1, 1), "an": (1, 1), "couple": (2, 3), "few": (2, 5), "several": (3, 7)}
SINGULARS = {unit + "s": unit for unit in ("minute", "hour", "day", "week", "month", "year")}
OFFSETS = {"yesterday": -1, "today": 0, "tonight": 0, "now": 0, "tomorrow": 1}
# The month, first day and number of days of each holiday, by its words in English.
HOLIDAYS = {
    "christmas": (12, 24, 3),
    "xmas": (12, 24, 3),
    "christmas eve": (12, 24, 1),
    "christmas day": (12, 25, 1),
    "new year 's eve": (12, 31, 1),
    "new year eve": (12, 31, 1),
    "new year 's day": (1, 1, 1),
    "new year day": (1, 1, 1),
    "boxing day": (12, 26, 1),
    "valentine 's day": (2, 14, 1),
    "halloween": (10, 31, 1),
}
# The longest word of each holiday.
_HOLIDAY_SIGNS = frozenset(max(name.split(), key=len) for name in HOLIDAYS)
# A question without a name or number of a date contains one of these, or no date.
SIGNS = frozenset(OFFSETS) | SEASONS.keys() | _HOLIDAY_SIGNS | frozenset(
    "ago back year last past previous this current next coming upcoming weekend night other".split()
)  # fmt: skip
#: Written after a date that may be a name, when other languages are rewritten in English.
DOUBT = "≈"
# Words that make a number before them a count.
COUNTED = frozenset(
    "tokens words characters chars bytes kb mb gb bits lines rows files items entries messages"
    " mails emails requests users people persons guests times steps iterations samples points"
    " percent pixels px ms seconds minute hour day week month year"
    " dollars euros pounds usd eur km miles meters metres kcal calories grams ml"
    " wörter wörtern worten zeichen zeilen personen menschen parole righe caratteri persone"
    " palavras linhas pessoas woorden tekens regels mensen".split()
)
AFTER_MODAL = frozenset("be have not also well need never still".split())
LEADS = frozenset(
    "in during of since until till before after around throughout by from through between"
    " year".split()
)
HOLIDAY_LEADS = LEADS | {"on", "at", "over", "for"}
WEEKDAY_LEADS = (LEADS | {"on"}) - {"in", "year"}
DAY_LEADS = LEADS | {"on", "for", "to", "at"}
#: Words before a month or day that hardly ever precede a person or a thing.
SURE_LEADS = frozenset("in on during since until till throughout between around".split())
OWNERS = frozenset("the our my your his her their its".split())
OF_ALL_DAYS = frozenset("every each black good cyber ash palm easter super".split())

MONTH_KINDS = frozenset({"MONTH", "NAME", "SHORT", "MODAL"})
#: What may be a name, or a part of one, if nothing but a single word says when.
NAMEABLE_KINDS = MONTH_KINDS | SEASONS.keys() | {"WEEKDAY", "SHORTDAY", "SPRING"}
JOINED_KINDS = MONTH_KINDS | {"DAY", "ORDINAL", "YEAR", "early", "mid", "late"}

NTH = {"first": 1, "second": 2, "third": 3, "fourth": 4}

_FIRST_YEAR = 1970
_OPENING = "([{<\"'“\u2018«*_~"
_CLOSING = ")]}>\"'”\u2019»*_~.;:!?…"


class Token(NamedTuple):
    """The kind of a word or sign, with its number."""

    kind: str  # upper case for a kind; any other word is its own kind, in lower case
    number: int = 0
    is_capital: bool = False  # whether a word in a text of mixed case begins with a capital letter
    is_doubtful: bool = False  # whether it belongs to a date that may be a name


#: The separator of a quarter and its year in Q3/2025 and 2025-Q3, but not in a path.
_QUARTER = (
    r"(?<!\S)(?:([Qq][1-4])[-/](?=\d{4}(?![\w/-]|\.\w))|(\d{4})[-/](?=[Qq][1-4](?![\w/-]|\.\w)))"
)
#: The time in 2026-02-12T03:17:00+01:00, as it is printed before a message.
_TIME = r"T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
_BREAK = Token(".")
_UNKNOWN = Token("#")


def without_code(question: str) -> str:
    """Return a question with each piece of code, and title of a work, replaced by a mark."""
    return _pattern(r"```.*?```|`[^`\n]*`|《[^《》\n]*》|『[^『』\n]*』").sub(" # ", question)


def read_tokens(question: str, last_year: int) -> list[Token]:
    """Read the words of a question, in which numbers above the last year are amounts."""
    text = question.replace("\u2019", "'")
    text = _pattern(r",(?!\d{3}(?!\d))").sub(" , ", text).replace("—", " . ")
    text = _pattern(r"(?i)\b(?:(?:an?|one) )?fortnight\b").sub("two weeks", text)
    text = _pattern(_QUARTER).sub(r"\1\2 ", text)
    tokens: list[Token] = []
    chunks, is_mixed = text.split(), not text.isupper()
    for chunk, following in zip(chunks, [*chunks[1:], ""], strict=False):
        if _pattern(r"'\d\d").fullmatch(chunk.rstrip(_CLOSING)):
            year = int(chunk[1:3])
            tokens.append(Token("YY", year + (1900 if year >= _FIRST_YEAR % 100 else 2000)))
            continue
        if chunk == DOUBT:
            _doubt_phrase(tokens)
            continue
        word = chunk.lstrip(_OPENING)
        if word != chunk:
            tokens.append(_BREAK)
        bare = word.rstrip(_CLOSING)
        is_capital = is_mixed and bare[:1].isupper() and bare != "I"
        if bare:
            first, *others = _read_chunk(bare, last_year)
            tokens += [first._replace(is_capital=is_capital), *others]
        is_short_month = bare.lower() in SHORT_MONTHS and following[:1].isdigit()
        if bare != word and not (is_short_month and word == bare + "."):
            tokens.append(_BREAK)
    return [
        token._replace(kind="NUM")
        if token.kind in ("YEAR", "YYYY") and following in COUNTED
        else token
        for token, following in zip(
            tokens, [after.kind for after in tokens[1:]] + [""], strict=False
        )
    ]


def _doubt_phrase(tokens: list[Token]) -> None:
    """Mark the tokens after the last break as doubtful, in place."""
    for at in reversed(range(len(tokens))):
        if tokens[at] == _BREAK or tokens[at].is_doubtful:
            break
        tokens[at] = tokens[at]._replace(is_doubtful=True)


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
    match = _pattern(
        rf"(\d{{4}})([-/])(\d\d?)(?:\2(\d\d?)({_TIME})?)?|(\d\d?)/(?:(\d\d?)/)?(\d{{4}})"
    ).fullmatch(chunk)
    if not match:
        return None
    if match[1]:
        year, month, day = int(match[1]), int(match[3]), int(match[4] or 0)
    else:
        year, month, day = int(match[8]), int(match[6]), int(match[7] or 0)
        if month > 12:
            month, day = day, month
        elif day and day <= 12 and day != month:
            return _UNKNOWN
    try:
        ordinal = date(year, month, day or 1).toordinal()
    except ValueError:
        return _UNKNOWN
    if match[5]:
        return Token("TIME", ordinal)
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
