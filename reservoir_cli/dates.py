"""The dates that a question names, and how near to them each message is.

English only. What a phrase means where people differ:

* Weeks begin on Monday. Seasons are the northern ones in whole months; a winter has the year
  in which it begins. Early, mid and late are the thirds of what follows.
* A weekday is its latest before today; "next" and "this" look ahead.
* "Two months ago" is every day that rounds to two months; "a couple" is 2–3, "a few" 2–5.
* 7/4/2023 is two days to two readers and is not read; 25/12/2023 and 7/7/2023 are.
* "Since X" is open towards now. "After X" and "before X" are open for a month or a year, which
  sort messages into two eras. For a day, or without a year, they are X itself: who says
  "before Christmas" means shortly before, and near days score by their distance anyway.
* A name that is also a word (May, March, April, Sat) and a number that could be a year need a
  word that makes them a date: "in May", "May 5", "the May release", but not "May said".

The words of the question become kinds ("on DAY MONTH"), and rules are patterns over these.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta, tzinfo
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HALF_LIFE_DAYS = 7

_DAY_MS = 86_400_000
_DAY = timedelta(days=1)
# Yearless dates stand in a leap year, so that 29 February is one.
_ANY_YEAR = 2000
_FIRST_YEAR = 1970
_YEARS_AHEAD = 10
_MAX_NESTING = 3


@dataclass(frozen=True, slots=True)
class Span:
    """Local days, from the first to before the end; every year's if no year was named."""

    start: date
    end: date
    every_year: bool = False

    def in_year(self, year: int) -> "Span":
        """These days in one year; empty for 29 February where there is none."""
        end = _move(self.end, year + self.end.year - self.start.year)
        return Span(_move(self.start, year), end)


#: A text that somebody pastes is no question, and would be read for dates for seconds.
_LONGEST = 10_000


def find_dates(question: str, now: datetime) -> tuple[Span, ...]:
    """Find the dates that a question names, each read once and at its most precise.

    Of a question that is longer only the first 10,000 characters are read.

    :param now: with a zone; yesterday and the like are against its day there.
    """
    tokens = _read_tokens(question[:_LONGEST], now.year + _YEARS_AHEAD)
    if not any(token.kind.isupper() or token.kind in _SIGNS for token in tokens):
        return ()
    reader = _Reader(tokens, now)
    return tuple(dict.fromkeys(span for spans in reader.phrases() for span in spans))


def date_scores(
    spans: Sequence[Span], created_at: "NDArray[np.int64]", zone: tzinfo
) -> "NDArray[np.float64]":
    """Score how near messages are to the nearest of the spans: 2^(-days/7), 1 inside.

    :param created_at: shape (n,), milliseconds since 1970.
    :param zone: where the days begin; a fixed offset knows no daylight saving time.
    :returns: shape (n,), in 0…1; all 0 if there are no spans.
    """
    import numpy as np

    if not spans or not len(created_at):
        return np.zeros(len(created_at))
    extremes = np.array([created_at.min(), created_at.max()]).astype("datetime64[ms]")
    first, last = (int(year) + 1970 for year in extremes.astype("datetime64[Y]").astype(np.int64))
    edges = sorted(_edges(spans, first, last, zone))
    starts = np.array([start for start, _ in edges] + [np.inf])
    # Of spans that overlap, the furthest end counts for all that began before.
    ends = np.maximum.accumulate([-np.inf] + [end for _, end in edges])
    begun = np.searchsorted(starts, created_at, side="right")
    away = np.minimum(created_at - ends[begun], starts[begun] - created_at)
    return np.asarray(np.exp2(np.maximum(away, 0.0) / (-HALF_LIFE_DAYS * _DAY_MS)))


def _edges(
    spans: Sequence[Span], first: int, last: int, zone: tzinfo
) -> Iterator[tuple[float, float]]:
    # The nearest Christmas to a message of January is in the year before.
    years = range(max(first - 1, date.min.year + 1), min(last + 2, date.max.year - 1))
    for span in spans:
        for each in map(span.in_year, years) if span.every_year else [span]:
            if each.start < each.end:
                yield _midnight_ms(each.start, zone), _midnight_ms(each.end, zone)


def _midnight_ms(day: date, zone: tzinfo) -> float:
    return datetime.combine(day, time(), zone).timestamp() * 1000


def _move(day: date, year: int) -> date:
    try:
        return day.replace(year=year)
    except ValueError:
        return date(year, 3, 1)


# Words and their kinds

_FULL_MONTHS = (
    "january february march april may june july august september october november december"
).split()
_MONTHS = {name: number for number, name in enumerate(_FULL_MONTHS, 1)}
_SHORT_MONTHS = {name[:3]: number for name, number in _MONTHS.items() if name != "may"}
_SHORT_MONTHS["sept"] = 9
_MONTHS |= _SHORT_MONTHS
_MODALS = frozenset({"may", "march"})
_NAMES = frozenset({"april", "june", "august"})
_WEEKDAYS = {
    name: number
    for number, name in enumerate(
        "monday tuesday wednesday thursday friday saturday sunday".split()
    )
}
_SHORT_WEEKDAYS = {name[:3]: number for name, number in _WEEKDAYS.items()}
_SHORT_WEEKDAYS |= {"tues": 1, "thur": 3, "thurs": 3}
_WORDY_WEEKDAYS = frozenset({"mon", "wed", "sat", "sun"})
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_COUNTS = {
    name: (number, number)
    for number, name in enumerate(
        "one two three four five six seven eight nine ten eleven twelve".split(), 1
    )
} | {"a": (1, 1), "an": (1, 1), "couple": (2, 3), "few": (2, 5), "several": (3, 7)}
_SINGULARS = {each + "s": each for each in ("minute", "hour", "day", "week", "month", "year")}
_HOLIDAYS = {
    "christmas": (12, 24, 3),
    "xmas": (12, 24, 3),
    "christmas eve": (12, 24, 1),
    "christmas day": (12, 25, 1),
    "new year 's eve": (12, 31, 1),
    "new year eve": (12, 31, 1),
    "new year 's day": (1, 1, 1),
    "new year day": (1, 1, 1),
    "valentine 's day": (2, 14, 1),
    "halloween": (10, 31, 1),
}
_OFFSETS = {"yesterday": -1, "today": 0, "tonight": 0, "now": 0, "tomorrow": 1}
# A question without a name or a number of a date has one of these, or no date.
_SIGNS = frozenset(_OFFSETS) | _SEASONS.keys() | frozenset(
    "ago back christmas xmas halloween valentine year last past previous this current next"
    " coming upcoming weekend night other".split()
)  # fmt: skip
# What a number before them counts.
_COUNTED = frozenset(
    "tokens words characters chars bytes kb mb gb bits lines rows files items entries messages"
    " mails emails requests users people persons guests times steps iterations samples points"
    " percent pixels px ms seconds minute hour day week month year"
    " dollars euros pounds usd eur km miles meters metres kcal calories grams ml".split()
)
_AFTER_MODAL = frozenset("be have not also well need never still".split())
_LEADS = frozenset(
    "in during of since until till before after around throughout by from through between"
    " year".split()
)
_HOLIDAY_LEADS = _LEADS | {"on", "at", "over", "for"}
_WEEKDAY_LEADS = (_LEADS | {"on"}) - {"in", "year"}
_DAY_LEADS = _LEADS | {"on", "for", "to", "at"}
_OWNERS = frozenset("the our my your his her their its".split())
_OF_ALL_DAYS = frozenset("every each black good cyber ash palm easter super".split())

_MONTH_KINDS = frozenset({"MONTH", "NAME", "SHORT", "MODAL"})
_JOINED_KINDS = _MONTH_KINDS | {"DAY", "ORDINAL", "YEAR", "early", "mid", "late"}
_OPENING = "([{<\"'“\u2018«*_~"
_CLOSING = ")]}>\"'”\u2019»*_~.;:!?…"


class _Token(NamedTuple):
    kind: str  # upper case for a kind; other words are themselves, in lower case
    number: int = 0


_BREAK = _Token(".")
_UNKNOWN = _Token("#")


def _read_tokens(question: str, last_year: int) -> list[_Token]:
    text = _pattern(r"```.*?```|`[^`\n]*`").sub(" # ", question.replace("\u2019", "'"))
    text = _pattern(r",(?!\d{3}(?!\d))").sub(" , ", text).replace("—", " . ")
    tokens: list[_Token] = []
    chunks = text.split()
    for chunk, following in zip(chunks, [*chunks[1:], ""], strict=False):
        if _pattern(r"'\d\d").fullmatch(chunk.rstrip(_CLOSING)):
            year = int(chunk[1:3])
            tokens.append(_Token("YY", year + (1900 if year >= _FIRST_YEAR % 100 else 2000)))
            continue
        word = chunk.lstrip(_OPENING)
        if word != chunk:
            tokens.append(_BREAK)
        bare = word.rstrip(_CLOSING)
        tokens.extend(_read_chunk(bare, last_year) if bare else ())
        short = bare.lower() in _SHORT_MONTHS and following[:1].isdigit()
        if bare != word and not (short and word == bare + "."):
            tokens.append(_BREAK)
    return [
        _Token("NUM", token.number)
        if token.kind in ("YEAR", "YYYY") and following in _COUNTED
        else token
        for token, following in zip(tokens, [each.kind for each in tokens[1:]] + [""], strict=False)
    ]


def _read_chunk(chunk: str, last_year: int) -> list[_Token]:
    """Read what stands between two spaces; whatever is glued to a date makes it none."""
    if chunk in ("-", "–", "/", ","):
        return [_Token("-" if chunk == "–" else chunk)]
    if chunk.isascii() and chunk.isalpha():
        return [_read_word(chunk)]
    if chunk.lower().endswith("'s"):
        return [_read_word(chunk[:-2]), _Token("'s")]
    numeric = _read_number(chunk, last_year) or _read_numeric_date(chunk)
    return [numeric] if numeric else _read_pieces(chunk, last_year)


def _read_word(word: str) -> _Token:
    lower = word.lower()
    if lower in _MONTHS:
        return _Token(_month_kind(word), _MONTHS[lower])
    if lower in _WEEKDAYS:
        return _Token("WEEKDAY", _WEEKDAYS[lower])
    if lower in _SHORT_WEEKDAYS and (word.istitle() or lower not in _WORDY_WEEKDAYS):
        return _Token("SHORTDAY", _SHORT_WEEKDAYS[lower])
    if lower in ("spring", "fall") and lower != word:
        return _Token("SPRING", _SEASONS[lower])
    return _Token(_SINGULARS.get(lower, lower)) if word.isalpha() else _UNKNOWN


def _month_kind(word: str) -> str:
    lower = word.lower()
    if lower in _NAMES or (word.istitle() and (lower in _MODALS or lower in _SHORT_MONTHS)):
        return "NAME"
    if lower in _MODALS:
        return "MODAL"
    return "SHORT" if lower in _SHORT_MONTHS else "MONTH"


def _read_number(chunk: str, last_year: int) -> _Token | None:
    match = _pattern(r"(\d{1,6})(st|nd|rd|th)?|[Qq]([1-4])").fullmatch(chunk)
    if not match:
        return None
    if match[3]:
        return _Token("QUARTER", int(match[3]))
    number = int(match[1])
    if len(match[1]) <= 2 and 1 <= number <= 31:
        return _Token("ORDINAL" if match[2] else "DAY", number)
    if len(match[1]) == 4 and not match[2] and 1000 <= number < 3000:
        return _Token("YEAR" if _FIRST_YEAR <= number <= last_year else "YYYY", number)
    return _Token("NUM", number)


def _read_numeric_date(chunk: str) -> _Token | None:
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
    return _Token("DATE" if day else "DATEMONTH", ordinal)


def _read_pieces(chunk: str, last_year: int) -> list[_Token]:
    """Split mid-March, 3–5 and July/August."""
    pieces = _pattern(r"([-–/])").split(chunk)
    if not 3 <= len(pieces) <= 5:
        return [_UNKNOWN]
    # 3/4 is a fraction, 24/7 is always.
    joint, allowed = ("/", _MONTH_KINDS) if "/" in chunk else ("-", _JOINED_KINDS)
    tokens: list[_Token] = []
    for piece in pieces[::2]:
        token = _read_number(piece, last_year) or _read_word(piece)
        if token.kind not in allowed:
            return [_UNKNOWN]
        tokens += [token, _Token(joint)]
    return tokens[:-1]


@cache
def _pattern(expression: str) -> re.Pattern[str]:
    # Compiled when first needed: most commands ask nothing.
    return re.compile(expression, re.ASCII | re.DOTALL)


# What a phrase means


class _Phrase(NamedTuple):
    """What a rule matched: its parts by name, and what stands around it."""

    now: datetime
    words: Mapping[str, str]
    numbers: Mapping[str, int]
    lead: str
    owned: bool
    following: str

    @property
    def today(self) -> date:
        return self.now.date()

    @property
    def which(self) -> int | None:
        """-1 for last, 0 for this, 1 for next."""
        word = self.words.get("which")
        if not word:
            return None
        return {"this": 0, "current": 0, "last": -1, "past": -1, "previous": -1}.get(word, 1)

    @property
    def year(self) -> int | None:
        if self.words.get("whose"):
            return self.today.year + {"last": -1, "this": 0, "next": 1}[self.words["whose"]]
        return self.numbers.get("year")

    @property
    def amount(self) -> tuple[int, int]:
        word = self.words.get("count", "a")
        return _COUNTS.get(word) or (self.numbers["count"], self.numbers["count"])

    @property
    def ends(self) -> bool:
        return self.following in ("", ".", ",", "'s")

    def dated(self, span: Span) -> Span:
        """The span of any year, in the year that is named, if one is."""
        if self.which is not None:
            return _pick(span, self.which, self.today)
        return span if self.year is None else span.in_year(self.year)


def _any_year(month: int, day: int = 1) -> date:
    return date(_ANY_YEAR, month, day)


def _months(first: date, count: int = 1) -> date:
    """The same day some months later, or the last of that month if it is shorter."""
    year, month = divmod(first.year * 12 + first.month - 1 + count, 12)
    following = date(year + (month == 11), (month + 1) % 12 + 1, 1)
    return date(year, month + 1, min(first.day, (following - _DAY).day))


def _later(day: date, count: int, unit: str) -> date:
    if unit in ("day", "week"):
        return day + _DAY * count * (7 if unit == "week" else 1)
    return _months(day, count * (12 if unit == "year" else 1))


def _pick(span: Span, which: int, today: date) -> Span:
    years = [span.in_year(today.year + offset) for offset in range(-9, 10)]
    years = [each for each in years if each.start < each.end]
    if which < 0:
        return [each for each in years if each.end <= today][-1]
    if which > 0:
        return next(each for each in years if each.start > today)
    current = [each for each in years if each.start <= today < each.end]
    return current[0] if current else span.in_year(today.year)


def _numeric(phrase: _Phrase) -> Span | None:
    if "date" in phrase.numbers:
        day = date.fromordinal(phrase.numbers["date"])
        return Span(day, day + _DAY)
    first = date.fromordinal(phrase.numbers["first"])
    return Span(first, _months(first)) if phrase.lead in _DAY_LEADS else None


def _days(phrase: _Phrase) -> Span | None:
    """Read 7 July, July 7 to 9, 2023."""
    modal = phrase.words["month"] == "MODAL" and not phrase.words.get("of")
    if modal and phrase.year is None:
        if phrase.following in _AFTER_MODAL:
            return None
        if phrase.lead not in _DAY_LEADS and not phrase.ends:
            return None
    month, day = phrase.numbers["month"], phrase.numbers["day"]
    # A day that its year does not have is no date, so the year comes first.
    year = _ANY_YEAR if phrase.year is None else phrase.year
    start = date(year, month, day)
    end = date(year, month, phrase.numbers.get("until", day)) + _DAY
    return Span(start, end, phrase.year is None) if start < end else None


def _month(phrase: _Phrase) -> Span | None:
    kind, first = phrase.words["month"], _any_year(phrase.numbers["month"])
    named = phrase.year is not None or (phrase.which is not None)
    if kind == "MODAL" and phrase.following in _AFTER_MODAL:
        return None
    if kind == "MODAL" and phrase.which == 0:
        return None
    if kind != "MONTH" and not named:
        # "by May's account", "the March on Washington"
        if phrase.following in ("'s", "on", "of"):
            return None
        owned = kind == "NAME" and phrase.owned and not phrase.ends
        if phrase.lead not in _LEADS and not owned:
            return None
    return phrase.dated(Span(first, _months(first), every_year=True))


def _quarter(phrase: _Phrase) -> Span | None:
    if phrase.year is None and phrase.lead not in _DAY_LEADS:
        return None
    nth = phrase.numbers["quarter"] or _NTH[phrase.words["quarter"]]
    first = _any_year(3 * nth - 2)
    return phrase.dated(Span(first, _months(first, 3), every_year=True))


def _season(phrase: _Phrase) -> Span | None:
    name = phrase.words["season"]
    first = _any_year(phrase.numbers["season"] or _SEASONS[name])
    if phrase.year is None and phrase.which is None:
        if phrase.lead not in _LEADS | {"over"} or phrase.following == "of":
            return None
        # In spring, but neither in Spring nor in fall.
        if name == "SPRING" or (name == "fall" and not phrase.owned):
            return None
    return phrase.dated(Span(first, _months(first, 3), every_year=True))


def _holiday(phrase: _Phrase) -> Span | None:
    if phrase.year is None and phrase.which is None and phrase.lead not in _HOLIDAY_LEADS:
        return None
    month, day, length = _HOLIDAYS[phrase.words["holiday"]]
    first = _any_year(month, day)
    return phrase.dated(Span(first, first + _DAY * length, every_year=True))


def _year(phrase: _Phrase) -> Span | None:
    owned = phrase.owned and not phrase.ends
    if phrase.lead not in _LEADS and not owned:
        return None
    year = phrase.numbers["year"]
    return Span(date(year, 1, 1), date(year + 1, 1, 1))


def _weekday(phrase: _Phrase) -> Span | None:
    weekday, monday = phrase.numbers["weekday"], phrase.today - _DAY * phrase.today.weekday()
    day = monday + _DAY * weekday
    if phrase.words.get("week"):
        day += 7 * _DAY * (phrase.which or 0)
    elif phrase.which is None:
        led = phrase.lead in _WEEKDAY_LEADS
        full = phrase.words["weekday"] == "WEEKDAY" and phrase.lead not in _OF_ALL_DAYS
        part = phrase.following in ("morning", "afternoon", "evening", "night")
        if not led and not (full and not phrase.owned and (phrase.ends or part)):
            return None
        day -= 7 * _DAY * (day >= phrase.today)
    elif phrase.which < 0:
        day -= 7 * _DAY * (day >= phrase.today)
    elif phrase.which > 0:
        day += 7 * _DAY * (day <= phrase.today)
    return Span(day, day + _DAY)


def _weekend(phrase: _Phrase) -> Span | None:
    saturday = phrase.today + _DAY * (5 - phrase.today.weekday())
    if phrase.words.get("ago"):
        which = -2
    elif phrase.which is not None:
        which = phrase.which
    elif phrase.lead in ("over", "on", "at", "during", "since", "from"):
        which = 0 if saturday <= phrase.today else -1
    else:
        return None
    saturday += 7 * _DAY * which
    return Span(saturday, saturday + 2 * _DAY)


def _near(phrase: _Phrase) -> Span | None:
    """Read yesterday, and the day before it."""
    word = phrase.words["near"]
    if word == "now" and phrase.lead != "between":
        return None
    offset = _OFFSETS.get(word)
    if offset is None:
        offset = {"day before yesterday": -2, "day after tomorrow": 2, "night before last": -2}.get(
            word, -1 if word.startswith("last") else 0
        )
    day = phrase.today + _DAY * offset
    return Span(day, day + _DAY)


def _lately(phrase: _Phrase) -> Span:
    return Span(phrase.today - 7 * _DAY, phrase.today)


def _period(phrase: _Phrase) -> Span:
    """Read last week, this month, next year, the year before last."""
    unit, today = phrase.words["unit"], phrase.today
    steps = -2 if phrase.words.get("ago") else phrase.which or 0
    if unit == "week":
        start = today - _DAY * today.weekday()
    elif unit == "year":
        start = date(today.year, 1, 1)
    else:
        start = date(today.year, today.month, 1)
    if unit == "quarter":
        start = _months(start, -((today.month - 1) % 3))
        return Span(_months(start, 3 * steps), _months(start, 3 * steps + 3))
    return Span(_later(start, steps, unit), _later(start, steps + 1, unit))


def _rolling(phrase: _Phrase) -> Span | None:
    """Read the last three weeks, the past year; "last year" alone is the calendar's."""
    unit = phrase.words["unit"]
    if not phrase.words.get("count") and (
        unit == "day" or not (phrase.words.get("the") or phrase.words["which"] == "past")
    ):
        return None
    return Span(_later(phrase.today, -phrase.amount[1], unit), phrase.today + _DAY)


def _ago(phrase: _Phrase) -> Span:
    (low, high), unit = phrase.amount, phrase.words["unit"]
    sign = 1 if phrase.words["side"] == "from now" else -1
    if unit in ("minute", "hour"):
        seconds = sign * high * (60 if unit == "minute" else 3600)
        day = datetime.fromtimestamp(phrase.now.timestamp() + seconds, phrase.now.tzinfo).date()
        return Span(day, day + _DAY)
    if phrase.words.get("half"):
        low, high, unit = 6, 6, "month"
    near, far = sorted(_later(phrase.today, sign * each, unit) for each in (low, high))
    slack = _DAY * {"day": 0, "week": 3, "month": 15, "year": 183}[unit]
    return Span(near - slack, far + slack + _DAY)


# Phrases that change what follows them

_NTH = {"first": 1, "second": 2, "third": 3, "fourth": 4}


def _third(phrase: _Phrase, span: Span) -> Span:
    days, part = (span.end - span.start).days, phrase.words["part"]
    nth = 0 if part in ("early", "beginning", "start") else 2 if part in ("late", "end") else 1
    if days < 3:
        return span
    cuts = [span.start + _DAY * round(days * each / 3) for each in (nth, nth + 1)]
    return Span(cuts[0], cuts[1], span.every_year)


def _part(phrase: _Phrase, span: Span) -> Span | None:
    """Read the second week of July, the first half of 2023."""
    days, nth = (span.end - span.start).days, phrase.words["nth"]
    half = phrase.words["portion"] == "half"
    length = days // 2 if half else 7
    if days < 28:
        return None
    if nth == "last" or (half and nth == "second"):
        return replace(span, start=span.end - _DAY * length)
    start = span.start + _DAY * length * ((phrase.numbers["nth"] or _NTH[nth]) - 1)
    return Span(start, start + _DAY * length, span.every_year) if start < span.end else None


def _beside(phrase: _Phrase, span: Span) -> Span:
    """Read two weeks before 7 July: what is told then was often said on the day itself."""
    count, unit = phrase.amount[1], phrase.words["unit"]
    if phrase.words["side"] == "before":
        return replace(span, start=_later(span.start, -count, unit))
    return replace(span, end=_later(span.end, count, unit))


# The rules, the more precise first

_WHICH = "(?:this )?(?P<which>last|past|previous|this|current|next|coming|upcoming)"
_NAMED = {
    "{M}": "(?P<month>MONTH|NAME|SHORT|MODAL)",
    "{D}": "(?P<day>DAY|ORDINAL)",
    "{U}": "(?P<until>DAY|ORDINAL)",
    "{Y}": "(?:(?: ,| -)?(?: of| in)? (?P<year>YEAR|YYYY|YY)"
    "|(?: ,)?(?: of)? (?P<whose>last|this|next) year)",
    "{W}": "(?:(?:WEEKDAY|SHORTDAY)(?: ,)? )?(?:the )?",
    "{TO}": "(?:to|and|or|-|until|till|through)(?: the)?",
    "{WHICH}": _WHICH,
    "{SEASON}": "(?P<season>spring|summer|autumn|fall|winter|SPRING)",
    "{HOLIDAY}": "(?P<holiday>(?:christmas|new year(?: 's)?) (?:eve|day)|christmas|xmas"
    "|halloween|valentine 's day)",
    "{N}": "(?:a (?=couple|few))?(?P<count>DAY|NUM|" + "|".join(_COUNTS) + ")(?: of)?",
}
_RULES: tuple[tuple[str, Callable[[_Phrase], Span | None]], ...] = (
    ("(?P<date>DATE)", _numeric),
    ("(?P<first>DATEMONTH)", _numeric),
    ("{W}{D} {TO} {U}(?P<of> of)? {M}{Y}?", _days),
    ("{W}{D}(?: -)?(?P<of> of)? {M}{Y}?", _days),
    ("{W}{M}(?: the)? {D} {TO} {U}(?!(?: of)? (?:MONTH|NAME|SHORT|MODAL)){Y}?", _days),
    ("{W}{M}(?: the)? {D}(?! (?:day|week|month|year) ){Y}?", _days),
    ("{M}{Y}", _month),
    ("{WHICH} {M}", _month),
    ("{M}", _month),
    ("(?P<quarter>QUARTER){Y}?", _quarter),
    ("(?P<quarter>first|second|third|fourth) quarter{Y}", _quarter),
    ("{SEASON}{Y}?", _season),
    ("{WHICH} {SEASON}", _season),
    ("{HOLIDAY}{Y}?", _holiday),
    ("{WHICH} {HOLIDAY}", _holiday),
    ("(?P<weekday>WEEKDAY|SHORTDAY)(?: of)? {WHICH} (?P<week>week)", _weekday),
    ("{WHICH} (?P<week>week)(?: 's)?(?: on)? (?P<weekday>WEEKDAY)", _weekday),
    ("{WHICH} (?P<weekday>WEEKDAY|SHORTDAY)", _weekday),
    ("(?P<weekday>WEEKDAY|SHORTDAY)", _weekday),
    ("{WHICH} weekend", _weekend),
    ("weekend(?P<ago> before last)?", _weekend),
    (
        "(?:the )?(?P<near>day before yesterday|day after tomorrow|night before last|yesterday"
        "|today|tonight|tomorrow|now|this (?:morning|afternoon|evening)|last (?:night|evening))",
        _near,
    ),
    ("the other (?:day|night|evening)", _lately),
    (
        "(?P<the>(?:the|this) )?(?P<which>last|past)(?: {N})? (?P<unit>day|week|month|year)(?! of)",
        _rolling,
    ),
    ("{WHICH} (?P<unit>week|month|quarter|year)", _period),
    ("(?P<unit>week|month|year)(?P<ago> before last)", _period),
    (
        "(?P<half>half )?{N} (?P<unit>minute|hour|day|week|month|year) (?P<side>ago|back|from now)",
        _ago,
    ),
    # Neither 2000 to 4000, nor 2000 of them.
    ("(?P<year>YEAR)(?! (?:(?:to|-|and|or) (?:NUM|YYYY|DAY)|of) )", _year),
)
_PREFIXES: tuple[tuple[str, Callable[[_Phrase, Span], Span | None]], ...] = (
    (
        "(?P<part>early|mid|late|(?:beginning|start|middle|end)(?= of))"
        "(?: -)?(?: of| in| on)?(?: the)?",
        _third,
    ),
    (
        "(?P<nth>first|second|third|fourth|last|ORDINAL) (?P<portion>week|weekend|half) (?:of|in)"
        "(?: the)?",
        _part,
    ),
    (
        "(?:{N}|the) (?P<unit>day|week|month|year) (?P<side>before|after)(?: the)?"
        "(?! (?:yesterday|tomorrow) )",
        _beside,
    ),
)


@cache
def _rules() -> list[tuple[re.Pattern[str], Callable[[_Phrase], Span | None]]]:
    return [(_compile(rule), meaning) for rule, meaning in _RULES]


@cache
def _prefixes() -> list[tuple[re.Pattern[str], Callable[[_Phrase, Span], Span | None]]]:
    return [(_compile(rule), meaning) for rule, meaning in _PREFIXES]


def _compile(rule: str) -> re.Pattern[str]:
    for name, expression in _NAMED.items():
        rule = rule.replace(name, expression)
    return re.compile(rule + r"(?= )")


class _Reader:
    """Reads phrases from left to right, each word once."""

    def __init__(self, tokens: Sequence[_Token], now: datetime) -> None:
        self._numbers = [token.number for token in tokens]
        self._kinds = [token.kind for token in tokens] + [""]
        self._text = " ".join(self._kinds) + " "
        self._now = now
        self._offsets: list[int] = []
        offset = 0
        for kind in self._kinds:
            self._offsets.append(offset)
            offset += len(kind) + 1
        self._places = {offset: place for place, offset in enumerate(self._offsets)}

    def phrases(self) -> Iterator[Sequence[Span]]:
        place = 0
        while place < len(self._numbers):
            found = self._read(place)
            if found:
                yield found[0]
            place = found[1] if found else place + 1

    def _read(self, place: int) -> tuple[Sequence[Span], int] | None:
        found = self._read_one(place, self._lead(place))
        if not found:
            return None
        span, end = found
        joint, lead = self._kinds[end], self._lead(place)
        if joint in ("to", "until", "till", "through", "-") or (joint, lead) == ("and", "between"):
            other = self._read_one(self._skip_article(end + 1), "between")
            if other:
                return [_range(span, other[0])], other[1]
        if joint in ("and", "or", "/", ","):
            return self._read_list(span, end, lead)
        return [self._open(span, lead, joint)], end

    def _read_list(self, span: Span, end: int, lead: str) -> tuple[Sequence[Span], int]:
        """Read July, August and September 2023; the year at the end is everyone's."""
        spans = [span]
        while self._kinds[end] in ("and", "or", "/", ","):
            # In July and May; but not yesterday and May.
            alike = self._kinds[end - 1] in _MONTH_KINDS | {"YEAR"}
            other = self._read_one(self._skip_article(end + 1), "between" if alike else "on")
            comma = self._kinds[end] == ","
            if not other or (comma and self._kinds[other[1]] not in ("and", "or", ",")):
                break
            spans.append(other[0])
            end = other[1]
        if len(spans) == 1:
            return [self._open(span, lead, self._kinds[end])], end
        if self._kinds[end - 1] in ("YEAR", "YYYY", "YY"):
            year = spans[-1].start.year
            spans = [each.in_year(year) if each.every_year else each for each in spans]
        return spans, end

    def _open(self, span: Span, lead: str, following: str) -> Span:
        today = self._now.date()
        if lead == "since" or (lead == "from" and following in ("on", "onward", "onwards")):
            if span.every_year:
                span = max(
                    (span.in_year(today.year - 1), span.in_year(today.year)),
                    key=lambda each: (each.start <= today, each.start),
                )
            return Span(span.start, today + _DAY) if span.start <= today else span
        if span.every_year or (span.end - span.start).days < 28:
            return span
        if lead == "after" and span.end <= today:
            return Span(span.end, today + _DAY)
        return Span(date.min, span.start) if lead == "before" else span

    def _read_one(self, place: int, lead: str, nesting: int = 0) -> tuple[Span, int] | None:
        for rule, change in _prefixes() if nesting < _MAX_NESTING else ():
            match = rule.match(self._text, self._offsets[place])
            inner = match and self._read_one(self._place(match), "in", nesting + 1)
            if match and inner:
                phrase = self._phrase(match, lead)
                span = _possible(change, phrase, inner[0])
                if span:
                    return span, inner[1]
        for rule, meaning in _rules():
            match = rule.match(self._text, self._offsets[place])
            if match:
                phrase = self._phrase(match, lead)
                span = _possible(meaning, phrase)
                if span:
                    return span, self._place(match)
        return None

    def _phrase(self, match: re.Match[str], lead: str) -> _Phrase:
        names = [name for name, text in match.groupdict().items() if text]
        place = self._places[match.start()]
        return _Phrase(
            now=self._now,
            words={name: match[name].strip() for name in names},
            numbers={
                name: self._numbers[self._places[match.start(name)]]
                for name in names
                if match.start(name) in self._places
            },
            lead=lead,
            owned=place > 0 and self._kinds[place - 1] in _OWNERS,
            following=self._kinds[self._place(match)],
        )

    def _place(self, match: re.Match[str]) -> int:
        return self._places[match.end() + 1]

    def _skip_article(self, place: int) -> int:
        return place + (self._kinds[place : place + 1] == ["the"])

    def _lead(self, place: int) -> str:
        """The word before a phrase, without its article; "3 of 2023" leads to no year."""
        before = self._kinds[max(place - 3, 0) : place]
        if before[-1:] == ["the"]:
            before.pop()
        if (
            before[-1:] == ["of"]
            and before[-2:-1]
            and before[-2] in ("DAY", "ORDINAL", "NUM", "YEAR")
        ):
            return ""
        return before[-1] if before else ""


def _possible(meaning: Callable[..., Span | None], *parts: object) -> Span | None:
    try:
        return meaning(*parts)
    except (ValueError, OverflowError, OSError):  # 31 June, a million years ago
        return None


def _range(first: Span, last: Span) -> Span:
    """From the first to the end of the last; a year that only one of them has is the other's."""
    if first.every_year and not last.every_year:
        year = last.start.year
        first = first.in_year(year - (first.in_year(year).start > last.start))
    elif last.every_year and last.start < first.start:
        year = first.start.year
        last = replace(
            last.in_year(year + (last.in_year(year).start < first.start)),
            every_year=first.every_year,
        )
    elif last.end <= first.start < last.end + 6 * _DAY:
        # From Monday to Friday, asked on a Wednesday: both are the latest, in the wrong order.
        last = Span(last.start + 7 * _DAY, last.end + 7 * _DAY)
    start, end = min(first.start, last.start), max(first.end, last.end)
    return Span(start, end, first.every_year and last.every_year)
