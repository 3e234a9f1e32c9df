"""The JSON document of a context, and how it is counted."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from contract import BUDGET, DOCUMENT, PLACED, ROW
from each import each
from windows import (
    CALLING,
    EVERYTHING,
    METER,
    OLD,
    REPLY,
    RESULT,
    SEARCH,
    TURNS,
    USER,
    stored,
    window,
)

from reservoir_cli import ContextOptions, Message, Reservoir, ToolCall, UsageError
from reservoir_cli.context.render.formats import count_turns
from reservoir_cli.context.request import FORMATS


@pytest.fixture
def document(tmp_path) -> dict[str, Any]:
    """Return the document of a context from a store of two instances that exceeds the budget."""
    settings = {"embedding_model": "nobody/absent-model"}
    with Reservoir.open(tmp_path / "store.db", settings=settings, offline=True) as reservoir:
        start = datetime(2026, 1, 1, tzinfo=UTC)
        for n in range(40):
            messages = [
                Message(
                    "user", f"what of fox {n}? " + "word " * (n % 7) * 9, start + timedelta(hours=n)
                ),
                Message("assistant", f"the dog, {n}", start + timedelta(hours=n, minutes=1)),
            ]
            reservoir.ingest(messages, partition="p", instance=("i", "j")[n % 3 == 0], embed=False)
        context = reservoir.context(
            "which fox?",
            partition="p",
            budget=600,
            format="json",
            options=ContextOptions(recent_context_size=9),
            now=messages[-1].created_at + timedelta(minutes=1),
            system="Be brief.",
            procedure={"a": "b"},
            knowledge={"c": "d"},
            episode=["e"],
        )
        return json.loads(json.dumps(context.to()))


def test_json_has_every_field(document):
    assert tuple(document) == DOCUMENT
    assert tuple(document["budget"]) == BUDGET
    assert document["schema_version"] == 1
    assert document["query"] == "which fox?"
    for row in document["messages"]:
        assert set(row) == {*ROW, *PLACED}
    assert document["dropped"]
    for row in document["dropped"]:
        assert set(row) == {"id", "tier", "tokens", "priority", "reason"}


def test_json_has_correct_sums(document):
    budget = document["budget"]
    sections = sum(
        budget[key] for key in ("system", "procedure", "knowledge", "episodes", "current")
    )
    assert budget["available"] == 600
    assert budget["history_available"] == 600 - sections
    assert budget["used"] == sections + budget["history_used"] <= 600
    assert budget["utilisation"] == pytest.approx(budget["used"] / 600, abs=1e-4)
    share = budget["used"] / budget["window"]
    assert budget["window_utilisation"] == pytest.approx(share, abs=1e-4)
    assert document["truncated"] is True


def test_json_names_sections_in_order_and_tiers_of_stored_rows_only(document):
    order = ["system", "procedure", "knowledge", "episode", "recalled", "history", "current"]
    sections = [row["section"] for row in document["messages"]]
    assert sections == sorted(sections, key=order.index)
    assert set(sections) == set(order)
    for row in document["messages"]:
        is_stored = row["section"] in ("recalled", "history")
        assert (row["id"] is not None) is is_stored
        for key in ("tier", "similarity", "cosine", "bm25", "recency", "priority"):
            assert (row[key] is not None) is is_stored, key
        if is_stored:
            assert row["tier"] in ("recent", "similar", "synapse", "older")
            priority = 0.7 * row["similarity"] + 0.3 * row["recency"]
            assert row["priority"] == pytest.approx(priority, abs=1e-6)
            assert 0 <= row["similarity"] <= 1 >= row["recency"] >= 0


def test_json_gives_bm25_raw(document):
    scores = [row["bm25"] for row in document["messages"] if row["bm25"] is not None]
    assert max(scores) > 0
    assert all(row["cosine"] == 0 for row in document["messages"] if row["id"])


def test_format_json_counts_as_text():
    context = window(TURNS, OLD, **EVERYTHING)
    assert count_turns(context.turns, "json", METER) == count_turns(context.turns, "text", METER)
    assert count_turns([], "text", METER) == 0


@each("form", ["text", "openai", "ollama", "anthropic"])
def test_messages_after_the_last_question_are_counted_with_history(form):
    """§3: the printed text is counted; the question follows it."""
    shorter, longer = (
        count_turns(window([USER, replace(REPLY, content=text)]).turns[:-1], form, METER)
        for text in ("short", "long " * 500)
    )
    assert longer > shorter + 400


@pytest.mark.parametrize("form", ["ollama", "anthropic"])
def test_the_keys_of_arguments_are_counted(form):
    short, long = (
        count_turns(
            window(
                [USER, replace(CALLING, tool_calls=(replace(SEARCH, arguments=text),)), RESULT]
            ).turns,
            form,
            METER,
        )
        for text in ('{"k": 1}', '{"' + "a long key " * 50 + '": 1}')
    )
    assert long > short + 100


def test_the_tools_of_a_body_are_counted():
    """One body declares forty tools, the other one tool."""

    def count_tokens(names: list[str]) -> int:
        calls = tuple(ToolCall(f"c{n}", name, "{}") for n, name in enumerate(names))
        results = [stored(3, "tool", "x", tool_call_id=call.id) for call in calls]
        context = window([USER, replace(CALLING, tool_calls=calls), *results])
        assert len(context.to("anthropic")["tools"]) == len(set(names))
        return count_turns(context.turns, "anthropic", METER)

    assert count_tokens([f"a_long_name_{n}" for n in range(10, 50)]) > count_tokens(
        40 * ["a_long_name_10"]
    )


@each("form", ["", "yaml", "JSON", "text "])
def test_an_unknown_format_is_an_error_that_names_the_known(form):
    if not form:
        assert window().to(form) == window().to("text")
        return
    with pytest.raises(UsageError) as error:
        window().to(form)
    assert repr(form) in error.value.message
    for name in FORMATS:
        assert name in (error.value.hint or "")
