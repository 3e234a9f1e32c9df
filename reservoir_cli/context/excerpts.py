"""The best parts of a long message. Pure.

A long message is offered by its passages, the best first. An excerpt is the text between some
offsets; a mark stands for what is left out. It is cut between paragraphs, list items or
sentences. A fenced block is cut only if it does not fit as a whole: then at a line, and the fence
is closed and opened again.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from reservoir_cli.context.passages import CRUMB, Nearness
from reservoir_cli.context.types import Candidate, Span
from reservoir_cli.messages import Role, StoredMessage, plain_text

#: The first excerpt of a message has this share of its priority; that of a reply has less, since
#: what a model said is longer and more alike than what it was told. It has the least when the
#: question is about the one who asks, who has mostly said the answer.
FIRST, OF_REPLY, OF_REPLY_ABOUT_ASKER = 0.85, 0.8, 0.6
#: Each further excerpt has this share of that, and that of a reply the second one.
FURTHER, FURTHER_OF_REPLY = 0.92, 0.9
#: Parts are added one by one up to this number, then in steps that grow with it.
_SINGLE_STEPS = 8
#: How far a cut may move to the next good place, in characters.
_REACH = 400
#: A gap with fewer characters than its mark is printed.
_SHORT_GAP = 24
#: What frames an excerpt takes about so many tokens; fewer of its text than these are not worth it.
_AROUND, _LEAST = 36, 30
#: No part of a text is taken to have fewer tokens a character than this share of the whole's.
_DENSITY = 0.6
#: Patterns are compiled when they are first needed: few contexts hold an excerpt.
_BREAK = (
    r"\n[ \t\r]*\n\s*"  # a paragraph
    r"|\n(?=[ \t]*(?:[-*+•]|\d{1,3}[.)]|#{1,6}|\|)[ \t])"  # a list item, a heading, a table row
    r"|[.!?…।॥۔؟][\"'”’»)\]*_]*\s+"  # noqa: RUF001 - a sentence
    r"|[。！？｡][」』”’）]*\s*"  # noqa: RUF001 - a sentence
)
#: A heading, also one in bold type.
_TITLE = r"[ \t]{0,3}(?:#{1,6}[ \t][^\n]*|\*\*[^*\n]*[^*\n.!?]\*\*:?[ \t\r]*)"
_HEADINGS = rf"\s*(?:{_TITLE}(?:\n\s*|\Z))+"
_FENCE_LINE = r"(?m)^[ \t]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?(`{3,}|~{3,})([^\n]*)$"


class Fence(NamedTuple):
    """A fenced block.

    :param body: where its first line begins.
    :param tail: where its closing line begins; the end of the text if it is not closed.
    :param end: where it ends.
    :param sign: what closes it.
    """

    start: int
    body: int
    tail: int
    end: int
    sign: str

    def holds(self, place: int) -> bool:
        """Return whether a place lies inside, not at its edges."""
        return self.start < place < self.end


class Outline:
    """The places of a text where it can be cut."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def breaks(self) -> list[int]:
        """Where paragraphs, list items and sentences begin, and where the text ends."""
        return [0, *(match.end() for match in re.finditer(_BREAK, self.text)), len(self.text)]

    @cached_property
    def whole(self) -> Span:
        """All of the text but white space around it."""
        return _stripped(self.text, 0, len(self.text))

    @cached_property
    def fences(self) -> list[Fence]:
        """The fenced blocks in order."""
        return find_fences(self.text)

    def widened(self, span: Span, *, whole_fences: bool) -> Span:
        """Return a span with its ends moved to good places to cut.

        :param whole_fences: take in a fenced block that one of the ends lies in.
        """
        start, end = self._start(span[0], span[1]), self._end(span[1], span[0])
        for fence in self.fences:
            if fence.holds(start):
                start = fence.start if whole_fences else self._line_start(fence, start)
            if fence.holds(end):
                end = fence.end if whole_fences else self._line_end(fence, end)
        return _stripped(self.text, start, max(start, end))

    def without_bare_heading(self, span: Span) -> Span:
        """Return a span without headings at its end: nothing of what they stand above is in it."""
        start, end = span
        while start < end < self.whole[1]:
            line = max(start, self.text.rfind("\n", start, end) + 1)
            inside = any(fence.holds(line) for fence in self.fences)
            if inside or not re.fullmatch(_TITLE, self.text[line:end]):
                break
            start, end = _stripped(self.text, start, line)
        return start, end

    def lined(self, span: Span) -> Span:
        """Return a span that ends, if inside a fenced block, with a line of it."""
        start, end = span
        for fence in self.fences:
            if fence.holds(end):
                end = self._line_end(fence, end)
        return _stripped(self.text, start, max(start, end))

    def _start(self, place: int, end: int) -> int:
        at = bisect_right(self.breaks, place)
        before, after = self.breaks[at - 1], self.breaks[min(at, len(self.breaks) - 1)]
        if place - before <= _REACH:
            return before
        return after if after - place <= _REACH and after < end else place

    def _end(self, place: int, start: int) -> int:
        at = bisect_left(self.breaks, place)
        before, after = self.breaks[max(0, at - 1)], self.breaks[min(at, len(self.breaks) - 1)]
        if after - place <= _REACH:
            return after
        return before if place - before <= _REACH and before > start else place

    def _line_start(self, fence: Fence, place: int) -> int:
        line = self.text.rfind("\n", 0, place) + 1
        if line < fence.body:
            return fence.start
        return line if line < fence.tail else fence.end

    def _line_end(self, fence: Fence, place: int) -> int:
        if place < fence.body:
            return fence.start
        if self.text[place - 1] == "\n":
            return min(place, fence.tail)
        line = self.text.find("\n", place) + 1
        return fence.end if not line or line >= fence.tail else line


def find_fences(text: str) -> list[Fence]:
    """Return the fenced blocks of a text in order; one that is not closed ends with the text."""
    fences: list[Fence] = []
    if "```" not in text and "~~~" not in text:
        return fences
    opened: re.Match[str] | None = None
    for match in re.finditer(_FENCE_LINE, text):
        sign, info = match[1], match[2]
        if opened is None:
            if sign[0] == "~" or "`" not in info:
                opened = match
        elif sign.startswith(opened[1]) and not info.strip():
            body = min(opened.end() + 1, match.start())
            fences.append(Fence(opened.start(), body, match.start(), match.end(), opened[1]))
            opened = None
    if opened is not None:
        body = min(opened.end() + 1, len(text))
        fences.append(Fence(opened.start(), body, len(text), len(text), opened[1]))
    return fences


def is_long(message: StoredMessage, limit: int) -> bool:
    """Return whether a message may be excerpted: tool calls and results never are."""
    return message.tokens > limit and message.role is not Role.TOOL and not message.tool_calls


def step_size(part: int) -> int:
    """Return how many parts are added at once from this one on."""
    return 1 if part < _SINGLE_STEPS else part // 4


def least_tokens(message: StoredMessage, parts: Sequence[Span]) -> float:
    """Return what parts of a message cost at least, about: what costs more is not even tried."""
    share = sum(end - start for start, end in parts) / max(1, len(message.content))
    return _DENSITY * share * message.tokens


def discount(candidate: Candidate, part: int) -> float:
    """Return the share of a message's priority that its parts have from this one on."""
    if not candidate.replies:
        return FIRST * FURTHER**part
    first = OF_REPLY_ABOUT_ASKER if candidate.about_asker else OF_REPLY
    return first * FURTHER_OF_REPLY**part


class Excerpter:
    """Grows excerpts; the outline of each text is made once, and its passages are ranked once.

    :param query: the question that passages are ranked by.
    """

    def __init__(self, query: str) -> None:
        self._nearness = Nearness(query)
        self._outlines: dict[int, Outline] = {}
        self._parts: dict[int, tuple[Span, ...]] = {}

    def parts(self, candidate: Candidate) -> tuple[Span, ...]:
        """Return the passages of a long message, the best first."""
        message = candidate.message
        if message.id not in self._parts:
            ranked = self._nearness.ranked(message.content, candidate.parts, candidate.cosines)
            self._parts[message.id] = ranked
        return self._parts[message.id]

    def _outline(self, message: StoredMessage) -> Outline:
        if message.id not in self._outlines:
            self._outlines[message.id] = Outline(plain_text(message))
        return self._outlines[message.id]

    def ways(self, candidate: Candidate, parts: Sequence[Span]) -> Iterator[Candidate]:
        """Yield a candidate that prints more of its message, the largest first.

        The first takes in a fenced block whole, the second, if it is another, only to a line.

        :param candidate: with the spans that are printed so far; ``None`` for none of them.
        :param parts: passages to add.
        """
        outline = self._outline(candidate.message)
        tried: list[tuple[Span, ...]] = []
        for whole_fences in (True, False):
            more = [outline.widened(part, whole_fences=whole_fences) for part in parts]
            spans = joined(outline.text, [*(candidate.spans or ()), *more])
            if spans not in tried:
                tried.append(spans)
                yield from _printing(candidate, outline, spans)

    def shortened(self, candidate: Candidate, part: Span, room: int) -> Iterator[Candidate]:
        """Yield a candidate that prints the beginning of a part, as much as may fit.

        :param room: tokens that are left.
        """
        outline = self._outline(candidate.message)
        start, end = outline.widened(part, whole_fences=False)
        for share in (1.0, 0.75):
            tokens = share * (room - _AROUND)
            if tokens < _LEAST:
                return
            stop = start + int(tokens * len(outline.text) / candidate.message.tokens)
            stop = outline.breaks[bisect_right(outline.breaks, min(stop, end)) - 1]
            if stop - start >= CRUMB:
                spans = joined(outline.text, [outline.lined((start, stop))])
                yield from _printing(candidate, outline, spans)


def _printing(candidate: Candidate, outline: Outline, spans: tuple[Span, ...]) -> list[Candidate]:
    """Return a candidate with what is printed of it; none if that is headings alone."""
    if spans == (outline.whole,):
        return [replace(candidate, spans=None)]
    ended = (outline.without_bare_heading(span) for span in spans)
    spans = tuple(span for span in ended if span[0] < span[1])
    return [replace(candidate, spans=spans)] if spans else []


def joined(text: str, spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return spans in order; those with only a short gap or headings between become one."""
    result: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if result and _is_short(text, result[-1][1], start):
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    if result:
        first, last = result[0], result[-1]
        if _is_short(text, 0, first[0]):
            result[0] = _stripped(text, 0, first[1])
        if _is_short(text, last[1], len(text)):
            result[-1] = _stripped(text, result[-1][0], len(text))
    return tuple(result)


def _is_short(text: str, start: int, end: int) -> bool:
    gap = text[start:end]
    return len(gap) < _SHORT_GAP or not gap.strip() or bool(re.fullmatch(_HEADINGS, gap))


def written(text: str, spans: Sequence[Span], tokens: int) -> str:
    """Write an excerpt: its parts in order, and a mark for everything between.

    :param tokens: of the whole text.
    """
    fences = find_fences(text)
    lines, done = [], 0
    for start, end in spans:
        lines += _mark(text, done, start, tokens)
        lines.append(_fenced(text, start, end, fences))
        done = end
    return "\n".join([*lines, *_mark(text, done, len(text), tokens)])


def _mark(text: str, start: int, end: int, tokens: int) -> list[str]:
    if not text[start:end].strip():
        return []
    missing = max(1, round(tokens * (end - start) / len(text)))
    return [f"[… {missing:,} tokens]"]


def _fenced(text: str, start: int, end: int, fences: Sequence[Fence]) -> str:
    """Return a part of a text; a fence it is cut out of is opened before and closed behind it."""
    shown = text[start:end]
    for fence in fences:
        if fence.body <= start < fence.tail:
            shown = text[fence.start : fence.body].rstrip("\n") + "\n" + shown
        if fence.holds(end) or (fence.tail == fence.end == end and start < end):
            indent = text[fence.start : fence.body]
            shown += "\n" + indent[: len(indent) - len(indent.lstrip(" \t"))] + fence.sign
    return shown


def _stripped(text: str, start: int, end: int) -> Span:
    """Return a span without white space at its ends; the first line keeps its indent."""
    inside = text[start:end]
    stop = start + len(inside.rstrip())
    first = start + len(inside) - len(inside.lstrip())
    line = text.rfind("\n", 0, first) + 1
    first = max(start, line) if not text[max(start, line) : first].strip() and line else first
    return min(first, stop), stop
