import re
from bisect import bisect_left
from itertools import pairwise, product

import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st

from reservoir_cli.embedding.split_passages import OVERLAP, PIECES, Span, cut


def pieces_of(text: str, length: int = 4) -> list[Span]:
    """Return word pieces of this many letters and single punctuation marks, like a tokenizer."""
    matches = re.finditer(rf"\w{{1,{length}}}|[^\w\s]", text)
    return [(match.start(), match.end()) for match in matches]


def inside(span: Span, pieces: list[Span]) -> int:
    """Return how many pieces begin in a span."""
    begin, end = (bisect_left(pieces, (position, 0)) for position in span)
    return end - begin


SENTENCE = "The job queue lost messages at night. "
TEXTS = [
    "",
    " ",
    "x",
    "word " * 5_000,
    "x" * 77_000,
    "🧑‍🚀" * 3_000,
    "数据库昨天很慢。" * 900,
    "\n" * 9_000 + "end",
    SENTENCE * 2_000,
    "a" + " " * 70_000 + "b " * 300,
]


@each("text, limit", product(TEXTS, [1, 7, PIECES]))
def test_passages_cover_the_text_in_order_within_the_limit(text, limit):
    pieces = pieces_of(text)
    spans = cut(text, pieces, limit)
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)
    for (start, end), (next_start, next_end) in pairwise(spans):
        assert start < next_start <= end < next_end
    assert all(inside(span, pieces) <= limit for span in spans)


@st.composite
def texts_with_pieces(draw: st.DrawFn) -> tuple[str, list[Span]]:
    """Draw any text with any pieces that a tokenizer might return."""
    text = draw(st.text(st.sampled_from("ab .\n`。😀e\u0301"), max_size=300))
    bounds = st.lists(st.integers(0, len(text)), min_size=2, max_size=2).map(sorted)
    spans = draw(st.lists(bounds, max_size=300))
    return text, sorted((low, high) for low, high in spans if low < high)


@given(texts_with_pieces(), st.integers(1, 20))
def test_every_character_is_in_a_passage(case, limit):
    text, pieces = case
    spans = cut(text, pieces, limit)
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)
    for (start, end), (next_start, next_end) in pairwise(spans):
        assert start < next_start <= end < next_end


@given(st.text(st.sampled_from("abc def. \n`。😀"), max_size=2_000), st.integers(1, 60))
def test_no_passage_of_any_text_has_more_pieces_than_the_limit(text, limit):
    pieces = pieces_of(text)
    assert all(inside(span, pieces) <= limit for span in cut(text, pieces, limit))


@pytest.mark.parametrize("count", [0, 1, PIECES])
def test_a_text_that_fits_is_one_passage(count):
    text = " " + "word " * count
    assert cut(text, pieces_of(text)) == [(0, len(text))]


ENDS = [
    ("sentences", "We talked about the queue for a while and then stopped. ", r"\. \Z"),
    ("lines without stops", "we talked about the queue and then stopped\n", r"\n\Z"),
    ("ideographs", "数据库昨天很慢我们重启了它。", r"。\Z"),
    ("words", "queue ", r" \Z"),
    ("paragraphs of sentences", "One two. Three four. " * 12 + "\n\n", r"\n\n\Z"),
    ("code blocks", "```py\n" + "x = 1\n" * 30 + "```\nThen more.\n", r"```\n\Z"),
]


@pytest.mark.parametrize(("unit", "end"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS])
def test_a_text_is_cut_at_ends_of_paragraphs_sentences_or_words(unit, end):
    text = unit * (40_000 // len(unit))
    spans = cut(text, pieces_of(text))
    assert len(spans) > 3
    for span in spans[:-1]:
        assert re.search(end, text[slice(*span)])


def test_consecutive_passages_overlap():
    text = SENTENCE * 300
    pieces = pieces_of(text)
    spans = cut(text, pieces)
    for (_, end), (start, _) in pairwise(spans):
        assert OVERLAP // 2 <= inside((start, end), pieces) <= OVERLAP * 3 // 2
        assert text[start:].startswith(SENTENCE[:8])


PARAGRAPHS = [
    # word pieces of the paragraphs and of the passages
    ([50] * 9, [100, 100, 100, 100, 50]),
    ([30] * 9, [90, 90, 60, 30]),
    ([100] * 4, [100, 100, 100, 100]),
    ([150, 20, 60], [150, 80]),
    ([150, 20, 61], [150, 81]),
    ([150, 41, 61], [150, 41, 61]),
    ([120, 190, 10], [120, 190, 10]),
    ([70, 130, 1], [70, 130, 1]),
]


@each(("lengths", "expected"), PARAGRAPHS)
def test_paragraphs_stay_together_and_are_not_repeated(lengths, expected):
    text = "\n\n".join("word " * length for length in lengths)
    pieces = pieces_of(text)
    spans = cut(text, pieces)
    assert [inside(span, pieces) for span in spans] == expected
    assert all(end == start for (_, end), (start, _) in pairwise(spans))


@each("limit", range(1, 12))
def test_splitting_with_small_limits_terminates(limit):
    text = "word word\n\n" * 40
    pieces = pieces_of(text)
    spans = cut(text, pieces, limit)
    assert "".join(text[slice(*span)] for span in spans).count("word") >= 80
    assert all(1 <= inside(span, pieces) <= limit for span in spans)


def test_a_character_of_several_pieces_is_not_split():
    text = "😀" * 500
    pieces = [(index, index + 1) for index in range(500) for _ in range(4)]
    for start, end in cut(text, pieces):
        assert inside((start, end), pieces) in range(4, PIECES + 1, 4)
    same_pieces = [(0, 1)] * 500
    assert cut("x", same_pieces) == [(0, 1)]
