"""A block is inserted into one string of a JSON text without changing another byte."""

import json
from typing import Any

import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st

from reservoir_cli.server.proxy.json_spans import OddJSON, insert, read_document, string_end
from reservoir_cli.server.proxy.parse_request import parse
from reservoir_cli.server.proxy.providers.anthropic import MESSAGES
from reservoir_cli.server.proxy.providers.ollama import OLLAMA_GENERATE
from reservoir_cli.server.proxy.providers.openai_chat import CHAT
from reservoir_cli.server.proxy.providers.openai_responses import RESPONSES

BLOCK = 'Ein "Block"\nmit \\ und 😀'

TEXTS = st.text(max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
SEPARATORS = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n\t", "  :\r\n ")])
#: Questions that do not look like text that a client inserts.
SAID = TEXTS.filter(lambda text: text.strip() and "<" not in text and "\0" not in text)


def with_block(text: str, position: int) -> str:
    return insert(text, {position: BLOCK})


@given(
    TEXTS,
    st.lists(VALUES, max_size=3),
    st.dictionaries(TEXTS.filter(lambda key: key != "messages"), VALUES, max_size=4),
    SEPARATORS,
    st.booleans(),
)
def test_one_string_changes_and_nothing_else(content, before, others, separators, ascii):
    body = {**others, "messages": [*before, {"role": "user", "content": content, "x": others}]}
    text = json.dumps(body, separators=separators, ensure_ascii=ascii)
    last = read_document(text, "messages").items["messages"][-1]
    position = string_end(text, last, "content")
    changed = with_block(text, position)
    added = len(changed) - len(text)
    assert (changed[:position], changed[position + added :]) == (text[:position], text[position:])
    body["messages"][-1]["content"] = content + BLOCK
    assert json.loads(changed) == json.loads(json.dumps(body))


@given(SAID, st.lists(VALUES, max_size=3), SEPARATORS)
def test_the_newest_question_of_each_protocol_gets_the_block(question, others, separators):
    parts = [{"type": "text", "text": question, "cache_control": {"type": "ephemeral"}}]
    for path, key, messages, place in (
        (CHAT, "messages", [{"role": "user", "content": question}], ("content",)),
        (CHAT, "messages", [{"content": parts, "role": "user"}], ("content", 0, "text")),
        (MESSAGES, "messages", [{"role": "user", "content": parts}], ("content", 0, "text")),
        (RESPONSES, "input", [{"role": "user", "content": question}], ("content",)),
    ):
        body: dict[str, Any] = {"temperature": 1.0, key: messages, "stop": others}
        text = json.dumps(body, separators=separators)
        request = parse(path, text.encode(), {})
        changed = json.loads(with_block(request.text, request.questions[-1].at))
        target = changed[key][0]
        for step in place[:-1]:
            target = target[step]
        assert target[place[-1]] == question + BLOCK
        target[place[-1]] = question
        assert changed == json.loads(text)
    request = parse(OLLAMA_GENERATE, json.dumps({"prompt": question}).encode(), {})
    assert (
        json.loads(with_block(request.text, request.questions[0].at))["prompt"] == question + BLOCK
    )


@given(SAID, VALUES, VALUES)
def test_a_malformed_answer_does_not_prevent_the_block(said, content, calls):
    messages = [
        {"role": "assistant", "content": content, "tool_calls": calls},
        {"role": "user", "content": said},
    ]
    request = parse(CHAT, json.dumps({"messages": messages}).encode(), {})
    assert [question.newest for question in request.questions] == [True]


@pytest.mark.parametrize(
    "text",
    [
        '{"temperature": 1.0, "seed": 1e400, "messages": [{"role":"user","content":"a\\u00e9"}]}',
        '{"n":1,"n":2,"messages":[{"role":"user","content":"a\\/b\\ud83d\\ude00"}],"z":1E5}',
        '\n{"messages"\t:[ {"role":"user","content":"\\ud83d"}\r\n]} \n',
    ],
)
def test_numbers_escapes_duplicate_keys_and_whitespace_are_not_changed(text):
    request = parse(CHAT, text.encode(), {})
    changed = with_block(request.text, request.questions[0].at)
    added = json.dumps(BLOCK, ensure_ascii=False)[1:-1]
    assert changed.replace(added, "") == text


@each(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b'{"messages": 3}',
        b'{"messages": []}',
        b'{"messages": [{"role": "user"}]}',
        b'{"messages": [{"role": "user", "content": ""}]}',
        b'{"messages": [{"role": "user", "content": "a"}]} x',
        b'{"messages": [{"role": "user", "content": "a"}],}',
        b'{"messages": [{"role": "user", "content": "a"},]}',
        b'{"messages": [{"role": "user", "content": "a", "content": "b"}]}',
        b'{"messages": [], "messages": [{"role": "user", "content": "a"}]}',
        b'\xef\xbb\xbf{"messages": [{"role": "user", "content": "a"}]}',
        b'{"messages": [{"role": "user", "content": "\xff"}]}',
        b'{"messages": [{"role": "user", "content": "a\nb"}]}',
        b'{"messages": [{"role": "user", "content": "a"}], "n": ' + b"9" * 5000 + b"}",
        b'{"messages": [{"role": "user", "content": "a"}], "d": ' + b"[" * 100_000 + b"}",
    ],
)
def test_unknown_bodies_are_not_changed(body):
    with pytest.raises(OddJSON):
        parse(CHAT, body, {})


@given(st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_no_body_breaks_the_reader(body):
    for path in (CHAT, MESSAGES, RESPONSES, OLLAMA_GENERATE):
        try:
            parse(path, body, {})
        except OddJSON:
            pass
