"""Rules that read dates, the more precise first: patterns over kinds of words, and their days."""

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from functools import cache
from typing import NamedTuple

from reservoir_cli.retrieval.question_dates.calendar_days import (
    ANY_YEAR,
    DAY,
    DaySpan,
    any_year,
    later,
    months_later,
)
from reservoir_cli.retrieval.question_dates.lexer import (
    AFTER_MODAL,
    COUNTS,
    DAY_LEADS,
    HOLIDAY_LEADS,
    HOLIDAYS,
    LEADS,
    NTH,
    OF_ALL_DAYS,
    OFFSETS,
    SEASONS,
    WEEKDAY_LEADS,
)


class Phrase(NamedTuple):
    """A phrase matched by a rule: its parts by name, and the words around it."""

    now: datetime
    words: Mapping[str, str]
    numbers: Mapping[str, int]
    lead: str
    owned: bool
    following: str

    @property
    def today(self) -> date:
        """The day on which the question is asked."""
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
        """The year named by a number or as in "last year"; ``None`` if no year is named."""
        if self.words.get("whose"):
            return self.today.year + {"last": -1, "this": 0, "next": 1}[self.words["whose"]]
        return self.numbers.get("year")

    @property
    def amount(self) -> tuple[int, int]:
        """The lowest and highest count meant by "three" or "a few"; 1 if none is named."""
        word = self.words.get("count", "a")
        return COUNTS.get(word) or (self.numbers["count"], self.numbers["count"])

    @property
    def ends_clause(self) -> bool:
        """Whether the phrase ends a clause."""
        return self.following in ("", ".", ",", "'s")

    def in_named_year(self, span: DaySpan) -> DaySpan:
        """Return the span in the year that is named, or unchanged if none is."""
        if self.which is not None:
            return _pick(span, self.which, self.today)
        return span if self.year is None else span.in_year(self.year)


def _pick(span: DaySpan, which: int, today: date) -> DaySpan:
    years = [span.in_year(today.year + offset) for offset in range(-9, 10)]
    years = [candidate for candidate in years if candidate.start < candidate.end]
    if which:
        past = [candidate for candidate in years if candidate.end <= today]
        following = [candidate for candidate in years if candidate.start > today]
        return past[-1] if which < 0 else following[0]
    current = [candidate for candidate in years if candidate.start <= today < candidate.end]
    return current[0] if current else span.in_year(today.year)


def read_numeric(phrase: Phrase) -> DaySpan | None:
    """Read 2023-07-07; 2023-07-07T10:00 and 07/2023 after a word that introduces a date."""
    if "date" not in phrase.numbers and phrase.lead not in DAY_LEADS:
        return None
    if "first" in phrase.numbers:
        first = date.fromordinal(phrase.numbers["first"])
        return DaySpan(first, months_later(first))
    day = date.fromordinal(phrase.numbers.get("date") or phrase.numbers["time"])
    return DaySpan(day, day + DAY)


def read_days(phrase: Phrase) -> DaySpan | None:
    """Read 7 July, July 7 to 9, 2023; February 29, 2023 is that month."""
    modal = phrase.words["month"] == "MODAL" and not phrase.words.get("of")
    if modal and phrase.year is None:
        if phrase.following in AFTER_MODAL:
            return None
        if phrase.lead not in DAY_LEADS and not phrase.ends_clause:
            return None
    month, day = phrase.numbers["month"], phrase.numbers["day"]
    # Construct the date in its own year, since 29 February may not exist in it.
    year = ANY_YEAR if phrase.year is None else phrase.year
    first = date(year, month, 1)
    if phrase.year is not None and first + DAY * (day - 1) >= months_later(first):
        return DaySpan(first, months_later(first))
    start = date(year, month, day)
    end = date(year, month, phrase.numbers.get("until", day)) + DAY
    return DaySpan(start, end, phrase.year is None) if start < end else None


def read_month(phrase: Phrase) -> DaySpan | None:
    """Read July 2023, last March, in May; not the verb "may" or a person named June."""
    kind, first = phrase.words["month"], any_year(phrase.numbers["month"])
    named = phrase.year is not None or (phrase.which is not None)
    if kind == "MODAL" and (phrase.following in AFTER_MODAL or phrase.which == 0):
        return None
    if kind != "MONTH" and not named:
        # "by May's account", "the March on Washington"
        if phrase.following in ("'s", "on", "of"):
            return None
        owned = kind == "NAME" and phrase.owned and not phrase.ends_clause
        if phrase.lead not in LEADS and not owned:
            return None
    return phrase.in_named_year(DaySpan(first, months_later(first), every_year=True))


def read_quarter(phrase: Phrase) -> DaySpan | None:
    """Read Q3 2023, the third quarter of last year."""
    if phrase.year is None and phrase.lead not in DAY_LEADS:
        return None
    nth = phrase.numbers["quarter"] or NTH[phrase.words["quarter"]]
    first = any_year(3 * nth - 2)
    return phrase.in_named_year(DaySpan(first, months_later(first, 3), every_year=True))


def read_season(phrase: Phrase) -> DaySpan | None:
    """Read summer 2023, last winter; "spring" and "fall" only if they are not verbs."""
    name = phrase.words["season"]
    first = any_year(phrase.numbers["season"] or SEASONS[name])
    if phrase.year is None and phrase.which is None:
        if phrase.lead not in LEADS | {"over"} or phrase.following == "of":
            return None
        # "In spring" is a season; "in Spring" (a framework) and "in fall" are not.
        if name == "SPRING" or (name == "fall" and not phrase.owned):
            return None
    return phrase.in_named_year(DaySpan(first, months_later(first, 3), every_year=True))


def read_holiday(phrase: Phrase) -> DaySpan | None:
    """Read Christmas 2023, at Halloween."""
    if phrase.year is None and phrase.which is None and phrase.lead not in HOLIDAY_LEADS:
        return None
    month, day, length = HOLIDAYS[phrase.words["holiday"]]
    first = any_year(month, day)
    return phrase.in_named_year(DaySpan(first, first + DAY * length, every_year=True))


def read_year(phrase: Phrase) -> DaySpan | None:
    """Read in 2023, and the 2023 in "our 2023 budget"."""
    owned = phrase.owned and not phrase.ends_clause
    if phrase.lead not in LEADS and not owned:
        return None
    year = phrase.numbers["year"]
    return DaySpan(date(year, 1, 1), date(year + 1, 1, 1))


def read_weekday(phrase: Phrase) -> DaySpan | None:
    """Read on Monday, last Friday, the Friday before last, Tuesday of last week."""
    weekday, monday = phrase.numbers["weekday"], phrase.today - DAY * phrase.today.weekday()
    day = monday + DAY * weekday
    if phrase.words.get("week"):
        day += 7 * DAY * (phrase.which or 0)
    elif phrase.words.get("ago"):
        day -= 7 * DAY * (1 + (day >= phrase.today))
    elif phrase.which is None:
        led = phrase.lead in WEEKDAY_LEADS
        full = phrase.words["weekday"] == "WEEKDAY" and phrase.lead not in OF_ALL_DAYS
        part = phrase.following in ("morning", "afternoon", "evening", "night")
        if not led and not (full and not phrase.owned and (phrase.ends_clause or part)):
            return None
        day -= 7 * DAY * (day >= phrase.today)
    elif phrase.which < 0:
        day -= 7 * DAY * (day >= phrase.today)
    elif phrase.which > 0:
        day += 7 * DAY * (day <= phrase.today)
    return DaySpan(day, day + DAY)


def read_weekend(phrase: Phrase) -> DaySpan | None:
    """Read last weekend, the weekend before last, over the weekend."""
    saturday = phrase.today + DAY * (5 - phrase.today.weekday())
    if phrase.words.get("ago"):
        which = -2
    elif phrase.which is not None:
        which = phrase.which
    elif phrase.lead in ("over", "on", "at", "during", "since", "from"):
        which = 0 if saturday <= phrase.today else -1
    else:
        return None
    saturday += 7 * DAY * which
    return DaySpan(saturday, saturday + 2 * DAY)


def read_near(phrase: Phrase) -> DaySpan | None:
    """Read yesterday, and the day before yesterday."""
    word = phrase.words["near"]
    if word == "now" and phrase.lead != "between":
        return None
    offset = OFFSETS.get(word)
    if offset is None:
        offset = {"day before yesterday": -2, "day after tomorrow": 2, "night before last": -2}.get(
            word, -1 if word.startswith("last") else 0
        )
    day = phrase.today + DAY * offset
    return DaySpan(day, day + DAY)


def read_lately(phrase: Phrase) -> DaySpan:
    """Read the other day: the last seven days."""
    return DaySpan(phrase.today - 7 * DAY, phrase.today)


def read_period(phrase: Phrase) -> DaySpan:
    """Read last week, this month, next year, the year before last."""
    unit, today = phrase.words["unit"], phrase.today
    steps = -2 if phrase.words.get("ago") else phrase.which or 0
    if unit == "week":
        start = today - DAY * today.weekday()
    elif unit == "year":
        start = date(today.year, 1, 1)
    else:
        start = date(today.year, today.month, 1)
    if unit == "quarter":
        start = months_later(start, -((today.month - 1) % 3))
        return DaySpan(months_later(start, 3 * steps), months_later(start, 3 * steps + 3))
    return DaySpan(later(start, steps, unit), later(start, steps + 1, unit))


def read_rolling(phrase: Phrase) -> DaySpan | None:
    """Read the last three weeks, the past year; "last year" alone is the calendar year."""
    unit = phrase.words["unit"]
    if not phrase.words.get("count") and (
        unit == "day" or not (phrase.words.get("the") or phrase.words["which"] == "past")
    ):
        return None
    return DaySpan(later(phrase.today, -phrase.amount[1], unit), phrase.today + DAY)


def read_ago_from(phrase: Phrase) -> DaySpan | None:
    """Read a year ago today, a week ago yesterday: exactly that day."""
    low, high = phrase.amount
    if low != high:
        return None
    near = phrase.today + DAY * OFFSETS[phrase.words["near"]]
    day = later(near, -high, phrase.words["unit"])
    return DaySpan(day, day + DAY)


def read_ago(phrase: Phrase) -> DaySpan:
    """Read three weeks ago, half a year back, a month and a half ago, ten days from now."""
    (low, high), unit, half = phrase.amount, phrase.words["unit"], phrase.words.get("half")
    sign = 1 if phrase.words["side"] == "from now" else -1
    if half == "half":  # half a unit, not one and a half
        low, high = 0, 0
    if unit in ("minute", "hour") or (half and unit == "day"):
        units = high + 0.5 if half else high
        seconds = sign * units * {"minute": 60, "hour": 3600, "day": 86_400}[unit]
        day = datetime.fromtimestamp(phrase.now.timestamp() + seconds, phrase.now.tzinfo).date()
        return DaySpan(day, day + DAY)
    slack, rest = {"day": 0, "week": 3, "month": 15, "year": 183}[unit], 0
    if half and unit == "year":
        slack, unit = (91 if high else 15), "month"
        low, high = 12 * low + 6, 12 * high + 6
    elif half:
        slack, rest = slack // 2, {"week": 4, "month": 15}[unit]
    near, far = sorted(
        later(phrase.today, sign * count, unit) + DAY * sign * rest for count in (low, high)
    )
    return DaySpan(near - DAY * slack, far + DAY * (slack + 1))


# Phrases that modify the following one


def take_third(phrase: Phrase, span: DaySpan) -> DaySpan:
    """Read early July, mid 2023, the end of the year."""
    days, part = (span.end - span.start).days, phrase.words["part"]
    nth = 0 if part in ("early", "beginning", "start") else 2 if part in ("late", "end") else 1
    if days < 3:
        return span
    cuts = [span.start + DAY * round(days * third / 3) for third in (nth, nth + 1)]
    return DaySpan(cuts[0], cuts[1], span.every_year)


def take_part(phrase: Phrase, span: DaySpan) -> DaySpan | None:
    """Read the second week of July, the first half of 2023."""
    days, nth = (span.end - span.start).days, phrase.words["nth"]
    half = phrase.words["portion"] == "half"
    length = days // 2 if half else 7
    if days < 28:
        return None
    if nth == "last" or (half and nth == "second"):
        return span._replace(start=span.end - DAY * length)
    start = span.start + DAY * length * ((phrase.numbers["nth"] or NTH[nth]) - 1)
    return DaySpan(start, start + DAY * length, span.every_year) if start < span.end else None


def reach_beside(phrase: Phrase, span: DaySpan) -> DaySpan:
    """Read two weeks before 7 July: includes 7 July, when it was often mentioned."""
    count, unit = phrase.amount[1], phrase.words["unit"]
    if phrase.words["side"] == "before":
        return span._replace(start=later(span.start, -count, unit))
    return span._replace(end=later(span.end, count, unit))


_WHICH = "(?:this )?(?P<which>last|past|previous|this|current|next|coming|upcoming)"
_HOLIDAY = "|".join(sorted(HOLIDAYS, key=len, reverse=True))
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
    "{UNIT}": "(?P<unit>minute|hour|day|week|month|year)",
    "{SIDE}": "(?P<side>ago|back|from now)",
    "{HOLIDAY}": f"(?P<holiday>{_HOLIDAY})",
    "{N}": "(?:a (?=couple|few))?(?P<count>DAY|NUM|" + "|".join(COUNTS) + ")(?: of)?",
}
_RULES: tuple[tuple[str, Callable[[Phrase], DaySpan | None]], ...] = (
    ("(?P<date>DATE)", read_numeric),
    ("(?P<time>TIME)", read_numeric),
    ("(?P<first>DATEMONTH)", read_numeric),
    ("{W}{D} {TO} {U}(?P<of> of)? {M}{Y}?", read_days),
    ("{W}{D}(?: -)?(?P<of> of)? {M}{Y}?", read_days),
    ("{W}{M}(?: the)? {D} {TO} {U}(?!(?: of)? (?:MONTH|NAME|SHORT|MODAL)){Y}?", read_days),
    ("{W}{M}(?: the)? {D}(?! (?:day|week|month|year) ){Y}?", read_days),
    ("{M}{Y}", read_month),
    ("{WHICH} {M}", read_month),
    ("{M}", read_month),
    ("(?P<quarter>QUARTER){Y}?", read_quarter),
    ("(?P<year>YEAR) (?P<quarter>QUARTER)", read_quarter),
    ("(?P<quarter>first|second|third|fourth|ORDINAL) quarter{Y}", read_quarter),
    ("{SEASON}{Y}?", read_season),
    ("{WHICH} {SEASON}", read_season),
    ("{HOLIDAY}{Y}?", read_holiday),
    ("{WHICH} {HOLIDAY}", read_holiday),
    ("(?P<weekday>WEEKDAY|SHORTDAY)(?: of)? {WHICH} (?P<week>week)", read_weekday),
    ("{WHICH} (?P<week>week)(?: 's)?(?: on)? (?P<weekday>WEEKDAY)", read_weekday),
    ("{WHICH} (?P<weekday>WEEKDAY|SHORTDAY)", read_weekday),
    ("(?P<weekday>WEEKDAY|SHORTDAY)(?P<ago> before last)", read_weekday),
    ("(?P<weekday>WEEKDAY|SHORTDAY)", read_weekday),
    ("{WHICH} weekend", read_weekend),
    ("weekend(?P<ago> before last)?", read_weekend),
    (
        "(?:the )?(?P<near>day before yesterday|day after tomorrow|night before last|yesterday"
        "|today|tonight|tomorrow|now|this (?:morning|afternoon|evening)|last (?:night|evening))",
        read_near,
    ),
    ("the other (?:day|night|evening)", read_lately),
    (
        "(?P<the>(?:the|this) )?(?P<which>last|past)(?: {N})? (?P<unit>day|week|month|year)(?! of)",
        read_rolling,
    ),
    ("{WHICH} (?P<unit>week|month|quarter|year)", read_period),
    ("(?P<unit>week|month|year)(?P<ago> before last)", read_period),
    ("{N} (?P<unit>day|week|month|year) ago (?P<near>today|yesterday|tomorrow)", read_ago_from),
    ("(?P<half>half )?{N} {UNIT} {SIDE}", read_ago),
    ("{N}(?P<half> and (?:a )?half) {UNIT} {SIDE}", read_ago),
    ("{N} {UNIT}(?P<half> and (?:a )?half) {SIDE}", read_ago),
    # Excludes "2000 to 4000" and "2000 of them".
    ("(?P<year>YEAR)(?! (?:(?:to|-|and|or) (?:NUM|YYYY|DAY)|of) )", read_year),
)
_PREFIXES: tuple[tuple[str, Callable[[Phrase, DaySpan], DaySpan | None]], ...] = (
    (
        "(?P<part>early|mid|late|(?:beginning|start|middle|end)(?= of))"
        "(?: -)?(?: of| in| on)?(?: the)?",
        take_third,
    ),
    (
        "(?P<nth>first|second|third|fourth|last|ORDINAL) (?P<portion>week|weekend|half) (?:of|in)"
        "(?: the)?",
        take_part,
    ),
    (
        "(?:{N}|the) (?P<unit>day|week|month|year) (?P<side>before|after)(?: the)?"
        "(?! (?:yesterday|tomorrow) )",
        reach_beside,
    ),
)


@cache
def rules() -> list[tuple[re.Pattern[str], Callable[[Phrase], DaySpan | None]]]:
    """Return the patterns of phrases, with the function that resolves each to days."""
    return [(_compile(rule), meaning) for rule, meaning in _RULES]


@cache
def prefixes() -> list[tuple[re.Pattern[str], Callable[[Phrase, DaySpan], DaySpan | None]]]:
    """Return the patterns of modifiers before a phrase, with the function that applies each."""
    return [(_compile(rule), meaning) for rule, meaning in _PREFIXES]


def _compile(rule: str) -> re.Pattern[str]:
    for name, expression in _NAMED.items():
        rule = rule.replace(name, expression)
    return re.compile(rule + r"(?= )")
