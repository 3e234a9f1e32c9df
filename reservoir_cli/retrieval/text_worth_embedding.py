"""Tell which parts of a text are worth embedding. Pure, and linear in the length of the text.

An embedding says nothing about text without words, such as base64 and minified code, nor anything
new about lines that a message repeats, as logs do. Such parts are found by full text only.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from reservoir_cli.embedding.split_passages import Span

_SHORT = 4_000  # a text of at most this many characters takes little time: all of it is embedded
_BLOCK = 800  # about the characters of a passage
_LONG_END = 200  # keep the cut-off part of a line if it has at least this many characters
MOST_PASSAGES = 128  # longer messages take too long for most commands: ``reservoir embed`` does

#: Prose has a blank every six characters, minified code every 30, wrapped base64 every 65 or 77.
_FEWEST_BLANKS = 20
_LEAST_IN_WORDS = 0.1  # share of characters; source code has 0.3, tables of numbers and dumps 0.05
_BLANKS = re.compile(r"\s+")
#: A word, of three letters in ASCII. Other scripts need not separate words by blanks.
_ASCII_WORD = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{3,}(?![A-Za-z0-9])")
_OTHER_LETTERS = re.compile(r"[^\W\d_A-Za-z]+")
_DIGIT = re.compile(r"\d")


def choose_passages(text: str, spans: Sequence[Span]) -> list[Span]:
    """Return the passages that are worth embedding: of a short text, all."""
    if len(text) <= _SHORT:
        return list(spans)
    chosen = _find_new(_without_line_ends(text, start, end) for start, end in spans)
    return [span for span, is_new in zip(spans, chosen, strict=True) if is_new]


def estimate_passages(text: str) -> int:
    """Estimate how many passages are worth embedding, at most one more than ``MOST_PASSAGES``."""
    if len(text) <= _SHORT:
        return 1
    count = 0
    for is_new in _find_new(_blocks(text)):
        count += is_new
        if count > MOST_PASSAGES:
            break
    return count


def _without_line_ends(text: str, start: int, end: int) -> str:
    """Return a passage without the short ends of lines that its borders cut in two."""
    first = last = ""
    lines = text[start:end].splitlines(keepends=True)
    if start and text[start - 1] != "\n":
        first = lines.pop(0)
    if lines and end < len(text) and text[end - 1] != "\n":
        last = lines.pop()
    ends = [part if len(part) >= _LONG_END else "" for part in (first, last)]
    return "".join([ends[0], *lines, ends[1]]) if lines else text[start:end]


def _find_new(parts: Iterable[str]) -> Iterator[bool]:
    """Yield for each part of a text whether it has words, and a line that no earlier part has."""
    earlier: set[str] = set()
    for part in parts:
        lines = {_without_numbers(line) for line in part.splitlines()} - earlier - {""}
        earlier |= lines
        yield bool(lines) and _has_words(part)


def _blocks(text: str) -> Iterator[str]:
    """Yield a text in blocks of about the length of a passage, whole lines if they are short."""
    block, length = [], 0
    for line in text.splitlines(keepends=True):
        for start in range(0, len(line), _BLOCK):
            block.append(line[start : start + _BLOCK])
            length += len(block[-1])
            if length >= _BLOCK:
                yield "".join(block)
                block, length = [], 0
    yield "".join(block)


def _without_numbers(line: str) -> str:
    """Return the words of a line but for times, numbers and ids, by which lines of a log differ."""
    return " ".join(word for word in line.split() if not _DIGIT.search(word))


def _has_words(text: str) -> bool:
    other = sum(map(len, _OTHER_LETTERS.findall(text)))
    blanks = sum(map(len, _BLANKS.findall(text.strip())))
    if (blanks + other) * _FEWEST_BLANKS < len(text):
        return False
    ascii_words = sum(map(len, _ASCII_WORD.findall(text)))
    return ascii_words + other >= _LEAST_IN_WORDS * (len(text) - blanks)
