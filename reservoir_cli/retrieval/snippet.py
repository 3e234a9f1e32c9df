"""Choose the part of a long message that a search shows. Pure."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from reservoir_cli.util.front_matter import body_start

Span = tuple[int, int]  # offsets of the first character and of the one after the last
#: Good places for a part to begin: after a line or a sentence.
_BEGINNING = re.compile(r"\n\s*|[.!?…]['\"”’)\]]*\s+|[。！？]\s*")  # noqa: RUF001 - they are meant
_GAP, _WIDE_GAP = re.compile(r"\s+"), re.compile(r"\s{2,}")


def choose_part(
    text: str, words: Sequence[Span], passage: Span | None, size: int
) -> tuple[str, list[Span]]:
    """Choose the most relevant part of a text for a question, on one line, and the words in it.

    Front matter is left out, unless it alone has words of the question.

    :param words: the spans of the question's words, in order.
    :param passage: the part nearest in meaning; words inside it are preferred.
    :param size: the most characters, including ``…`` for omitted text.
    """
    body = body_start(text)
    if words and not any(body <= span[0] for span in words):  # found in the front matter only
        body = 0
    low, high = passage or (0, len(text))
    low = max(low, body) if body < high else low
    inside = [span for span in words if low <= span[0] and span[1] <= high]
    start, end = _window(text, (low, high), inside, size)
    return _on_one_line(text, start, end, [span for span in words if start <= span[0] < end])


def _window(text: str, part: Span, words: Sequence[Span], size: int) -> Span:
    """Return the span within a part that contains the most different words."""
    low, high = part
    size -= 2
    if high - low <= size:
        return part
    start = low
    if words:
        first, last = _densest(text, words, size)
        # Start a few words before the first one, at the beginning of a sentence if one is near.
        start = first - max(0, min(size // 3, size - (last - first)))
        start = max(low, min(start, high - size))
        if start > low:
            start = _find_beginning(text, start, first)
    end = min(high, start + size)
    if end < high and (blank := text.rfind(" ", start + size // 2, end)) > 0:
        end = blank
    return start, end


def _densest(text: str, words: Sequence[Span], size: int) -> Span:
    best, count = words[0], 0
    for index, (start, _) in enumerate(words):
        nearby = [span for span in words[index : index + 50] if span[1] - start <= size]
        if len(nearby) and (distinct := len({text[a:b].casefold() for a, b in nearby})) > count:
            best, count = (start, nearby[-1][1]), distinct
    return best


def _find_beginning(text: str, start: int, before: int) -> int:
    if match := _BEGINNING.search(text, start, before):
        return match.end()
    blank = text.find(" ", start, before)
    return blank + 1 if blank >= 0 else start


def _on_one_line(text: str, start: int, end: int, words: Sequence[Span]) -> tuple[str, list[Span]]:
    """Join the lines of a part, with ``…`` for omitted text."""
    part, front = text[start:end], "…" if text[:start].strip() else ""
    if not front:
        part = part.lstrip()
        start = end - len(part)
    line = (front + _GAP.sub(" ", part)).rstrip()
    if text[end:].strip():
        line += "…"
    gaps = [(start + gap.end(), gap.end() - gap.start() - 1) for gap in _WIDE_GAP.finditer(part)]
    ends, missing = [where for where, _ in gaps], [0, *accumulate(size for _, size in gaps)]

    def shift(offset: int) -> int:
        return len(front) + offset - start - missing[bisect_right(ends, offset)]

    spans = [(shift(a), shift(min(b, end))) for a, b in words]
    return line, [(a, b) for a, b in spans if a < b <= len(line)]
