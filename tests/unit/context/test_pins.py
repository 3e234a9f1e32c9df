"""Pinned messages are in every context of their partition, up to a quarter of its budget."""

from datetime import timedelta

import pytest
from builders import NOW

from reservoir_cli.context.recall import Recall
from reservoir_cli.context.types import Tier
from reservoir_cli.messages import Message
from reservoir_cli.reservoir import Filter, Reservoir

QUESTION = "when does the harbour open?"


@pytest.fixture
def reservoir(location, fake_embedder):
    settings = {"recall_floor": 0.0}
    with Reservoir.open(location, embedder=fake_embedder, settings=settings) as opened:
        yield opened


def said(reservoir, count=120, instance=None):
    messages = [
        Message("user", f"note {number} about the harbour", NOW - timedelta(days=400 - number))
        for number in range(count)
    ]
    return reservoir.ingest(messages, partition="p", instance=instance)


def window(reservoir, **options):
    return reservoir.context(QUESTION, partition="p", now=NOW, **{"budget": 1_000, **options})


def pinned(window):
    return [each.content for each in window.messages if each.tier is Tier.PINNED]


def test_a_pinned_message_is_recalled_and_explained(reservoir):
    messages = said(reservoir)
    before = window(reservoir, budget=800)
    target = next(
        each for each in messages if each.id not in {kept.message.id for kept in before.kept}
    )
    reservoir.pin(target.key)
    after = window(reservoir, budget=800)
    assert pinned(after) == [target.content]
    assert after.selection.reasons[target.id] == "pinned"
    assert target.id in {each.message.id for each in after.selection.recalled}
    assert " · 1 pinned · " in after.summary()
    assert after.used <= 800
    reservoir.unpin(target.key)
    assert pinned(window(reservoir, budget=800)) == []


def test_the_newest_pins_take_at_most_a_quarter_with_the_newest_messages(reservoir):
    messages = said(reservoir)[:60]
    for message in messages:
        reservoir.pin(message.key)
    built = window(reservoir)
    kept = [each for each in built.kept if each.tier is Tier.PINNED]
    assert 0 < len(kept) < len(messages)
    first = built.selection.reasons
    by_rule = [each for each in built.kept if first[each.message.id] in ("pinned", "newest")]
    tokens = sum(built.meter.scale(each.message.tokens) for each in by_rule)
    assert tokens <= built.budget.history / 4
    # The newest pins are chosen, whatever the times of their messages; printed in order of time.
    newest = {message.id for message in messages[-len(kept) :]}
    assert {each.message.id for each in kept} == newest
    times = [each.message.created_at for each in built.selection.recalled]
    assert times == sorted(times)


@pytest.mark.parametrize("order", ["score", "tiers"])
def test_pins_hold_in_both_orders(reservoir, order):
    target = said(reservoir)[3]
    reservoir.pin(target.key)
    reservoir.config = reservoir.config.with_flags({"order": order})
    assert pinned(window(reservoir)) == [target.content]


def test_a_pin_of_another_partition_or_outside_of_the_filter_is_not_recalled(reservoir):
    target = said(reservoir)[3]
    reservoir.pin(target.key)
    elsewhere = reservoir.context(QUESTION, partition="q", budget=600, now=NOW)
    assert not elsewhere.kept
    since = Filter(since=target.created_at + timedelta(days=1))
    assert pinned(window(reservoir, where=since)) == []


def test_pins_are_left_out_if_nothing_was_found(reservoir):
    target = said(reservoir)[3]
    reservoir.pin(target.key)
    reservoir.config = reservoir.config.with_flags({"recall_floor": 2.0})
    built = window(reservoir)
    assert built.nothing_found
    assert pinned(built) == []


def test_recall_ignores_pins(reservoir):
    messages = said(reservoir)
    before = reservoir.recall(QUESTION, partition="p", budget=800, now=NOW)
    assert isinstance(before, Recall)
    recalled = {each.id for each in before.messages}
    target = next(message for message in messages if message.id not in recalled)
    reservoir.pin(target.key)
    told = reservoir.recall(QUESTION, partition="p", budget=800, now=NOW)
    assert isinstance(told, Recall)
    assert {each.id for each in told.messages} == recalled


def test_a_pin_that_does_not_fit_is_reported_as_dropped(reservoir):
    [long] = reservoir.ingest(
        [Message("user", "harbour " * 2_000, NOW - timedelta(days=900))], partition="p"
    )
    said(reservoir)
    reservoir.pin(long.key)
    built = window(reservoir)
    dropped = {each.candidate.message.id: each for each in built.selection.dropped}
    kept = {each.message.id for each in built.kept}
    assert long.id in dropped or long.id in kept
    assert pinned(built) == []
