"""The rules that read dates: patterns over kinds of words, the more precise first."""

import re
from collections.abc import Callable
from functools import cache

from reservoir_cli.retrieval.question_dates import resolve_days
from reservoir_cli.retrieval.question_dates.calendar_days import Span
from reservoir_cli.retrieval.question_dates.english import COUNTS
from reservoir_cli.retrieval.question_dates.phrases import Phrase

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
    "{N}": "(?:a (?=couple|few))?(?P<count>DAY|NUM|" + "|".join(COUNTS) + ")(?: of)?",
}
_RULES: tuple[tuple[str, Callable[[Phrase], Span | None]], ...] = (
    ("(?P<date>DATE)", resolve_days.read_numeric),
    ("(?P<first>DATEMONTH)", resolve_days.read_numeric),
    ("{W}{D} {TO} {U}(?P<of> of)? {M}{Y}?", resolve_days.read_days),
    ("{W}{D}(?: -)?(?P<of> of)? {M}{Y}?", resolve_days.read_days),
    (
        "{W}{M}(?: the)? {D} {TO} {U}(?!(?: of)? (?:MONTH|NAME|SHORT|MODAL)){Y}?",
        resolve_days.read_days,
    ),
    ("{W}{M}(?: the)? {D}(?! (?:day|week|month|year) ){Y}?", resolve_days.read_days),
    ("{M}{Y}", resolve_days.read_month),
    ("{WHICH} {M}", resolve_days.read_month),
    ("{M}", resolve_days.read_month),
    ("(?P<quarter>QUARTER){Y}?", resolve_days.read_quarter),
    ("(?P<year>YEAR) (?P<quarter>QUARTER)", resolve_days.read_quarter),
    ("(?P<quarter>first|second|third|fourth|ORDINAL) quarter{Y}", resolve_days.read_quarter),
    ("{SEASON}{Y}?", resolve_days.read_season),
    ("{WHICH} {SEASON}", resolve_days.read_season),
    ("{HOLIDAY}{Y}?", resolve_days.read_holiday),
    ("{WHICH} {HOLIDAY}", resolve_days.read_holiday),
    ("(?P<weekday>WEEKDAY|SHORTDAY)(?: of)? {WHICH} (?P<week>week)", resolve_days.read_weekday),
    ("{WHICH} (?P<week>week)(?: 's)?(?: on)? (?P<weekday>WEEKDAY)", resolve_days.read_weekday),
    ("{WHICH} (?P<weekday>WEEKDAY|SHORTDAY)", resolve_days.read_weekday),
    ("(?P<weekday>WEEKDAY|SHORTDAY)", resolve_days.read_weekday),
    ("{WHICH} weekend", resolve_days.read_weekend),
    ("weekend(?P<ago> before last)?", resolve_days.read_weekend),
    (
        "(?:the )?(?P<near>day before yesterday|day after tomorrow|night before last|yesterday"
        "|today|tonight|tomorrow|now|this (?:morning|afternoon|evening)|last (?:night|evening))",
        resolve_days.read_near,
    ),
    ("the other (?:day|night|evening)", resolve_days.read_lately),
    (
        "(?P<the>(?:the|this) )?(?P<which>last|past)(?: {N})? (?P<unit>day|week|month|year)(?! of)",
        resolve_days.read_rolling,
    ),
    ("{WHICH} (?P<unit>week|month|quarter|year)", resolve_days.read_period),
    ("(?P<unit>week|month|year)(?P<ago> before last)", resolve_days.read_period),
    (
        "(?P<half>half )?{N} (?P<unit>minute|hour|day|week|month|year) (?P<side>ago|back|from now)",
        resolve_days.read_ago,
    ),
    # Excludes "2000 to 4000" and "2000 of them".
    ("(?P<year>YEAR)(?! (?:(?:to|-|and|or) (?:NUM|YYYY|DAY)|of) )", resolve_days.read_year),
)
_PREFIXES: tuple[tuple[str, Callable[[Phrase, Span], Span | None]], ...] = (
    (
        "(?P<part>early|mid|late|(?:beginning|start|middle|end)(?= of))"
        "(?: -)?(?: of| in| on)?(?: the)?",
        resolve_days.take_third,
    ),
    (
        "(?P<nth>first|second|third|fourth|last|ORDINAL) (?P<portion>week|weekend|half) (?:of|in)"
        "(?: the)?",
        resolve_days.take_part,
    ),
    (
        "(?:{N}|the) (?P<unit>day|week|month|year) (?P<side>before|after)(?: the)?"
        "(?! (?:yesterday|tomorrow) )",
        resolve_days.reach_beside,
    ),
)


@cache
def rules() -> list[tuple[re.Pattern[str], Callable[[Phrase], Span | None]]]:
    """Return the patterns of phrases, with the function that resolves each to days."""
    return [(_compile(rule), meaning) for rule, meaning in _RULES]


@cache
def prefixes() -> list[tuple[re.Pattern[str], Callable[[Phrase, Span], Span | None]]]:
    """Return the patterns of modifiers before a phrase, with the function that applies each."""
    return [(_compile(rule), meaning) for rule, meaning in _PREFIXES]


def _compile(rule: str) -> re.Pattern[str]:
    for name, expression in _NAMED.items():
        rule = rule.replace(name, expression)
    return re.compile(rule + r"(?= )")
