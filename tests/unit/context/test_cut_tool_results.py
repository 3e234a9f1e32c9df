"""Long tool results keep their beginning, with a marker that names what is missing."""

import json
from dataclasses import replace

import pytest
from each import each
from windows import SEARCH, stored

from reservoir_cli import Message, Reservoir
from reservoir_cli.context.cut_tool_results import cut_tool_result
from reservoir_cli.context.request import FORMATS
from reservoir_cli.messages import StoredMessage
from reservoir_cli.tokens import ApproximateCounter

COUNTER = ApproximateCounter()


def _result_of(text: str, message_id: int = 77) -> StoredMessage:
    return stored(message_id % 25, "tool", text, id=message_id, tool_call_id="c")


LINES = "\n".join(f"line {n}: the quick brown fox" for n in range(1_200))


@each("limit", [50, 200, 1_999, 10_000])
def test_a_cut_result_ends_at_a_line_end_and_names_the_message_and_what_is_missing(limit):
    original = _result_of(LINES)
    shortened = cut_tool_result(original, limit, COUNTER)
    head, _, marker = shortened.content.rpartition("\n")
    assert LINES.startswith(head + "\n")
    assert "77" in marker
    assert "reservoir view -p p --id 77" in marker
    assert f"{original.tokens:,}" in marker
    assert shortened.tokens == COUNTER.count(shortened.content) <= limit
    assert shortened.tokens > limit - 60
    assert replace(shortened, content=original.content, tokens=original.tokens) == original


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(LINES, id="short lines"),
        pytest.param("first line\n" + "word " * 20_000, id="one short line and a long one"),
        pytest.param("word " * 20_000, id="no line end"),
    ],
)
def test_the_marker_of_a_cut_gives_the_exact_missing_length(text):
    original = _result_of(text)
    shortened = cut_tool_result(original, 2_000, COUNTER)
    head, _, marker = shortened.content.rpartition("\n")
    missing = int(marker.split("[… ")[1].split(" ")[0].replace(",", ""))
    assert missing == pytest.approx(original.tokens - COUNTER.count(head), abs=60)


def test_a_text_without_a_line_end_is_cut_inside_the_line():
    shortened = cut_tool_result(_result_of("word " * 20_000), 500, COUNTER)
    head, _, _ = shortened.content.rpartition("\n")
    assert ("word " * 20_000).startswith(head)
    assert 300 < COUNTER.count(head) < 500


@pytest.mark.parametrize(("limit", "is_cut"), [(0, False), (2_000, True), (100_000, False)])
def test_results_over_the_setting_are_cut_and_0_is_off(tmp_path, limit, is_cut):
    settings = {"embedding_model": "nobody/absent-model", "max_tool_result_tokens": limit}
    with Reservoir.open(tmp_path / "store.db", settings=settings, offline=True) as reservoir:
        messages = [
            Message("user", "read it"),
            Message("assistant", "", tool_calls=(SEARCH,)),
            Message("tool", LINES, tool_call_id="call_1"),
            Message("user", LINES),
        ]
        rows = reservoir.ingest(messages, partition="p", instance="i", embed=False)
        where = {"partition": "p", "instance": "i", "model": "gpt-4o"}
        contexts = [reservoir.context("and?", **where, format=form) for form in FORMATS]
        assert reservoir.view(reservoir.scope("p", "i"), 0) == rows
    for form, context in zip(FORMATS, contexts, strict=True):
        printed = json.dumps(context.to(), ensure_ascii=False)
        assert (f"reservoir view -p p --id {rows[2].id}]" in printed) is is_cut, form
        assert context.truncated is is_cut
        # Messages of the user are never cut.
        assert printed.count("line 1199: ") == (1 if is_cut else 2), form
        cut_sizes = [candidate.message.tokens for candidate in context.kept if candidate.cut]
        assert all(1.1 * tokens <= limit for tokens in cut_sizes)
