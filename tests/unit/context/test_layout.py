"""Layout: where a kept message is printed, and what is counted once."""

import json
import re
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise, product
from operator import itemgetter

import hypothesis
import pytest
from builders import context
from each import each
from hypothesis import strategies as st

from reservoir_cli import Message, Reservoir
from reservoir_cli.context.candidate import Candidate, Scores, Tier
from reservoir_cli.context.choose import SelectionOptions, select
from reservoir_cli.context.layout import by_time
from reservoir_cli.context.request import FORMATS
from reservoir_cli.context.window_builder import Costs
from reservoir_cli.messages import Role, StoredMessage, ToolCall

START = datetime(2026, 5, 9, 12, tzinfo=UTC)
FREE = Costs(lambda _: 1, lambda _: 1, 0, 0)


def make_candidates(*turns, now=START):
    """Return recent messages of one instance from ``("user", "text", {fields})``, by time.

    Messages after a question belong to its exchange.
    """
    candidates = []
    trace = "t0"
    for number, (role, content, *fields) in enumerate(turns, 1):
        extra = fields[0] if fields else {}
        trace = f"t{number}" if role == "user" else trace
        message = StoredMessage(
            id=number,
            trace_id=extra.get("trace", trace),
            conversation_id=None,
            partition="p",
            instance=extra.get("instance", "i"),
            role=Role(role),
            content=content,
            name=None,
            tool_calls=tuple(ToolCall(call_id, "look", "{}") for call_id in extra.get("calls", ())),
            tool_call_id=extra.get("answers"),
            created_at=now + timedelta(minutes=number),
            source="test",
            source_id=str(number),
            tokens=extra.get("tokens", 1),
        )
        scores = Scores(0.0, 0.0, 0.0, 0.0, extra.get("priority", 0.5), True)
        age = None if extra.get("instance") else len(turns) - number
        candidates.append(Candidate(message, Tier.RECENT, False, scores, age))
    ages = sorted(candidate.age for candidate in candidates if candidate.age is not None)
    return [
        candidate if candidate.age is None else candidate._replace(age=ages.index(candidate.age))
        for candidate in candidates
    ]


def lay_out(candidates, *, budget=1_000, costs=FREE, query="", include_system=False):
    selection = select(
        candidates,
        query=query,
        budget=budget,
        costs=costs,
        options=SelectionOptions(min_history_messages=0, include_system=include_system),
        not_reached=0,
    )
    return [
        [candidate.message.id for candidate in part]
        for part in (selection.recalled, selection.history)
    ]


BY_TOKENS = Costs(
    lambda candidate: candidate.message.tokens, lambda candidate: candidate.message.tokens, 0, 0
)


@each(
    ("turns", "recalled", "history"),
    [
        pytest.param([("user", "a"), ("assistant", "b")], [], [1, 2], id="§4 an unbroken run"),
        pytest.param(
            [("assistant", "a"), ("user", "b")], [1], [2], id="§4 never begins with a reply"
        ),
        pytest.param(
            [("assistant", "a"), ("assistant", "b")], [1, 2], [], id="§4 nothing but replies"
        ),
        pytest.param(
            [
                ("assistant", "", {"calls": ["c"]}),
                ("tool", "r", {"answers": "c"}),
                ("assistant", "d"),
                ("user", "b"),
            ],
            [1, 2, 3],
            [4],
            id="§4 a leading call moves to recalled with its results",
        ),
        pytest.param(
            [
                ("user", "a"),
                ("assistant", "", {"calls": ["c"]}),
                ("tool", "r", {"answers": "c"}),
                ("assistant", "d"),
            ],
            [],
            [1, 2, 3, 4],
            id="§4 a call inside the run stays",
        ),
        pytest.param(
            [("user", "a"), ("user", "b", {"instance": "j"}), ("user", "c")],
            [2],
            [1, 3],
            id="§4 another instance neither joins nor ends the run",
        ),
        pytest.param(
            [("user", "a"), ("tool", "r", {"answers": "x"}), ("user", "c")],
            [],
            [1, 3],
            id="§4 an orphan does not end it",
        ),
        pytest.param(
            [("user", "a"), ("assistant", "", {"calls": ["x"]}), ("user", "c")],
            [],
            [1, 3],
            id="§4 an unanswered call does not end it",
        ),
        pytest.param(
            [("user", "a"), ("system", "be brief"), ("user", "c")],
            [],
            [1, 3],
            id="§4 a system message does not end it",
        ),
        pytest.param(
            [("user", "a"), ("user", " the question "), ("user", "c")],
            [],
            [1, 3],
            id="§4 the question itself does not end it",
        ),
        pytest.param(
            [("user", "a"), ("user", "b", {"tokens": 9_999}), ("user", "c")],
            [],
            [1, 3],
            id="§4 a too large one does not end it",
        ),
    ],
)
def test_history_is_the_unbroken_run_of_newest_messages(turns, recalled, history):
    assert lay_out(make_candidates(*turns), query="the question", costs=BY_TOKENS) == [
        recalled,
        history,
    ]


def test_a_message_that_is_not_printed_for_lack_of_room_ends_the_run():
    turns = [
        ("user", "old", {"priority": 0.9}),
        ("user", "long", {"priority": 0.1, "tokens": 8}),
        ("user", "new", {"priority": 0.9}),
    ]
    assert lay_out(make_candidates(*turns), budget=9, costs=BY_TOKENS) == [[1], [3]]


def test_the_run_grows_when_the_gap_in_it_is_filled_later():
    turns = [("user", "old"), ("user", "gap", {"priority": 0.1}), ("user", "new")]
    assert lay_out(make_candidates(*turns)) == [[], [1, 2, 3]]


def test_an_allowed_system_message_is_recalled_and_never_history():
    turns = [("user", "a"), ("system", "be brief"), ("user", "c")]
    assert lay_out(make_candidates(*turns), include_system=True) == [[2], [1, 3]]


def test_parallel_results_follow_their_call():
    turns = [
        ("user", "a"),
        ("assistant", "", {"calls": ["x", "y"]}),
        ("user", "meanwhile"),
        ("tool", "2", {"answers": "y"}),
        ("tool", "1", {"answers": "x"}),
    ]
    assert lay_out(make_candidates(*turns)) == [[], [1, 2, 5, 4, 3]]


# What counts once


def with_history(*turns):
    """Return recalled messages of another instance, and a history of one message."""
    elsewhere = [(*turn, {"instance": "j"}) for turn in turns]
    return make_candidates(*elsewhere, ("user", "now"))


@each(
    ("turns", "recalled"),
    [
        pytest.param([("user", "a"), ("user", "a")], 1, id="§4 equal to each other"),
        pytest.param([("user", "a"), ("user", " a\n")], 1, id="§4 trimmed"),
        pytest.param([("user", "a"), ("assistant", "a")], 2, id="§4 another role"),
        pytest.param([("user", "a"), ("user", "A")], 2, id="§4 another case"),
        pytest.param([("user", "now")], 0, id="§4 equal to history"),
        pytest.param([("assistant", "now")], 1, id="§4 equal to history in another role"),
    ],
)
def test_equal_recalled_messages_count_once(turns, recalled):
    recalled_ids, history = lay_out(with_history(*turns))
    assert len(recalled_ids) == recalled
    assert len(history) == 1


def test_history_is_never_deduplicated():
    assert lay_out(make_candidates(("user", "yes"), ("assistant", "yes"), ("user", "yes"))) == [
        [],
        [1, 2, 3],
    ]


def test_copies_of_a_recalled_message_cost_nothing():
    copies = [("user", "same words")] * 5 + [("user", "other words")]
    turns = [(*turn, {"instance": "j", "priority": 0.9}) for turn in copies[:5]]
    turns += [("user", "other words", {"instance": "j", "priority": 0.1})]
    recalled_ids, _ = lay_out(make_candidates(*turns), budget=2, costs=BY_TOKENS)
    assert len(recalled_ids) == 2
    assert 6 in recalled_ids


def test_recalled_messages_are_oldest_first():
    candidates = make_candidates(*[("user", f"{number}", {"instance": "j"}) for number in range(5)])
    shuffled = [candidate._replace() for candidate in candidates]
    recalled, _ = lay_out(shuffled)
    assert recalled == [candidate.message.id for candidate in sorted(candidates, key=by_time)]


# The cost of titles and days


def test_a_title_is_counted_once_and_a_line_for_each_day():
    costs = Costs(recalled=lambda _: 1, history=lambda _: 1, day=10, recalled_title=100)
    same_day = make_candidates(*[("user", f"{number}", {"instance": "j"}) for number in range(3)])
    several_days = [
        candidate._replace(
            message=replace(candidate.message, created_at=START + timedelta(days=day))
        )
        for day, candidate in enumerate(same_day)
    ]
    assert len(lay_out(same_day, costs=costs, budget=113)[0]) == 3
    assert len(lay_out(same_day, costs=costs, budget=112)[0]) == 2
    assert len(lay_out(several_days, costs=costs, budget=133)[0]) == 3
    assert len(lay_out(several_days, costs=costs, budget=132)[0]) == 2


def test_a_message_that_joins_history_later_is_counted_as_a_turn_only():
    costs = Costs(recalled=lambda _: 1, history=lambda _: 5, day=0, recalled_title=0)
    turns = [("user", "old"), ("user", "gap", {"priority": 0.1}), ("user", "new")]
    assert lay_out(make_candidates(*turns), costs=costs, budget=15) == [[], [1, 2, 3]]
    assert lay_out(make_candidates(*turns), costs=costs, budget=14) == [[1], [3]]


def test_a_title_that_is_not_printed_is_not_counted():
    """A question above its reply: the reply is first recalled, then both become history."""
    costs = Costs(recalled=lambda _: 10, history=lambda _: 10, day=10, recalled_title=10)
    turns = [("user", "question", {"priority": 0.1}), ("assistant", "reply", {"priority": 0.9})]
    assert lay_out(make_candidates(*turns), costs=costs, budget=30) == [[], [1, 2]]


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


def store(file, messages):
    reservoir = Reservoir.open(file, settings=SETTINGS)
    timed = [
        (instance, replace(message, created_at=START + timedelta(minutes=minute)))
        for minute, (instance, message) in enumerate(messages)
    ]
    for instance, group in groupby(timed, itemgetter(0)):
        of_one = [message for _, message in group]
        reservoir.ingest(of_one, partition="p", instance=instance, embed=False)
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
    tmp_path_factory, empty_file, exchanges, budget, order, form, question
):
    messages = messages_of(exchanges)
    file = shutil.copy(empty_file, tmp_path_factory.mktemp("own"))
    with store(file, messages) as reservoir:
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
    messages = [("p", Message(*text, trace_id=trace)) for *text, trace in turns]
    with store(tmp_path / "a.db", messages) as reservoir:
        yield reservoir


@each(("form", "budget"), product(FORMATS, [90, 120, 160, 200]))
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
    with store(tmp_path / "a.db", messages) as reservoir:
        recalled = reservoir.context("the port", partition="p", budget=500).selection.recalled
    texts = [candidate.message.content for candidate in recalled]
    assert [text for text in texts if text != "hello"] == [
        "Which port?",
        "5432",
        "Which port?",
        "6432",
    ]
