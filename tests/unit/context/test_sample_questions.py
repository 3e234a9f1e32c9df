"""The real model over the samples."""

import json
import shutil
from pathlib import Path

import pytest
from memories import count_printed_tokens

from reservoir_cli import Reservoir
from reservoir_cli.settings import config

SAMPLES = Path(__file__).parents[3] / "samples"


@pytest.fixture(scope="module")
def samples(embedder, sample_store, tmp_path_factory):
    copy = shutil.copy(sample_store, tmp_path_factory.mktemp("samples"))
    with Reservoir.open(copy, embedder=embedder) as reservoir:
        yield reservoir


QUESTIONS = json.loads((SAMPLES / "questions.json").read_text(encoding="utf-8"))["questions"]


def evidence_share(window, question):
    kept_ids = {candidate.message.source_id for candidate in window.kept}
    return sum(message_id in kept_ids for message_id in question["evidence"]) / len(
        question["evidence"]
    )


@pytest.mark.parametrize("question", QUESTIONS[:3], ids=lambda question: question["question"])
def test_the_answer_is_in_a_context_of_700_tokens(samples, question):
    window = samples.context(
        question["question"],
        partition=question["partition"],
        instance=question["instance"],
        budget=700,
    )
    large = {
        entry.candidate.message.source_id
        for entry in window.selection.dropped
        if entry.reason == "too large"
    }
    missing = set(question["evidence"]) - {candidate.message.source_id for candidate in window.kept}
    assert missing <= large
    assert evidence_share(window, question) >= 0.5
    assert count_printed_tokens(window) <= window.used <= 700


@pytest.mark.parametrize("budget", [300, 400, 700])
def test_the_requested_part_of_a_long_message_is_printed(samples, budget):
    question = QUESTIONS[0]
    window = samples.context(question["question"], partition="work", budget=budget)
    text = window.to("text")
    assert "a Redis failover discarded 214 acknowledged jobs" in text
    assert "The job and the card must commit together." in text


def test_the_newest_messages_alone_do_not_answer_the_questions(samples, embedder):
    settings = {"similarity_weight": 0.0, "recency_weight": 1.0}
    newest = Reservoir(samples.store, config.load(None, settings), embedder=embedder)
    shares = [
        evidence_share(
            newest.context(question["question"], partition=question["partition"], budget=700),
            question,
        )
        for question in QUESTIONS[:3]
    ]
    assert shares == [0, 0, 0]
