"""What a language has for dates: its words, and the patterns of dates.

Patterns match text in lower case, without accents, with single spaces between words. In them
``{M}`` is a month, ``{S}`` a season or quarter, ``{D}`` a day, ``{Y}`` a year, ``{N}`` a count,
``{U}`` a unit, ``{W}`` a weekday, ``{ENDS}`` two joined dates. More precise patterns come first.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Language(NamedTuple):
    """The words for dates in a language, without accents."""

    months: str  # the names of each month, separated by ``|``; abbreviations are in ``short``
    short: str
    weekdays: str
    seasons: Mapping[str, str]  # patterns of seasons and quarters, with the English ones
    numbers: Mapping[str, str]
    units: Mapping[str, str]  # beginnings of units, with the English units; the longest first
    leads: Mapping[str, str]
    which: Mapping[str, str]  # words for "last", "next" and the like
    parts: Mapping[str, str]  # words for the beginning, middle and end of a period
    near: Mapping[str, str]  # words for "yesterday" and the like
    joints: Mapping[str, str]  # words that may connect two dates
    patterns: tuple[tuple[str, str], ...]
    articles: str = ""  # words before the ends of a range
    has_capitals: bool = False  # whether months begin with a capital letter, as all nouns do
    names: str = ""  # words that are names or nouns if they begin with a capital letter


def counts(words: str) -> dict[str, str]:
    """Return words for two, three and so on with their numbers."""
    return {word: str(number) for number, word in enumerate(words.split(), 2)}
