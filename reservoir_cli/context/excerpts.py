"""Cut excerpts from long messages. Pure.

Passages of a long message are added one by one, the nearest to the question first; a mark replaces
what is left out. A passage is as near as its cosine, plus a share for the words of the question in
it, plus a smaller share for the passages next to it.
Cuts are made between paragraphs, list items or sentences. A fenced block is cut only if it does not
fit whole: at a line end, with the fence closed and opened again.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from reservoir_cli.context.candidate import Candidate, Span, cache_by
from reservoir_cli.messages import Role, StoredMessage, plain_text
from reservoir_cli.redaction import replacements
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.search.fulltext import content_words, searched_text, without_ending
from reservoir_cli.util.front_matter import body_start

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SINGLE_STEPS = 8  # parts are added one by one up to this number, then in steps that grow with it
_REACH = 400  # how far a cut may move to reach a better place, in characters
_SHORT_GAP = 24  # a gap with fewer characters than its mark is printed instead of the mark
#: Approximate tokens that frame an excerpt, and the fewest tokens of text worth an excerpt.
_FRAME_TOKENS, _FEWEST_TOKENS = 36, 30
#: Shares of the room for the beginning of a part, in turn: code may have three times the tokens.
_SHARES = (1.0, 0.75, 0.5, 0.35)
_DENSITY = 0.6  # the lowest density of tokens assumed for a part, relative to its text
#: Compiled on first use: few contexts hold an excerpt.
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
    """A fenced block of Markdown, by offsets in its text."""

    start: int
    body: int  # the start of its first line
    tail: int  # the start of its closing line; the end of the text if the block is not closed
    end: int  # the end of the block, before any white space that follows it
    sign: str  # the fence that closes it

    def holds(self, offset: int) -> bool:
        """Return whether an offset lies inside the block, not at its edges."""
        return self.start < offset < self.end


_START = attrgetter("start")


class Outline:
    """The offsets at which a text can be cut."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def breaks(self) -> list[int]:
        """The starts of paragraphs, list items and sentences, and the end of the text."""
        return [0, *(match.end() for match in re.finditer(_BREAK, self.text)), len(self.text)]

    @cached_property
    def whole(self) -> Span:
        """The span of the text without surrounding white space."""
        return _strip(self.text, 0, len(self.text))

    @cached_property
    def fences(self) -> list[Fence]:
        """The fenced blocks in order."""
        return find_fences(self.text)

    def widen(self, span: Span, *, whole_fences: bool) -> Span:
        """Return a span with its ends moved to good places to cut, or out of fenced blocks."""
        start, end = self._start(span[0], span[1]), self._end(span[1], span[0])
        if fence := fence_at(self.fences, start):
            start = fence.start if whole_fences else self._line_start(fence, start)
        if fence := fence_at(self.fences, end):
            end = fence.end if whole_fences else self._line_end(fence, end)
        return _strip(self.text, start, max(start, end))

    def strip_bare_heading(self, span: Span) -> Span:
        """Return a span without trailing headings whose text is not part of it."""
        start, end = span
        while start < end < self.whole[1]:
            line = max(start, self.text.rfind("\n", start, end) + 1)
            if fence_at(self.fences, line) or not re.fullmatch(_TITLE, self.text[line:end]):
                break
            start, end = _strip(self.text, start, line)
        return start, end

    def end_at_line(self, span: Span) -> Span:
        """Return a span that, if it ends inside a fenced block, ends there at a line's end."""
        start, end = span
        if fence := fence_at(self.fences, end):
            end = self._line_end(fence, end)
        return _strip(self.text, start, max(start, end))

    def last_end(self, start: int, offset: int) -> int:
        """Return the last good place to end an excerpt; in a fenced block, a line's end."""
        line = self.text.rfind("\n", start, offset) + 1
        fence = fence_at(self.fences, offset)
        in_fence = fence is not None and fence.body < line
        last = self.breaks[bisect_right(self.breaks, offset) - 1]
        return line if in_fence or last - start < CRUMB else last

    def _start(self, offset: int, end: int) -> int:
        index = bisect_right(self.breaks, offset)
        before, after = self.breaks[index - 1], self.breaks[min(index, len(self.breaks) - 1)]
        if offset - before <= _REACH:
            return before
        return after if after - offset <= _REACH and after < end else offset

    def _end(self, offset: int, start: int) -> int:
        index = bisect_left(self.breaks, offset)
        before = self.breaks[max(0, index - 1)]
        after = self.breaks[min(index, len(self.breaks) - 1)]
        if after - offset <= _REACH:
            return after
        return before if offset - before <= _REACH and before > start else offset

    def _line_start(self, fence: Fence, offset: int) -> int:
        line = self.text.rfind("\n", 0, offset) + 1
        if line < fence.body:
            return fence.start
        return line if line < fence.tail else fence.end

    def _line_end(self, fence: Fence, offset: int) -> int:
        if offset < fence.body:
            return fence.start
        if self.text[offset - 1] == "\n":
            return min(offset, fence.tail)
        line = self.text.find("\n", offset) + 1
        return fence.end if not line or line >= fence.tail else line


def fence_at(fences: Sequence[Fence], offset: int) -> Fence | None:
    """Return the fenced block that an offset lies inside, if any."""
    index = bisect_left(fences, offset, key=_START) - 1
    return fences[index] if index >= 0 and fences[index].holds(offset) else None


def find_fences(text: str) -> list[Fence]:
    """Return the fenced blocks of a text in order; one that is not closed ends with the text."""
    fences: list[Fence] = []
    if "```" not in text and "~~~" not in text:
        return fences
    opening: re.Match[str] | None = None
    for match in re.finditer(_FENCE_LINE, text):
        sign, info = match[1], match[2]
        if opening is None:
            if sign[0] == "~" or "`" not in info:
                opening = match
        elif sign.startswith(opening[1]) and not info.strip():
            body = min(opening.end() + 1, match.start())
            fences.append(Fence(opening.start(), body, match.start(), match.end(1), opening[1]))
            opening = None
    if opening is not None:
        body = min(opening.end() + 1, len(text))
        fences.append(Fence(opening.start(), body, len(text), len(text), opening[1]))
    return fences


def is_long(message: StoredMessage, limit: int) -> bool:
    """Return whether a message may be excerpted; tool calls and results never are."""
    return message.tokens > limit and message.role is not Role.TOOL and not message.tool_calls


def step_size(part: int) -> int:
    """Return how many parts are added at once, starting with this one."""
    return 1 if part < _SINGLE_STEPS else part // 4


def least_tokens(message: StoredMessage, parts: Sequence[Span]) -> float:
    """Estimate the fewest tokens that parts of a message need; larger parts are not tried."""
    share = sum(end - start for start, end in parts) / max(1, len(message.content))
    return _DENSITY * share * message.tokens


class Excerpter:
    """Grows excerpts, caching the outline of each text and the ranking of its passages."""

    def __init__(self, query: str) -> None:
        self._query = query
        self.parts = cache_by(_id, self._rank)  #: Returns the passages of a message, best first.
        self._outline = cache_by(_id, lambda candidate: Outline(plain_text(candidate.message)))

    @cached_property
    def _nearness(self) -> "Nearness":
        return Nearness(self._query)

    def _rank(self, candidate: Candidate) -> tuple[Span, ...]:
        text = candidate.message.content
        return self._nearness.rank(text, candidate.parts, candidate.cosines)

    def grow(self, candidate: Candidate, parts: Sequence[Span]) -> Iterator[Candidate]:
        """Yield candidates that print more of their message, the largest first.

        The first includes fenced blocks whole; the second, if different, cuts them at a line.
        """
        outline = self._outline(candidate)
        tried: list[tuple[Span, ...]] = []
        for whole_fences in (True, False):
            widened = [outline.widen(part, whole_fences=whole_fences) for part in parts]
            spans = merge_spans(outline.text, [*(candidate.spans or ()), *widened])
            if spans not in tried:
                tried.append(spans)
                yield from _with_spans(candidate, outline, spans)

    def shorten(self, candidate: Candidate, part: Span, room: int) -> Iterator[Candidate]:
        """Yield candidates that print as much of a part's beginning as its room may hold."""
        outline = self._outline(candidate)
        start, end = outline.widen(part, whole_fences=False)
        for share in _SHARES:
            tokens = share * (room - _FRAME_TOKENS)
            if tokens < _FEWEST_TOKENS:
                return
            stop = start + int(tokens * len(outline.text) / candidate.message.tokens)
            stop = outline.last_end(start, min(stop, end))
            if stop - start >= CRUMB:
                spans = merge_spans(outline.text, [outline.end_at_line((start, stop))])
                yield from _with_spans(candidate, outline, spans)


def _id(candidate: Candidate) -> int:
    return candidate.message.id


def _with_spans(candidate: Candidate, outline: Outline, spans: tuple[Span, ...]) -> list[Candidate]:
    """Return a candidate that prints these spans; nothing if only headings are left."""
    if spans == (outline.whole,):
        return [candidate._replace(spans=None)]
    trimmed = (outline.strip_bare_heading(span) for span in spans)
    spans = tuple(span for span in trimmed if span[0] < span[1])
    return [candidate._replace(spans=spans)] if spans else []


def merge_spans(text: str, spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return spans in order, merging those separated only by a short gap or headings."""
    merged: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if merged and _is_short_gap(text, merged[-1][1], start):
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    if merged:
        first, last = merged[0], merged[-1]
        if _is_short_gap(text, 0, first[0]):
            merged[0] = _strip(text, 0, first[1])
        if _is_short_gap(text, last[1], len(text)):
            merged[-1] = _strip(text, merged[-1][0], len(text))
    return tuple(merged)


def _is_short_gap(text: str, start: int, end: int) -> bool:
    gap = text[start:end]
    return len(gap) < _SHORT_GAP or not gap.strip() or bool(re.fullmatch(_HEADINGS, gap))


def write_excerpt(text: str, spans: Sequence[Span], tokens: int) -> str:
    """Write an excerpt: its parts in order, and a mark for each gap, but front matter.

    :param tokens: of the whole text.
    """
    fences, body = find_fences(text), body_start(text)
    lines: list[str] = []
    if any(end <= body for _, end in spans):  # chosen for the front matter
        body = 0
    printed_to = body
    for first, end in spans:
        start = max(first, body)
        lines += _mark(text, printed_to, start, tokens)
        lines.append(_close_fences(text, start, end, fences))
        printed_to = end
    return "\n".join([*lines, *_mark(text, printed_to, len(text), tokens)])


def _mark(text: str, start: int, end: int, tokens: int) -> list[str]:
    if not text[start:end].strip():
        return []
    missing = max(1, round(tokens * (end - start) / len(text)))
    return [f"[… {missing:,} tokens]"]


def _close_fences(text: str, start: int, end: int, fences: Sequence[Fence]) -> str:
    """Return a part of a text; a fence that is cut is opened before it and closed after it."""
    excerpt = text[start:end]
    first = bisect_right(fences, start, key=_START) - 1
    if first >= 0 and (fence := fences[first]).body <= start < fence.tail:
        excerpt = text[fence.start : fence.body].rstrip("\n") + "\n" + excerpt
    last = bisect_left(fences, end, key=_START) - 1
    opened = fences[last] if last >= 0 and start < end else None
    if opened and (opened.holds(end) or opened.tail == opened.end == end):
        indent = text[opened.start : opened.body]
        excerpt += "\n" + indent[: len(indent) - len(indent.lstrip(" \t"))] + opened.sign
    return excerpt


def _strip(text: str, start: int, end: int) -> Span:
    """Return a span without white space at its ends, keeping the first line's indent."""
    inside = text[start:end]
    stop = start + len(inside.rstrip())
    first = start + len(inside) - len(inside.lstrip())
    line = text.rfind("\n", 0, first) + 1
    first = max(start, line) if not text[max(start, line) : first].strip() and line else first
    return min(first, stop), stop


#: Weights, relative to the cosine, of the share of the question's words and of the mean of the
#: neighbouring passages.
WORDS_WEIGHT, NEIGHBOURS_WEIGHT = 0.3, 0.2
CRUMB = 80  # a passage with fewer characters is only printed with a neighbour
#: Approximate maximum length of a passage of a text without vectors, in characters.
_MOST_CHARACTERS = 500
_SHORT_WORD = 4  # a shorter word is not the beginning of others


def compute_cosines(
    passages: Sequence[Passage], vector: "NDArray[np.float32]"
) -> tuple[list[Span], tuple[float, ...]]:
    """Return the spans of passages, in order, and their cosines with a question's embedding."""
    import numpy as np

    values = np.stack([passage.vector for passage in passages]) @ vector
    spans = [(passage.start, passage.end) for passage in passages]
    return join_crumbs(spans), tuple(values.tolist())


def cut(text: str, breaks: Iterable[int]) -> list[Span]:
    """Cut a text at some of its breaks, or else between lines or words, into similar lengths."""
    cuts = [0]
    for previous, offset in pairwise(breaks):
        if offset - cuts[-1] > _MOST_CHARACTERS and previous > cuts[-1]:
            cuts.append(previous)
        while offset - cuts[-1] > 2 * _MOST_CHARACTERS:
            cuts.append(_last_word_start(text, cuts[-1] + CRUMB, cuts[-1] + _MOST_CHARACTERS))
    return join_crumbs(list(zip(cuts, [*cuts[1:], len(text)], strict=True)))


def _last_word_start(text: str, low: int, high: int) -> int:
    """Return the last start of a line in a range, else of a word, else the range's end."""
    inside = text[low:high]
    match = re.match(r"(?s).*[\n\r]", inside) or re.match(r"(?s).*\s", inside)
    return low + match.end() if match else high


def join_crumbs(spans: Sequence[Span]) -> list[Span]:
    """Join each tiny passage, such as a heading, with the next; a last one with the previous."""
    if len(spans) == 1:
        return list(spans)
    return [
        span
        if span[1] - span[0] >= CRUMB
        else (span[0], spans[index + 1][1])
        if index + 1 < len(spans)
        else (spans[index - 1][0], span[1])
        for index, span in enumerate(spans)
    ]


def map_to_printed(
    parts: Mapping[int, list[Span]], stored: Iterable[StoredMessage], rows: Iterable[StoredMessage]
) -> dict[int, list[Span]]:
    """Return the spans of passages of stored messages, by id, in their redacted text."""
    raw = {row.id: row.content for row in stored}
    printed = {row.id: row.content for row in rows}
    return {
        number: spans
        if raw[number] == printed[number]
        else map_spans(spans, replacements(raw[number]))
        for number, spans in parts.items()
    }


def map_spans(spans: Iterable[Span], changes: Sequence[tuple[int, int, int]]) -> list[Span]:
    """Map spans of a text to the text after replacements, out of which their ends move.

    :param changes: for each replaced part, in order, its start and end, and the length of its
        replacement.
    """
    starts = [start for start, _, _ in changes]
    shifts = [0, *accumulate(length - (end - start) for start, end, length in changes)]

    def map_offset(offset: int, *, last: bool) -> int:
        index = bisect_left(starts, offset)
        if index and offset < changes[index - 1][1]:
            return starts[index - 1] + shifts[index - 1] + (changes[index - 1][2] if last else 0)
        return offset + shifts[index]

    return [(map_offset(start, last=False), map_offset(end, last=True)) for start, end in spans]


class Nearness:
    """Ranks passages by a question."""

    def __init__(self, question: str) -> None:
        words = dict.fromkeys(content_words(question).split())
        self._words = [(without_ending(word), _pattern(word)) for word in words]

    def rank(self, text: str, parts: Sequence[Span], cosines: Sequence[float]) -> tuple[Span, ...]:
        """Return passages, the nearest to the question first, by words and, if known, cosines."""
        shares = [self._share(text[start:end]) for start, end in parts]
        scores = [
            cosine + WORDS_WEIGHT * share
            for cosine, share in zip(cosines or [0.0] * len(parts), shares, strict=True)
        ]
        smoothed = [
            score + NEIGHBOURS_WEIGHT * _mean(scores, index) for index, score in enumerate(scores)
        ]
        order = sorted(range(len(parts)), key=lambda index: -smoothed[index])
        return tuple(parts[index] for index in order)

    def _share(self, text: str) -> float:
        text = searched_text(text.lower())
        matches = sum(word in text and bool(pattern.search(text)) for word, pattern in self._words)
        return matches / len(self._words) if self._words else 0.0


def _mean(values: Sequence[float], index: int) -> float:
    neighbours = [*values[max(0, index - 1) : index], *values[index + 1 : index + 2]]
    return sum(neighbours) / len(neighbours) if neighbours else values[index]


def _pattern(word: str) -> re.Pattern[str]:
    end = r"(?![^\W_])" if len(word) < _SHORT_WORD else ""
    return re.compile(rf"(?<![^\W_]){re.escape(without_ending(word))}{end}")
