"""A context counts exactly what it prints."""

import json
from itertools import product

import pytest
from each import each
from memories import (
    COUNTER,
    GIVEN,
    add_conversation,
    count_printed_tokens,
    drop_reasons,
    kept_ids,
    piece,
    rows_of,
)

from reservoir_cli.context.request import FORMATS
from reservoir_cli.tokens import load_counter


def test_an_exact_counter_has_no_mark_and_no_safety_factor(memory, monkeypatch):
    class Words:
        name, version, exact = "words", "1", True

        def count(self, text):
            return len(text.split())

    monkeypatch.setattr(
        "reservoir_cli.context.prepare_request.load_counter", lambda *_, **__: Words()
    )
    memory.say("three little words")
    window = memory.ask("one question")
    assert window.summary().startswith("19 of ")
    frame = len("[Reservoir context] [/Reservoir …]".split())
    assert window.used == (1 + 3 + 4) + (1 + 2 + 4) + frame


def test_an_approximate_count_is_marked(memory):
    assert memory.ask().summary().startswith("≈")


def test_a_count_is_stored_with_its_counter_and_updated_when_the_counter_changes(memory):
    message_id = memory.say("some words for it, and a few more of them")
    other_id = memory.say("elsewhere", partition="q")

    def counts():
        return {row["id"]: (row.pop("tokens"), row.pop("counter")) for row in rows()}

    def rows():
        return rows_of(memory.store)

    before = rows()
    ratio = load_counter("ratio")
    assert counts()[message_id][1] == f"{COUNTER.name} {COUNTER.version}"
    window = memory.ask(settings={"token_counter": "ratio"})
    content = window.kept[0].message.content
    assert counts()[message_id] == (ratio.count(content), f"{ratio.name} {ratio.version}")
    assert counts()[other_id][1] == f"{COUNTER.name} {COUNTER.version}"
    untouched = [
        {name: row[name] for name in row if name not in ("tokens", "counter")} for row in before
    ]
    assert [{name: row[name] for name in untouched[0]} for row in rows()] == untouched


def test_a_context_counts_no_stored_message_twice(memory, monkeypatch):
    class Watched:
        name, version, exact = COUNTER.name, COUNTER.version, False

        def __init__(self):
            self.seen = []

        def count(self, text):
            self.seen.append(text)
            return COUNTER.count(text)

    message_ids = memory.fill(5, words=30)
    counter = Watched()
    monkeypatch.setattr(
        "reservoir_cli.context.prepare_request.load_counter", lambda *_, **__: counter
    )
    window = memory.ask(budget=900)
    assert kept_ids(window) == message_ids
    contents = {candidate.message.content for candidate in window.kept}
    assert not contents & set(counter.seen)


def test_a_count_by_an_older_version_of_the_counter_is_updated(memory, monkeypatch):
    message_id = memory.say("some words for it")

    class Newer:
        name, version, exact = COUNTER.name, "999", False

        def count(self, text):
            return 7

    monkeypatch.setattr(
        "reservoir_cli.context.prepare_request.load_counter", lambda *_, **__: Newer()
    )
    memory.ask()
    (row,) = rows_of(memory.store)
    assert (row["id"], row["tokens"], row["counter"]) == (message_id, 7, f"{COUNTER.name} 999")


@pytest.fixture
def two_conversations(memory):
    add_conversation(memory, instance="other")
    add_conversation(memory)
    return memory


@each("form, budget", product(FORMATS, [150, 400, 1_000, 2_500]))
def test_the_count_is_that_of_the_output_and_within_the_budget(two_conversations, form, budget):
    window = two_conversations.ask(budget=budget, format=form, **(GIVEN if budget > 400 else {}))
    printed = count_printed_tokens(window)
    assert printed <= budget
    assert window.used <= budget
    # Sections are counted and rounded separately; adjacent messages of one role are joined.
    sections = {turn.section for turn in window.turns}
    assert -len(sections) <= window.used - printed <= 5 * len(window.turns)


@pytest.mark.parametrize("form", ["text", "markdown", "openai", "ollama", "anthropic"])
def test_the_reply_that_history_ends_with_is_counted(memory, form):
    memory.say("short", trace_id="t")
    memory.say(piece(500), "assistant", trace_id="t")
    window = memory.ask(budget=2_000, format=form)
    assert piece(500) in json.dumps(window.to())
    assert window.used > 500


@pytest.mark.parametrize("order", ["score", "tiers"])
@pytest.mark.parametrize("form", ["text", "markdown", "openai", "anthropic"])
def test_a_budget_of_exactly_the_total_drops_nothing(memory, order, form):
    add_conversation(memory)
    complete = memory.ask(budget=50_000, format=form, order=order)
    assert drop_reasons(complete) == {}
    exact = memory.ask(budget=complete.used, format=form, order=order)
    assert kept_ids(exact) == kept_ids(complete)
