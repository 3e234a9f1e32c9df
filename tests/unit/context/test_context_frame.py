import json
import textwrap
from itertools import product

import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st

from reservoir_cli.context.render.context_frame import MARKDOWN_LABEL, TEXT_LABEL, unwrap, wrap

BODY = (
    "Be brief.\n\n[Recalled Messages]\n2026-01-02\n  user: Wo ist das \u200bBüro?\n\n"
    "  assistant: In Köln,  3. Stock.\t\n\nuser: and   then?\nassistant: 好的。\n"
)
QUESTION = "Which port?\n\nuser: not a label\n  indented"
LABELS = (TEXT_LABEL, MARKDOWN_LABEL)

#: Changes that tools make to a prompt before they store it.
CHANGES = {
    "nothing": str,
    "stripped": str.strip,
    "lines stripped": lambda text: "\n".join(line.rstrip() for line in text.split("\n")),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "CR": lambda text: text.replace("\n", "\r"),
    "JSON and back": lambda text: json.loads(json.dumps(text)),
    "indented": lambda text: textwrap.indent(text, "    "),
    "on one line": lambda text: " ".join(text.split()),
    "no zero widths": lambda text: text.replace("\u200b", ""),
    "a mark in front": lambda text: "\ufeff" + text,
}


@each("label, change", product(LABELS, CHANGES))
def test_a_context_is_removed_and_its_question_kept(label, change):
    result = unwrap(CHANGES[change](wrap(BODY, QUESTION, label)))
    assert result.contexts == 1
    assert result.text.strip("\ufeff \n").split() == QUESTION.split()
    assert [question.split() for question in result.questions] == [QUESTION.split()]


@pytest.mark.parametrize("label", LABELS)
def test_the_question_is_restored_exactly(label):
    assert unwrap(wrap(BODY, QUESTION, label)) == (QUESTION, (QUESTION,), 1)


def test_a_context_without_a_question_leaves_nothing():
    assert unwrap(wrap(BODY)) == ("", (), 1)


def test_a_context_with_nothing_but_a_question_leaves_the_question():
    assert unwrap(wrap("", "Which port?")) == ("Which port?", ("Which port?",), 1)


def test_text_around_a_context_is_kept():
    text = f"Answer in German.\n\n{wrap(BODY, 'Which port?')}\n\nOne line, please.\n"
    result = unwrap(text)
    assert result.text == "Answer in German.\n\nWhich port?\n\nOne line, please."
    assert result.questions == ("Which port?\n\nOne line, please.",)


def test_text_after_a_context_without_a_question_is_kept():
    assert unwrap(wrap(BODY) + "\n\nuser: I typed this") == ("user: I typed this", (), 1)


def test_two_contexts_in_a_text_leave_two_questions():
    text = wrap(BODY, "First?") + "\n\n" + wrap("other", "Second?", MARKDOWN_LABEL)
    assert unwrap(text) == ("First?\n\nSecond?", ("First?", "Second?"), 2)


def test_a_nested_context_is_removed_with_the_outer_one():
    inner = wrap(BODY, "Inner?")
    assert unwrap(wrap(f"user: {inner}\nassistant: yes", "Outer?")) == ("Outer?", ("Outer?",), 1)


def test_a_context_after_an_incomplete_one_is_removed():
    incomplete = wrap(BODY, "Torn?")[:60]
    assert unwrap(f"{incomplete}\n{wrap('whole', 'Whole?')}") == (
        f"{incomplete}\n\nWhole?",
        ("Whole?",),
        1,
    )


DAMAGED = {
    "no beginning": lambda text: text.replace("[Reservoir context]", ""),
    "no end": lambda text: text.replace("[/Reservoir ", ""),
    "a word changed": lambda text: text.replace("Stock", "Stick"),
    "a word added": lambda text: text.replace("Stock", "Stock oben"),
    "a line lost": lambda text: text.replace("user: and   then?\n", ""),
    "other letters": lambda text: text[: text.index("[/R") + 12] + "aaaaaaa" + text[-30:],
    "another label": lambda text: text.replace("\n\nuser: Which", "\n\nassistant: Which"),
    "cut": lambda text: text[: len(text) // 2],
    "no question": lambda text: text[: text.index("user: Which")],
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_an_incomplete_context_is_not_changed(damage):
    text = damage(wrap(BODY, "Which port?\n" + 10 * "and why "))
    assert unwrap(text) == (text, (), 0)


@given(st.text(alphabet="[]/Reservoir context\nabuser: ", max_size=200))
def test_a_text_without_a_context_is_not_changed(text):
    assert unwrap(text) == (text, (), 0)


@given(st.text(max_size=100), st.text(max_size=50), st.sampled_from(LABELS))
def test_any_context_is_recognised(body, question, label):
    result = unwrap(wrap(body, question, label))
    assert (result.text, result.contexts) == (question.strip(), 1)


def test_many_unmatched_markers_are_read_in_linear_time():
    text = "[Reservoir context]" * 20_000 + "[/Reservoir abcdefg]" * 20_000
    assert unwrap(text) == (text, (), 0)


def test_a_frame_is_short():
    assert len(wrap("", "")) < 50
