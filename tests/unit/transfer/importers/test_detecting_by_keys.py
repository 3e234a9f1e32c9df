"""Formats are recognised by their own keys, not by those of tools that a conversation called."""

import json
from typing import Any

import pytest
from reading import file_of, lines

from reservoir_cli.transfer.importers import choose
from reservoir_cli.transfer.importers.importer import has_key

#: Arguments of tools with the keys by which other formats are recognised.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "reservoir": {"question": "why?", "partition": "work", "role": "user"},
    "chatgpt": {"mapping": {"a": "b"}},
    "claude": {"chat_messages": []},
    "gemini-cli": {"projectHash": "abc"},
    "copilot-chat": {"creationDate": 1, "requests": []},
    "opencode": {"projectID": "ses_1", "directory": "/x", "id": "ses_1"},
    "open-webui": {"history": {"currentId": "x"}},
    "sharegpt": {"conversations": [{"from": "x"}]},
    "anthropic": {"system": "x", "input_schema": {}},
}


@pytest.mark.parametrize("other", ARGUMENTS)
def test_arguments_of_tools_do_not_count(other: str) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "f", "input": ARGUMENTS[other]}
    reply = {"role": "assistant", "content": [call]}
    session = {"type": "assistant", "uuid": "u", "sessionId": "s", "parentUuid": None}
    assert choose(file_of(lines({**session, "message": reply}))).name == "claude-code"
    function = {"name": "f", "arguments": ARGUMENTS[other]}
    asked = {"role": "assistant", "content": None, "tool_calls": [{"function": function}]}
    body = {"messages": [{"role": "user", "content": "q"}, asked]}
    assert choose(file_of(lines(body))).name == "openai"


def test_the_depth_of_a_key_is_that_of_its_objects() -> None:
    head = '{"a": "\\"x\\": {", "b": [{"c": {"x": 1}}], "y": "cut'
    assert not has_key(head, "x")
    assert has_key(head, "x", depth=3)
    assert has_key(head, "y", depth=1)
    assert has_key(json.dumps([{"x": 1}], indent=2), "x", depth=1)


def test_a_torn_line_does_not_hide_the_next_ones() -> None:
    assert has_key('{"a": {"b": {"c": "torn\n{"x": 1}\n', "x", depth=1)


@pytest.mark.parametrize("part", ['"', '"\\', '\\"', '{"', '"\n', '"a" ', "{"])
def test_hostile_text_does_not_take_minutes(part: str) -> None:
    head = part * (65_536 // len(part)) + '\n{"x": 1'
    assert has_key(head, "x", depth=1)
