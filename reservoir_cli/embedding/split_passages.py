"""Split text into the word pieces of the model, and a long text into passages that fit it. Pure.

A model reads a few hundred word pieces and ignores the rest, so a longer message is embedded as
several passages, each with its own vector. The text is never changed: a passage is a span of
characters.
"""

import re
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tokenizers import Tokenizer


Span = tuple[int, int]  #: Characters from ``start`` (included) to ``end`` (excluded).

#: The most word pieces of a passage, and how many of its last pieces the next passage repeats
#: unless it ends with a paragraph.
PIECES, OVERLAP = 200, 40
#: The fewest pieces after which a passage ends with a paragraph, and the preferred number.
_SHORT, _PARAGRAPHS = 40, 80
#: Describes :func:`cut`. Changing it changes the vectors, and thus the identity of models.
RULE = f"paragraphs of {_SHORT}, {_PARAGRAPHS} word pieces, or {PIECES} overlapping {OVERLAP}"

QUESTION = 50_000  #: How many characters of a question are embedded; no model reads more.

#: The quality of a position as a place to cut.
_INSIDE, _WORD, _SENTENCE, _LINE, _PARAGRAPH = range(5)
# These patterns are compiled when a text is split: a question never is.
_BLANK_LINE = r"\n[ \t\r]*\n"
_FENCE = r"(?:```|~~~)\s*\Z"
_SENTENCE_END = r"[.!?…।॥۔؟][\"'”’»)\]]*\Z"  # noqa: RUF001 - intended
#: Sentence ends in scripts that put no space after a sentence.
_IDEOGRAPHIC_END = r"[。！？｡][」』”’）]*\Z"  # noqa: RUF001 - intended
_NEAR = 8  #: Characters before a cut to check for a sentence end: the stop and closing quotes.


def limit_for(max_length: int, prompt_pieces: int) -> int:
    """Return the most word pieces that a passage may have for a model.

    A tenth of the model's limit is left free: a passage that begins inside a word can have more
    pieces than it had in the whole text.
    """
    return min(PIECES, max(1, (max_length - prompt_pieces) * 9 // 10)) if max_length else PIECES


def cut(text: str, pieces: Sequence[Span], limit: int = PIECES) -> list[Span]:
    """Split a text into passages at the ends of paragraphs, lines, sentences or words.

    A passage ends at the paragraph end nearest to 80 pieces, so that it covers one topic. (With
    LoCoMo's conversations, 30 turns per message, the right message came first for 56% of the
    questions, against 53% with passages of maximal length.) If no paragraph ends in range, the
    passage has maximal length, and the next one repeats its end.

    :returns: passages in order, which together cover the text; one if the text is short. A
        passage exceeds the limit only if a single character does.
    """
    if len(pieces) <= limit:
        return [(0, len(text))]
    positions = _Positions(text, *_ends(pieces))
    overlap = limit * OVERLAP // PIECES
    cuts = [(0, 0)]  # the start of a passage, and the end of the previous one
    while (rest := len(pieces) - (first := cuts[-1][0])) > limit * _PARAGRAPHS // PIECES:
        if end := positions.paragraph(first, limit):
            cuts.append((end, end))
        elif rest <= limit:
            break
        else:
            end = positions.best(first + limit - 2 * overlap, first + limit, first + limit, first)
            if end == len(pieces):
                break
            start = positions.best(end - overlap * 3 // 2, end - overlap // 2, end - overlap, first)
            cuts.append((min(start, end), end))
    ends = [positions.at(end) for _, end in cuts[1:]] + [len(text)]
    return [(positions.at(start), end) for (start, _), end in zip(cuts, ends, strict=True)]


def _ends(pieces: Sequence[Span]) -> tuple[list[int], list[int]]:
    """Return the start of each piece, and the end of those before it, both never decreasing.

    Several pieces can share a character, as the bytes of an emoji do.
    """
    starts, before, last_start, last_end = [], [], 0, 0
    for start, end in pieces:
        last_start = max(last_start, start)
        starts.append(last_start)
        before.append(last_end)
        last_end = max(last_end, end)
    return starts, before


class _Positions(NamedTuple):
    text: str
    starts: list[int]
    before: list[int]

    def at(self, position: int) -> int:
        """Return the character offset of a position; position 0 is the start of the text."""
        if position == 0:
            return 0
        return self.starts[position] if position < len(self.starts) else len(self.text)

    def paragraph(self, first: int, limit: int) -> int | None:
        """Return the best paragraph end for a passage that starts at ``first``, if any."""
        high = min(first + limit, len(self.starts) - 1)
        possible = [
            position
            for position in range(first + max(1, limit * _SHORT // PIECES), high + 1)
            if self._is_possible(position) and self._rank(position) == _PARAGRAPH
        ]
        target = first + limit * _PARAGRAPHS // PIECES
        return min(possible, key=lambda position: abs(position - target), default=None)

    def best(self, low: int, high: int, target: int, after: int) -> int:
        """Return the best position in low…high; among equals, the nearest to ``target``.

        If no position in the range allows a cut, return the nearest before it, or else after it.
        """
        low = max(low, after + 1)
        possible = [position for position in range(low, high + 1) if self._is_possible(position)]
        if possible:
            return max(
                possible, key=lambda position: (self._rank(position), -abs(position - target))
            )
        for position in chain(range(low - 1, after, -1), range(high + 1, len(self.starts))):
            if self._is_possible(position):
                return position
        return len(self.starts)

    def _is_possible(self, position: int) -> bool:
        start = self.starts[position]
        return start >= self.before[position] and start > self.starts[position - 1]

    def _rank(self, position: int) -> int:
        end, start = self.before[position], self.starts[position]
        gap, ending = self.text[end:start], self.text[max(0, end - _NEAR) : end]
        if re.search(_BLANK_LINE, gap) or ("\n" in gap and re.search(_FENCE, ending)):
            return _PARAGRAPH
        if "\n" in gap:
            return _LINE
        if re.search(_IDEOGRAPHIC_END, ending) or (gap and re.search(_SENTENCE_END, ending)):
            return _SENTENCE
        return _WORD if gap else _INSIDE


def without_padding(published: str, max_length: int) -> "Tokenizer":
    """Load a tokenizer that truncates at the model's length; many pad as in training."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(published)
    tokenizer.no_padding()
    if max_length:
        tokenizer.enable_truncation(max_length)
    else:
        tokenizer.no_truncation()
    return tokenizer


def pieces(tokenizer: "Tokenizer", text: str) -> list[Span]:
    """Return the span of each word piece of a text, including those beyond the model's limit."""
    encoded = tokenizer.encode(text, add_special_tokens=False)
    spans: list[Span] = list(encoded.offsets)
    for rest in encoded.overflowing:  # beyond the truncation
        spans += rest.offsets
    return spans


def words(text: str) -> list[Span]:
    """Approximate word pieces if there is no fast tokenizer: four letters or a symbol each."""
    return [match.span() for match in re.finditer(r"\w{1,4}|[^\w\s]", text)]
