"""Answers of a small model: scores, prompts, what is asked again, and plain contexts."""

from datetime import UTC, datetime

import answers
import pytest
from answers import Answers, figures, prompt_for, score, transcript
from baselines import NAMES, Baselines
from each import each
from evidence import cost
from sets import Question
from vectors import CachedEmbedder

from reservoir_cli import Message


@each(
    ("answer", "expected", "f1", "share"),
    [
        ("The red barn.", "a red barn", 1, 1),
        ("a red barn near Turin", "red barn", 2 / 3, 1),
        ("red", "red barn", 2 / 3, 1 / 2),
        ("red red red", "red barn", 2 / 5, 1 / 2),
        ("blue", "red barn", 0, 0),
        ("", "red barn", 0, 0),
        ("the", "a", 0, 0),
        ("7 MAY, 2023", "7 May 2023", 1, 1),
    ],
)
def test_an_answer_scores_by_the_words_it_shares_with_the_expected_one(answer, expected, f1, share):
    assert score(answer, expected) == pytest.approx((f1, share))


def test_differences_are_paired_by_question():
    ours, cosine = [(1.0, 1.0), (0.5, 0.5)], [(0.8, 0.4), (0.3, 0.5)]
    table = figures({"ours": ours, "cosine": cosine})
    assert table["cosine"]["f1"] == pytest.approx(0.55)
    assert table["cosine"]["ours_more_f1"] == pytest.approx([0.2, 0.2, 0.2])
    assert table["cosine"]["ours_more_words"] == pytest.approx([0.3, 0, 0.6])
    assert table["ours"]["ours_more_f1"] == [0, 0, 0]


def test_a_context_has_a_line_for_each_day():
    first, later = datetime(2024, 1, 1, 9, tzinfo=UTC), datetime(2024, 1, 3, tzinfo=UTC)
    rows = [(first, "user", "Hi"), (first, "assistant", "Yes?"), (later, "user", "Bye")]
    context = "2024-01-01\nuser: Hi\nassistant: Yes?\n2024-01-03\nuser: Bye"
    assert transcript(rows) == context
    assert prompt_for(context, "Who?").endswith(f"\n\n{context}\n\nQuestion: Who?\nAnswer:")


class Echo:
    """Answers with the last word of each prompt, and counts the prompts."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def answer(self, prompts: list[str]) -> list[str]:
        self.asked += prompts
        return [prompt.split()[-1] for prompt in prompts]


def test_a_prompt_is_asked_once_and_its_answer_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(answers, "_BATCH", 2)
    file, reader = tmp_path / "answers.jsonl", Echo()
    Answers(file).add(["a é", "b c d", "a é", "e\nf"], reader)
    assert sorted(reader.asked) == ["a é", "b c d", "e\nf"]
    kept = Answers(file)
    kept.add(["e\nf", "new g"], reader)
    assert reader.asked[3:] == ["new g"]
    assert [kept.of(prompt) for prompt in ("a é", "e\nf", "new g")] == ["é", "f", "g"]
    assert not kept.has("other")


@pytest.mark.parametrize("name", NAMES)
def test_a_plain_context_fits_its_budget_oldest_first(name, embedder, tmp_path):
    texts = [f"{word} number {place}" for place, word in enumerate(["boiler", "lamp", "rug"] * 4)]
    messages = [Message("user", text, source_id=str(at)) for at, text in enumerate(texts)]
    baselines = Baselines(messages, CachedEmbedder(embedder, tmp_path))
    question = Question("here", "here", "Which lamp?", frozenset("1"))
    rows = baselines.pack(name, baselines.priorities(question)[name], 36)
    assert 0 < sum(cost(text) for _, text in rows) <= 36
    places = [int(message.source_id) for message, _ in rows]
    assert places == sorted(places)
    assert name != "newest" or places == [8, 9, 10, 11]
    assert name == "newest" or all("lamp" in text for _, text in rows)
