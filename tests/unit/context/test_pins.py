"""Pinned messages are in every context of their partition, up to a quarter of its budget."""

from datetime import timedelta

import pytest
from builders import NOW, context

from reservoir_cli.context.candidate import Tier
from reservoir_cli.context.recall import Recall
from reservoir_cli.messages import Filter, Message
from reservoir_cli.reservoir import Reservoir

QUESTION = "when does the harbour open?"


@pytest.fixture
def reservoir(location, fake_embedder):
    settings = {"recall_floor": 0.0}
    with Reservoir.open(location, embedder=fake_embedder, settings=settings) as opened:
        yield opened


def add_notes(reservoir, count=120, instance=None):
    messages = [
        Message("user", f"note {number} about the harbour", NOW - timedelta(days=400 - number))
        for number in range(count)
    ]
    return reservoir.ingest(messages, partition="p", instance=instance)


def build_window(reservoir, **options):
    return context(reservoir, QUESTION, partition="p", now=NOW, **{"budget": 1_000, **options})


def pinned_texts(window):
    return [message.content for message in window.messages if message.tier is Tier.PINNED]


def test_a_pinned_message_is_recalled_and_explained(reservoir):
    messages = add_notes(reservoir)
    before = build_window(reservoir, budget=800)
    target = next(
        message
        for message in messages
        if message.id not in {candidate.message.id for candidate in before.kept}
    )
    reservoir.pin(target.key)
    after = build_window(reservoir, budget=800)
    assert pinned_texts(after) == [target.content]
    assert after.selection.reasons[target.id] == "pinned"
    assert target.id in {candidate.message.id for candidate in after.selection.recalled}
    assert " · 1 pinned · " in after.summary()
    assert after.used <= 800
    reservoir.unpin(target.key)
    assert pinned_texts(build_window(reservoir, budget=800)) == []


def test_the_newest_pins_take_at_most_a_quarter_with_the_newest_messages(reservoir):
    messages = add_notes(reservoir)[:60]
    for message in messages:
        reservoir.pin(message.key)
    context = build_window(reservoir)
    pins = [candidate for candidate in context.kept if candidate.tier is Tier.PINNED]
    assert 0 < len(pins) < len(messages)
    first = context.selection.reasons
    by_rule = [
        candidate
        for candidate in context.kept
        if first[candidate.message.id] in ("pinned", "newest")
    ]
    tokens = sum(context.meter.scale(candidate.message.tokens) for candidate in by_rule)
    assert tokens <= context.budget.history / 4
    # The newest pins are chosen, whatever the times of their messages; printed in order of time.
    newest = {message.id for message in messages[-len(pins) :]}
    assert {candidate.message.id for candidate in pins} == newest
    times = [candidate.message.created_at for candidate in context.selection.recalled]
    assert times == sorted(times)


@pytest.mark.parametrize("order", ["score", "tiers"])
def test_pins_hold_in_both_orders(reservoir, order):
    target = add_notes(reservoir)[3]
    reservoir.pin(target.key)
    reservoir.config = reservoir.config.with_flags({"order": order})
    assert pinned_texts(build_window(reservoir)) == [target.content]


def test_a_pin_of_another_partition_or_outside_of_the_filter_is_not_recalled(reservoir):
    target = add_notes(reservoir)[3]
    reservoir.pin(target.key)
    other_context = reservoir.context(QUESTION, partition="q", budget=600, now=NOW)
    assert not other_context.kept
    recent_only = Filter(since=target.created_at + timedelta(days=1))
    assert pinned_texts(build_window(reservoir, where=recent_only)) == []


def test_pins_stand_in_every_context_even_if_nothing_fits(reservoir):
    target = add_notes(reservoir)[3]
    reservoir.pin(target.key)
    reservoir.config = reservoir.config.with_flags({"recall_floor": 2.0})
    context = build_window(reservoir)
    assert context.nothing_found
    assert pinned_texts(context) == [target.content]


def test_recall_ignores_pins(reservoir):
    messages = add_notes(reservoir)
    before = reservoir.recall(QUESTION, partition="p", budget=800, now=NOW)
    assert isinstance(before, Recall)
    recalled_ids = {message.id for message in before.messages}
    target = next(message for message in messages if message.id not in recalled_ids)
    reservoir.pin(target.key)
    after = reservoir.recall(QUESTION, partition="p", budget=800, now=NOW)
    assert isinstance(after, Recall)
    assert {message.id for message in after.messages} == recalled_ids


def test_a_pin_that_does_not_fit_is_reported_as_dropped(reservoir):
    [long_message] = reservoir.ingest(
        [Message("user", "harbour " * 2_000, NOW - timedelta(days=900))], partition="p"
    )
    add_notes(reservoir)
    reservoir.pin(long_message.key)
    context = build_window(reservoir)
    dropped_by_id = {entry.candidate.message.id: entry for entry in context.selection.dropped}
    kept_ids = {candidate.message.id for candidate in context.kept}
    assert long_message.id in dropped_by_id or long_message.id in kept_ids
    assert pinned_texts(context) == []
