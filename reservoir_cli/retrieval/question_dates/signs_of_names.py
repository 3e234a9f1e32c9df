"""Tell the names of people, companies, streets and products from dates in European languages."""
# ruff: noqa: RUF001 - Cyrillic letters

import re

from reservoir_cli.retrieval.question_dates.date_language import Language

_STREET_BEFORE = (
    r"(?:strasse|straße|str\.|platz|allee|brucke|rue|avenue|place|boulevard|quai|calle|avenida|plaza"
    r"|paseo|via|viale|piazza|corso|rua|praca|ponte|plein|straat|laan|ulic\w|ul\.|plac\w?|alej\w"
    r"|улиц\w+|ул\.|площад\w+|проспект\w*) (?:des |de la |de |del |du |da |do |di |van )?$"
)
#: Prepositions of time, after which a month or weekday is one, whatever stands behind it.
_IN_TIME = r"(?:in|en|em|no|nel|ad|w|we|в|во|im|am|au|op|seit|depuis|desde|durante|sinds|od|с|до)\b"
_REACH = 40  # the number of characters before a phrase that may say that it is a name
_SENTENCE_BEFORE = r"(?:^|[.?!:¿¡]\s?)$"


def count_signs_of_name(text: str, plain: str, match: re.Match[str], language: Language) -> int:
    """Return how many signs, up to two, say that a phrase is not a date but a name.

    "Rua 25 de Março", "März GmbH", "Julio César" and "iPad 2 gen" are names; "da Aprile" may be.

    :param plain: the text in lower case and without accents, of the same length.
    :param match: a phrase in the plain text.
    """
    parts = {name: part for name, part in match.groupdict().items() if part}
    if _is_known_name(text, match, language):
        return 2
    named = next((name for name in ("month", "short", "season", "weekday") if name in parts), None)
    if named is None or "which" in parts:
        return 0
    before, after = plain[max(0, match.start() - _REACH) : match.start()], text[match.end() :][:2]
    if "day" in parts and re.search(_STREET_BEFORE, before):
        return 2
    is_bare = _is_bare_abbreviation(match, before)
    if "year" in parts or "whose" in parts or text.isupper() or ("day" in parts and not is_bare):
        return 0
    goes_on = after[:1] == " " and after[1:2].isupper()
    is_time = named == "weekday" or re.match(_IN_TIME, match[0])
    if is_time and not language.has_capitals and not is_bare:
        return int(goes_on and _is_capital(text, plain, match.start(named)))
    # German capitalises all nouns: "von März" may be a name, "von August Müller" is one.
    is_named = (
        match[0].startswith("von ")
        if language.has_capitals
        else _is_capital(text, plain, match.start(named)) or is_bare
    )
    if is_named:
        return 1 + (goes_on or _follows_name(text, match))
    return 0


def _is_known_name(text: str, match: re.Match[str], language: Language) -> bool:
    """Return whether a phrase ends with a name or noun: "der Morgen", "em Marco", "Sabato"."""
    word = text[match.start() : match.end()].rpartition(" ")[2]
    # A capital letter at the beginning of the question says nothing about a day.
    begins = match.start() == 0 and word != "Morgen" and " " not in match[0]
    return word.istitle() and not begins and word.lower() in language.names.split()


def _is_capital(text: str, plain: str, position: int) -> bool:
    """Return whether a word begins with a capital letter inside of a sentence."""
    return text[position].isupper() and not re.search(
        _SENTENCE_BEFORE, plain[max(0, position - 2) : position]
    )


def _is_bare_abbreviation(match: re.Match[str], before: str) -> bool:
    """Return whether a phrase is as short as "2 gen", and no preposition precedes it."""
    is_short = match.groupdict().get("short") is not None and match[0][0].isdigit()
    return is_short and not match[0].endswith(".") and not re.search(r"\b\w\w? $", before)


def _follows_name(text: str, match: re.Match[str]) -> bool:
    """Return whether a day stands just after a word with a capital letter: "iPad 2 gen"."""
    before = text[max(0, match.start() - _REACH) : match.start()]
    words = before.split()[1:] if match[0][0].isdigit() else []
    return any(letter.isupper() for word in words[-1:] for letter in word)
