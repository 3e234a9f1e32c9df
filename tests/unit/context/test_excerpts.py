"""Excerpts of long messages: where they are cut, and how they are printed."""

import itertools
import json
import re
from hashlib import sha256

import hypothesis
import pytest
from each import each
from hypothesis import strategies as st
from long_replies import (
    MARK,
    TOPICS,
    BagOfWords,
    add_messages,
    ask,
    assert_closed,
    assert_printed_from,
    long_reply,
    paragraph,
    stored_rows,
)

from reservoir_cli import Message, Reservoir
from reservoir_cli.context import excerpts
from reservoir_cli.context.window_constants import FIRST_SHARE, REPLY_SHARE, REPLY_SHARE_ABOUT_USER
from reservoir_cli.messages import Scope, ToolCall


@pytest.fixture
def open_reservoir(tmp_path):
    def open_with(**settings):
        values = {"min_history_messages": 0, **settings}
        return Reservoir.open(tmp_path / "a.db", settings=values, embedder=BagOfWords())

    return open_with


# What a context prints


def test_the_answering_passage_of_a_long_message_is_printed(open_reservoir):
    with open_reservoir() as reservoir:
        (stored,) = add_messages(reservoir, Message("assistant", long_reply(*TOPICS)))
        window = ask(reservoir)
    (row,) = stored_rows(window)
    assert "delta1 delta2" in row["content"]
    assert "amber1" not in row["content"]
    assert window.excerpts == 1
    assert not window.truncated
    text = window.to("text")
    assert f"assistant #{stored.id}: [… " in text
    assert "reservoir view -p p --id N" in text
    assert row["excerpt_priority"] == pytest.approx(FIRST_SHARE * row["priority"])
    assert json.loads(json.dumps(window.to("json")))["excerpts"] == 1


def test_if_all_passages_fit_the_message_is_printed_whole_and_unmarked(open_reservoir):
    with open_reservoir() as reservoir:
        add_messages(reservoir, Message("assistant", long_reply(*TOPICS)))
        window = ask(reservoir, budget=4_000)
    (row,) = stored_rows(window)
    assert row["spans"] is None
    assert row["excerpt_priority"] is None
    assert row["content"] == long_reply(*TOPICS)
    assert not window.excerpts
    assert not MARK.search(window.to("text"))


def test_an_excerpt_that_becomes_complete_is_a_turn_of_history(open_reservoir):
    with open_reservoir() as reservoir:
        question = Message("user", "what of delta", trace_id="t")
        add_messages(reservoir, question, Message("assistant", long_reply(*TOPICS), trace_id="t"))
        window = ask(reservoir, budget=4_000)
    assert [row["section"] for row in stored_rows(window)] == ["history", "history"]


def test_adjacent_passages_are_printed_as_one(open_reservoir):
    with open_reservoir() as reservoir:
        add_messages(reservoir, Message("assistant", long_reply(*TOPICS)))
        window = ask(reservoir, "delta1 delta2 ember1 ember2", budget=700)
    (row,) = stored_rows(window)
    assert any(
        "delta1" in part and "ember1" in part
        for part in (long_reply(*TOPICS)[start:end] for start, end in row["spans"])
    )


def test_without_excerpts_only_whole_messages_are_printed(open_reservoir):
    with open_reservoir(excerpts="off") as reservoir:
        (stored,) = add_messages(reservoir, Message("assistant", long_reply(*TOPICS)))
        window = ask(reservoir)
        assert not stored_rows(window)
        assert [drop.reason for drop in window.selection.dropped] == ["too large"]
        assert stored_rows(ask(reservoir, excerpts="auto"))[0]["id"] == stored.id


def test_the_limit_is_a_setting(open_reservoir):
    with open_reservoir(excerpt_over=100_000) as reservoir:
        add_messages(reservoir, Message("assistant", long_reply(*TOPICS)))
        assert not stored_rows(ask(reservoir))


def test_messages_with_calls_and_results_are_never_excerpted(open_reservoir):
    with open_reservoir() as reservoir:
        call = ToolCall("c", "look", "{}")
        add_messages(
            reservoir,
            Message("assistant", long_reply(*TOPICS), tool_calls=(call,)),
            Message("tool", long_reply(*TOPICS), tool_call_id="c"),
        )
        assert not stored_rows(ask(reservoir))


def test_by_tiers_an_excerpt_of_a_long_message_ends_the_run(open_reservoir):
    with open_reservoir(order="tiers") as reservoir:
        add_messages(
            reservoir,
            Message("user", "short and old"),
            Message("assistant", long_reply(*TOPICS)),
            Message("user", "short and new"),
        )
        rows = stored_rows(ask(reservoir))
    assert [row["content"][:9] for row in rows if row["spans"] is None] == ["short and"]
    assert [row["spans"] is None for row in rows] == [False, True]


def test_secrets_are_hidden_before_the_text_is_cut(open_reservoir):
    secret = "AKIA" + "Z7Q4M2X9K3T8R5W1"
    text = "\n\n".join(
        f"{paragraph(topic, 40)} The key is {secret} in {topic}." for topic in TOPICS
    )
    with open_reservoir(redact="mask") as reservoir:
        add_messages(reservoir, Message("assistant", text))
        window = ask(reservoir, budget=500)
        (message,) = reservoir.view(Scope("p"), 1)
    (row,) = stored_rows(window)
    assert secret not in window.to("text")
    assert "delta1" in row["content"]
    assert_printed_from(message.content, row)


@pytest.mark.parametrize("budget", range(60, 400, 20))
def test_a_cut_code_block_is_closed_and_reopened(open_reservoir, budget):
    code = "\n".join(f"    delta{number} = birch{number}" for number in range(200))
    with open_reservoir() as reservoir:
        text = f"{paragraph('amber')}\n\n```python\n{code}\n```\n\n{paragraph('cedar')}"
        add_messages(reservoir, Message("assistant", text))
        window = ask(reservoir, budget=budget)
    for row in stored_rows(window):
        assert_closed(row["content"])
        assert_printed_from(text, row)


@pytest.mark.parametrize(
    ("language", "budget"),
    [
        *(("hexadecimal", budget) for budget in range(160, 600, 40)),
        *(("Chinese", budget) for budget in range(240, 600, 40)),
    ],
)
def test_the_beginning_of_a_dense_passage_is_printed_with_any_room(
    open_reservoir, language, budget
):
    code = "\n".join(sha256(bytes([number])).hexdigest() for number in range(60))
    dense = f"```\n{code}\n```" if language == "hexadecimal" else "水火木金。" * 180
    text = f"delta1 delta2\n{dense}\n\n{paragraph('amber', 300)}"
    with open_reservoir() as reservoir:
        add_messages(reservoir, Message("assistant", text))
        (row,) = stored_rows(ask(reservoir, budget=budget))
    assert row["content"].startswith("delta1 delta2")
    assert_closed(row["content"])
    assert_printed_from(text, row)


@pytest.mark.parametrize("blank", ["", "\r", "  "])
def test_a_whole_code_block_is_closed_once(blank):
    lines = [paragraph("amber"), "", "```", "delta = 1", "```", "", paragraph("cedar")]
    text = "".join(f"{line}{blank}\n" for line in lines)
    (span,) = excerpts.merge_spans(text, [(0, text.rindex("```") + 3)])
    assert excerpts.write_excerpt(text, [span], 100).count("```") == 2


@pytest.mark.parametrize(
    ("settings", "budget"),
    [
        ({"excerpts": "auto"}, 70),
        ({"excerpts": "off"}, 300),
        ({"excerpts": "off", "order": "tiers"}, 300),
    ],
)
def test_dropping_the_best_match_is_reported_with_its_tokens(open_reservoir, settings, budget):
    with open_reservoir(**settings, recent_context_size=20) as reservoir:
        add_messages(
            reservoir,
            Message("assistant", long_reply(*TOPICS)),
            *(Message("user", f"{number} {paragraph('birch')}") for number in range(10)),
        )
        window = ask(reservoir, budget=budget)
        best = next(
            row for row in reservoir.view(Scope("p", "p"), count=0) if row.role == "assistant"
        )
        assert str(best.id) not in {str(row["id"]) for row in stored_rows(window)}
        (note,) = window.hints
        words = rf"the best match, #{best.id} \(([\d,]+) tokens\), does not fit"
        tokens = int(re.fullmatch(words, note)[1].replace(",", ""))
        assert best.tokens <= tokens <= 1.2 * best.tokens


@pytest.mark.parametrize("budget", [30, 45, 60])
def test_the_tokens_of_a_left_out_best_match_are_more_than_the_room_that_is_left(
    open_reservoir, budget
):
    with open_reservoir(recent_context_size=20) as reservoir:
        add_messages(
            reservoir,
            Message("user", "the amber key opens the boathouse at the end of the pier"),
            *(Message("user", "yes") for _ in range(4)),
        )
        window = ask(reservoir, "which key opens the boathouse?", budget=budget)
        (note,) = window.hints
    [tokens] = map(int, re.findall(r"\((\d+) tokens\), does not fit", note))
    assert window.used + tokens > window.budget.available


def test_by_tiers_a_best_match_behind_what_does_not_fit_is_said_to_be_there(open_reservoir):
    with open_reservoir(order="tiers", recent_context_size=1) as reservoir:
        add_messages(
            reservoir,
            Message("user", "delta1 delta2 are two dams in Zeeland"),
            Message("assistant", long_reply(*TOPICS)),
        )
        (note,) = ask(reservoir, "what are delta1 and delta2?", budget=300).hints
    assert re.fullmatch(
        r"the best match, #1 \(\d+ tokens\), comes after a message that does not fit", note
    )


@pytest.mark.parametrize(
    ("first", "end", "beginning"),
    [("---", "birch", "amber"), ("amber", "birch", "amber"), ("---", "amber", "---\ntitle")],
)
def test_an_excerpt_begins_after_front_matter(first, end, beginning):
    text = "---\ntitle: Trees\ntags: [wood]\n---\n\namber\n\nbirch\n\ncedar"
    spans = [(text.index(first), text.index(end))]
    assert excerpts.write_excerpt(text, spans, 20).startswith(beginning)


# What a small budget is used for


def test_a_heading_is_printed_with_its_text():
    text = f"{paragraph('amber')}\n\n# Delta\n\n{paragraph('delta')}"
    heading = text.index("# Delta"), text.index("delta0")
    spans = [(0, heading[0]), heading, (heading[1], len(text))]
    parts = excerpts.join_crumbs(spans)
    best, *_ = excerpts.Nearness("unheard").rank(text, parts, [0.0, 1.0, 0.0])
    assert best == (heading[0], len(text))


@pytest.mark.parametrize("heading", ["## Cedar", "**Cedar**", "**Cedar:**", "# Trees\n\n## Cedar"])
def test_no_excerpt_ends_on_a_heading(open_reservoir, heading):
    text = "\n\n".join(
        [paragraph("amber"), paragraph("delta"), heading, paragraph("cedar"), paragraph("birch")]
        * 2
    )
    with open_reservoir() as reservoir:
        add_messages(reservoir, Message("assistant", text))
        windows = [ask(reservoir, budget=budget) for budget in (*range(120, 1_300, 30), 4_000)]
    last = heading.splitlines()[-1]
    rows = [row for window in windows for row in stored_rows(window)]
    for row in rows:
        parts = [text[start:end] for start, end in row["spans"] or [(0, len(text))]]
        assert not any(part.endswith(last) for part in parts)
    assert rows[-1]["spans"] is None


def test_a_comment_in_code_is_no_heading():
    text = "Run this:\n\n```sh\n# one\nls\n# two\n```\n\nDone, and nothing else is to do here."
    outline = excerpts.Outline(text)
    assert outline.strip_bare_heading((0, text.index("\n```\n\nD"))) == (
        0,
        text.index("\n```\n\nD"),
    )
    assert outline.strip_bare_heading((0, len(text))) == (0, len(text))


@hypothesis.given(st.text("ab .\n#*`-", max_size=200), st.data())
def test_a_span_without_headings_is_cut_to_its_beginning(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    stripped = excerpts.Outline(text).strip_bare_heading((start, end))
    assert start <= stripped[0] <= stripped[1] <= end or stripped[0] == stripped[1]
    assert not text[start : stripped[0]].strip()


def test_the_beginning_of_a_passage_that_does_not_fit_is_printed(open_reservoir):
    text = " ".join(f"Delta1 delta2 and {topic}{n} follow." for n in range(20) for topic in TOPICS)
    with open_reservoir() as reservoir:
        (stored,) = add_messages(reservoir, Message("assistant", text))
        for budget in (150, 200, 250):
            (row,) = stored_rows(ask(reservoir, budget=budget))
            assert row["id"] == stored.id
            assert len(row["spans"]) == 1
            assert row["content"].splitlines()[-2].endswith("follow.")
            assert_printed_from(text, row)


def test_a_long_message_without_vectors_is_cut_by_words(tmp_path):
    settings = {"embedding_model": "nobody/absent-model", "min_history_messages": 0}
    with Reservoir.open(tmp_path / "a.db", settings=settings) as reservoir:
        add_messages(reservoir, Message("assistant", long_reply(*TOPICS)))
        (row,) = stored_rows(ask(reservoir))
    assert "delta1 delta2" in row["content"]
    assert "amber1" not in row["content"]
    assert_printed_from(long_reply(*TOPICS), row)


def test_passages_by_words_cover_a_text_without_breaks():
    text = "x" * 1_990 + " delta"
    spans = excerpts.cut(text, excerpts.Outline(text).breaks)
    assert excerpts.Nearness("deltas").rank(text, spans, ())[0][1] == len(text)
    assert "".join(text[start:end] for start, end in spans) == text


@pytest.mark.parametrize(("between", "words"), [(" ", 1), ("\n", 4), ("\r\n", 4)])
def test_passages_by_words_split_no_word_and_no_line(between, words):
    lines = [" ".join([f"word{number}"] * words) for number in range(1_000)]
    text = between.join(lines)
    spans = excerpts.cut(text, excerpts.Outline(text).breaks)
    passages = [text[start:end].strip() for start, end in spans]
    assert between.join(passages) == text
    assert {line for passage in passages for line in passage.split(between)} == set(lines)


PASSAGES = ["The slot was renamed.", "We deleted the slot, Müller says.", "It is late."]


@each(
    ("question", "cosines", "best"),
    [
        pytest.param("slots", (0.1, 0.2, 0.4), 1, id="a word outweighs a small distance"),
        pytest.param("slots", (0.1, 0.2, 0.9), 2, id="and not a great one"),
        pytest.param("deletes it", (0.3, 0.3, 0.3), 1, id="endings do not count"),
        pytest.param("mueller", (0.3, 0.3, 0.3), 1, id="nor how umlauts are written"),
        pytest.param("other", (0.5, 0.2, 0.51), 2, id="without a word the cosine decides"),
        pytest.param("other", (0.5, 0.4, 0.5), 0, id="the first of equals"),
        pytest.param("lot", (0.3, 0.3, 0.3), 0, id="a word counts from its beginning only"),
    ],
)
def test_passages_are_ranked_by_meaning_and_words(question, cosines, best):
    text = "".join(PASSAGES)
    ends = list(itertools.accumulate(map(len, PASSAGES)))
    spans = list(zip([0, *ends], ends, strict=False))
    ranked = excerpts.Nearness(question).rank(text, spans, cosines)
    assert ranked[0] == spans[best]
    assert sorted(ranked) == spans


def test_of_equal_passages_the_one_next_to_a_relevant_one_comes_first():
    spans = [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert excerpts.Nearness("?").rank("abcd", spans, (0.5, 0.0, 0.4, 0.5))[0] == (3, 4)


@hypothesis.given(st.text(max_size=300), st.text(max_size=40))
def test_passages_of_any_text_can_be_ranked_by_any_question(text, question):
    spans = excerpts.cut(text, excerpts.Outline(text).breaks)
    assert sorted(excerpts.Nearness(question).rank(text, spans, ())) == spans


def test_a_note_on_excerpts_is_printed_if_there_is_room(open_reservoir):
    line = "Excerpts have a number: reservoir view -p p --id N"
    with open_reservoir() as reservoir:
        add_messages(reservoir, Message("assistant", long_reply(*TOPICS)))
        windows = [ask(reservoir, budget=budget) for budget in range(150, 400, 10)]
    with_line = [line in window.to("text") for window in windows if window.excerpts]
    assert set(with_line) == {False, True}
    assert all(window.used <= window.budget.available for window in windows)


@pytest.mark.parametrize(
    ("query", "budget", "of_reply"),
    [
        ("delta1 delta2", 1_000, REPLY_SHARE),
        ("my delta1 delta2", 750, REPLY_SHARE_ABOUT_USER),
    ],
)
def test_excerpts_of_replies_have_lower_priority_than_those_of_documents(
    open_reservoir, query, budget, of_reply
):
    with open_reservoir() as reservoir:
        add_messages(
            reservoir,
            Message("assistant", long_reply(*TOPICS)),
            Message("user", "what then", trace_id="t"),
            Message("assistant", long_reply(*TOPICS), trace_id="t"),
        )
        rows = stored_rows(ask(reservoir, query, budget=budget))
    shares = [row["excerpt_priority"] / row["priority"] for row in rows if row["spans"]]
    assert shares == pytest.approx([FIRST_SHARE, of_reply])
    assert REPLY_SHARE_ABOUT_USER < REPLY_SHARE < FIRST_SHARE
