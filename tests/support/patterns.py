"""Draw random matches of a regular expression, and count the steps of matching it."""

import random
import re
import re._constants as ops
import re._parser as parser
import string
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

_REPEATS = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT)
_LETTERS = string.ascii_letters + string.digits + string.punctuation + " "
#: Letters that occur in most tokens: drawn first, so that matches look like tokens.
_USUAL = string.ascii_letters + string.digits


def draw_match(pattern: str, generator: random.Random) -> str:
    """Return a random text that a pattern matches, apart from what its assertions demand."""
    return _draw(parser.parse(pattern), generator)


def _draw(items: Any, generator: random.Random) -> str:
    return "".join(_draw_one(op, value, generator) for op, value in items)


def _draw_one(op: Any, value: Any, generator: random.Random) -> str:
    if op is ops.LITERAL:
        return chr(value)
    if op in (ops.IN, ops.NOT_LITERAL, ops.ANY):
        allowed = [letter for letter in _USUAL if _accepts(op, value, letter)]
        return generator.choice(allowed or [x for x in _LETTERS if _accepts(op, value, x)])
    if op is ops.BRANCH:
        return _draw(generator.choice(value[1]), generator)
    if op is ops.SUBPATTERN:
        return _draw(value[3], generator)
    if op in _REPEATS:
        low, high, item = value
        count = low if high == 1 else generator.randint(low, min(high, low + 2))
        return "".join(_draw(item, generator) for _ in range(count))
    return ""  # an assertion


def count_steps(pattern: str, text: str, starts: Iterator[int] | range | None = None) -> int:
    """Return how many single comparisons a backtracking matcher needs to find all matches.

    :param starts: the positions where the pattern is tried; everywhere if left out.
    """
    tree, steps, end = parser.parse(pattern), [0], 0
    for start in range(len(text)) if starts is None else starts:
        if start >= end:
            match = next(_run(list(tree), text, start, steps), None)
            end = max(start + 1, match) if match is not None else start + 1
    return steps[0]


def _run(items: list[Any], text: str, at: int, steps: list[int]) -> Iterator[int]:
    """Yield the ends of the matches of some items, in the order of a backtracking matcher."""
    if not items:
        yield at
        return
    (op, value), rest = items[0], items[1:]
    for end in _ends(op, value, text, at, steps):
        yield from _run(rest, text, end, steps)


def _ends(op: Any, value: Any, text: str, at: int, steps: list[int]) -> Iterator[int]:
    steps[0] += 1
    if op in (ops.LITERAL, ops.IN, ops.NOT_LITERAL, ops.ANY):
        if at < len(text) and _accepts(op, value, text[at]):
            yield at + 1
    elif op is ops.BRANCH:
        for branch in value[1]:
            yield from _run(list(branch), text, at, steps)
    elif op is ops.SUBPATTERN:
        yield from _run(list(value[3]), text, at, steps)
    elif op in (ops.ASSERT, ops.ASSERT_NOT):
        start = at if value[0] > 0 else at - value[1].getwidth()[0]
        found = start >= 0 and next(_run(list(value[1]), text, start, steps), None) is not None
        if found is (op is ops.ASSERT):
            yield at
    elif op in _REPEATS:
        ends = _repeat(value, text, at, steps, lazy=op is ops.MIN_REPEAT)
        yield from islice(ends, 1) if op is ops.POSSESSIVE_REPEAT else ends
    elif op is ops.AT and re.compile(_ANCHORS[value]).match(text, at):
        yield at


_ANCHORS = {
    ops.AT_BEGINNING: r"^",
    ops.AT_END: r"$",
    ops.AT_BOUNDARY: r"\b",
    ops.AT_NON_BOUNDARY: r"\B",
    ops.AT_END_STRING: r"\Z",
}


def _repeat(value: Any, text: str, at: int, steps: list[int], *, lazy: bool) -> Iterator[int]:
    low, high, item = value
    ends = [at]
    while len(ends) <= high:
        end = next(_run(list(item), text, ends[-1], steps), None)
        if end is None or end == ends[-1]:
            break
        ends.append(end)
        if lazy and len(ends) > low:
            yield ends[-2] if len(ends) - 2 >= low else ends[-1]
    if lazy:
        yield from ends[-1:] if len(ends) > low else []
    else:
        for count in range(len(ends) - 1, low - 1, -1):
            steps[0] += 1
            yield ends[count]


_CATEGORIES: dict[Any, Callable[[str], bool]] = {
    ops.CATEGORY_DIGIT: str.isdecimal,
    ops.CATEGORY_NOT_DIGIT: lambda letter: not letter.isdecimal(),
    ops.CATEGORY_SPACE: str.isspace,
    ops.CATEGORY_NOT_SPACE: lambda letter: not letter.isspace(),
    ops.CATEGORY_WORD: lambda letter: letter.isalnum() or letter == "_",
    ops.CATEGORY_NOT_WORD: lambda letter: not (letter.isalnum() or letter == "_"),
}


def _accepts(op: Any, value: Any, letter: str) -> bool:
    if op is ops.ANY:
        return letter != "\n"
    if op in (ops.LITERAL, ops.NOT_LITERAL):
        return (ord(letter) == value) is (op is ops.LITERAL)
    negated = value[0][0] is ops.NEGATE
    found = any(_accepts_item(item, letter) for item in value)
    return found is not negated


def _accepts_item(item: Any, letter: str) -> bool:
    op, value = item
    if op is ops.LITERAL:
        return bool(ord(letter) == value)
    if op is ops.RANGE:
        return bool(value[0] <= ord(letter) <= value[1])
    return op is ops.CATEGORY and _CATEGORIES[value](letter)
