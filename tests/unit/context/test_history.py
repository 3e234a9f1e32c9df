"""Turns of history are those of a running session, unless the caller names an instance or tiers."""

from datetime import timedelta

import pytest
from builders import NOW
from memories import text, tier_by_id

from reservoir_cli.context.render.quote_recalled import RECALLED_TITLE
from reservoir_cli.messages import Scope

pytestmark = pytest.mark.both_stores


def talk(memory, *names, instance="p"):
    """Store conversations of a question and a reply by one write; return the ids."""
    messages = [
        memory.message(content, role, conversation_id=name, trace_id=name)
        for name in names
        for content, role in ((f"about {name}?", "user"), (f"{name} it is", "assistant"))
    ]
    return memory.store_all(messages, [None] * len(messages), Scope("p", instance))


def sections(window):
    selection = window.selection
    return (
        [candidate.message.id for candidate in selection.history],
        [candidate.message.id for candidate in selection.recalled],
    )


def later(memory, **difference):
    return {"now": NOW + timedelta(minutes=memory.minute) + timedelta(**difference)}


@pytest.mark.parametrize(("minutes", "runs"), [(1, True), (239, True), (241, False)])
def test_turns_are_those_of_the_running_session(memory, minutes, runs):
    earlier, newest = talk(memory, "amber"), talk(memory, "birch")
    window = memory.ask(budget=900, **later(memory, minutes=minutes))
    expected = (newest, earlier) if runs else ([], earlier + newest)
    assert sections(window) == expected
    assert f"{2 if runs else 0} recent · {2 if runs else 4} recalled" in window.summary()


def test_without_a_session_the_newest_are_recalled_under_their_day(memory):
    talk(memory, "amber")
    lines = memory.ask(budget=900, **later(memory, days=3)).to("text").splitlines()
    assert lines[1] == RECALLED_TITLE
    assert lines[3:6] == ["2026-05-09", "user: about amber?", ""]


@pytest.mark.parametrize("fill", [True, False])
def test_without_a_session_no_two_are_forced_but_the_newest_are_candidates(memory, fill):
    best = memory.say_all([text(number, 12) for number in range(8)], cosine=0.9, instance="q")
    newest = talk(memory, "birch")
    options = later(memory, days=3)
    window = memory.ask(budget=170, fill=fill, **options)
    assert not set(newest) & set(tier_by_id(window))
    assert set(best) & set(tier_by_id(window))
    wide = tier_by_id(memory.ask(budget=2_000, fill=fill, **options))
    assert [wide[number] for number in newest] == ["recent", "recent"]


def test_the_instance_is_that_of_the_running_session(memory):
    own, other = talk(memory, "amber"), talk(memory, "birch", instance="q")
    window = memory.ask(budget=900)
    assert sections(window) == (other, own)
    assert window.scope["instance"] == "q"


def test_loose_messages_are_one_session_up_to_a_pause(memory):
    earlier = memory.say_all(["amber", "birch"])
    memory.minute += 300
    newest = memory.say_all(["cedar", "delta"])
    assert sections(memory.ask(budget=900)) == (newest, earlier)


@pytest.mark.parametrize("days", [0, 30])
@pytest.mark.parametrize(
    "options", [{"instance": "p"}, {"order": "tiers"}, {"query": ""}], ids=lambda value: str(value)
)
def test_the_last_15_of_an_instance_are_turns_by_the_documents_rule(memory, options, days):
    """The others are similar above the threshold, linked, and older, in this order."""
    memory.say("far away", instance="q")
    messages = talk(memory, *map(str, range(12)))
    window = memory.ask(budget=4_000, **options, **later(memory, days=days))
    history, recalled = sections(window)
    assert history == messages
    assert not set(recalled) & set(messages)
    tiers = tier_by_id(window)
    assert [number for number in messages if tiers[number] == "recent"] == messages[-15:]


def test_by_tiers_15_recent_then_similar_then_linked_then_older(memory):
    older = memory.fill(3, cosine=-0.2)
    linked = memory.say(text(50), cosine=0.6)
    similar = memory.say(text(51), cosine=0.95)
    recent = memory.fill(15, cosine=-0.9)
    settings = {
        "semantic_context_size": 1,
        "recent_context_size": 15,
        "synapse_depth": 1,
        "link_cosine": 0.8,
    }
    options = {"order": "tiers", "settings": settings, **later(memory, days=30)}
    everything = memory.ask(budget=4_000, **options)
    tiers = tier_by_id(everything)
    assert {number for number in tiers if tiers[number] == "recent"} == set(recent)
    assert (tiers[similar], tiers[linked]) == ("similar", "synapse")
    assert {tiers[number] for number in older} == {"older"}
    order = []
    for budget in range(60, 700, 20):
        order += list(tier_by_id(memory.ask(budget=budget, **options)))
    first = list(dict.fromkeys(order))
    assert set(first[:2]) <= set(recent[-2:])
    ranks = {"recent": 0, "similar": 1, "synapse": 2, "older": 3}
    assert first.index(similar) > max(map(first.index, recent))
    assert [ranks[tiers[number]] for number in first][-1] == 3


@pytest.mark.parametrize("budget", [200, 400, 900])
def test_recalled_messages_get_half_while_any_fit(memory, budget):
    memory.say_all([text(number, 14) for number in range(40)], cosine=0.3, instance="q")
    memory.say_all([text(number, 9) for number in range(60)], conversation_id="now", cosine=0.8)
    window = memory.ask(budget=budget)
    history = sum(candidate.message.tokens for candidate in window.selection.history)
    assert window.selection.history
    assert history <= budget / 2
    assert window.used > 0.85 * budget
    assert len(window.selection.recalled) > len(window.selection.history)
