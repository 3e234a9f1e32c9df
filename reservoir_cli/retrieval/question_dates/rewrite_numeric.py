"""Rewrite dates in digits as ISO dates, or as a day and an English month if they name no year.

Dotted dates begin with the day: 25.01.2024, 25.1. Slashed ones begin with the day or the month,
whichever the numbers allow; if they allow both, another slashed date of the text decides, or else
both readings are kept.
"""

import re
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial

from reservoir_cli.retrieval.question_dates.calendar_days import MONTH_NAMES

#: Text attached to a path, a version, an amount or a longer word is not a date.
_BEFORE, _AFTER = r"(?<![\w/.:@#$€£+-])", r"(?![\w/@%]|[.,:]\d|-\d)"
_DAY, _YEAR = r"(\d\d?)", r"(\d{4})"
#: Words before a day without a year, without which "3/4" and "3.11." are a share and a version.
_LEADS = (
    r"(?:on|since|until|till|by|before|after|between|from|and|to|of|für|fuer|am|vom|zum|bis|ab|dem"
    r"|den|seit|nach|vor|und|le|du|au|depuis|avant|après|apres|jusqu'au|et|el|del|al|desde|hasta|y"
    r"|il|dal|dia|em|no|até|ate|op|den|dnia)"
)
#: Words before a version.
_VERSIONED = frozenset("version versions release build python java firmware kernel update".split())
_DOTTED_LEADS = r"(?:am|vom|zum|bis|ab|dem|den|seit|nach|vor|und|le|du|au|el|del|al|il|dnia)"

_WRITTEN = rf"(\d{{4}}-\d\d-\d\d|\d\d? (?:{'|'.join(MONTH_NAMES)}))"
_ARTICLE = r"(?:(?:dem|den|le|el|il) )?"
_RANGES = (
    (
        rf"\b(?:zwischen|entre) {_ARTICLE}{_WRITTEN} (?:und|et|y) {_ARTICLE}{_WRITTEN}",
        r"between \1 and \2",
    ),
    (
        rf"(?:\b(?:vom|von|du|del|desde el|dal) )?{_WRITTEN} (?:bis zum|bis|au|al|hasta el)"
        rf" {_WRITTEN}",
        r"from \1 to \2",
    ),
)


def rewrite(question: str) -> str:
    """Return a question with its dates in digits rewritten."""
    if not re.search(r"\d[./]\s?\d", question):
        return question
    day_first = _slashed_order(question)
    rewritten = question
    for pattern, replacement in _patterns():
        rewritten = pattern.sub(partial(replacement, day_first=day_first), rewritten)
    if rewritten != question:
        for expression, english in _RANGES:
            rewritten = re.sub(expression, english, rewritten, flags=re.IGNORECASE)
    return rewritten


def _slashed_order(question: str) -> bool | None:
    """Return whether slashed dates begin with the day; ``None`` if no date of the text tells."""
    for match in re.finditer(rf"{_BEFORE}{_DAY}/{_DAY}(?:/\d{{2,4}})?{_AFTER}", question):
        first, second = int(match[1]), int(match[2])
        if 12 < first <= 31 and second <= 12:
            return True
        if first <= 12 < second <= 31:
            return False
    return None


_Replacement = Callable[..., str]


def _patterns() -> Iterator[tuple[re.Pattern[str], _Replacement]]:
    flags = re.IGNORECASE
    yield re.compile(rf"{_BEFORE}{_YEAR}\. ?{_DAY}\. ?{_DAY}\.?{_AFTER}"), _year_first
    yield re.compile(rf"{_BEFORE}(\w+ )?{_DAY}\. ?{_DAY}\. ?{_YEAR}{_AFTER}"), _dotted
    lead = rf"(?<![\w])({_LEADS}) "
    yield re.compile(rf"{lead}{_DAY}\.{_DAY}\.(\d\d){_AFTER}", flags), _dotted_after_lead
    dotted_lead = rf"(?<![\w])({_DOTTED_LEADS}) "
    yield re.compile(rf"{dotted_lead}{_DAY}\. ?{_DAY}()\.{_AFTER}", flags), _dotted_after_lead
    yield re.compile(rf"{lead}(\d\d)\.(\d\d)()(?:\.(?!\d))?{_AFTER}", flags), _dotted_after_lead
    yield re.compile(rf"{_BEFORE}(\d\d)\.(\d\d)\.(?!\s?\d){_AFTER}(?=\s|[)?!,;]|$)"), _dotted_alone
    yield re.compile(rf"{_BEFORE}()\b{_DAY}/{_DAY}/(\d{{4}}|\d\d){_AFTER}"), _slashed
    yield re.compile(rf"{lead}{_DAY}/{_DAY}(){_AFTER}(?! of\b)", flags), _slashed


def _year_first(match: re.Match[str], *, day_first: bool | None) -> str:
    return _write(match[1], match[2], match[3]) or match[0]


def _dotted(match: re.Match[str], *, day_first: bool | None) -> str:
    before, day, month, year = match.groups(default="")
    if before.strip().lower() in _VERSIONED:
        return match[0]
    written = _write(year, month, day) or _write(year, day, month)
    return before + written if written else match[0]


def _dotted_alone(match: re.Match[str], *, day_first: bool | None) -> str:
    return _write("", match[2], match[1]) or match[0]


def _dotted_after_lead(match: re.Match[str], *, day_first: bool | None) -> str:
    lead, day, month, year = match.groups()
    written = _write(year, month, day)
    return f"{lead} {written}" if written else match[0]


def _slashed(match: re.Match[str], *, day_first: bool | None) -> str:
    lead, first, second, year = match.groups()
    readings = [_write(year, second, first), _write(year, first, second)]
    if day_first is not None and all(readings):
        readings = [readings[0 if day_first else 1]]
    written = " or ".join(dict.fromkeys(filter(None, readings)))
    return f"{lead} {written}".lstrip() if written else match[0]


def _write(year: str, month: str, day: str) -> str:
    """Write a date for the English parser; nothing if no calendar has it."""
    try:
        named = date(
            int(year) + (2000 if len(year) == 2 else 0) if year else 2000, int(month), int(day)
        )
    except ValueError:
        return ""
    return named.isoformat() if year else f"{named.day} {MONTH_NAMES[named.month - 1]}"
