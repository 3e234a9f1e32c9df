"""The accuracy of token estimates without a tokenizer."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from string import ascii_letters
from typing import Any

import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st

from reservoir_cli.tokens import ApproximateCounter, RatioCounter, load_counter
from reservoir_cli.tokens.estimates import _cost_of_piece, cost_of_words

approximate = ApproximateCounter().count
ratio = RatioCounter().count

# Any code point, lone surrogates included, with enough blanks and line ends to matter.
TEXTS = st.one_of(st.text(st.characters()), st.text(alphabet="aZé9я.中ท🎉\ud83d \t\n\r\0"))

# What costs more, beside what costs less.
CYRILLIC, HANGUL, KANA = ("яя", "я"), ("문문", "문"), ("かか", "か")
JOINED, ELISION = ("a.a", "a a"), ("a'ao", "a.ao")
WORDS = (
    *("the", "zwq", "connection", "Verbindung", "wykorzystywanie", "myName", "myname", "MYNAME"),
    *("MyNaMe", "ляmy", "ля", "my"),
)
# Counts of o200k_base itself, recorded once.
CLOSE = [
    pytest.param(
        34,
        (
            "We moved the session cache from Redis to SQLite last week, "
            "because the worker that refreshed it was restarted by every "
            "deployment and lost its keys. Nobody has missed it since."
        ),
        id="english",
    ),
    pytest.param(
        23,
        (
            "Could you explain why the second query is slower than the first "
            "one, although both of them use the same index?"
        ),
        id="question",
    ),
    pytest.param(
        50,
        (
            "## What changed\n"
            "\n"
            "- The importer reads **both** formats.\n"
            "- Empty messages are skipped, see `skip_empty`.\n"
            "- Dates without a zone are taken as UTC.\n"
            "\n"
            "1. Stop the service.\n"
            "2. Run `reservoir doctor --repair`.\n"
        ),
        id="markdown",
    ),
    pytest.param(
        46,
        (
            "def mean(values: list[float]) -> float:\n"
            '    """Return the mean, 0.0 for no values."""\n'
            "    if not values:\n"
            "        return 0.0\n"
            "    return sum(values) / len(values)\n"
        ),
        id="python",
    ),
    pytest.param(
        51,
        (
            "select u.name, count(*) as orders\n"
            "from users u\n"
            "join orders o on o.user_id = u.id\n"
            "where o.created_at > '2024-01-31'\n"
            "group by u.name\n"
            "order by orders desc\n"
            "limit 10;\n"
        ),
        id="sql",
    ),
    pytest.param(
        43,
        (
            "{\n"
            '  "name": "reservoir",\n'
            '  "enabled": true,\n'
            '  "limits": {"tokens": 4096, "messages": 20},\n'
            '  "tags": ["chat", "memory"]\n'
            "}\n"
        ),
        id="json",
    ),
    pytest.param(
        62,
        (
            "2024-03-07 12:04:31,218 ERROR worker[41] connection to "
            "10.0.4.17:5432 lost, retry 3 of 5\n"
            "2024-03-07 12:04:36,902 INFO worker[41] connected\n"
        ),
        id="log",
    ),
]


def read_samples(name: str) -> list[dict[str, Any]]:
    samples: list[dict[str, Any]] = json.loads(
        (Path(__file__).parent / name).read_text(encoding="utf-8")
    )
    return samples


#: Texts with the counts of both vocabularies, as tiktoken gives them: a natural text of each
#: script, from the Universal Declaration of Human Rights, random letters and signs of blocks of
#: Unicode, a message in languages with Latin letters, and drawings, tables and data.
SCRIPTS = read_samples("scripts.json")
LATIN_LANGUAGES = read_samples("latin_languages.json")
SIGNS = read_samples("signs.json")
#: The larger count of a sign that is repeated as often as ``TIMES`` say.
REPEATED_SIGNS: dict[str, list[int]] = json.loads(
    (Path(__file__).parent / "repeated_signs.json").read_text(encoding="utf-8")
)
TIMES = (1, 2, 3, 8, 50, 500, 5000)
_NOISE = b"".join(hashlib.sha256(bytes([number])).digest() for number in range(12))
#: Texts without words; the larger count of both vocabularies.
NO_WORDS = [
    pytest.param(366, base64.b64encode(_NOISE).decode(), id="base64"),
    pytest.param(373, base64.encodebytes(_NOISE).decode(), id="base64 in lines"),
    pytest.param(
        325,
        json.dumps([{"id": n, "name": "ann", "ok": True, "tags": ["a", "b"]} for n in range(12)]),
        id="json",
    ),
    pytest.param(246, json.dumps([(n * n + 1) / 7 for n in range(3, 30)]), id="long digits"),
    pytest.param(360, json.dumps([[n % 7, n % 5, n] for n in range(40)]), id="small numbers"),
    pytest.param(
        360, "\n".join(["plum\tripe\t7\tBasket of Ann", "pear\tbad\t12\t"] * 20), id="columns"
    ),
    pytest.param(206, "😀🎉🚀👩\u200d💻👍🏽🇩🇪❤️🔥✅ " * 6, id="emoji"),
    pytest.param(84, "qzxvkjwpfygbmucldrhsnioate" * 6, id="random letters"),
]


@each(("real", "text"), CLOSE)
def test_approximate_is_within_fifteen_percent_of_o200k(real, text):
    assert abs(approximate(text) - real) <= 0.15 * real


@each("sample", SCRIPTS)
def test_approximate_is_low_by_at_most_five_percent_in_any_script(sample):
    assert approximate(sample["text"]) >= 0.95 * max(sample["o200k_base"], sample["cl100k_base"])


@each("sample", LATIN_LANGUAGES)
def test_approximate_is_close_to_the_larger_count_in_latin_languages(sample):
    larger = max(sample["o200k_base"], sample["cl100k_base"])
    assert 0.95 * larger <= approximate(sample["text"]) <= 1.18 * larger


@each("sample", SIGNS)
def test_approximate_is_close_to_the_larger_count_in_drawings_and_data(sample):
    larger = max(sample["o200k_base"], sample["cl100k_base"])
    assert 0.95 * larger <= approximate(sample["text"]) <= 1.45 * larger


@each(("sign", "counts"), REPEATED_SIGNS.items())
def test_approximate_is_low_by_at_most_five_percent_for_a_sign_repeated(sign, counts):
    for times, real in zip(TIMES, counts, strict=True):
        assert approximate(sign * times) >= 0.95 * real


@each(("real", "text"), NO_WORDS)
def test_approximate_is_low_by_at_most_six_percent_without_words(real, text):
    assert 0.94 * real <= approximate(text) <= 1.35 * real


@each(
    ("unit", "others"),
    [
        pytest.param("123", [("1", 1)], id="up to three digits are one"),
        pytest.param("x1234567", [("x1", 3), ("x", -2)], id="seven digits are three"),
        pytest.param(
            "x1 1   1",
            [("x1", 5), ("x", -4), ("a  a", 1), ("a a", -1)],
            id="a blank before a digit",
        ),
        pytest.param("(=)", [("(=", 1), ("=)", 1), ("=", -1)], id="a run of signs by pairs"),
        pytest.param("\0", [("(", 1)], id="control characters are signs"),
        pytest.param("x\n\tx", [("x\n x", 1)], id="a single tab as an indent is free"),
        pytest.param(
            "a\t\t\ta", [("a\ta", 1), ("a  a", 1), ("a a", -1)], id="a run of tabs is one"
        ),
        pytest.param("→\r\n\r\n→", [("→\n→", 1)], id="a run of line breaks is one"),
        pytest.param("中문か", [("中", 1), (HANGUL, 1), (KANA, 1)], id="Han, Hangul and kana"),
        pytest.param("“a”", [("a", 1), ("“", 2)], id="typographic quotes"),
        pytest.param("привет", [("п", 1), (CYRILLIC, 5)], id="Cyrillic"),
        pytest.param("l's", [("l", 1), ("s", 1), (JOINED, 1)], id="a sign joins two words"),
        pytest.param("l'ai", [("l", 1), ("ai", 1), (JOINED, 1), (ELISION, 1)], id="elision"),
    ],
)
def test_approximate_adds_up_its_weights(unit, others):
    assert hundred(unit) == sum(hundred(other) * times for other, times in others)


def hundred(unit: str | tuple[str, str]) -> int:
    """Return what a hundred of these cost, so that weights show undisturbed by rounding.

    Of two, return how much more the first costs.
    """
    if isinstance(unit, tuple):
        return hundred(unit[0]) - hundred(unit[1])
    return approximate(f"{unit} " * 100)


@each(
    ("cheaper", "dearer"),
    [
        pytest.param("monday", "Monday", id="a capital at the beginning"),
        pytest.param("MONDAY", "MoNDaY", id="capitals in a row"),
        pytest.param("dog's", "dog'ai", id="English contractions are tokens"),
        pytest.param("a\n.\nb", "a\n\n.\n\n\nb.", id="few line breaks after signs"),
        pytest.param("one", "one.", id="a sign"),
        pytest.param("one\n    two", "one    two\n", id="columns cost more than indents"),
        pytest.param("(())" * 6, "!?*(" * 6, id="signs that differ"),
        pytest.param(" " * 60, " " * 600, id="blanks without end"),
        pytest.param("\n" * 12, "\n" * 120, id="line breaks without end"),
        pytest.param("x123", "x1234", id="long digits"),
        pytest.param("one two", "one\ttwo", id="a tab between columns"),
        pytest.param("\n\tx\n", "\n\t{\n", id="a tab before a sign"),
        pytest.param("].", "]\r", id="a return alone"),
        pytest.param("x\n |", "x\n   |", id="blanks before a sign"),
        pytest.param("a.b", "a,b", id="a sign that is no part of the next word"),
        pytest.param("x中", "x 中", id="a blank before Han"),
    ],
)
def test_approximate_tells_what_is_dearer(cheaper, dearer):
    assert hundred(cheaper) < hundred(dearer)


def test_words_cost_what_their_letters_suggest():
    cost = {word: cost_of_words(word.encode()) for word in WORDS}
    assert cost["the"] < cost["zwq"]
    assert cost["connection"] < cost["Verbindung"] < cost["wykorzystywanie"]
    assert cost["myName"] > cost["myname"], "a capital inside a word begins a word"
    assert cost["myname"] < cost["MYNAME"] < cost["MyNaMe"], "capitals are one word"
    assert cost["ляmy"] == cost["ля"] + cost["my"], "letters of other scripts cost apart"
    assert cost_of_words(" ".join(WORDS).encode()) == sum(cost.values())


@each("letter", ascii_letters)
def test_a_letter_repeated_is_not_free(letter):
    assert approximate(letter * 2_000) >= 120  # sixteen are one token at best


def test_a_letter_repeated_without_end_is_summed_in_few_pieces():
    _cost_of_piece.cache_clear()
    count = approximate("a" * 1_000_000)
    assert abs(count - 10 * approximate("a" * 100_000)) <= 10
    assert _cost_of_piece.cache_info().misses <= 4


@given(st.text("abzABéłÿạя", min_size=1), st.text("aéłạяZB"), st.text("aéłạяZB"))
def test_a_part_of_a_word_costs_no_more(word, before, after):
    assert cost_of_words(word.encode()) <= cost_of_words(f"{before}{word}{after}".encode())


@each("text", [" ", "\n", "\0", "a", "\ud800"])
@each("name", ["approximate", "ratio"])
def test_a_nonempty_text_costs_at_least_one_token(name, text):
    assert load_counter(name).count(text) == 1


@pytest.mark.parametrize("name", ["approximate", "ratio"])
@given(text=TEXTS)
def test_only_the_empty_text_is_free(name, text):
    count = load_counter(name).count(text)
    assert count >= 1 if text else count == 0


@given(TEXTS, TEXTS)
def test_approximate_never_decreases_when_text_is_added(first, second):
    total = approximate(first + second)
    assert total >= approximate(first)
    assert total >= approximate(second)


@given(TEXTS, TEXTS)
def test_approximate_of_two_lines_is_their_sum_and_a_line_break(first, second):
    # 0.8 for the break, up to half for each of three roundings, and up to half more for each
    # part that is raised to one.
    assert abs(approximate(f"{first}\n{second}") - approximate(first) - approximate(second)) <= 3


@given(st.integers(1, 50), TEXTS)
def test_approximate_grows_in_proportion(times, text):
    line = text + "\n.\n"
    hundred = approximate(line * 100)
    assert abs(approximate(line * 100 * times) - times * hundred) <= times


# --- ratio ----------------------------------------------------------------------------

CODE = "def f(x):\n    return x\n"


@each(
    ("text", "expected"),
    [
        pytest.param("", 0, id="empty"),
        pytest.param("abc", 1, id="never below one"),
        pytest.param("a" * 400, 100, id="prose"),
        pytest.param("let me know,\nclass sizes vary:\n\nI think so.\n", 11, id="prose in lines"),
        pytest.param(CODE, len(CODE) // 3, id="code"),
        pytest.param("int i;\n\n\n\n\n\nint j;\n", 6, id="an empty line belongs to the one before"),
        pytest.param("\tplain words\n" * 9, 39, id="indented"),
        pytest.param("```\n" + "plain words\n" * 3 + "```\n", 14, id="fenced"),
        pytest.param("~~~ text\nplain\n```\nplain\n~~~", 9, id="a fence ends as it began"),
        pytest.param("```\n" + "plain words\n" * 3, 13, id="a fence never closed"),
        pytest.param("words, words\n" * 12 + "x = f(y);\n" * 12, 79, id="mixed, by lines"),
    ],
)
def test_ratio_counts_prose_by_four_and_code_by_three(text, expected):
    assert ratio(text) == expected


@given(st.text(alphabet="abc é中", min_size=1).filter(lambda text: not text.startswith("    ")))
def test_ratio_of_pure_prose_is_a_quarter_of_its_length(text):
    assert ratio(text) == max(1, len(text) // 4)


@given(TEXTS.filter(bool))
def test_ratio_lies_between_a_quarter_and_a_third(text):
    assert max(1, len(text) // 4) <= ratio(text) <= max(1, len(text) // 3)
