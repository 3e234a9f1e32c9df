"""Rewrite two joined dates of a European language in English: a range, or a list of two.

"Von März bis Juni 2026" and "entre le 3 et le 10 mai" are ranges; "le 3 et le 10 mai" are two days.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

_ARTICLE = "(?:(?:am|dem|den|zum|im|le|el|en) )?"


def joined_dates(
    months: str,
    short_months: str,
    weekdays: str,
    near: Iterable[str],
    joint: str,
    day: str,
    year: str,
) -> str:
    """Return the pattern of two joined dates, of which only the first may be a number alone.

    :param near: words such as "yesterday".
    :param joint: a pattern, as are day and year.
    """
    month, short, weekday = map(_any_of, (months, short_months, weekdays))
    number = rf"{day}(?:\.|er|o)?"
    of_year = f"(?:,? (?:de |del )?{year})?"
    last = (
        rf"(?:(?:{weekday},? (?:den |dem )?)?{number} (?:de )?(?:{month}|{short}\.?){of_year}"
        rf"|{month}{of_year}|{weekday}|{year}|{'|'.join(near)})"
    )
    first = rf"(?:{last}|{number}(?=\D{{1,20}}{day}\b))"
    return f"{_ARTICLE}(?P<first>{first}) ?{joint} ?{_ARTICLE}(?P<last>{last})"


def join_dates(
    parts: Mapping[str, str],
    names: Mapping[str, Sequence[str]],
    near: Mapping[str, str],
    joints: Mapping[str, str],
    year: str,
) -> str:
    """Return a range, or a list of two dates, in English.

    :param names: lists of months and weekdays, with their English names.
    :param year: "last year" or the like after the last date, in English; or nothing.
    """
    words = {
        word: name
        for variants, english in names.items()
        for spellings, name in zip(variants.split(), english, strict=True)
        for word in spellings.split("|")
    } | dict(near)
    first, last = (_date(parts[end], words) for end in ("first", "last"))
    last += year
    joint = joints[parts["joint"]]
    if joint == "to":
        return f"from {first} to {last}"
    if "between" in parts:
        return f"between {first} and {last}"
    if first.isdigit():
        first += re.sub(r"^.*?\d+", "", last)
    return f"during {first} {joint} {last}"


def _any_of(words: str) -> str:
    return f"(?:{'|'.join(words.split())})"


def _date(text: str, words: Mapping[str, str]) -> str:
    parts = re.findall(r"\d+|[a-z]+", text)
    return words.get(text) or " ".join(
        part if part.isdigit() else words[part] for part in parts if part.isdigit() or part in words
    )
