"""Recognise prose without secrets by its words, which is faster than to look for secrets."""

import re
from functools import cache

from reservoir_cli.redaction.false_alarms import Proof, is_real
from reservoir_cli.redaction.names_of_secrets import IN_LETTERS, TELLING
from reservoir_cli.redaction.secrets_by_surroundings import GUESSES
from reservoir_cli.redaction.token_kinds import SHORTEST_TOKEN

#: Words, a number or something short, in punctuation; nothing in it separates a name from a value.
_PLAIN = re.compile(
    r"[(\[\"'“‘«*_`]{0,3}(?:[^\W\d_]+(?:['’/.&-][^\W\d_]+)*|\d+(?:[.,:-]\d+)*%?|\w{1,3})?"
    r"[.,;:!?)\]\"'”’»*_`]{0,3}|[-–—]{1,3}|[&/%+•·#]"
)
_LETTERS = re.compile(r"[^\W\d_]+")
_MOST_WORDS = 100_000
#: Shorter words that were seen, by whether they are plain ones.
_plain, _others = set[str](), set[str]()


def words_to_scan(text: str) -> list[str]:
    """Return the words that may be a secret or announce one, and numbers and words behind those."""
    words = text.split()
    if _plain.issuperset(words):
        return []
    rest = [word for word in words if word not in _plain]
    if len(_plain) + len(_others) > _MOST_WORDS:
        _plain.clear()
        _others.clear()
    for word in dict.fromkeys(rest):
        if word not in _others and len(word) < SHORTEST_TOKEN:
            (_plain if _is_plain(word) else _others).add(word)
    return [word for word in rest if word not in _plain]


def _is_plain(word: str) -> bool:
    if not _PLAIN.fullmatch(word):
        return False
    values = {word, word.strip(".,;:!?()[]\"'"), *_LETTERS.findall(word)}
    long = (value for value in values if len(value) > 3)
    if any(is_real(value, in_code=False, proof=Proof.SURE, joined=True) for value in long):
        return False
    return not any(map(_announces_a_secret, _LETTERS.findall(word.lower())))


def _announces_a_secret(letters: str) -> bool:
    parts = (part for part in _parts() if part in letters)
    return any(re.search(IN_LETTERS.get(part, part), letters) for part in parts)


@cache
def _parts() -> tuple[str, ...]:
    """Return the longest words of what announces a secret, and what the rules look for."""
    names = {max(_LETTERS.findall(text), key=len) for text in TELLING}
    # Where all needs of a rule announce a secret, its words need not, which are common ones.
    words = [
        rule.words for rule in GUESSES if not rule.needs or not set(TELLING).issuperset(rule.needs)
    ]
    needs = [rule.needs for rule in GUESSES]
    return tuple(names.union(*(filter(str.isalpha, texts) for texts in words + needs)))
