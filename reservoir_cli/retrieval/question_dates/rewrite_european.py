"""Rewrite dates of other European languages in English."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache

from reservoir_cli.retrieval.question_dates.calendar_days import MONTH_NAMES
from reservoir_cli.retrieval.question_dates.date_language import Language
from reservoir_cli.retrieval.question_dates.foreign_signs import COUNTED
from reservoir_cli.retrieval.question_dates.germanic_languages import DUTCH, GERMAN
from reservoir_cli.retrieval.question_dates.lexer import DOUBT
from reservoir_cli.retrieval.question_dates.romance_languages import (
    FRENCH,
    ITALIAN,
    PORTUGUESE,
    SPANISH,
)
from reservoir_cli.retrieval.question_dates.signs_of_names import count_signs_of_name
from reservoir_cli.retrieval.question_dates.slavic_languages import POLISH, RUSSIAN

Parts = Mapping[str, str]

LANGUAGES = {
    "de": GERMAN,
    "fr": FRENCH,
    "es": SPANISH,
    "it": ITALIAN,
    "pt": PORTUGUESE,
    "nl": DUTCH,
    "ru": RUSSIAN,
    "pl": POLISH,
}

_WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_DAY, _YEAR = "(?:3[01]|[12]\\d|0?[1-9])", "(?:19|20)\\d\\d"
#: Text attached to a path, an address or a longer word is not a date.
_BEFORE, _AFTER = r"(?<![\w/@#-])(?<!\w\.)", r"(?![\w/@]|-\w|\.\w)"
#: "Morgen" as a noun, "guten morgen" and "la mañana" mean the morning, not tomorrow.
_MORNINGS = (
    r"(?<!guten )(?<!guter )(?<!am )(?<!jeden )(?<!\bla )(?<!cada )(?<!una )(?<!las )"
    r"(?<!goede )(?<!\bde )(?<!elke )(?<!iedere )"
)


def rewrite(text: str, plain: str, name: str, *, sure: bool) -> str:
    """Return a text with its dates in a language rewritten in English.

    :param name: the language, such as ``de``.
    :param plain: the text in lower case and without accents, of the same length.
    :param sure: whether the text is in this language rather than containing one of its words.
    """
    language = LANGUAGES[name]
    pieces, end, has_date = [], 0, False
    for start, stop, phrase in _find_phrases(text, plain, name, sure):
        gap = plain[end:start].strip()
        if has_date and (gap in language.joints or (not gap and phrase.startswith("until "))):
            pieces.append(f" {language.joints.get(gap, '')} {re.sub('^(?:in|on) ', '', phrase)}")
        elif language.leads.get(gap.rpartition(" ")[2]) == "between":
            pieces.append(f"{text[end:start]} . between {re.sub('^(?:in|on) ', '', phrase)}")
        else:
            pieces.append(f"{text[end:start]} . {phrase}")
        end, has_date = stop, True
    return "".join([*pieces, f" . {text[end:]}"]) if has_date else text


def _find_phrases(text: str, plain: str, name: str, sure: bool) -> Iterator[tuple[int, int, str]]:
    """Yield the position of each date, in order, with the date in English."""
    language = LANGUAGES[name]
    covered = bytearray(len(plain))
    phrases = []
    present = _words_present(plain, language)
    for number, (kind, pattern) in enumerate(language.patterns):
        if not present[_needs(kind, pattern)]:
            continue
        for match in _compile(name, number).finditer(plain):
            start, end = match.span()
            parts = {name: part for name, part in match.groupdict().items() if part}
            phrase = _BUILDERS[kind](parts, language)
            if not phrase or (not sure and _is_vague(match)) or any(covered[start:end]):
                continue
            signs = count_signs_of_name(text, plain, match, language)
            if signs < 2:
                phrases.append((start, end, f"{phrase} {DOUBT}" if signs else phrase))
            covered[start:end] = b"1" * (end - start)
    return iter(sorted(phrases))


def _is_vague(match: re.Match[str]) -> bool:
    """Return whether a phrase is a single word that another language has too."""
    return bool(re.fullmatch(r"hier|morgen|manana|mars \d+", match[0]))


#: What a pattern of each kind cannot do without; that of a month needs one or a season.
_NEEDED = {"range": "{ENDS}", "days": "{M}", "weekday": "{W}", "rolling": "{U}",
           "period": "{U}", "ago": "{U}", "year": "{D}", "near": "{NEAR}"}  # fmt: skip


def _needs(kind: str, pattern: str) -> str:
    names_season = "{S}" in pattern or "<season>" in pattern
    return _NEEDED.get(kind) or ("{S}" if names_season else "{M}")


def _words_present(plain: str, language: Language) -> dict[str, bool]:
    """Return which parts of dates may be in a text, since compiling a pattern takes a while."""
    names = f"{language.months} {language.weekdays}".replace("|", " ").split()
    ends = sum(plain.count(name) for name in [*names, *language.near])
    short = language.short.replace("|", " ").split()
    has_short = not set(short).isdisjoint(re.findall(r"[^\W\d_]+", plain))
    numbers = re.findall(r"\d+", plain)
    return {
        "{ENDS}": ends + len(numbers) + has_short > 1,
        "{D}": bool(numbers),
        "{M}": has_short or _has_any(language.months, plain),
        "{S}": re.search("|".join(language.seasons), plain) is not None,
        "{W}": _has_any(language.weekdays, plain),
        "{U}": any(unit in plain for unit in language.units),
        "{NEAR}": any(word in plain for word in language.near),
    }


def _has_any(names: str, plain: str) -> bool:
    return any(name in plain for name in names.replace("|", " ").split())


@cache
def _compile(name: str, number: int) -> re.Pattern[str]:
    pattern = LANGUAGES[name].patterns[number][1]
    for placeholder, expression in _expressions(name).items():
        pattern = pattern.replace(placeholder, expression)
    return re.compile(_BEFORE + pattern + _AFTER)


@cache
def _expressions(name: str) -> dict[str, str]:
    language = LANGUAGES[name]
    near = [_MORNINGS + word if word in ("morgen", "manana") else word for word in language.near]
    which = "|".join(f"{word}\\w{{0,3}}" for word in language.which)
    return {
        "{M}": _group("month", language.months),
        "{S}": _group("season", language.seasons),
        "{SHORT}": _group("short", language.short),
        "{W}": _group("weekday", language.weekdays),
        "{D}": f"(?P<day>{_DAY})",
        "{UNTIL}": f"(?P<until>{_DAY})",
        "{Y}": f"(?P<year>{_YEAR}){COUNTED}",
        "{N}": _group("count", [*language.numbers, "\\d{1,3}"]),
        "{U}": "(?P<unit>" + "|".join(f"{unit}\\w{{0,3}}" for unit in language.units) + ")",
        "{LEAD}": "(?:(?P<lead>am|im|den|dem|zum|" + "|".join(language.leads)
        + ")(?: (?:dem|den|zum))? )",
        "{LEADWORD}": _group("lead", language.leads),
        "{WHICH}": f"(?P<which>{which})",
        "{WHOSE}": f"(?P<whose>{which})",
        "{PART}": _group("part", language.parts),
        "{ENDS}": _joined_dates(language, near),
        "{NEAR}": f"(?P<near>{'|'.join(near)})",
    }  # fmt: skip


def _joined_dates(language: Language, near: Iterable[str]) -> str:
    """Return the pattern of two joined dates, of which only the first may be a number alone."""
    month, short, weekday = map(_any_of, (language.months, language.short, language.weekdays))
    number, year = rf"{_DAY}(?:\.|er|e|o|-?го)?", _YEAR + COUNTED  # noqa: RUF001
    of_year = f"(?:,? (?:de |del |do |van )?{year})?"
    last = (
        rf"(?:(?:{weekday}(?:[ -]feira)?,? (?:den |dem |il |de |dia )?)?{number} (?:de |di |van )?"
        rf"(?:{month}|{short}\.?){of_year}"
        rf"|{month}{of_year}|{weekday}(?:[ -]feira)?|{year}|{'|'.join(near)})"
    )
    first = rf"(?:{last}|{number}(?=\D{{1,20}}{_DAY}\b))"
    joint = _group("joint", language.joints)
    article = f"(?:(?:{language.articles}) |l')?"
    return f"{article}(?P<first>{first}) ?{joint} ?{article}(?P<last>{last})"


def _any_of(words: str) -> str:
    return f"(?:{'|'.join(words.split())})"


def _group(name: str, words: "str | list[str] | Mapping[str, str]") -> str:
    parts = words.split() if isinstance(words, str) else list(words)
    return f"(?P<{name}>{'|'.join(sorted(parts, key=len, reverse=True))})"


def _index(word: str, alternatives: str) -> int:
    return [word in alternative.split("|") for alternative in alternatives.split()].index(True)


def _look_up_prefix(word: str, values: Mapping[str, str]) -> str:
    return next((values[start] for start in values if re.match(start, word)), "")


def _month(parts: Parts, language: Language) -> str:
    if "season" in parts:
        return next(
            season
            for pattern, season in language.seasons.items()
            if re.fullmatch(pattern, parts["season"])
        )
    if "short" in parts:
        return MONTH_NAMES[_index(parts["short"], language.short)]
    return MONTH_NAMES[_index(parts["month"], language.months)]


def _year(parts: Parts, language: Language) -> str:
    if "year" in parts:
        return f" {parts['year']}"
    which = _look_up_prefix(parts.get("whose", ""), language.which)
    return f" {which} year" if which in ("last", "this", "next") else ""


def _lead(parts: Parts, language: Language, default: str) -> str:
    return language.leads.get(parts.get("lead", ""), default)


def _days(parts: Parts, language: Language) -> str:
    day = 1 if "first" in parts else int(parts["day"])
    until = f" to {int(parts['until'])}" if "until" in parts else ""
    lead = "on" if until else _lead(parts, language, "on")
    return f"{lead} {day}{until} {_month(parts, language)}{_year(parts, language)}"


def _range(parts: Parts, language: Language) -> str:
    """Return a range, or a list of two dates: "le 3 et le 10 mai" are two days."""
    first, last = (_end_of_range(parts[end], language) for end in ("first", "last"))
    last += _year(parts, language)
    joint = language.joints[parts["joint"]]
    if joint == "to":
        return f"from {first} to {last}"
    if "between" in parts:
        return f"between {first} and {last}"
    if first.isdigit():
        first += re.sub(r"^.*?\d+", "", last)
    return f"during {first} {joint} {last}"


def _end_of_range(text: str, language: Language) -> str:
    months = dict.fromkeys((language.months, language.short), MONTH_NAMES)
    lists = months | {language.weekdays: _WEEKDAYS}
    words = {
        word: name
        for variants, english in lists.items()
        for spellings, name in zip(variants.split(), english, strict=True)
        for word in spellings.split("|")
    } | dict(language.near)
    parts = re.findall(r"\d+|[^\W\d_]+", text)
    return words.get(text) or " ".join(
        part if part.isdigit() else words[part] for part in parts if part.isdigit() or part in words
    )


def _in_month(parts: Parts, language: Language) -> str:
    month = _month(parts, language)
    which = _look_up_prefix(parts.get("which", ""), language.which)
    if "part" in parts:
        part = _look_up_prefix(parts["part"], language.parts)
        return f"in {part} {month}{_year(parts, language)}"
    if which and "lead" not in parts and "year" not in parts:
        return f"{which} {month}" if which != "before last" else f"last {month}"
    return f"{_lead(parts, language, 'in')} {month}{_year(parts, language)}"


def _weekday(parts: Parts, language: Language) -> str:
    day = _WEEKDAYS[_index(parts["weekday"], language.weekdays)]
    which = _look_up_prefix(parts.get("which", ""), language.which)
    if "week" in parts:
        return f"{day} of {which} week"
    if which in ("last", "this", "next"):
        return f"{which} {day}"
    return f"{_lead(parts, language, 'on')} {day}"


def _period(parts: Parts, language: Language) -> str | None:
    unit = _look_up_prefix(parts["unit"], language.units)
    which = _look_up_prefix(parts.get("which", ""), language.which)
    if unit not in ("week", "month", "quarter", "year", "weekend"):
        return None
    if not which:
        return f"over the {unit}" if unit == "weekend" else None
    return f"{unit} before last" if which == "before last" else f"{which} {unit}"


def _amount(parts: Parts, language: Language) -> str:
    count = parts.get("count", "1" if "one" in parts else "few")
    return language.numbers.get(count, count)


def _rolling(parts: Parts, language: Language) -> str | None:
    unit, count = _look_up_prefix(parts["unit"], language.units), _amount(parts, language)
    if unit not in ("day", "week", "month", "year"):
        return None
    return f"the last {count.removeprefix('a ')} {unit}"


def _ago(parts: Parts, language: Language) -> str | None:
    unit = _look_up_prefix(parts["unit"], language.units)
    if unit in ("weekend", "quarter"):
        return None
    count = "1" if "half" in parts and "count" not in parts else _amount(parts, language)
    return f"{count} {'and a half ' if 'half' in parts else ''}{unit} ago"


def _in_year(parts: Parts, language: Language) -> str:
    if "part" in parts:
        return f"in {_look_up_prefix(parts['part'], language.parts)} {parts['year']}"
    return f"{_lead(parts, language, 'in')} {parts['year']}"


_BUILDERS: Mapping[str, Callable[[Parts, Language], str | None]] = {
    "days": _days,
    "range": _range,
    "month": _in_month,
    "weekday": _weekday,
    "period": _period,
    "rolling": _rolling,
    "ago": _ago,
    "year": _in_year,
    "near": lambda parts, language: language.near[parts["near"]],
}
