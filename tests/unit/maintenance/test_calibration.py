"""Calibrate the recall floor of a model on a store's own questions."""

import re
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from builders import context

from reservoir_cli import Message, Reservoir
from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Scope
from reservoir_cli.retrieval.recall_floor import floor_property
from reservoir_cli.settings import config
from reservoir_cli.tokens import load_counter

START = datetime(2026, 5, 1, tzinfo=UTC)
#: Each conversation has one topic.
TOPICS = [f"subject{letter}" for letter in "abcdefghijkl"]


class Topics:
    """An embedder with an axis for each topic, and one for texts without a topic."""

    name = model_id = "topics"
    dimensions = len(TOPICS) + 1

    def encode_query(self, text):
        vector = np.zeros(self.dimensions, np.float32)
        match = re.search(r"subject[a-l]", text)
        vector[TOPICS.index(match[0]) if match else len(TOPICS)] = 1
        return vector

    def encode_documents(self, texts):
        return np.stack([self.encode_query(text) for text in texts])

    def passages(self, text):
        return [(0, len(text))]


@pytest.fixture
def reservoir(tmp_path):
    with Reservoir.open(tmp_path / "r.db", embedder=Topics()) as opened:
        yield opened


def talk(reservoir, questions, topics=TOPICS):
    """Store and embed this many questions and replies."""
    messages = []
    for number in range(questions):
        topic, created_at = topics[number % len(topics)], START + timedelta(minutes=number)
        fields = {"created_at": created_at, "conversation_id": topic, "trace_id": f"t{number}"}
        messages += [
            Message("user", f"how does {topic} start?", source_id=f"q{number}", **fields),
            Message("assistant", f"{topic} begins slowly", source_id=f"r{number}", **fields),
        ]
    reservoir.ingest(messages, partition="p", instance="p", embed=False)
    reservoir.embed()


def test_the_floor_separates_stored_from_unknown_topics(reservoir):
    talk(reservoir, 120)
    calibration = reservoir.database.calibrate()
    assert (calibration.questions, calibration.unrelated, calibration.before) == (120, 120, 0)
    assert calibration.unrelated_median < calibration.recall_floor <= calibration.related_median
    assert (calibration.lost, calibration.refused) == (0, 1)


def test_the_floor_is_used_for_the_model_it_was_measured_for(reservoir):
    talk(reservoir, 120)
    options = {"partition": "p", "budget": 2_000, "follow": False}
    assert not context(reservoir, "what is the capital of Mongolia?", **options).nothing_found
    reservoir.database.calibrate()
    assert context(reservoir, "what is the capital of Mongolia?", **options).nothing_found
    assert not context(reservoir, "how does subjectc start?", **options).nothing_found
    without_floor = context(
        reservoir, "what is the capital of Mongolia?", recall_floor=0.0, **options
    )
    assert not without_floor.nothing_found
    assert reservoir.store.get_property(floor_property("another")) is None


def test_a_second_calibration_reports_the_previous_floor(store):
    reservoir = Reservoir(store, config.load(None, {}), embedder=Topics())
    talk(reservoir, 100)
    first = reservoir.database.calibrate()
    second = reservoir.database.calibrate()
    assert second.before == first.recall_floor == second.recall_floor


def test_only_questions_are_used(reservoir):
    talk(reservoir, 120)
    created_at = START + timedelta(days=1)
    for name, asked in (("thanks", "ok, thanks"), ("order", "add a few annotations")):
        reservoir.ingest(
            [
                Message(role, text, created_at=created_at, trace_id=name, conversation_id=name)
                for role, text in (("user", asked), ("assistant", "You are welcome."))
            ],
            partition="p",
        )
    assert reservoir.database.calibrate().questions == 120


REFUSED = {
    "too few": ((99, TOPICS), "99, and 100 are needed"),
    "one conversation": ((120, TOPICS[:1]), "all questions are from one session"),
    "none": ((0, TOPICS), "0, and 100 are needed"),
}


@pytest.mark.parametrize(("arguments", "reason"), REFUSED.values(), ids=REFUSED)
def test_without_enough_questions_no_floor_is_stored(reservoir, arguments, reason):
    talk(reservoir, *arguments)
    with pytest.raises(ReservoirError, match=reason) as refused:
        reservoir.database.calibrate()
    assert "recall_floor" in refused.value.hint
    assert reservoir.store.get_property(floor_property("topics")) is None


def test_messages_without_vectors_are_embedded_first(reservoir):
    talk(reservoir, 120)
    message = Message("user", "not embedded", created_at=START)
    counter = load_counter("approximate")
    reservoir.store.add(Scope("p", "p"), [message], counter=counter, now=START)
    with pytest.raises(ReservoirError, match="1 message is not embedded yet"):
        reservoir.database.calibrate()
