"""What a message of a tool loop costs, in the formats of the providers."""

from typing import Any

import pytest
from bodies import Characters
from each import each

from reservoir_cli import trim_history
from reservoir_cli.chat.message_cost import message_cost
from reservoir_cli.tokens import ApproximateCounter, RatioCounter


@each(
    ("message", "text"),
    [
        ({"role": "user", "content": "hello"}, "hello"),
        ({"role": "user", "content": ""}, ""),
        ({"role": "user", "content": None}, ""),
        ({"role": "user", "content": []}, ""),
        ({"role": "user"}, ""),
        ({}, ""),
        ({"role": "user", "content": "hello", "name": "ann"}, "hello\nann"),
        ({"role": "tool", "content": "done", "tool_call_id": "a"}, "done\na"),
        (
            {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "x": "ü"}]},
            '[{"id":"a","x":"ü"}]',
        ),
        (
            {"role": "assistant", "content": "x", "tool_calls": [{"id": "a"}], "name": "n"},
            'x\n[{"id":"a"}]\nn',
        ),
        ({"role": "assistant", "content": "x", "reasoning_content": "why"}, "x\nwhy"),
        (
            {
                "role": "user",
                "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            },
            "a\nb",
        ),
        (
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "a", "content": "b"}],
            },
            '{"type":"tool_result","tool_use_id":"a","content":"b"}',
        ),
        ({"role": "tool", "content": "c", "name": "n", "tool_call_id": "i"}, "c\nn\ni"),
        ({"role": "assistant", "content": "c", "tool_calls": []}, "c"),
        ({"role": "assistant", "content": None, "refusal": "no"}, "no"),
        (
            {"type": "function_call_output", "call_id": "a", "output": "b"},
            '{"type":"function_call_output","call_id":"a","output":"b"}',
        ),
    ],
)
@each("counter", [Characters(), ApproximateCounter(), RatioCounter()])
def test_the_cost_of_a_message_is_its_parts_joined_by_newlines_plus_4(message, text, counter):
    assert message_cost(message, counter) == (counter.count(text) if text else 0) + 4


PICTURE = "data:image/png;base64," + "iVBORw0KGgo" * 1_000


@each(
    ("message", "text"),
    [
        pytest.param(
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "look"},
                    {"type": "image_url", "image_url": {"url": PICTURE}},
                ],
            },
            "look",
            id="openai",
        ),
        pytest.param(
            {"role": "user", "content": [{"type": "input_image", "image_url": PICTURE}]},
            "",
            id="responses",
        ),
        pytest.param(
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "a",
                        "content": [
                            {"type": "text", "text": "b"},
                            {"type": "image", "source": {"type": "base64", "data": PICTURE}},
                        ],
                    }
                ],
            },
            '{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"b"}]}',
            id="anthropic, in a result",
        ),
        pytest.param({"role": "user", "content": "a", "images": [PICTURE]}, "a", id="ollama"),
        pytest.param(
            {
                "role": "user",
                "content": [{"type": "input_audio", "input_audio": {"data": PICTURE}}],
            },
            "",
            id="sound",
        ),
        pytest.param(
            {"role": "user", "content": [{"type": "file", "file": {"file_data": PICTURE}}]},
            "",
            id="file",
        ),
        pytest.param(
            {
                "type": "computer_call_output",
                "call_id": "a",
                "output": {"type": "computer_screenshot", "image_url": PICTURE},
            },
            '{"type":"computer_call_output","call_id":"a"}',
            id="screenshot",
        ),
    ],
)
def test_an_attachment_has_a_flat_price(message, text):
    counter = Characters()
    assert message_cost(message, counter) == counter.count(text) + 1_600 + 4
    assert message_cost(message, counter, 7) == counter.count(text) + 7 + 4
    messages = [{"role": "system", "content": "You are an agent."}, message]
    kept = trim_history(
        messages, turn_start=2, iteration=2, budget=100, counter=counter, attachment_tokens=0
    )
    assert kept is messages


@pytest.mark.parametrize(
    "part",
    [
        {"type": "document", "source": {"type": "text", "data": "a long letter"}},
        {"type": "tool_use", "id": "a", "input": {"type": "file", "path": "a long letter"}},
    ],
)
def test_written_text_counts_as_text(part):
    assert 40 < message_cost({"role": "user", "content": [part]}, Characters()) < 200


def test_parts_that_are_nested_deeply_are_counted():
    content: Any = PICTURE
    for _ in range(250):
        content = [{"content": content}]
    assert message_cost({"role": "user", "content": content}, Characters()) > len(PICTURE)
