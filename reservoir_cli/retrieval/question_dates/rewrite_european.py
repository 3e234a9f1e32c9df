"""Rewrite German, French and Spanish dates in English."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache

from reservoir_cli.retrieval.question_dates.calendar_days import MONTH_NAMES
from reservoir_cli.retrieval.question_dates.european_languages import LANGUAGES, Language

Parts = Mapping[str, str]

_WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_DAY, _YEAR = "(?:3[01]|[12]\\d|0?[1-9])", "(?:19|20)\\d\\d"
_ARTICLE = "(?:(?:am|dem|den|zum|im|le|el|en) )?"
#: Text attached to a path, an address or a longer word is not a date.
_BEFORE, _AFTER = r"(?<![\w/@#-])(?<!\w\.)", r"(?![\w/@]|-\w|\.\w)"
#: Words after a number that make it a count, not a year.
COUNTED = (
    "(?!(?: (?:bis|und|et|y|hasta|a) \\d+)? (?:wort|worte|zeichen|tokens?|euro|personen|leute|"
    "menschen|zeilen|stuck|mots?|lignes?|personnes|gens|palabras|lineas|personas|caracter|metr|meter|"
    "km|dollar|byte|bit|mb|gb|ms|p[ií]xel|kcal|gramm|prozent))"
)
#: "Morgen" as a noun, "guten morgen" and "la mañana" mean the morning, not tomorrow.
_MORNINGS = r"(?<!guten )(?<!guter )(?<!am )(?<!jeden )(?<!\bla )(?<!cada )(?<!una )(?<!las )"


def rewrite(text: str, plain: str, language: Language, *, sure: bool) -> str:
    """Return a text with its dates in a language rewritten in English.

    :param plain: the text in lower case and without accents, of the same length.
    :param sure: whether the text is in this language rather than containing one of its words.
    """
    pieces, end, has_date = [], 0, False
    for start, stop, phrase in _find_phrases(text, plain, language, sure):
        gap = plain[end:start].strip()
        if has_date and (gap in language.joints or (not gap and phrase.startswith("until "))):
            pieces.append(f" {language.joints.get(gap, '')} {re.sub('^(?:in|on) ', '', phrase)}")
        elif language.leads.get(gap.rpartition(" ")[2]) == "between":
            pieces.append(f"{text[end:start]} . between {re.sub('^(?:in|on) ', '', phrase)}")
        else:
            pieces.append(f"{text[end:start]} . {phrase}")
        end, has_date = stop, True
    return "".join([*pieces, f" . {text[end:]}"]) if has_date else text


def _find_phrases(
    text: str, plain: str, language: Language, sure: bool
) -> Iterator[tuple[int, int, str]]:
    """Yield the position of each date, in order, with the date in English."""
    covered = bytearray(len(plain))
    phrases = []
    for kind, pattern in _compile_patterns(language.signs):
        for match in pattern.finditer(plain):
            start, end = match.span()
            parts = {name: part for name, part in match.groupdict().items() if part}
            phrase = _BUILDERS[kind](parts, language)
            is_excluded = _is_noun(text, match) or (not sure and _is_vague(match))
            if phrase and not is_excluded and not any(covered[start:end]):
                phrases.append((start, end, phrase))
                covered[start:end] = b"1" * (end - start)
    return iter(sorted(phrases))


def _is_vague(match: re.Match[str]) -> bool:
    """Return whether a phrase is a single word that another language has too."""
    return bool(re.fullmatch(r"hier|morgen|manana|mars \d+", match[0]))


def _is_noun(text: str, match: re.Match[str]) -> bool:
    """Return whether a phrase is the noun "der Morgen" instead of the adverb "morgen"."""
    return match[0] == "morgen" and text[match.start()].isupper()


@cache
def _compile_patterns(signs: str) -> list[tuple[str, re.Pattern[str]]]:
    language = next(candidate for candidate in LANGUAGES.values() if candidate.signs == signs)
    near = [_MORNINGS + word if word in ("morgen", "manana") else word for word in language.near]
    expressions = {
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
        "{WHICH}": "(?P<which>" + "|".join(f"{word}\\w{{0,3}}" for word in language.which) + ")",
        "{PART}": _group("part", language.parts),
        "{ENDS}": _joined_dates(language, near),
        "{NEAR}": f"(?P<near>{'|'.join(near)})",
    }  # fmt: skip
    compiled = []
    for kind, pattern in language.patterns:
        for name, expression in expressions.items():
            pattern = pattern.replace(name, expression)
        compiled.append((kind, re.compile(_BEFORE + pattern + _AFTER)))
    return compiled


def _joined_dates(language: Language, near: Iterable[str]) -> str:
    """Return the pattern of two joined dates, of which only the first may be a number alone."""
    month, short, weekday = map(_any_of, (language.months, language.short, language.weekdays))
    number, year = rf"{_DAY}(?:\.|er|o)?", _YEAR + COUNTED
    of_year = f"(?:,? (?:de |del )?{year})?"
    last = (
        rf"(?:(?:{weekday},? (?:den |dem )?)?{number} (?:de )?(?:{month}|{short}\.?){of_year}"
        rf"|{month}{of_year}|{weekday}|{year}|{'|'.join(near)})"
    )
    first = rf"(?:{last}|{number}(?=\D{{1,20}}{_DAY}\b))"
    joint = _group("joint", language.joints)
    return f"{_ARTICLE}(?P<first>{first}) ?{joint} ?{_ARTICLE}(?P<last>{last})"


def _any_of(words: str) -> str:
    return f"(?:{'|'.join(words.split())})"


def _group(name: str, words: "str | list[str] | Mapping[str, str]") -> str:
    parts = words.split() if isinstance(words, str) else list(words)
    return f"(?P<{name}>{'|'.join(sorted(parts, key=len, reverse=True))})"


def _index(word: str, alternatives: str) -> int:
    return [word in alternative.split("|") for alternative in alternatives.split()].index(True)


def _look_up_prefix(word: str, values: Mapping[str, str]) -> str:
    return next((values[start] for start in values if word.startswith(start)), "")


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
    which = _look_up_prefix(parts.get("which", ""), language.which)
    return f" {which} year" if which in ("last", "this", "next") else ""


def _lead(parts: Parts, language: Language, default: str) -> str:
    return language.leads.get(parts.get("lead", ""), default)


def _date(parts: Parts, language: Language) -> str:
    day, month = parts["day"], MONTH_NAMES[int(parts["number"]) - 1]
    return f"on {int(day)} {month} {parts.get('year', '')}".strip()


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
    parts = re.findall(r"\d+|[a-z]+", text)
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
    count = parts.get("count", "few")
    return language.numbers.get(count, count)


def _rolling(parts: Parts, language: Language) -> str | None:
    unit, count = _look_up_prefix(parts["unit"], language.units), _amount(parts, language)
    if unit not in ("day", "week", "month", "year"):
        return None
    return f"the last {count.removeprefix('a ')} {unit}"


def _ago(parts: Parts, language: Language) -> str | None:
    unit = _look_up_prefix(parts["unit"], language.units)
    return None if unit in ("weekend", "quarter") else f"{_amount(parts, language)} {unit} ago"


def _in_year(parts: Parts, language: Language) -> str:
    if "part" in parts:
        return f"in {_look_up_prefix(parts['part'], language.parts)} {parts['year']}"
    return f"{_lead(parts, language, 'in')} {parts['year']}"


_BUILDERS: Mapping[str, Callable[[Parts, Language], str | None]] = {
    "date": _date,
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
