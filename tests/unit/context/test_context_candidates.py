"""The candidates of a context, their scopes and tiers."""

import json

import numpy as np
import pytest
from memories import kept_ids, text, tier_by_id

from reservoir_cli.chat.turn import Section


def test_a_message_has_the_first_matching_tier(memory):
    synapse = memory.say(text(1), cosine=0.2)
    old_similar = memory.say(text(2), cosine=0.9)
    dissimilar = memory.say_all([text(number) for number in range(3, 9)], cosine=-0.9)
    recent_similar = memory.say(text(10), cosine=0.95)
    tier_of = tier_by_id(memory.ask(budget=900, recent=1, similar=2, settings={"link_cosine": 0.5}))
    assert tier_of[recent_similar] == "recent"
    assert tier_of[old_similar] == "similar"
    assert tier_of[synapse] == "synapse"
    assert {tier_of[message_id] for message_id in dissimilar} == {"older"}


@pytest.mark.parametrize(
    ("cosine", "threshold", "tier"),
    [
        pytest.param(0.9, 0.85, "similar", id="§4 above"),
        pytest.param(0.5, 0.85, "older", id="§4 below"),
        pytest.param(0.0, 0.5, "older", id="§4 strictly greater"),
        pytest.param(None, 0.0, "older", id="§4 without a vector never"),
    ],
)
@pytest.mark.parametrize("fill", [True, False])
def test_the_threshold_affects_the_tier_but_never_inclusion(memory, cosine, threshold, tier, fill):
    message_id = memory.say("zeta", cosine=cosine, instance="q")
    memory.say("now")
    window = memory.ask("zeta and so on", similar=1, threshold=threshold, fill=fill)
    assert tier_by_id(window)[message_id] == tier


@pytest.mark.parametrize("depth", [0, 1, 2], ids=lambda depth: f"§4 synapse_depth {depth}")
def test_messages_within_so_many_links_of_a_candidate_are_candidates(memory, depth):
    # A chain of vectors 40 degrees apart; only neighbours are linked.
    reach = float(np.cos(np.radians(45)))
    chain = [
        memory.say(text(index), cosine=float(np.cos(np.radians(40 * index)))) for index in range(4)
    ]
    window = memory.ask(
        recent=0,
        similar=1,
        settings={"synapse_depth": depth, "link_cosine": reach, "min_history_messages": 0},
    )
    assert kept_ids(window) == chain[: depth + 1]
    assert set(tier_by_id(window).values()) <= {"similar", "synapse"}


@pytest.mark.parametrize(
    ("options", "all_of_them"),
    [
        pytest.param({"budget": 5_000}, True, id="§4 --budget fills"),
        pytest.param({"model": "gpt-4o"}, False, id="§4 a model's limit does not"),
        pytest.param({}, False, id="§4 nor does the default window"),
        pytest.param({"budget": 5_000, "fill": False}, False, id="§4 --no-fill"),
        pytest.param({"model": "gpt-4o", "fill": True}, True, id="§4 --fill"),
        pytest.param({"budget": "recommended", "model": "gpt-4o"}, True, id="§4 recommended"),
        pytest.param({"settings": {"fill": True}}, True, id="§4 fill = true"),
        pytest.param({"settings": {"fill": False}, "budget": 5_000}, False, id="§4 fill = false"),
    ],
)
def test_a_budget_is_filled_and_a_models_limit_is_not(memory, options, all_of_them):
    message_ids = memory.say_all([text(number) for number in range(60)], cosine=-0.5)
    window = memory.ask(recent=3, similar=3, **options)
    assert (kept_ids(window) == message_ids) is all_of_them
    assert all_of_them or len(window.kept) <= 6


def test_when_filling_the_size_settings_affect_tiers_only(memory):
    memory.fill(40, cosine=0.1)
    wide = memory.ask(budget=5_000, recent=20, similar=20)
    narrow = memory.ask(budget=5_000, recent=1, similar=1)
    assert kept_ids(wide) == kept_ids(narrow)
    assert list(tier_by_id(narrow).values()).count("recent") == 1


def test_an_empty_question_gives_recent_history_only(memory):
    memory.fill(30, instance="q")
    new = memory.say_all([text(number) for number in range(30)], cosine=0.9)
    linking = {"link_cosine": -1.0}
    assert len(kept_ids(memory.ask("zeta", recent=4, similar=0, settings=linking))) > 4
    window = memory.ask("", recent=4, settings=linking)
    assert kept_ids(window) == new[-4:]
    assert Section.CURRENT not in {turn.section for turn in window.turns}


SCOPES = {"own": {}, "sibling": {"instance": "q"}, "stranger": {"partition": "x", "instance": "p"}}


#: Which messages are in a context, by its options.
REACHED = [
    ({}, {"own", "sibling"}),
    ({"instance": "p"}, {"own"}),
    ({"instance": "q"}, {"sibling"}),
    ({"recall_scope": "instance"}, {"own"}),
    ({"recall_scope": "partition", "instance": "p"}, {"own", "sibling"}),
    ({"partition": "x", "instance": "p"}, {"stranger"}),
]


@pytest.mark.parametrize("budget", [None, 900], ids=["limit", "filling"])
@pytest.mark.parametrize("form", ["text", "json"])
def test_nothing_crosses_the_scope(memory, budget, form):
    for _ in range(2):
        for name, scope in SCOPES.items():
            memory.say(f"said in {name} of zeta", cosine=0.9, trace_id="one", **scope)
    for options, expected in REACHED:
        printed = json.dumps(
            memory.ask(budget=budget, format=form, settings={"link_cosine": -1.0}, **options).to()
        )
        assert {name for name in SCOPES if f"said in {name}" in printed} == expected, options


def test_an_empty_default_instance_is_replaced_by_the_newest_with_a_note(memory):
    memory.say("older", instance="a")
    newest = memory.say("newer", instance="b")
    window = memory.ask()
    assert [candidate.message.id for candidate in window.selection.history] == [newest]
    assert "(of p/b)" in window.summary()


def test_an_empty_named_instance_is_not_replaced(memory):
    memory.say("elsewhere", instance="a")
    window = memory.ask(instance="b")
    assert kept_ids(window) == []
    assert "(of " not in window.summary()


@pytest.mark.parametrize("embedded", [True, False], ids=["embedded", "pending"])
@pytest.mark.parametrize("source", ["markdown", "text"])
def test_documents_are_recalled_and_never_history(memory, embedded, source):
    message_id = memory.say("birch cedar")
    cosine = {"cosine": 0.9} if embedded else {}
    note = memory.say("the zeta note", source=source, **cosine)
    window = memory.ask("zeta")
    assert [candidate.message.id for candidate in window.selection.history] == [message_id]
    assert [candidate.message.id for candidate in window.selection.recalled] == [note]


def test_history_never_comes_from_an_instance_of_documents(memory):
    message_id = memory.say("birch cedar", instance="chatgpt")
    memory.say("a note", source="markdown")
    memory.say("a newer note", source="markdown", instance="notes")
    window = memory.ask("zeta")
    assert [candidate.message.id for candidate in window.selection.history] == [message_id]


# §4 Only printable messages count


def test_imported_thinking_is_not_counted_among_recent_and_similar(memory):
    message_ids = memory.say_all([f"zeta said {number}" for number in range(4)], cosine=0.5)
    memory.say_all([f"zeta thought {number}" for number in range(300)], "system", cosine=0.9)
    settings = {"recent_context_size": 2, "semantic_context_size": 4, "similar_cosine": 0.0}
    window = memory.ask(settings=settings, fill=False)
    assert kept_ids(window) == message_ids
    assert set(tier_by_id(window).values()) == {"recent", "similar"}


def test_messages_that_are_too_large_are_not_read(memory, monkeypatch):
    memory.say("zeta before all")
    memory.say_all([f"{number} " + text(number, 300) for number in range(200)], cosine=0.1)
    new = memory.say_all([f"zeta {number}" for number in range(3)])
    read = []
    with_partners = type(memory.store).with_partners

    def record_rows(store, ids, scope):
        rows = with_partners(store, ids, scope)
        read.extend(rows)
        return rows

    monkeypatch.setattr(type(memory.store), "with_partners", record_rows)
    window = memory.ask(budget=200, excerpts="off")
    assert set(new) <= set(kept_ids(window))
    assert len(window.selection.history) == 4
    assert len(read) < 60


def test_without_a_vector_words_count_in_full(memory):
    exact = memory.say("set wal_sender_timeout to zero", instance="q")
    for number in range(20):
        memory.say(text(number), instance=f"r{number}", cosine=0.2 + number / 100)
    window = memory.ask("wal_sender_timeout", settings={"recent_context_size": 0}, budget=100)
    scores = {candidate.message.id: candidate.scores.similarity for candidate in window.kept}
    assert scores[exact] == max(scores.values()) == 1.0
