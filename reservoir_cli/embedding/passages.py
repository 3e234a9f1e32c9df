"""Cutting a long text into passages that a model can read whole. Pure.

A model sees a few hundred word pieces and nothing behind them, so a longer message is embedded
as several passages, each with a vector of its own. The text itself is never changed: a passage
is a span of characters.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

#: Characters from ``start`` up to, and not with, ``end``.
Span = tuple[int, int]

#: No passage has more word pieces; one that does not end with a paragraph is taken up again by
#: so many of its last pieces.
PIECES, OVERLAP = 200, 40
#: A passage ends with a paragraph if one ends behind so many pieces, best about here.
_SHORT, _PARAGRAPHS = 40, 80
#: Names what :func:`cut` does: another rule makes other vectors, and so another identity.
RULE = f"paragraphs of {_SHORT}, {_PARAGRAPHS} word pieces, or {PIECES} overlapping {OVERLAP}"

#: No model reads a question further than so many characters.
QUESTION = 50_000

#: How good a place is for a cut.
_INSIDE, _WORD, _SENTENCE, _LINE, _PARAGRAPH = range(5)
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
_FENCE = re.compile(r"(?:```|~~~)\s*\Z")
_SENTENCE_END = re.compile(r"[.!?…।॥۔؟][\"'”’»)\]]*\Z")  # noqa: RUF001 - no hyphen
#: Scripts that put no space behind a sentence.
_IDEOGRAPHIC_END = re.compile(r"[。！？｡][」』”’）]*\Z")  # noqa: RUF001 - they are meant
#: How far before a cut its sentence's end is looked for: the stop and a few closing signs.
_NEAR = 8


def limit_for(max_length: int, taken: int) -> int:
    """How many word pieces a passage may have for a model.

    A tenth of its room is left free: a passage by itself may have a few more pieces than it has
    in its text, where a word is cut in two.

    :param max_length: pieces that the model reads; 0 if that is without limit.
    :param taken: those of them that its own signs and its prompt take.
    """
    return min(PIECES, max(1, (max_length - taken) * 9 // 10)) if max_length else PIECES


def cut(text: str, pieces: Sequence[Span], limit: int = PIECES) -> list[Span]:
    """Cut a text into passages at the ends of paragraphs, lines, sentences or words.

    A passage ends with the paragraph that ends nearest to 80 pieces, and the next begins anew:
    what is about one thing stays together and alone. (Of LoCoMo's conversations, 30 turns a
    message, the right message came first for 56 questions in 100; for 53 with passages as long
    as they may be.) Where no paragraph ends, it is that long, and its end is repeated.

    :param pieces: where each word piece stands in the text, in order; what lies between them,
        such as spaces, belongs to the piece before.
    :param limit: pieces a passage may have.
    :returns: passages in order, which together cover the text; one if the text is short. A
        passage is longer than the limit only if a single character is.
    """
    if len(pieces) <= limit:
        return [(0, len(text))]
    places = _Places(text, *_ends(pieces))
    overlap = limit * OVERLAP // PIECES
    cuts = [(0, 0)]  # where a passage begins, and where the one before it ended
    while (rest := len(pieces) - (first := cuts[-1][0])) > limit * _PARAGRAPHS // PIECES:
        if end := places.paragraph(first, limit):
            cuts.append((end, end))
        elif rest <= limit:
            break
        else:
            end = places.best(first + limit - 2 * overlap, first + limit, first + limit, first)
            if end == len(pieces):
                break
            again = places.best(end - overlap * 3 // 2, end - overlap // 2, end - overlap, first)
            cuts.append((min(again, end), end))
    ends = [places.at(end) for _, end in cuts[1:]] + [len(text)]
    return [(places.at(start), end) for (start, _), end in zip(cuts, ends, strict=True)]


def _ends(pieces: Sequence[Span]) -> tuple[list[int], list[int]]:
    """Where pieces begin, and where all before them have ended; neither ever goes back.

    Several pieces may share a character, as the bytes of an emoji do.
    """
    starts, before, reached, begun = [], [], 0, 0
    for start, end in pieces:
        begun = max(begun, start)
        starts.append(begun)
        before.append(reached)
        reached = max(reached, end)
    return starts, before


@dataclass(frozen=True, slots=True)
class _Places:
    """The places of a text where it can be cut: before each of its pieces.

    :param starts: where each piece begins.
    :param before: where the pieces before it have ended.
    """

    text: str
    starts: list[int]
    before: list[int]

    def at(self, place: int) -> int:
        """The character before which a place cuts; the first passage begins with the text."""
        if place == 0:
            return 0
        return self.starts[place] if place < len(self.starts) else len(self.text)

    def paragraph(self, first: int, limit: int) -> int | None:
        """Where a passage from here on ends with a paragraph, neither short nor too long."""
        high = min(first + limit, len(self.starts) - 1)
        possible = [
            place
            for place in range(first + max(1, limit * _SHORT // PIECES), high + 1)
            if self._is_possible(place) and self._rank(place) == _PARAGRAPH
        ]
        wanted = first + limit * _PARAGRAPHS // PIECES
        return min(possible, key=lambda place: abs(place - wanted), default=None)

    def best(self, low: int, high: int, wanted: int, after: int) -> int:
        """The best place in low…high, of equals the nearest to the one wanted.

        Where none of them can be cut, the nearest place before them, or else behind them.

        :param after: only places behind this one.
        """
        low = max(low, after + 1)
        possible = [place for place in range(low, high + 1) if self._is_possible(place)]
        if possible:
            return max(possible, key=lambda place: (self._rank(place), -abs(place - wanted)))
        for place in chain(range(low - 1, after, -1), range(high + 1, len(self.starts))):
            if self._is_possible(place):
                return place
        return len(self.starts)

    def _is_possible(self, place: int) -> bool:
        """Whether a cut there goes through no character."""
        start = self.starts[place]
        return start >= self.before[place] and start > self.starts[place - 1]

    def _rank(self, place: int) -> int:
        end, start = self.before[place], self.starts[place]
        gap, said = self.text[end:start], self.text[max(0, end - _NEAR) : end]
        if _BLANK_LINE.search(gap) or ("\n" in gap and _FENCE.search(said)):
            return _PARAGRAPH
        if "\n" in gap:
            return _LINE
        if _IDEOGRAPHIC_END.search(said) or (gap and _SENTENCE_END.search(said)):
            return _SENTENCE
        return _WORD if gap else _INSIDE
