"""Draw random matches of a regular expression, and count the steps of matching it."""

import random
import re
import re._constants as ops
import re._parser as parser
import string
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

_REPEATS = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT)
_ONE_LETTER = (ops.LITERAL, ops.IN, ops.NOT_LITERAL, ops.ANY)
_LETTERS = string.ascii_letters + string.digits + string.punctuation + " "
#: Letters that occur in most tokens: drawn first, so that matches look like tokens.
_USUAL = string.ascii_letters + string.digits


def draw_match(pattern: str, generator: random.Random) -> str:
    """Return a random text that a pattern matches, apart from what its assertions demand."""
    return _draw(_parse(pattern), generator)


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


_parse = cache(parser.parse)


def count_steps(
    pattern: str, text: str, starts: Iterable[int] | None = None, flags: int = 0
) -> int:
    """Return how many single comparisons a backtracking matcher needs to find all matches.

    :param starts: the positions where the pattern is tried; everywhere if left out.
    :param flags: of the pattern; only ``re.IGNORECASE`` matters.
    """
    matcher, find = _compile(pattern, flags)
    matcher.text, matcher.steps, end = text, 0, 0
    for start in range(len(text)) if starts is None else starts:
        if start >= end:
            match = find(start)
            end = max(start + 1, match) if match is not None else start + 1
    return matcher.steps


@cache
def _compile(pattern: str, flags: int) -> "tuple[_Matcher, _Find]":
    parsed = _parse(pattern, flags)
    matcher = _Matcher(ignores_case=bool(parsed.state.flags & re.IGNORECASE))
    return matcher, matcher.compile(parsed, lambda at: at)


#: Returns where a match ends that begins at a position.
_Find = Callable[[int], int | None]


class _Matcher:
    """A backtracking matcher that counts its steps: each part calls what is to match after it."""

    def __init__(self, *, ignores_case: bool) -> None:
        self.text, self.steps, self._ignores_case = "", 0, ignores_case

    def compile(self, items: Any, then: _Find) -> _Find:
        for op, value in reversed(list(items)):
            then = self._compile_one(op, value, then)
        return then

    def _compile_one(self, op: Any, value: Any, then: _Find) -> _Find:
        if op in _ONE_LETTER:
            return self._letter(_Accepted(op, value, self._ignores_case), then)
        if op is ops.GROUPREF:  # which group held is not remembered: any letter will do
            return self._letter(_Accepted(ops.ANY, None, False), then)
        if op is ops.BRANCH:
            return self._branch([self.compile(branch, then) for branch in value[1]])
        if op is ops.SUBPATTERN:
            return self._branch([self.compile(value[3], then)])
        if op in (ops.ASSERT, ops.ASSERT_NOT):
            back = value[1].getwidth()[0] if value[0] < 0 else 0
            return self._assertion(self.compile(value[1], lambda at: at), back, op, then)
        if op in _REPEATS:
            low, high, item = value
            if op is ops.MIN_REPEAT:
                return self._few(low, high, self.compile(item, lambda at: at), then)
            tries = 1 if op is ops.POSSESSIVE_REPEAT else None
            return self._many(low, high, self._repeated(item), tries, then)
        return self._anchor(_ANCHORS[value], then)

    def _letter(self, accepted: "_Accepted", then: _Find) -> _Find:
        def find(at: int) -> int | None:
            self.steps += 1
            return then(at + 1) if at < len(self.text) and accepted[self.text[at]] else None

        return find

    def _branch(self, branches: list[_Find]) -> _Find:
        def find(at: int) -> int | None:
            self.steps += 1
            ends = (branch(at) for branch in branches)
            return next((end for end in ends if end is not None), None)

        return find

    def _assertion(self, inner: _Find, back: int, op: Any, then: _Find) -> _Find:
        def find(at: int) -> int | None:
            self.steps += 1
            found = at >= back and inner(at - back) is not None
            return then(at) if found is (op is ops.ASSERT) else None

        return find

    def _anchor(self, anchor: re.Pattern[str], then: _Find) -> _Find:
        def find(at: int) -> int | None:
            self.steps += 1
            return then(at) if anchor.match(self.text, at) else None

        return find

    def _few(self, low: int, high: int, item: _Find, then: _Find) -> _Find:
        def find(at: int) -> int | None:
            self.steps += 1
            count, end = 0, at
            while True:
                found = then(end) if count >= low else None
                after = item(end) if found is None and count < high else None
                if after is None or after == end:
                    return found
                count, end = count + 1, after

        return find

    def _many(
        self, low: int, high: int, repeated: "_Repeated", tries: int | None, then: _Find
    ) -> _Find:
        def find(at: int) -> int | None:
            self.steps += 1
            ends = repeated(at, high)
            for end in ends[low:][::-1][:tries]:
                self.steps += 1
                found = then(end)
                if found is not None:
                    return found
            return None

        return find

    def _repeated(self, items: Any) -> "_Repeated":
        """Return a function that gives where none, one, two, … repetitions end."""
        (op, value), *others = items
        if op in _ONE_LETTER and not others:
            accepted = _Accepted(op, value, self._ignores_case)

            def letters(at: int, high: int) -> Sequence[int]:
                end, last, text = at, min(len(self.text), at + high), self.text
                while end < last and accepted[text[end]]:
                    end += 1
                self.steps += end - at + (end - at < high)
                return range(at, end + 1)

            return letters
        item = self.compile(items, lambda at: at)

        def repeated(at: int, high: int) -> Sequence[int]:
            ends = [at]
            while len(ends) <= high:
                end = item(ends[-1])
                if end is None or end == ends[-1]:
                    break
                ends.append(end)
            return ends

        return repeated


_Repeated = Callable[[int, int], Sequence[int]]
_ANCHORS = {
    ops.AT_BEGINNING: re.compile(r"^"),
    ops.AT_END: re.compile(r"$"),
    ops.AT_BOUNDARY: re.compile(r"\b"),
    ops.AT_NON_BOUNDARY: re.compile(r"\B"),
    ops.AT_END_STRING: re.compile(r"\Z"),
}


class _Accepted(dict[str, bool]):
    """Whether one letter matches a part of a pattern, by letter."""

    def __init__(self, op: Any, value: Any, ignores_case: bool) -> None:
        self._op, self._value, self._ignores_case = op, value, ignores_case

    def __missing__(self, letter: str) -> bool:
        forms = {letter, letter.swapcase()} if self._ignores_case else {letter}
        self[letter] = any(_accepts(self._op, self._value, form) for form in forms)
        return self[letter]


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
