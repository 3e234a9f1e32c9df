"""Properties of every excerpt, with every counter."""

import re
import shutil

import hypothesis
import pytest
from hypothesis import strategies as st
from long_replies import (
    TOPICS,
    BagOfWords,
    add_messages,
    ask,
    assert_closed,
    assert_printed_from,
    paragraph,
    stored_rows,
)

from reservoir_cli import Message, Reservoir
from reservoir_cli.context import excerpts
from reservoir_cli.context.request import FORMATS
from reservoir_cli.tokens import load_counter

PARTS = st.one_of(
    st.builds(paragraph, st.sampled_from(TOPICS), st.integers(1, 90)),
    st.builds(
        lambda topic, count: "\n".join(f"- {topic}{n} is one. It is short." for n in range(count)),
        st.sampled_from(TOPICS),
        st.integers(1, 30),
    ),
    st.builds(
        lambda topic, count, sign: (
            f"{sign}text\n" + "\n".join(f"{topic}{n} = {n}" for n in range(count)) + f"\n{sign}"
        ),
        st.sampled_from(TOPICS),
        st.integers(0, 120),
        st.sampled_from(["```", "~~~", "````"]),
    ),
    st.text("ab .\n`~-#[]…", max_size=40),
)
TEXTS = st.lists(PARTS, min_size=1, max_size=8).map("\n\n".join)


@hypothesis.given(TEXTS, st.data())
@hypothesis.settings(max_examples=300)
def test_an_excerpt_is_text_in_order_with_all_fences_closed(text, data):
    outline, spans = excerpts.Outline(text), ()
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, len(text)))
        whole_fences = data.draw(st.booleans())
        spans = excerpts.merge_spans(
            text, [*spans, outline.widen((start, end), whole_fences=whole_fences)]
        )
    assert list(spans) == sorted(spans)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    content = excerpts.write_excerpt(text, spans, 1_000)
    assert_printed_from(text, {"spans": spans, "content": content})
    if all(fence.tail < fence.end for fence in excerpts.find_fences(text)):
        assert_closed(content)


EXCHANGES = st.lists(
    st.tuples(st.sampled_from(TOPICS), st.sampled_from([1, 1, 40, 300, 700]), st.booleans()),
    min_size=1,
    max_size=8,
)


def exchange(number, topic, words, answered):
    text = f"said <{number}> " + f" said <{number}>.\n\n".join(
        paragraph(topic, min(words - start, 70)) for start in range(0, words, 70)
    )
    yield Message("user", f"asked <{number}> of {topic}?", trace_id=f"t{number}")
    if answered:
        yield Message("assistant", text, trace_id=f"t{number}")


@hypothesis.given(
    EXCHANGES,
    st.integers(80, 1_500),
    st.sampled_from(["score", "tiers"]),
    st.sampled_from([form for form in FORMATS if form != "json"]),
    st.sampled_from(["approximate", "ratio"]),
)
@hypothesis.settings(
    max_examples=60, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
def test_excerpts_keep_the_budget_and_follow_their_questions(
    tmp_path_factory, empty_file, exchanges, budget, order, form, counter
):
    messages = [
        message for number, fields in enumerate(exchanges) for message in exchange(number, *fields)
    ]
    settings = {"token_counter": counter, "token_safety": 1.0}
    path = shutil.copy(empty_file, tmp_path_factory.mktemp("e"))
    with Reservoir.open(path, settings=settings, embedder=BagOfWords()) as reservoir:
        stored = {message.id: message for message in add_messages(reservoir, *messages)}
        window = ask(reservoir, budget=budget, order=order, format=form)
    assert window.used <= budget or window.budget.overfull
    body = window.to()
    if isinstance(body, str):
        assert load_counter(counter).count(body) <= budget or window.budget.overfull
    for row in stored_rows(window):
        assert_printed_from(stored[row["id"]].content, row)
        assert row["spans"] is None or row["section"] == "recalled"
    question = None
    for turn in window.turns:
        for kind, number, gap in re.findall(
            r"(asked|said) <(\d+)>|^(…)$", turn.content, re.MULTILINE
        ):
            if kind == "asked":
                question = number
            elif gap:
                question = None
            else:
                assert question in (None, number), body


def test_offsets_are_mapped_past_replaced_text():
    changes = [(5, 10, 2), (20, 21, 9)]
    spans = [(0, 5), (0, 7), (7, 12), (10, 20), (12, 30)]
    assert excerpts.map_spans(spans, changes) == [(0, 5), (0, 7), (5, 9), (7, 17), (9, 35)]


class Offset(int):
    """An offset that counts how often any is compared."""

    comparisons = 0

    def _counted(name):
        def compare(self, other):
            Offset.comparisons += 1
            return getattr(int, name)(self, other)

        return compare

    __lt__, __le__, __gt__, __ge__ = map(_counted, ("__lt__", "__le__", "__gt__", "__ge__"))


def test_mapping_offsets_takes_few_steps_for_each_however_many_are_replaced():
    count = 2_000
    spans = [(Offset(10 * n), Offset(10 * n + 10)) for n in range(count)]
    mapped = excerpts.map_spans(spans, [(10 * n + 3, 10 * n + 5, 4) for n in range(count)])
    assert mapped == [(12 * n, 12 * n + 12) for n in range(count)]
    assert Offset.comparisons < 2 * count * 14


def test_closing_fences_takes_few_steps_for_each_part_however_many_there_are(monkeypatch):
    read = []
    monkeypatch.setattr(excerpts, "_START", lambda fence: read.append(fence) or fence.start)
    count = 1_000
    text = "para text here. \n```\ncode\n```\n\n" * count
    size = len(text) // count
    spans = [(size * number, size * number + 23) for number in range(count)]
    written = excerpts.write_excerpt(text, spans, count)
    assert written.count("```") == 2 * count
    outline = excerpts.Outline(text)
    assert outline.widen(spans[500], whole_fences=True)[1] == spans[500][0] + size - 2
    assert len(read) < 2 * count * 12


def strings(value):
    """Yield every text of a request body that a model reads."""
    if isinstance(value, dict):
        value = [content for key, content in value.items() if key in ("messages", "system")] or [
            content for key, content in value.items() if key in ("content", "text")
        ]
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for content in value:
            yield from strings(content)


@pytest.mark.parametrize("form", FORMATS)
@hypothesis.given(
    EXCHANGES, st.integers(80, 1_500), st.sampled_from(["score", "tiers"]), st.booleans()
)
@hypothesis.settings(
    max_examples=8, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
def test_the_budget_holds_with_an_exact_counter(
    tmp_path_factory, empty_file, tokenizer, form, exchanges, budget, order, embedded
):
    messages = [
        message for number, fields in enumerate(exchanges) for message in exchange(number, *fields)
    ]
    settings = {"token_counter": tokenizer, "embedding_model": "nobody/absent-model"}
    path = shutil.copy(empty_file, tmp_path_factory.mktemp("e"))
    embedder = {"embedder": BagOfWords()} if embedded else {}
    with Reservoir.open(path, settings=settings, **embedder) as reservoir:
        add_messages(reservoir, *messages)
        window = ask(reservoir, budget=budget, order=order, format=form)
    body = window.to("text" if form == "json" else form)
    texts = [body] if isinstance(body, str) else list(strings(body))
    counter = load_counter(tokenizer)
    assert texts
    assert sum(map(counter.count, texts)) <= window.used
    assert window.used <= budget or window.budget.overfull
