"""Which candidates are kept, how others are reported, and invariants of every context."""

import hypothesis
import pytest
from behind import behind
from builders import Compass
from hypothesis import strategies as st
from memories import (
    Memory,
    add_conversation,
    count_printed_tokens,
    drop_reasons,
    kept_ids,
    piece,
    text,
)

from reservoir_cli.context.candidate import Tier
from reservoir_cli.context.request import FORMATS, PROVIDERS
from reservoir_cli.storage.open_store import open_store


def test_priority_is_the_weighted_sum_of_similarity_and_recency(memory):
    memory.fill(12, cosine=0.3)
    memory.say("zeta", cosine=0.9)
    for weights in ((0.7, 0.3), (0.2, 0.9), (1.0, 0.0)):
        weight_settings = dict(zip(("similarity_weight", "recency_weight"), weights, strict=True))
        for row in memory.ask("zeta?", settings=weight_settings, budget=2_000, format="json").to()[
            "messages"
        ]:
            if row["id"]:
                expected = weights[0] * row["similarity"] + weights[1] * row["recency"]
                assert row["priority"] == pytest.approx(expected, abs=1e-6)


def test_recency_weight_zero_switches_recency_off(memory):
    old = memory.say(text(1), cosine=0.9)
    memory.fill(20, cosine=0.1)
    settings = {"recency_weight": 0.0, "min_history_messages": 0}
    assert old in kept_ids(memory.ask(budget=90, settings=settings))


def test_the_default_order_keeps_the_best_scores_and_tiers_keep_the_recent(memory):
    old = memory.say(text(1, 10), cosine=0.9, instance="q")
    new = memory.say_all([text(number, 10) for number in range(2, 12)], cosine=-0.9)
    by_score, by_tiers = (
        kept_ids(memory.ask(budget=120, order=order)) for order in ("score", "tiers")
    )
    assert old in by_score
    assert old not in by_tiers
    assert by_tiers == new[-len(by_tiers) :]


@pytest.mark.parametrize(
    ("cosine", "stays"),
    [
        pytest.param(0.2, True, id="§4 reaching it"),
        pytest.param(0.19, False, id="§4 below it"),
        pytest.param(None, True, id="§4 no vector"),
    ],
)
def test_min_cosine_excludes_dissimilar_messages(memory, cosine, stays):
    message_id = memory.say("zeta", cosine=cosine, instance="q")
    memory.say("now", cosine=0.9)
    window = memory.ask("zeta!", budget=900, settings={"min_cosine": 0.199998})
    assert (message_id in kept_ids(window)) is stays


def test_a_too_large_message_between_small_ones_does_not_end_history_when_filling(memory):
    before = memory.fill(5)
    large = memory.say(piece(3_000))
    after = memory.fill(5)
    window = memory.ask(budget=1_000, recent=2, similar=0, excerpts="off")
    assert large not in kept_ids(window)
    assert [candidate.message.id for candidate in window.selection.history] == before + after


@pytest.mark.parametrize("fill", [True, False])
@pytest.mark.parametrize(
    ("content", "role"), [(piece(3_000), "system"), ("be brief", "system"), ("zeta", "user")]
)
def test_messages_that_are_never_printed_do_not_end_history(memory, fill, content, role):
    before = memory.fill(5)
    memory.say(content, role)
    after = memory.fill(5)
    window = memory.ask("zeta", budget=1_000, fill=fill, recent=12, similar=0)
    assert [candidate.message.id for candidate in window.selection.history] == before + after


def test_messages_that_filling_did_not_reach_are_counted_but_not_dropped(memory):
    message_ids = memory.fill(80, cosine=0.1)
    window = memory.ask(budget=150, recent=2, similar=2, format="json")
    document = window.to()
    unreached = len(message_ids) - len(window.kept) - len(window.selection.dropped)
    assert document["not_reached"] == unreached > 0
    assert document["dropped"] == []
    assert document["truncated"] is False
    assert window.truncations == 0


def test_without_filling_nothing_is_left_unreached(memory):
    memory.fill(80, cosine=0.1)
    document = memory.ask(recent=2, similar=2, format="json").to()
    assert document["not_reached"] == 0


def test_the_question_itself_is_not_counted_as_unreached(memory):
    memory.say("zeta")
    memory.fill(3)
    window = memory.ask("zeta", format="json")
    assert window.to()["not_reached"] == 0


def test_candidates_without_room_are_dropped_and_that_is_a_truncation(memory):
    memory.fill(20, words=20)
    window = memory.ask(budget=150, recent=20, format="json")
    document = window.to()
    assert {row["reason"] for row in document["dropped"]} == {"no room"}
    assert document["truncated"] is True
    assert window.truncations == len(document["dropped"]) > 0
    assert {row["tier"] for row in document["dropped"]} <= {tier.value for tier in Tier}


def test_a_repeated_question_is_left_out_but_its_earlier_reply_is_kept(memory):
    question_id = memory.say(" zeta ", trace_id="t", cosine=1.0)
    reply_id = memory.say("because", "assistant", trace_id="t")
    window = memory.ask("zeta")
    assert reply_id in kept_ids(window)
    assert question_id not in kept_ids(window)
    assert drop_reasons(window) == {}


def test_a_call_whose_result_was_never_stored_is_dropped(memory):
    message_id = memory.say("", "assistant", calls=["gone"])
    assert drop_reasons(memory.ask()) == {message_id: "unanswered call"}


@pytest.mark.parametrize("budget", [None, 900])
def test_explain_lists_every_candidate_and_at_most_100_others(memory, budget):
    message_ids = memory.say_all([text(number, 3) for number in range(300)], cosine=-0.5)
    window = memory.ask(budget=budget and 2_500, recent=5, similar=5)
    rows = window.to("json", explain=True)["explain"]
    numbers = [row["id"] for row in rows]
    assert len(numbers) == len(set(numbers))
    candidate_ids = {row["id"] for row in rows if row["tier"] != "older"}
    assert set(message_ids[-5:]) <= candidate_ids
    dropped_ids = {entry.candidate.message.id for entry in window.selection.dropped}
    assert dropped_ids <= set(numbers)
    candidate_count = len(window.selection.dropped) + sum(
        not candidate.filler for candidate in window.kept
    )
    assert len(rows) - candidate_count <= 100


def test_explain_gives_the_outcome_and_reason_of_each_message(memory):
    memory.fill(20, words=20)
    window = memory.ask(budget=150, recent=20)
    for row in window.to("json", explain=True)["explain"]:
        assert (row["outcome"] == "kept") is (row["id"] in kept_ids(window))
        assert row["reason"] == "no room" or row["outcome"] == "kept"
        assert {"similarity", "recency", "priority", "tokens", "tier", "reason"} <= row.keys()
        assert row["reason"]


@pytest.mark.parametrize("form", PROVIDERS)
@pytest.mark.parametrize("recent", [0, 9], ids=["filler", "recent"])
def test_a_request_without_a_question_explains_what_it_contains(memory, form, recent):
    question = memory.say("where is the fox?", trace_id="t")
    reply = memory.say("in line 7", "assistant", trace_id="t")
    window = memory.ask("", budget=900, format=form, recent=recent, similar=0)
    assert "in line 7" not in str(window.to())
    assert [message.id for message in window.messages] == [question]
    assert "1 recent · 0 recalled" in window.summary()
    outcomes = {
        row["id"]: (row["outcome"], row["reason"])
        for row in window.to("json", explain=True)["explain"]
    }
    assert outcomes[reply] == ("dropped", "after the question")
    assert not window.truncated


def test_a_read_only_store_gives_the_same_context(memory, tmp_path, as_reader):
    add_conversation(memory)
    options = {"budget": 700, "settings": {"token_counter": "ratio"}}
    with as_reader(memory.store.location) as store:
        assert store.read_only
        reader = Memory.__new__(Memory)
        reader.store, reader.minute = store, memory.minute
        context = reader.ask(**options)
        assert context.to("text") == memory.ask(**options).to("text")


@pytest.fixture
def as_reader(monkeypatch):
    from contextlib import contextmanager

    @contextmanager
    def opened(location):
        if "://" in location:
            for statement in (
                "DO $$BEGIN CREATE ROLE onlooker LOGIN; "
                "EXCEPTION WHEN duplicate_object THEN NULL; END$$",
                "GRANT USAGE ON SCHEMA reservoir TO onlooker",
                "GRANT SELECT ON ALL TABLES IN SCHEMA reservoir TO onlooker",
            ):
                behind(location, statement)
            location = location.replace("postgres@", "onlooker@")
        else:
            # Root ignores file modes, so patch the check of the store.
            monkeypatch.setattr(
                "reservoir_cli.storage.sqlite.store_file.os.access", lambda *_: False
            )
        store = open_store(location)
        yield store
        store.close()

    return opened


# Invariants

SAID = st.lists(
    st.tuples(
        st.sampled_from(["user", "assistant", "system", "call", "result"]),
        st.integers(1, 60),
        st.sampled_from(["p", "p", "q"]),
        st.sampled_from(["p", "p", "p", "x"]),
        st.sampled_from([None, -0.5, 0.3, 0.9]),
        st.integers(0, 3),
    ),
    max_size=14,
)


@hypothesis.given(
    SAID,
    st.integers(20, 600),
    st.sampled_from(FORMATS),
    st.sampled_from(["score", "tiers"]),
    st.sampled_from([None, "p"]),
)
@hypothesis.settings(
    max_examples=100, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
def test_a_context_keeps_its_budget_and_scope_and_reports_exactly(
    monkeypatch, messages, budget, form, order, instance
):
    monkeypatch.setattr(
        "reservoir_cli.embedding.load_model.load_embedder", lambda *_, **__: Compass()
    )
    store = open_store(":memory:")
    memory = Memory(store)
    with store.write():
        for index, (role, words, message_instance, partition, cosine, trace) in enumerate(messages):
            options = {"calls": ["c"]} if role == "call" else {}
            options |= {"tool_call_id": "c"} if role == "result" else {}
            stored_role = {"call": "assistant", "result": "tool"}.get(role, role)
            memory.say(
                text(index, words),
                stored_role,
                cosine=cosine,
                instance=message_instance,
                partition=partition,
                trace_id=f"t{trace}",
                **options,
            )
    request = {"budget": budget, "format": form, "order": order, "instance": instance}
    window = memory.ask(**request, trace_id="t")
    if not window.budget.overfull:
        assert window.used <= budget
        assert count_printed_tokens(window) <= budget
    assert {candidate.message.partition for candidate in window.kept} <= {"p"}
    if instance:
        assert {candidate.message.instance for candidate in window.kept} <= {instance}
    second = memory.ask(**request, trace_id="t")
    assert second.selection == window.selection
    store.close()


def test_a_standing_instruction_far_below_the_rest_is_read_for_a_small_budget(memory):
    memory.say("zeta", cosine=0.9, instance="q")
    memory.say_all([text(number, 10) for number in range(60)], cosine=0.5, instance="q")
    instruction = memory.say("Always answer in French.", cosine=0.47, instance="other")
    memory.say("now", cosine=-0.9)
    memory.say_all([text(number, 10) for number in range(100, 110)], cosine=-0.5)
    settings = {"recency_weight": 0.0, "min_history_messages": 0, "similarity": "cosine"}
    assert instruction in kept_ids(memory.ask(budget=150, settings=settings))
