"""Rank the passages of a long message by a question. Pure.

A passage's score is its cosine, plus a share for the question's words it contains, plus a smaller
share for the passages next to it.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from reservoir_cli.context.candidate import Span
from reservoir_cli.messages import StoredMessage
from reservoir_cli.redaction import replacements
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.search.fulltext import content_words, searched_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Weights, relative to the cosine, of the share of the question's words and of the mean of the
#: neighbouring passages.
WORDS_WEIGHT, NEIGHBOURS_WEIGHT = 0.3, 0.2
CRUMB = 80  # a passage with fewer characters is only printed with a neighbour
#: Approximate maximum length of a passage of a text without vectors, in characters.
_MOST_CHARACTERS = 500
#: Words longer than this may be inflected: their last letters are ignored.
_LONGEST_WHOLE, _ENDING = 4, 2


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
    shown = {row.id: row.content for row in rows}
    return {
        number: spans
        if raw[number] == shown[number]
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
        self._words = [(_strip_ending(word), _pattern(word)) for word in words]

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


def _strip_ending(word: str) -> str:
    if len(word) <= _LONGEST_WHOLE:
        return word
    return word[: max(_LONGEST_WHOLE, len(word) - _ENDING)]


def _pattern(word: str) -> re.Pattern[str]:
    end = r"(?![^\W_])" if len(word) < _LONGEST_WHOLE else ""
    return re.compile(rf"(?<![^\W_]){re.escape(_strip_ending(word))}{end}")
