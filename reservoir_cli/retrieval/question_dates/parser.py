"""Find the dates in a question, reading it from left to right, after other languages' in English.

Accents are ignored: ``fevrier`` also means February. A phrase is rewritten only if its own words
make it a date: ``hier`` is yesterday in a French question and "here" in a German one, and ``mars``
needs a day, a year or a preposition.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from itertools import accumulate

from reservoir_cli.retrieval.question_dates import rewrite_chinese, rewrite_numeric
from reservoir_cli.retrieval.question_dates.calendar_days import DAY, DaySpan, days_later
from reservoir_cli.retrieval.question_dates.date_rules import Phrase, prefixes, rules
from reservoir_cli.retrieval.question_dates.foreign_signs import FOREIGN_SIGNS, YEARS
from reservoir_cli.retrieval.question_dates.lexer import (
    MONTH_KINDS,
    NAMEABLE_KINDS,
    OWNERS,
    SIGNS,
    SURE_LEADS,
    Token,
    read_tokens,
    without_code,
)
from reservoir_cli.util.languages import guess_language

_YEARS_AHEAD = 10
_MAX_NESTING = 3
_LONGEST = 10_000  # longer texts, such as pasted ones, would take seconds to read


def find_dates(question: str, now: datetime) -> tuple[DaySpan, ...]:
    """Find the dates in the first 10,000 characters of a question, each as precise as possible.

    :param now: the time of asking, aware; relative dates are resolved in its zone.
    """
    text = in_english(rewrite_numeric.rewrite(without_code(question[:_LONGEST])))
    tokens = read_tokens(text, now.year + _YEARS_AHEAD)
    if not any(token.kind.isupper() or token.kind in SIGNS for token in tokens):
        return ()
    reader = _PhraseReader(tokens, now)
    return tuple(dict.fromkeys(span for spans in reader.read_phrases() for span in spans))


class _PhraseReader:
    """Reads phrases from left to right, each word once."""

    def __init__(self, tokens: Sequence[Token], now: datetime) -> None:
        self._tokens = tokens
        self._numbers = [token.number for token in tokens]
        self._kinds = [token.kind for token in tokens] + [""]
        self._text = " ".join(self._kinds) + " "
        self._now = now
        lengths = (len(kind) + 1 for kind in self._kinds[:-1])
        self._offsets = list(accumulate(lengths, initial=0))
        self._positions = {offset: position for position, offset in enumerate(self._offsets)}

    def read_phrases(self) -> Iterator[Sequence[DaySpan]]:
        position = 0
        while position < len(self._numbers):
            result = self._read(position)
            if result:
                signs = self._count_signs_of_name(position, result[1])
                if signs < 2:
                    # A year outside of the calendar, or without 29 February, has none of them.
                    spans = [span for span in result[0] if span.start < span.end]
                    yield [span._replace(sure=not signs) for span in spans]
            position = result[1] if result else position + 1

    def _count_signs_of_name(self, position: int, end: int) -> int:
        """Return how many signs, up to two, say that a phrase is not a date but a name.

        A word beside it, such as "on", "last" or a number, makes a word a date. Alone, "April" may
        be a person, and "Friday" before another capitalised word may begin a name.
        """
        first, following = self._tokens[position], self._tokens[end : end + 1]
        if any(token.is_doubtful for token in self._tokens[position:end]):
            return 1
        if end > position + 1 or first.kind not in NAMEABLE_KINDS:
            return 0
        lead = self._lead_before(position)
        if lead in SURE_LEADS:
            return 0
        is_person = first.is_capital and first.kind not in ("MONTH", "WEEKDAY")
        goes_on = any(token.is_capital and not token.kind.isupper() for token in following)
        has_article = position > 0 and self._tokens[position - 1].kind == "the"
        is_time = has_article or lead in ("before", "after")
        return 2 if is_person and goes_on and not is_time else int(is_person or goes_on)

    def _read(self, position: int) -> tuple[Sequence[DaySpan], int] | None:
        result = self._read_one(position, self._lead_before(position))
        if not result:
            return None
        span, end = result
        joint, lead = self._kinds[end], self._lead_before(position)
        if joint in ("to", "until", "till", "through", "-") or (joint, lead) == ("and", "between"):
            second = self._read_one(self._skip_article(end + 1), "between")
            if second:
                return [_join_spans(span, second[0])], second[1]
        if joint in ("and", "or", "/", ","):
            return self._read_list(span, end, lead)
        return [self._extend(span, lead, joint)], end

    def _read_list(self, span: DaySpan, end: int, lead: str) -> tuple[Sequence[DaySpan], int]:
        """Read July, August and September 2023; the year at the end applies to all."""
        spans = [span]
        while self._kinds[end] in ("and", "or", "/", ","):
            # In July and May; but not yesterday and May.
            is_month_list = self._kinds[end - 1] in MONTH_KINDS | {"YEAR"}
            following = self._read_one(
                self._skip_article(end + 1), "between" if is_month_list else "on"
            )
            comma = self._kinds[end] == ","
            if not following or (comma and self._kinds[following[1]] not in ("and", "or", ",")):
                break
            spans.append(following[0])
            end = following[1]
        if len(spans) == 1:
            return [self._extend(span, lead, self._kinds[end])], end
        if self._kinds[end - 1] in ("YEAR", "YYYY", "YY"):
            year = spans[-1].start.year
            spans = [listed.in_year(year) if listed.every_year else listed for listed in spans]
        return spans, end

    def _extend(self, span: DaySpan, lead: str, following: str) -> DaySpan:
        today = self._now.date()
        if lead == "since" or (lead == "from" and following in ("on", "onward", "onwards")):
            if span.every_year:
                span = max(
                    (span.in_year(today.year - 1), span.in_year(today.year)),
                    key=lambda candidate: (candidate.start <= today, candidate.start),
                )
            return DaySpan(span.start, days_later(today, 1)) if span.start <= today else span
        if span.every_year or (span.end - span.start).days < 28:
            return span
        if lead == "after" and span.end <= today:
            return DaySpan(span.end, days_later(today, 1))
        return DaySpan(date.min, span.start) if lead == "before" else span

    def _read_one(self, position: int, lead: str, nesting: int = 0) -> tuple[DaySpan, int] | None:
        for rule, change in prefixes() if nesting < _MAX_NESTING else ():
            match = rule.match(self._text, self._offsets[position])
            inner = match and self._read_one(self._end_position(match), "in", nesting + 1)
            if match and inner:
                phrase = self._phrase(match, lead)
                span = _try_meaning(change, phrase, inner[0])
                if span:
                    return span, inner[1]
        for rule, meaning in rules():
            match = rule.match(self._text, self._offsets[position])
            if match:
                phrase = self._phrase(match, lead)
                span = _try_meaning(meaning, phrase)
                if span:
                    return span, self._end_position(match)
        return None

    def _phrase(self, match: re.Match[str], lead: str) -> Phrase:
        names = [name for name, text in match.groupdict().items() if text]
        position = self._positions[match.start()]
        return Phrase(
            now=self._now,
            words={name: match[name].strip() for name in names},
            numbers={
                name: self._numbers[self._positions[match.start(name)]]
                for name in names
                if match.start(name) in self._positions
            },
            lead=lead,
            owned=position > 0 and self._kinds[position - 1] in OWNERS,
            following=self._kinds[self._end_position(match)],
        )

    def _end_position(self, match: re.Match[str]) -> int:
        return self._positions[match.end() + 1]

    def _skip_article(self, position: int) -> int:
        return position + (self._kinds[position : position + 1] == ["the"])

    def _lead_before(self, position: int) -> str:
        """Return the word before a phrase, skipping an article; "3 of 2023" has none."""
        before = self._kinds[max(position - 3, 0) : position]
        if before[-1:] == ["the"]:
            before.pop()
        if before[-1:] == ["of"] and {"DAY", "ORDINAL", "NUM", "YEAR"}.intersection(before[-2:-1]):
            return ""
        return before[-1] if before else ""


def _try_meaning(meaning: Callable[..., DaySpan | None], *parts: object) -> DaySpan | None:
    try:
        return meaning(*parts)
    except (ValueError, IndexError, OverflowError, OSError):  # 31 June, a million years ago
        return None


def _join_spans(first: DaySpan, last: DaySpan) -> DaySpan:
    """Return the days from the first span to the end of the last; one's year is used for both."""
    if first.every_year and not last.every_year:
        year = last.start.year
        first = first.in_year(year - (first.in_year(year).start > last.start))
    elif last.every_year and last.start < first.start:
        year = first.start.year
        later = last.in_year(year + (last.in_year(year).start < first.start))
        last = later._replace(every_year=first.every_year)
    elif last.end <= first.start and first.start - last.end < 6 * DAY:
        # "From Monday to Friday" on a Wednesday: both are the latest ones, so in the wrong order.
        last = DaySpan(days_later(last.start, 7), days_later(last.end, 7))
    start, end = min(first.start, last.start), max(first.end, last.end)
    return DaySpan(start, end, first.every_year and last.every_year)


_WORD = r"[^\W\d_]+"
#: Maps letters one to one, so that positions in the text stay the same.
_UNACCENTED = str.maketrans(
    "àáâäãåçèéêëìíîïñòóôöõùúûüýÿ\u2019ºªąćęłńśźżё", "aaaaaaceeeeiiiinooooouuuuyy'oaacelnszz\u0435"
)


def _languages_of_years(text: str) -> set[str]:
    """Return the languages in which years such as "de 2020 a 2022" may be dates."""
    if not any(character.isdecimal() for character in text):
        return set()
    groups = (match.lastgroup or "" for match in re.finditer(YEARS, text))
    return {name for group in groups for name in group.split("_")}


def in_english(question: str) -> str:
    """Return a question with its foreign dates, and the words that join them, in English."""
    with_years = _languages_of_years(question)
    if question.isascii() and not (with_years or _SIGNS & set(re.findall(_WORD, question.lower()))):
        return question
    text = " ".join(unicodedata.normalize("NFC", question).split())
    if (in_characters := rewrite_chinese.in_english(text)) != text:
        return in_characters
    plain = text.lower().translate(_UNACCENTED)
    if len(plain) != len(text):  # a capital letter whose lower case has two characters
        return text
    words = set(re.findall(_WORD, plain))
    guess = guess_language(text)
    for name in _likely_languages(words, guess, with_years):
        rewritten = _rewrite_european(text, plain, name, sure=name == guess)
        if rewritten != text:
            return rewritten
    return text


def _likely_languages(words: set[str], guess: str | None, with_years: set[str]) -> list[str]:
    """Return the languages of which a text has a word of a date, the likeliest first."""
    likely = []
    for name in FOREIGN_SIGNS:
        # Short texts may be mistaken for Dutch or Italian; only another known language rules
        # shared words out.
        is_other_language = guess != name and guess in _SURELY_GUESSED
        signs = (_OWN_SIGNS if is_other_language else _ALL_SIGNS)[name]
        if name in with_years or words & (signs | _ENGLISH_SIGNS[name] if guess == name else signs):
            likely.append(name)
    return sorted(
        likely, key=lambda name: (name == guess, len(words & _NEAR_WORDS[name])), reverse=True
    )


def _rewrite_european(text: str, plain: str, name: str, *, sure: bool) -> str:
    # Few questions need the tables.
    from reservoir_cli.retrieval.question_dates import rewrite_european

    return rewrite_european.rewrite(text, plain, name, sure=sure)


_SURELY_GUESSED = ("en", "de", "fr", "es")
_OWN_SIGNS = {name: frozenset(signs.own.split()) for name, signs in FOREIGN_SIGNS.items()}
_ALL_SIGNS = {
    name: _OWN_SIGNS[name].union(signs.shared.split()) for name, signs in FOREIGN_SIGNS.items()
}
_NEAR_WORDS = {
    name: _ALL_SIGNS[name].union(signs.beside.split(), signs.english.split())
    for name, signs in FOREIGN_SIGNS.items()
}
_ENGLISH_SIGNS = {name: frozenset(signs.english.split()) for name, signs in FOREIGN_SIGNS.items()}
_SIGNS = frozenset().union(*_ALL_SIGNS.values(), *_ENGLISH_SIGNS.values())
