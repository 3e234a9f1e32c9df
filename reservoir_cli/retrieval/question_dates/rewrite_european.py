"""Rewrite German, French and Spanish dates in English: the words of each language and its patterns.

Patterns match text in lower case, without accents, with single spaces between words. In them
``{M}`` is a month, ``{D}`` a day, ``{Y}`` a year, ``{N}`` a count, ``{U}`` a unit, ``{W}`` a
weekday, ``{ENDS}`` are two joined dates. More precise patterns come first.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from reservoir_cli.retrieval.question_dates.european_ranges import join_dates, joined_dates

Parts = Mapping[str, str]

_MONTHS = (
    "January February March April May June July August September October November December"
).split()
_WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_DAY, _YEAR = "(?:3[01]|[12]\\d|0?[1-9])", "(?:19|20)\\d\\d"
#: Text attached to a path, an address or a longer word is not a date.
_BEFORE, _AFTER = r"(?<![\w/@#-])(?<!\w\.)", r"(?![\w/@]|-\w|\.\w)"


class Language(NamedTuple):
    """The words for dates in a language, without accents.

    :param signs: words that occur in dates of this language only; a date contains at least one.
    :param shared_signs: the same for words that other languages use too.
    :param months: the names of each month, separated by ``|``; abbreviations are in ``short``.
    :param numbers: words for counts, with their English equivalents.
    :param units: the beginnings of words for units, with the English units; the longest first.
    :param leads: words before a date, with their English equivalents.
    :param which: words for "last", "next" and the like.
    :param parts: words for the beginning, middle and end of a period.
    :param near: words for "yesterday" and the like.
    :param joints: words that may connect two dates.
    :param patterns: kinds of dates and their patterns.
    """

    signs: str
    shared_signs: str
    months: str
    short: str
    weekdays: str
    numbers: Mapping[str, str]
    units: Mapping[str, str]
    leads: Mapping[str, str]
    which: Mapping[str, str]
    parts: Mapping[str, str]
    near: Mapping[str, str]
    joints: Mapping[str, str]
    patterns: tuple[tuple[str, str], ...]


def _counts(words: str) -> dict[str, str]:
    return {word: str(number) for number, word in enumerate(words.split(), 2)}


GERMAN = Language(
    signs="gestern vorgestern heute ubermorgen uebermorgen neulich januar janner februar marz "
    "maerz oktober dezember montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag "
    "woche wochen wochenende monat monate monaten jahr jahre jahren jahres tagen",
    shared_signs="morgen april mai juni juli august september november im am vom seit mrz okt dez "
    "stunden minuten tag",
    months="januar|janner februar|feber marz|maerz april mai juni juli august september oktober "
    "november dezember",
    short="jan feb mrz apr mai jun jul aug sept|sep okt nov dez",
    weekdays="montag dienstag mittwoch donnerstag freitag samstag|sonnabend sonntag",
    numbers={
        **_counts("zwei drei vier funf sechs sieben acht neun zehn elf zwolf"),
        **dict.fromkeys(("ein", "eine", "einem", "einer", "einen"), "1"),
        "fuenf": "5",
        "zwoelf": "12",
        "ein paar": "a few",
        "paar": "a few",
        "einigen": "a few",
        "einige": "a few",
        "wenigen": "a few",
        "mehreren": "several",
        "einem halben": "half a",
    },
    units={
        "tag": "day",
        "wochenende": "weekend",
        "woche": "week",
        "monat": "month",
        "quartal": "quarter",
        "jahr": "year",
        "stunde": "hour",
        "minute": "minute",
    },
    leads={
        "seit": "since",
        "bis": "until",
        "nach": "after",
        "vor": "before",
        "zwischen": "between",
        "von": "from",
        "vom": "from",
    },
    which={"vorletzt": "before last", "letzt": "last", "vergangen": "last", "vorig": "last",
           "dies": "this", "nachst": "next", "naechst": "next", "kommend": "next"},
    parts={"anfang": "early", "mitte": "mid", "ende": "end of"},
    near={
        "vorgestern": "day before yesterday",
        "gestern": "yesterday",
        "heute": "today",
        "ubermorgen": "day after tomorrow",
        "uebermorgen": "day after tomorrow",
        "morgen": "tomorrow",
        "neulich": "the other day",
    },
    joints={"bis": "to", "bis zum": "to", "-": "to", "–": "to", "und": "and", "oder": "or"},
    patterns=(
        ("range", r"(?:(?P<between>zwischen)|von|vom|seit|am) {ENDS}(?: {WHICH} jahres)?"),
        ("date", r"{D}\.\s?(?P<number>1[0-2]|0?[1-9])\.\s?{Y}"),
        ("date", r"(?:am|vom|zum|seit dem|den) {D}\.\s?(?P<number>1[0-2]|0?[1-9])\.(?!\s?\d)"),
        ("days", r"{LEAD}?(?:{W},? (?:den |dem )?)?{D}\.?"
                 r"(?: ?(?:bis|-|–|und)(?: zum)? ?{UNTIL}\.?)?"
                 r" (?:{M}|{SHORT}\.?)(?:,? {Y}| {WHICH} jahres)?"),
        ("month", r"{WHICH} {M}(?! {Y})"),
        ("month", r"{PART} {M}(?: {Y}| {WHICH} jahres)?"),
        ("month", r"(?:im|{LEADWORD}) {M}(?: {Y}| {WHICH} jahres)?"),
        ("month", r"{M} (?:{Y}|{WHICH} jahres)"),
        ("month", r"(?P<month>januar|janner|februar|marz|maerz|oktober|dezember)"),
        ("weekday", r"{W} {WHICH} (?P<week>woche)"),
        ("weekday", r"{WHICH} {W}(?:abend|morgen|nachmittag|vormittag|nacht)?"),
        ("weekday", r"(?:am|vom|zum|zwischen|von|(?P<lead>seit|bis)) {W}"
                    r"(?:abend|morgen|nachmittag|vormittag|nacht)?"),
        ("rolling", r"(?:in den |wahrend der |der |die )?(?:letzten|vergangenen) {N} {U}"),
        ("ago", r"vor {N} {U}"),
        ("period", r"{WHICH} {U}"),
        ("period", r"(?:am|ubers) (?P<unit>wochenende)"),
        ("year", r"(?:im jahre?|{LEADWORD}|{PART}) {Y}"),
        ("near", r"{NEAR}(?: (?:abend|morgen|fruh|nachmittag|vormittag|mittag|nacht))?"),
    ),
)  # fmt: skip
FRENCH = Language(
    signs="aujourd demain janvier fevrier avril juillet aout septembre octobre novembre decembre "
    "lundi mardi mercredi jeudi vendredi samedi dimanche semaine semaines annee annees",
    shared_signs="hier mars mai juin mois jour jours an ans soir matin en depuis week weekend "
    "heures minutes",
    months="janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
    short="janv|jan fevr|fev mars avr mai juin juil aout sept oct nov dec",
    weekdays="lundi mardi mercredi jeudi vendredi samedi dimanche",
    numbers={
        **_counts("deux trois quatre cinq six sept huit neuf dix onze douze"),
        "un": "1",
        "une": "1",
        "quinze": "15",
        "quelques": "a few",
        "plusieurs": "several",
    },
    units={"jour": "day", "semaine": "week", "mois": "month", "an": "year", "heure": "hour",
           "minute": "minute", "week": "weekend"},
    leads={
        "depuis": "since",
        "des": "since",
        "jusqu'au": "until",
        "jusqu'en": "until",
        "avant": "before",
        "apres": "after",
        "entre": "between",
        "du": "from",
    },
    which={"avant-dernier": "before last", "dernier": "last", "passe": "last",
           "prochain": "next", "cette": "this", "ce": "this"},
    parts={"debut": "early", "mi": "mid", "fin": "end of", "courant": ""},
    near={
        "avant-hier": "day before yesterday",
        "hier": "yesterday",
        "aujourd'hui": "today",
        "apres-demain": "day after tomorrow",
        "demain": "tomorrow",
        "ce soir": "tonight",
        "ce matin": "today",
        "cet apres-midi": "today",
        "la nuit derniere": "last night",
        "l'autre jour": "the other day",
    },
    joints={"au": "to", "jusqu'au": "to", "jusqu'a": "to", "jusqu'en": "to", "a": "to", "-": "to",
            "–": "to", "et": "and", "ou": "or"},
    patterns=(
        ("range", r"(?:(?P<between>entre)|depuis|de|d'|du|le(?= \d)) ?{ENDS}"
                  r"(?: de l'an(?:nee)? {WHICH})?"),
        ("days", r"(?:le |{LEADWORD}(?: le)? )?(?:{W},? )?(?:le )?(?:(?P<first>1er)|{D})"
                 r"(?: ?(?:au|a|et|-|–) ?{UNTIL})? (?:de )?(?:{M}|{SHORT}\.?)"
                 r"(?: (?:de )?{Y}| de l'an(?:nee)? {WHICH})?"),
        ("month", r"{M} {WHICH}"),
        ("month", r"(?:au |a la |en )?{PART}(?: du mois)?(?: de | d'| |-){M}(?: {Y})?"),
        ("month", r"(?:en|au mois (?:de |d')|{LEADWORD}) ?{M}(?: (?:de )?{Y}"
                  r"| de l'an(?:nee)? {WHICH})?"),
        ("month", r"{M} {Y}"),
        ("weekday", r"{W} {WHICH}"),
        ("weekday", r"(?<!\ble )(?<!\bles )(?<!\bun )(?<!\bdu )(?<!\bau )(?<!\bchaque )"
                    r"(?:{LEADWORD} )?{W}(?! (?:gras|saint|noir|13|ouvr|matins|soirs))"),
        ("period", r"l'(?P<which>avant-derniere) {U}"),
        ("rolling", r"(?:les|ces|des) (?:{N} )?(?:derni?eres?|derniers) {U}"),
        ("period", r"(?:la |le |l'){U}(?:-end|end)? {WHICH}"),
        ("period", r"(?P<which>cette) (?P<unit>semaine|annee)"),
        ("period", r"(?P<which>ce) (?P<unit>mois|week-?end)(?:-ci)?"),
        ("ago", r"(?:il y a|voila|voici) {N} {U}(?! (?:de|dans|par|entre|pour|ou|sur|restant)\b"
                r"| d'| disponible)"),
        ("year", r"(?:en|l'annee|annee|{LEADWORD}|{PART}) {Y}"),
        ("near", r"{NEAR}(?: (?:soir|matin|apres-midi))"),
        ("near", r"{NEAR}"),
    ),
)  # fmt: skip
SPANISH = Language(
    signs="ayer anteayer antier anoche hoy enero febrero marzo abril mayo junio julio septiembre "
    "setiembre octubre noviembre diciembre lunes martes miercoles jueves viernes sabado domingo "
    "semana semanas dias meses anos",
    shared_signs="agosto manana mes ano dia horas minutos en desde hace",
    months="enero febrero marzo abril mayo junio julio agosto septiembre|setiembre octubre "
    "noviembre diciembre",
    short="ene feb mar abr may jun jul ago sept|sep oct nov dic",
    weekdays="lunes martes miercoles jueves viernes sabado domingo",
    numbers={
        **_counts("dos tres cuatro cinco seis siete ocho nueve diez once doce"),
        "un": "1",
        "una": "1",
        "unos": "a few",
        "unas": "a few",
        "pocos": "a few",
        "pocas": "a few",
        "varios": "several",
        "varias": "several",
        "un par de": "a couple",
        "quince": "15",
    },
    units={"fin de semana": "weekend", "dia": "day", "semana": "week", "mes": "month",
           "ano": "year", "hora": "hour", "minuto": "minute"},
    leads={
        "desde": "since",
        "hasta": "until",
        "antes de": "before",
        "antes del": "before",
        "despues de": "after",
        "despues del": "after",
        "entre": "between",
    },
    which={"antepasad": "before last", "pasad": "last", "ultim": "last", "proxim": "next",
           "que viene": "next", "est": "this"},
    parts={"principio": "early", "comienzo": "early", "inicio": "early", "mediados": "mid",
           "final": "end of", "fines": "end of"},
    near={
        "anteayer": "day before yesterday",
        "antes de ayer": "day before yesterday",
        "antier": "day before yesterday",
        "ayer": "yesterday",
        "anoche": "last night",
        "hoy": "today",
        "pasado manana": "day after tomorrow",
        "esta manana": "today",
        "esta tarde": "today",
        "esta noche": "tonight",
        "manana": "tomorrow",
        "el otro dia": "the other day",
    },
    joints={"al": "to", "hasta el": "to", "hasta": "to", "a": "to", "-": "to", "–": "to",
            "y": "and", "y el": "and", "o": "or"},
    patterns=(
        ("range", r"(?:(?P<between>entre)|desde|del?|el) {ENDS}(?: del ano {WHICH})?"),
        ("days", r"(?:{LEADWORD} )?(?:el |del )?(?:{W},? )?(?:(?P<first>primero|1o)|{D})"
                 r"(?: ?(?:al|a|y|-|–) ?{UNTIL})? (?:de )?(?:{M}|{SHORT}\.?)"
                 r"(?:,? (?:de |del (?:ano )?)?{Y}| del ano {WHICH})?"),
        ("month", r"{M} {WHICH}"),
        ("month", r"(?:el )?{WHICH} {M}"),
        ("month", r"(?:a |en )?{PART}(?:e?s)? de {M}(?: (?:de |del )?{Y})?"),
        ("month", r"(?:en|{LEADWORD}) {M}(?: (?:de |del (?:ano )?)?{Y}| del ano {WHICH})?"),
        ("month", r"{M} (?:de |del )?{Y}"),
        ("weekday", r"(?:el |este ){W} {WHICH}"),
        ("weekday", r"(?:el )?{WHICH} {W}"),
        ("weekday", r"(?:{LEADWORD} )?el {W}"),
        ("rolling", r"(?:los|las|estos|estas) ultim[oa]s {N} {U}"),
        ("rolling", r"(?:los|las|estos|estas) {N} ultim[oa]s {U}"),
        ("rolling", r"(?:los|las|estos|estas) ultim[oa]s {U}"),
        ("period", r"(?:el|la) {U} {WHICH}"),
        ("period", r"(?:el |la )?{WHICH} {U}"),
        ("period", r"(?:el|durante el) (?P<unit>fin de semana)"),
        ("ago", r"hace {N} {U}"),
        ("ago", r"{N} {U} atras"),
        ("year", r"(?:en(?: el ano)?|el ano|del ano|{LEADWORD}|{PART}(?:e?s)? de) {Y}"),
        ("near", r"{NEAR}(?! en dia)"),
    ),
)  # fmt: skip
LANGUAGES = {"de": GERMAN, "fr": FRENCH, "es": SPANISH}

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
    taken = bytearray(len(plain))
    phrases = []
    for kind, pattern in _compile_patterns(language.signs):
        for match in pattern.finditer(plain):
            start, end = match.span()
            parts = {name: part for name, part in match.groupdict().items() if part}
            phrase = _BUILDERS[kind](parts, language)
            is_excluded = _is_noun(text, match) or (not sure and _is_vague(match))
            if phrase and not is_excluded and not any(taken[start:end]):
                phrases.append((start, end, phrase))
                taken[start:end] = b"1" * (end - start)
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
        "{ENDS}": joined_dates(language.months, language.short, language.weekdays, near,
                               _group("joint", language.joints), _DAY, _YEAR + COUNTED),
        "{NEAR}": f"(?P<near>{'|'.join(near)})",
    }  # fmt: skip
    compiled = []
    for kind, pattern in language.patterns:
        for name, expression in expressions.items():
            pattern = pattern.replace(name, expression)
        compiled.append((kind, re.compile(_BEFORE + pattern + _AFTER)))
    return compiled


def _group(name: str, words: "str | list[str] | Mapping[str, str]") -> str:
    parts = words.split() if isinstance(words, str) else list(words)
    return f"(?P<{name}>{'|'.join(sorted(parts, key=len, reverse=True))})"


def _index(word: str, alternatives: str) -> int:
    return next(
        index
        for index, alternative in enumerate(alternatives.split())
        if word in alternative.split("|")
    )


def _look_up_prefix(word: str, values: Mapping[str, str]) -> str:
    """Return the value for a word by its beginning, ignoring its ending."""
    return next((values[start] for start in values if word.startswith(start)), "")


def _month(parts: Parts, language: Language) -> str:
    if "short" in parts:
        return _MONTHS[_index(parts["short"], language.short)]
    return _MONTHS[_index(parts["month"], language.months)]


def _year(parts: Parts, language: Language) -> str:
    if "year" in parts:
        return f" {parts['year']}"
    which = _look_up_prefix(parts.get("which", ""), language.which)
    return f" {which} year" if which in ("last", "this", "next") else ""


def _lead(parts: Parts, language: Language, default: str) -> str:
    return language.leads.get(parts.get("lead", ""), default)


def _date(parts: Parts, language: Language) -> str:
    day, month = parts["day"], _MONTHS[int(parts["number"]) - 1]
    return f"on {int(day)} {month} {parts.get('year', '')}".strip()


def _days(parts: Parts, language: Language) -> str:
    day = 1 if "first" in parts else int(parts["day"])
    until = f" to {int(parts['until'])}" if "until" in parts else ""
    lead = "on" if until else _lead(parts, language, "on")
    return f"{lead} {day}{until} {_month(parts, language)}{_year(parts, language)}"


def _range(parts: Parts, language: Language) -> str:
    lists = {language.months: _MONTHS, language.short: _MONTHS, language.weekdays: _WEEKDAYS}
    return join_dates(parts, lists, language.near, language.joints, _year(parts, language))


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


def _near(parts: Parts, language: Language) -> str:
    return language.near[parts["near"]]


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
    "near": _near,
}
