"""Read the table of the kinds of tokens, ``token_kinds.txt``, and find the kinds in a text."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

SHORTEST_TOKEN = 20  #: The length of the shortest token.
#: Not inside a word; an escape of JSON (``\\n``) or of a URL (``%20``) is not part of a word.
_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2}))"
_STRICT_START = r"(?<![A-Za-z0-9+/_-])"  #: Not inside base64 or a name of several words.
_ESCAPES = re.compile(r"\\[nrt]|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2}")
_RUNS = re.compile(r"[A-Za-z0-9]+")
_HEAD = 3  #: As many characters of the first word of a token are looked up in the words of a text.


class TokenKind(NamedTuple):
    """A kind of token: a row of the table."""

    kind: str
    literals: tuple[str, ...]  #: Every token begins with one of them, or contains one of them.
    begins: bool  #: Whether tokens begin with the literals.
    regular: bool  #: Whether the only literal is a regular expression.
    pattern: str  #: The token is the group that matched; without groups, the whole match.
    source: str  #: Where the format is documented.


class _KindTable(NamedTuple):
    """The kinds in their order, and how to find those that a text may contain."""

    kinds: tuple[TokenKind, ...]
    by_head: dict[str, list[tuple[int, str]]]
    inside: list[tuple[int, str]]
    regular: list[int]
    any_regular: str


@cache
def token_kinds() -> tuple[TokenKind, ...]:
    """Return all kinds of tokens, in the order in which they are tried."""
    lines = Path(__file__).with_name("token_kinds.txt").read_text("utf-8").splitlines()
    return tuple(_parse(line) for line in lines if line and not line.startswith("#"))


def possible_kinds(words: str) -> Iterator[tuple[TokenKind, tuple[str, ...]]]:
    """Yield the kinds that a text's long words may contain, with those of their literals.

    All words are looked up at once by their first letters, for any number of kinds.
    """
    table = _table()
    if "\\" in words or "%" in words:
        heads = {run[:_HEAD] for run in _RUNS.findall(_ESCAPES.sub(" ", words))}
    else:
        heads = set()
    heads.update([run[:_HEAD] for run in _RUNS.findall(words)])
    literals: dict[int, list[str]] = {}
    for head in heads & table.by_head.keys():
        for number, literal in table.by_head[head]:
            if literal in words:
                literals.setdefault(number, []).append(literal)
    for number, literal in table.inside:
        if literal in words:
            literals.setdefault(number, []).append(literal)
    # Most texts hold nothing like them: one search instead of many.
    for number in table.regular if re.search(table.any_regular, words) else ():
        if re.search(table.kinds[number].literals[0], words):
            literals[number] = []
    for number in sorted(literals):
        yield table.kinds[number], tuple(literals[number])


@cache
def _table() -> _KindTable:
    kinds = token_kinds()
    by_head: dict[str, list[tuple[int, str]]] = {}
    inside: list[tuple[int, str]] = []
    regular = [number for number, kind in enumerate(kinds) if kind.regular]
    for number, kind in enumerate(kinds):
        if kind.regular:
            continue
        for literal in kind.literals:
            word = _RUNS.match(literal) if kind.begins else None
            if word and (len(word[0]) >= _HEAD or word[0] != literal):
                by_head.setdefault(word[0][:_HEAD], []).append((number, literal))
            else:
                inside.append((number, literal))
    any_regular = "|".join(kinds[number].literals[0] for number in regular)
    return _KindTable(kinds, by_head, inside, regular, any_regular)


def _parse(line: str) -> TokenKind:
    kind, literals, rest, source = line.split()
    start = _STRICT_START if literals.startswith("!") else _START
    begins, regular = not literals.startswith(("*", "~")), literals.startswith("~")
    rest = rest.replace(",}", ",}+")  # takes all that follows, and never gives any of it back
    names = tuple([literals[1:]] if regular else literals.lstrip("!*").split("|"))
    if begins:
        pattern = f"{start}(?:{'|'.join(map(re.escape, names))}){rest}"
    else:
        pattern = f"{_STRICT_START if rest.startswith('[') else start}{rest}"
    return TokenKind(kind, names, begins, regular, pattern, source)
