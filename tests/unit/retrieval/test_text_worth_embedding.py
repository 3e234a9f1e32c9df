"""What of a message is embedded."""

import base64
import random
from itertools import pairwise

import pytest

from reservoir_cli.retrieval import text_worth_embedding
from reservoir_cli.retrieval.text_worth_embedding import (
    MOST_PASSAGES,
    choose_passages,
    estimate_passages,
)

RANDOM = random.Random(43)
BYTES = RANDOM.randbytes(9_000)
NUMBERS = "\n".join("\t".join(f"{RANDOM.random():.4f}" for _ in range(8)) for _ in range(200))
MINIFIED = ";".join(
    f"var {a}=f({a},{b}.length),q={b}.k||{a}" for a in "abcdefgh" for b in "stuvwxyz"
)
PROSE = "The harbour was quiet in the morning, and nobody asked {} what had happened there.\n"
WORDS = {
    "English": "".join(PROSE.format(name) for name in ("Ann", "Bob", "Eve") * 30),
    "German": "Der Hafen war am Morgen ruhig, und niemand fragte nach dem alten Kapitän.\n" * 80,
    "Chinese": "今天早上港口很安静没有人问发生了什么。" * 300,
    "Thai": "เช้านี้ท่าเรือเงียบสงบ ไม่มีใครถามว่าเกิดอะไรขึ้น" * 120,
    "Amharic": "ዛሬ ጠዋት ወደቡ ጸጥ ያለ ነበር።" * 250,
    "code": "def total(items):\n    result = 0\n    for item in items:\n        result += item\n"
    * 70,
    "JSON": '{"name": "Ann", "note": "the harbour was quiet in the morning"}\n' * 80,
}
NO_WORDS = {
    "base64 in lines": base64.encodebytes(BYTES).decode(),
    "base64 in one line": base64.b64encode(BYTES).decode(),
    "hexadecimal": BYTES.hex(),
    "a dump": "\n".join(BYTES[n : n + 16].hex(" ") for n in range(0, 4_000, 16)),
    "a table of numbers": NUMBERS,
    "minified code": MINIFIED * 3,
    "one character": "x" * 9_000,
}


def spans(text: str) -> list[tuple[int, int]]:
    return [(start, min(start + 800, len(text))) for start in range(0, len(text), 800)]


@pytest.mark.parametrize("text", WORDS.values(), ids=WORDS)
def test_text_with_words_is_embedded(text):
    assert len(text) > 4_000
    assert estimate_passages(text) >= 1
    assert choose_passages(text, spans(text))[0] == spans(text)[0]


@pytest.mark.parametrize("text", NO_WORDS.values(), ids=NO_WORDS)
def test_text_without_words_is_not_embedded(text):
    assert len(text) > 4_000
    assert estimate_passages(text) == 0
    assert choose_passages(text, spans(text)) == []
    assert choose_passages(text[:4_000], spans(text[:4_000])) == spans(text[:4_000])


def test_words_around_a_block_without_words_are_embedded():
    text = WORDS["English"][:800] + NO_WORDS["base64 in lines"][:8_000] + WORDS["German"][:800]
    chosen = choose_passages(text, spans(text))
    assert chosen == [spans(text)[0], spans(text)[-1]]


def test_lines_that_differ_in_numbers_only_are_embedded_once():
    lines = (f"2026-05-09T12:{n % 60:02} worker-{n}: connection refused" for n in range(5_000))
    log = "\n".join(lines) + "\n"
    assert estimate_passages(log) == 1
    assert len(choose_passages(log, spans(log))) == 1
    end = (len(log), len(log + PROSE))
    assert choose_passages(log + PROSE, [*spans(log), end]) == [(0, 800), end]


def test_a_long_text_is_estimated_in_few_steps(monkeypatch):
    seen: list[int] = []
    has_words = text_worth_embedding._has_words
    monkeypatch.setattr(
        text_worth_embedding, "_has_words", lambda text: seen.append(len(text)) or has_words(text)
    )
    lines = (f"{a}{b} was seen near the {b}{a} harbour\n" for a in "abcdefgh" for b in "ijklmnopq")
    text = "".join(lines)
    text = "".join(text.replace("seen", f"seen{'n' * n}") for n in range(300))
    assert estimate_passages(text) == MOST_PASSAGES + 1
    assert sum(seen) <= (MOST_PASSAGES + 1) * 1_600


@pytest.mark.parametrize("text", [*NO_WORDS.values(), "x" * 9, "\n" * 9, "a" * 9 + "é"])
def test_the_work_grows_with_the_length(text, monkeypatch):
    sizes: list[int] = []
    has_words = text_worth_embedding._has_words
    monkeypatch.setattr(
        text_worth_embedding, "_has_words", lambda part: sizes.append(len(part)) or has_words(part)
    )
    work = []
    for times in (10_000 // len(text) + 1, 20_000 // len(text) + 1, 40_000 // len(text) + 1):
        sizes.clear()
        estimate_passages(text * times)
        work.append(sum(sizes) / (len(text) * times))
    assert all(later <= earlier + 0.1 for earlier, later in pairwise(work))
