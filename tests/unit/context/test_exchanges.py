"""No format prints an answer under a question that is not its own."""

import json
import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import hypothesis
import pytest
from builders import context
from hypothesis import strategies as st

from reservoir_cli import Message, Reservoir
from reservoir_cli.context.request import FORMATS

START = datetime(2026, 5, 9, 12, tzinfo=UTC)
SETTINGS = {"embedding_model": "nobody/absent-model"}
#: Question and answer hold the number of their exchange in brackets.
NUMBER = re.compile(r"(asked|said) <(\d+)>|(…$)|(answer left out)", re.MULTILINE)

EXCHANGES = st.lists(
    st.tuples(
        st.integers(0, 3),  # which question; some repeat
        st.sampled_from((1, 1, 1, 12, 120)),  # ports in the answer, some of which an excerpt shows
        st.sampled_from("pppq"),
        st.sampled_from(("whole", "whole", "late", "question", "answer", "further", "same")),
    ),
    min_size=1,
    max_size=9,
)


def messages_of(exchanges):
    """Return messages by instance in order of time; a late answer follows the next question."""
    messages, late_replies = [], []
    for number, (question, words, instance, kind) in enumerate(exchanges):
        trace = f"t{number}"
        request = Message("user", f"asked <{number}> port of {question}", trace_id=trace)
        text = " ".join(f"said <{number}> port{port}" for port in range(words))
        reply = Message("assistant", text, trace_id=trace)
        messages += [(instance, request)] if kind != "answer" else []
        messages += late_replies
        late_replies = [(instance, reply)] if kind == "late" else []
        if kind not in ("late", "question"):
            messages.append((instance, reply))
        if kind == "further":
            messages.append(
                (instance, Message("assistant", f"said <{number}> more", trace_id=trace))
            )
    return [*messages, *late_replies]


def store(folder, messages):
    reservoir = Reservoir.open(folder / "a.db", settings=SETTINGS)
    for minute, (instance, message) in enumerate(messages):
        created_at = START + timedelta(minutes=minute)
        timed = Message(
            message.role, message.content, created_at=created_at, trace_id=message.trace_id
        )
        reservoir.ingest([timed], partition="p", instance=instance, embed=False)
    return reservoir


def sections(window, form):
    """Return the printed text of recalled messages, and that of history with the question."""
    body = window.to(form)
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    text = text.replace("\\n", "\n")
    recalled = "\n".join(turn.content for turn in window.turns if turn.section == "recalled")
    marks = NUMBER.findall(text)
    count = len(NUMBER.findall(recalled))
    return marks[:count], marks[count:]


def assert_own(marks):
    question = None
    for kind, number, gap, _ in marks:
        if kind == "asked":
            question = number
        elif gap:
            question = None
        elif kind == "said":
            assert question in (None, number), marks


@hypothesis.given(
    EXCHANGES,
    st.sampled_from((60, 90, 150, 300, 900)),
    st.sampled_from(["score", "tiers"]),
    st.sampled_from([form for form in FORMATS if form != "json"]),
    st.integers(0, 8),
)
@hypothesis.settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
def test_no_answer_is_printed_under_another_question(
    tmp_path_factory, exchanges, budget, order, form, question
):
    messages = messages_of(exchanges)
    with store(tmp_path_factory.mktemp("own"), messages) as reservoir:
        query = f"asked <{question}> port of 1"
        window = context(reservoir, query, partition="p", budget=budget, format=form, order=order)
        assert window.used <= budget or window.budget.overfull
        recalled, history = sections(window, form)
        assert_own(recalled)
        assert_own(history)
        assert not any(gap for _, _, gap, _ in history)
        answered = {number for kind, number, _, _ in [*recalled, *history] if kind == "said"}
        marked = {mark[1] for mark, next_mark in pairwise(recalled) if next_mark[3]}
        stored = {
            message.content.split()[1][1:-1] for _, message in messages if message.role != "user"
        }
        printed = {number for kind, number, _, _ in recalled if kind == "asked"}
        assert printed & stored - answered == marked


@pytest.fixture
def port_questions(tmp_path):
    """Return a question, another with a long answer, and the first again with another answer."""
    turns = [
        ("user", "Which port does the staging database use?", "a"),
        ("assistant", "5432", "a"),
        ("user", "Which port does the metrics exporter use?", "b"),
        ("assistant", "It is a long story. " * 60, "b"),
        ("user", "Which port does the staging database use?", "c"),
        ("assistant", "6432", "c"),
    ]
    with store(
        tmp_path, [("p", Message(*text, trace_id=trace)) for *text, trace in turns]
    ) as reservoir:
        yield reservoir


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("budget", [90, 120, 160, 200])
def test_a_newer_answer_is_not_printed_under_another_question(port_questions, form, budget):
    window = port_questions.context(
        "staging database port", partition="p", budget=budget, format=form
    )
    text = window.to("text")
    lines = [line for line in text.splitlines() if line]
    if "assistant: 6432" in lines:
        previous_line = lines[lines.index("assistant: 6432") - 1]
        assert previous_line in ("user: Which port does the staging database use?", "…")


def test_a_question_without_its_answer_is_marked(port_questions):
    text = port_questions.context("metrics exporter", partition="p", budget=80).to("text")
    assert "metrics exporter use?\n[answer left out: #" in text


def test_an_exchange_is_a_duplicate_only_if_its_answer_is_equal_too(tmp_path):
    messages = []
    for number, answer in enumerate(["5432", "5432", "6432"]):
        messages.append(("q", Message("user", "Which port?", trace_id=f"t{number}")))
        messages.append(("q", Message("assistant", answer, trace_id=f"t{number}")))
    messages.append(("p", Message("user", "hello", trace_id="now")))
    with store(tmp_path, messages) as reservoir:
        recalled = reservoir.context("the port", partition="p", budget=500).selection.recalled
    texts = [candidate.message.content for candidate in recalled]
    assert [text for text in texts if text != "hello"] == [
        "Which port?",
        "5432",
        "Which port?",
        "6432",
    ]
