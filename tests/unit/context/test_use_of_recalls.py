"""What answers used of what was recalled, as the statistics report it."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from reservoir_cli import Message, Reservoir
from reservoir_cli.context.use_of_recalls import USE
from reservoir_cli.messages import Scope
from reservoir_cli.settings import config

NOW = datetime.now(UTC) - timedelta(hours=3)
FACT = "The cistern pump is a Wittmann 4480, set to 2.6 bar behind the larch fence."
ANSWERS = {
    "It is a Wittmann, at 2.6 bar.": (4, 1),
    "No idea, sorry.": (0, 0),
    "The cistern pump is a cistern pump.": (0, 0),
}


@pytest.fixture
def reservoir(store, fake_embedder):
    """A reservoir with a fact among other messages, which share no rare word with it."""
    settings = config.load(None, {"recall_floor": 0.1})
    reservoir = Reservoir(store, settings, embedder=fake_embedder)
    others = [f"The kitchen lamp number {number} is on." for number in range(40)]
    reservoir.ingest(
        [
            Message("user", text, created_at=NOW - timedelta(days=30, minutes=-at))
            for at, text in enumerate([FACT, *others])
        ],
        partition="p",
    )
    return reservoir


def ask_and_answer(reservoir, answer, *, late=timedelta(0)):
    """Recall for a prompt of a session, then store the prompt with its answer, as clients do."""
    asked = "which cistern pump is it?"
    reservoir.recall(asked, partition="p", exclude_conversation="today", now=NOW)
    asked_at = NOW + timedelta(seconds=1) + late
    turns = [("user", asked, asked_at), ("assistant", answer, asked_at + timedelta(minutes=1))]
    reservoir.ingest(
        [
            Message(role, text, created_at=at, conversation_id="today", trace_id="t")
            for role, text, at in turns
        ],
        partition="p",
    )


@pytest.mark.parametrize(("answer", "counted"), ANSWERS.items(), ids=list(ANSWERS))
def test_the_words_of_a_recalled_message_that_the_answer_used_are_counted(
    reservoir, answer, counted
):
    assert reservoir.stats()["use"]["recalls"] == 0
    ask_and_answer(reservoir, answer)
    for _ in range(2):  # measured once
        use = reservoir.stats()["use"]
        used, messages = counted
        assert (use["recalls"], use["messages"]) == (1, 1)
        assert (use["used_words"], use["used_messages"]) == (used, messages)
        assert use["rare_words"] >= 7
        assert use["used_share"] == pytest.approx(used / use["rare_words"], abs=1e-3)
        (week,) = use["by_week"]
        assert (week["partition"], week["used_words"]) == ("p", used)
        assert week["input_tokens"] == use["input_tokens"] > 0


def test_a_recall_without_a_stored_answer_is_not_measured(reservoir):
    ask_and_answer(reservoir, "It is a Wittmann.", late=timedelta(minutes=10))
    assert reservoir.stats()["use"]["recalls"] == 0
    assert reservoir.stats()["recalls"]["runs"] == 1


def test_the_records_hold_numbers_only(reservoir):
    ask_and_answer(reservoir, "It is a Wittmann, at 2.6 bar.")
    reservoir.stats()
    (record,) = (run for run in reservoir.store.runs(None, "p") if run["format"] == USE)
    assert all(isinstance(value, int) for value in json.loads(record["sections"]).values())
    text = json.dumps(reservoir.store.runs(None, "p")).lower()
    assert not any(word in text for word in ("wittmann", "4480", "cistern", "larch"))


def test_a_forgotten_message_is_not_counted(reservoir):
    ask_and_answer(reservoir, "It is a Wittmann, at 2.6 bar.")
    (fact,) = (row for row in reservoir.view(Scope("p"), 0) if row.content == FACT)
    reservoir.forget([fact.id], Scope("p"))
    use = reservoir.stats()["use"]
    assert (use["recalls"], use["messages"], use["used_share"]) == (1, 0, None)
