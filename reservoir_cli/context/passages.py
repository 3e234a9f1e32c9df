"""The passages of a long message, and which of them answers a question best. Pure.

A passage is as near to a question as its cosine says, and the words of the question that it holds;
the passages beside it count a little, too.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from reservoir_cli.context.types import Span
from reservoir_cli.messages import StoredMessage
from reservoir_cli.redaction import replacements
from reservoir_cli.storage.fulltext import content_words, searched_text
from reservoir_cli.storage.records import Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: What the share of the question's words counts beside the cosine, and what the mean of the
#: passages beside one counts.
WORDS, BESIDE = 0.3, 0.2
#: A passage with fewer characters is not printed without its neighbour.
CRUMB = 80
#: A passage of a text without vectors has at most about so many characters.
_LENGTH = 500
#: A longer word may have other endings: its last letters do not count.
_LONGEST_WHOLE, _ENDING = 4, 2


def cosines(
    passages: Sequence[Passage], vector: "NDArray[np.float32]"
) -> tuple[list[Span], tuple[float, ...]]:
    """Return where passages stand, in order, and how near each is to a question.

    :param vector: of the question.
    """
    import numpy as np

    near = np.stack([passage.vector for passage in passages]) @ vector
    spans = [(passage.start, passage.end) for passage in passages]
    return without_crumbs(spans), tuple(near.tolist())


def cut(text: str, breaks: Iterable[int]) -> list[Span]:
    """Cut a text at some of its breaks, or anywhere if it has none, into similar lengths.

    :param breaks: from 0 to the end of the text.
    """
    cuts = [0]
    for before, place in pairwise(breaks):
        if place - cuts[-1] > _LENGTH and before > cuts[-1]:
            cuts.append(before)
        cuts += range(cuts[-1] + _LENGTH, place - _LENGTH, _LENGTH)
    return without_crumbs(list(zip(cuts, [*cuts[1:], len(text)], strict=True)))


def without_crumbs(spans: Sequence[Span]) -> list[Span]:
    """Join each tiny passage, such as a heading, with the one it stands above, else below."""
    if len(spans) == 1:
        return list(spans)
    return [
        span
        if span[1] - span[0] >= CRUMB
        else (span[0], spans[at + 1][1])
        if at + 1 < len(spans)
        else (spans[at - 1][0], span[1])
        for at, span in enumerate(spans)
    ]


def as_printed(
    parts: Mapping[int, list[Span]], stored: Iterable[StoredMessage], rows: Iterable[StoredMessage]
) -> dict[int, list[Span]]:
    """Return the passages of messages where they stand in the text without its secrets.

    :param parts: by the id of the message, in its text as it is stored.
    :param rows: the messages as they are printed.
    """
    raw = {row.id: row.content for row in stored}
    shown = {row.id: row.content for row in rows}
    return {
        number: spans if raw[number] == shown[number] else mapped(spans, replacements(raw[number]))
        for number, spans in parts.items()
    }


def mapped(spans: Iterable[Span], changes: Sequence[tuple[int, int, int]]) -> list[Span]:
    """Return where spans of a text stand in the text after replacements.

    An end inside a replaced part moves to that part's edge.

    :param changes: start and end of each replaced part, in order, and the length of what replaces
        it.
    """
    return [
        (_moved(start, changes, last=False), _moved(end, changes, last=True))
        for start, end in spans
    ]


def _moved(place: int, changes: Sequence[tuple[int, int, int]], *, last: bool) -> int:
    shift = 0
    for start, end, length in changes:
        if place <= start:
            break
        if place < end:
            return start + shift + (length if last else 0)
        shift += length - (end - start)
    return place + shift


class Nearness:
    """Ranks passages by a question."""

    def __init__(self, question: str) -> None:
        words = dict.fromkeys(content_words(question).split())
        self._words = [(_beginning(word), _pattern(word)) for word in words]

    def ranked(self, text: str, parts: Sequence[Span], near: Sequence[float]) -> tuple[Span, ...]:
        """Return passages, the one nearest to the question first, the first of equals.

        :param near: the cosine of each passage; empty without vectors.
        """
        shares = [self._share(text[start:end]) for start, end in parts]
        alone = [
            cosine + WORDS * share
            for cosine, share in zip(near or [0.0] * len(parts), shares, strict=True)
        ]
        fit = [here + BESIDE * _mean(alone, at) for at, here in enumerate(alone)]
        order = sorted(range(len(parts)), key=lambda at: -fit[at])
        return tuple(parts[at] for at in order)

    def _share(self, text: str) -> float:
        """Return the share of the question's words that stand in a text."""
        text = searched_text(text.lower())
        held = sum(word in text and bool(pattern.search(text)) for word, pattern in self._words)
        return held / len(self._words) if self._words else 0.0


def _mean(values: Sequence[float], at: int) -> float:
    """Return the mean of the values beside one; its own if it has none."""
    beside = [*values[max(0, at - 1) : at], *values[at + 1 : at + 2]]
    return sum(beside) / len(beside) if beside else values[at]


def _beginning(word: str) -> str:
    """Return a word without what may be an ending."""
    if len(word) <= _LONGEST_WHOLE:
        return word
    return word[: max(_LONGEST_WHOLE, len(word) - _ENDING)]


def _pattern(word: str) -> re.Pattern[str]:
    end = r"(?![^\W_])" if len(word) < _LONGEST_WHOLE else ""
    return re.compile(rf"(?<![^\W_]){re.escape(_beginning(word))}{end}")
