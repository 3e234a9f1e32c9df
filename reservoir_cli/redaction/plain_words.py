"""Recognise prose without secrets by its words, which is faster than to look for secrets."""

import re
from functools import cache

from reservoir_cli.redaction.false_alarms import Proof, is_real
from reservoir_cli.redaction.names_of_secrets import IN_LETTERS, TELLING
from reservoir_cli.redaction.token_kinds import SHORTEST_TOKEN

#: Words, a number or something short, in punctuation; nothing in it separates a name from a value.
_PLAIN = re.compile(
    r"[(\[\"'“‘«*_`]{0,3}(?:[^\W\d_]+(?:['’/.&-][^\W\d_]+)*|\d+(?:[.,:-]\d+)*%?|\w{1,3})?"
    r"[.,;:!?)\]\"'”’»*_`]{0,3}|[-–—]{1,3}|[&/%+•·#]"
)
_LETTERS = re.compile(r"[^\W\d_]+")
_MOST_WORDS = 100_000
_plain_words = set[str]()


def consists_of_plain_words(text: str) -> bool:
    """Return whether no word of a text is a secret or announces one, such as ``password``.

    A secret is a word that is no plain one, or a number or some words behind a name.
    """
    words = text.split()
    if _plain_words.issuperset(words):
        return True
    for word in words:
        if word not in _plain_words:
            if not _is_plain(word):
                return False
            if len(_plain_words) >= _MOST_WORDS:
                _plain_words.clear()
            _plain_words.add(word)
    return True


def _is_plain(word: str) -> bool:
    if len(word) >= SHORTEST_TOKEN or not _PLAIN.fullmatch(word):
        return False
    values = {word, word.strip(".,;:!?()[]\"'"), *_LETTERS.findall(word)}
    if any(is_real(value, in_code=False, proof=Proof.SURE) for value in values):
        return False
    return not any(map(_announces_a_secret, _LETTERS.findall(word.lower())))


def _announces_a_secret(letters: str) -> bool:
    parts = (part for part in _parts() if part in letters)
    return any(re.search(IN_LETTERS.get(part, part), letters) for part in parts)


@cache
def _parts() -> tuple[str, ...]:
    """Return the longest words of what announces a secret."""
    return tuple({max(_LETTERS.findall(text), key=len) for text in TELLING})
