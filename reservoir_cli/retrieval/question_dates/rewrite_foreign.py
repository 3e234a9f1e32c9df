"""Rewrite dates in German, French, Spanish and Chinese as English ones, which the parser reads.

Accents are ignored: ``fevrier`` also means February. A phrase is rewritten only if its own words
make it a date: ``hier`` is yesterday in a French question and "here" in a German one, and ``mars``
needs a day, a year or a preposition.
"""

import re
import unicodedata

from reservoir_cli.retrieval.question_dates import rewrite_chinese, rewrite_european
from reservoir_cli.retrieval.question_dates.european_languages import LANGUAGES
from reservoir_cli.util.languages import guess_language

_WORD = re.compile(r"[a-z]+")
#: A range of years may have no other word of a date: "de 2020 a 2022".
_YEARS = (
    r"(?i)\b(?:zwischen|von|entre|desde|de) \d{4} (?:bis|und|et|[aà]|y|hasta) \d{4}\b"
    + rewrite_european.COUNTED
)
#: Maps letters one to one, so that positions in the text stay the same.
_UNACCENTED = str.maketrans("àáâäãåçèéêëìíîïñòóôöõùúûüýÿ\u2019ºª", "aaaaaaceeeeiiiinooooouuuuyy'oa")


def _has_number(text: str) -> bool:
    return any(character.isdecimal() for character in text)


def in_english(question: str) -> str:
    """Return a question with its foreign dates, and the words that join them, in English."""
    has_years = _has_number(question) and re.search(_YEARS, question) is not None
    if question.isascii() and not (has_years or _SIGNS & set(_WORD.findall(question.lower()))):
        return question
    text = " ".join(unicodedata.normalize("NFC", question).split())
    text = rewrite_chinese.in_english(text)
    plain = text.lower().translate(_UNACCENTED)
    if len(plain) != len(text):  # a capital letter whose lower case has two characters
        return text
    words = set(_WORD.findall(plain))
    guess = guess_language(text)
    for name in sorted(LANGUAGES, key=lambda name: name != guess):
        # Short texts may be mistaken for Dutch or Italian; only another known language rules
        # shared words out.
        is_other_language = guess != name and guess in ("en", *LANGUAGES)
        signs = _OWN_SIGNS if is_other_language else _ALL_SIGNS
        if has_years or words & signs[name]:
            rewritten = rewrite_european.rewrite(text, plain, LANGUAGES[name], sure=name == guess)
            if rewritten != text:
                return rewritten
    return text


def _signs(words: str) -> frozenset[str]:
    return frozenset(words.split())


_OWN_SIGNS = {name: _signs(known.signs) for name, known in LANGUAGES.items()}
_ALL_SIGNS = {
    name: _OWN_SIGNS[name] | _signs(known.shared_signs) for name, known in LANGUAGES.items()
}
_SIGNS = frozenset().union(*_ALL_SIGNS.values())
