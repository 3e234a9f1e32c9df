"""A phrase matched by a rule, with the words around it."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import NamedTuple

from reservoir_cli.retrieval.question_dates.calendar_days import Span
from reservoir_cli.retrieval.question_dates.english_words import COUNTS


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

    def in_named_year(self, span: Span) -> Span:
        """Return the span in the year that is named, or unchanged if none is."""
        if self.which is not None:
            return _pick(span, self.which, self.today)
        return span if self.year is None else span.in_year(self.year)


def _pick(span: Span, which: int, today: date) -> Span:
    years = [span.in_year(today.year + offset) for offset in range(-9, 10)]
    years = [candidate for candidate in years if candidate.start < candidate.end]
    if which < 0:
        return [candidate for candidate in years if candidate.end <= today][-1]
    if which > 0:
        return next(candidate for candidate in years if candidate.start > today)
    current = [candidate for candidate in years if candidate.start <= today < candidate.end]
    return current[0] if current else span.in_year(today.year)
