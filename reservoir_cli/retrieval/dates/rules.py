"""The rules: patterns over the kinds of words, the more precise first, each with its meaning."""

import re
from collections.abc import Callable
from functools import cache

from reservoir_cli.retrieval.dates import semantics
from reservoir_cli.retrieval.dates.calendar_days import Span
from reservoir_cli.retrieval.dates.phrases import Phrase
from reservoir_cli.retrieval.dates.vocabulary import COUNTS

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
    ("(?P<date>DATE)", semantics.read_numeric),
    ("(?P<first>DATEMONTH)", semantics.read_numeric),
    ("{W}{D} {TO} {U}(?P<of> of)? {M}{Y}?", semantics.read_days),
    ("{W}{D}(?: -)?(?P<of> of)? {M}{Y}?", semantics.read_days),
    (
        "{W}{M}(?: the)? {D} {TO} {U}(?!(?: of)? (?:MONTH|NAME|SHORT|MODAL)){Y}?",
        semantics.read_days,
    ),
    ("{W}{M}(?: the)? {D}(?! (?:day|week|month|year) ){Y}?", semantics.read_days),
    ("{M}{Y}", semantics.read_month),
    ("{WHICH} {M}", semantics.read_month),
    ("{M}", semantics.read_month),
    ("(?P<quarter>QUARTER){Y}?", semantics.read_quarter),
    ("(?P<year>YEAR) (?P<quarter>QUARTER)", semantics.read_quarter),
    ("(?P<quarter>first|second|third|fourth|ORDINAL) quarter{Y}", semantics.read_quarter),
    ("{SEASON}{Y}?", semantics.read_season),
    ("{WHICH} {SEASON}", semantics.read_season),
    ("{HOLIDAY}{Y}?", semantics.read_holiday),
    ("{WHICH} {HOLIDAY}", semantics.read_holiday),
    ("(?P<weekday>WEEKDAY|SHORTDAY)(?: of)? {WHICH} (?P<week>week)", semantics.read_weekday),
    ("{WHICH} (?P<week>week)(?: 's)?(?: on)? (?P<weekday>WEEKDAY)", semantics.read_weekday),
    ("{WHICH} (?P<weekday>WEEKDAY|SHORTDAY)", semantics.read_weekday),
    ("(?P<weekday>WEEKDAY|SHORTDAY)", semantics.read_weekday),
    ("{WHICH} weekend", semantics.read_weekend),
    ("weekend(?P<ago> before last)?", semantics.read_weekend),
    (
        "(?:the )?(?P<near>day before yesterday|day after tomorrow|night before last|yesterday"
        "|today|tonight|tomorrow|now|this (?:morning|afternoon|evening)|last (?:night|evening))",
        semantics.read_near,
    ),
    ("the other (?:day|night|evening)", semantics.read_lately),
    (
        "(?P<the>(?:the|this) )?(?P<which>last|past)(?: {N})? (?P<unit>day|week|month|year)(?! of)",
        semantics.read_rolling,
    ),
    ("{WHICH} (?P<unit>week|month|quarter|year)", semantics.read_period),
    ("(?P<unit>week|month|year)(?P<ago> before last)", semantics.read_period),
    (
        "(?P<half>half )?{N} (?P<unit>minute|hour|day|week|month|year) (?P<side>ago|back|from now)",
        semantics.read_ago,
    ),
    # Neither 2000 to 4000, nor 2000 of them.
    ("(?P<year>YEAR)(?! (?:(?:to|-|and|or) (?:NUM|YYYY|DAY)|of) )", semantics.read_year),
)
_PREFIXES: tuple[tuple[str, Callable[[Phrase, Span], Span | None]], ...] = (
    (
        "(?P<part>early|mid|late|(?:beginning|start|middle|end)(?= of))"
        "(?: -)?(?: of| in| on)?(?: the)?",
        semantics.take_third,
    ),
    (
        "(?P<nth>first|second|third|fourth|last|ORDINAL) (?P<portion>week|weekend|half) (?:of|in)"
        "(?: the)?",
        semantics.take_part,
    ),
    (
        "(?:{N}|the) (?P<unit>day|week|month|year) (?P<side>before|after)(?: the)?"
        "(?! (?:yesterday|tomorrow) )",
        semantics.reach_beside,
    ),
)


@cache
def rules() -> list[tuple[re.Pattern[str], Callable[[Phrase], Span | None]]]:
    """Patterns of phrases, and what each means."""
    return [(_compile(rule), meaning) for rule, meaning in _RULES]


@cache
def prefixes() -> list[tuple[re.Pattern[str], Callable[[Phrase, Span], Span | None]]]:
    """Patterns of what stands before a phrase, and what each makes of its days."""
    return [(_compile(rule), meaning) for rule, meaning in _PREFIXES]


def _compile(rule: str) -> re.Pattern[str]:
    for name, expression in _NAMED.items():
        rule = rule.replace(name, expression)
    return re.compile(rule + r"(?= )")
