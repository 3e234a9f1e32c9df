"""The part of a message that a search shows, and its highlighted words."""

from each import each
from hypothesis import given
from hypothesis import strategies as st

from reservoir_cli.retrieval.snippet import choose_part
from reservoir_cli.storage.search.highlight import find_words


def highlighted_words(text, question, **how):
    (words,) = find_words([text], question, **how)
    return [text[start:end] for start, end in words]


@each(
    ("text", "question", "words"),
    [
        ("We dropped it; dropping IT!", "why drop?", ["dropped", "dropping"]),
        ("naïve cafés", "naive cafe", ["naïve", "cafés"]),
        ("来年の春に京都へ", "京都", ["京", "都"]),
        ("Łódź, then kyoto in Straße 5", "kyoto strasse", ["kyoto", "Straße"]),
        ("a kyoto Müller", "mueller", ["Müller"]),
        ("Müller und Müllers", "müller", ["Müller", "Müllers"]),
        ("cafe\u0301 au lait\u0301 noir", "noir lait", ["lait\u0301", "noir"]),
        ("nothing of it", "zebra", []),
        ("a text", "…", []),
    ],
)
def test_words_are_highlighted_with_any_ending(text, question, words):
    assert highlighted_words(text, question) == words


def test_a_keyword_search_highlights_the_typed_words():
    assert highlighted_words("the queue lost jobs", '"queue lost" jo*', typed=True) == [
        "queue lost",
        "jobs",
    ]


def test_the_part_with_the_words_is_shown_those_of_the_passage_first():
    text = "amber first. " + "filler words. " * 50 + "amber and birch. " + "more of it. " * 50
    (words,) = find_words([text], "amber birch")
    part, highlights = choose_part(text, words, None, 80)
    assert "amber and birch." in part
    assert [part[start:end] for start, end in highlights] == ["amber", "birch"]
    part, _ = choose_part(text, words, (0, 100), 80)
    assert part.startswith("amber first.")


def test_one_part_of_a_long_text_is_examined():
    text = ("amber " + "filler " * 10_000) * 40 + "an amber birch " + "filler " * 10_000
    assert set(highlighted_words(text, "amber birch")) == {"amber", "birch"}
    assert highlighted_words(text, "amber zebra") == ["amber"]
    assert highlighted_words(text, "zebra") == []
    start = text.rindex("filler amber") + 7
    (words,) = find_words([text], "amber", passages=[(start - 10, start + 20)])
    assert words == [(start, start + 5)]


def test_a_long_text_without_spaces_is_searched():
    text = "京" + "都" * 100_000 + "駅"
    assert highlighted_words(text, "駅") == ["駅"]


@given(st.text(max_size=200), st.text(max_size=20), st.integers(8, 100))
def test_any_shown_part_is_short_and_on_one_line(text, question, size):
    (words,) = find_words([text], question)
    part, highlights = choose_part(text, words, None, size)
    assert len(part) <= size
    assert "\n" not in part
    assert part.strip("…").strip() in " ".join(text.split()) or "…" in text
    assert all(0 <= start < end <= len(part) for start, end in highlights)


@each(
    ("text", "question", "part"),
    [
        ("---\ntitle: Rye\ndate: 2026-01-02\n---\n\nFlour & water.", "flour", "…Flour & water."),
        ("+++\r\ntitle = 'Rye'\r\n+++\r\n\r\nFlour.", "", "…Flour."),
        ("---\ntitle: Rye\n---\nFlour.", "rye", "--- title: Rye --- Flour."),
        ("---\ntitle: Rye\n---\n", "", "--- title: Rye ---"),
        (
            "---\nA rule above, one below.\n---\nFlour.",
            "",
            "--- A rule above, one below. --- Flour.",
        ),
    ],
)
def test_front_matter_is_shown_only_if_nothing_else_has_a_word(text, question, part):
    [words] = find_words([text], question)
    for passage in (None, (0, len(text))):
        assert choose_part(text, words, passage, 200)[0] == part
