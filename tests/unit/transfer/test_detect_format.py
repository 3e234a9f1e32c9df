"""Formats are recognised by their own keys, not by those of tools that a conversation called."""

import json
from typing import Any

from each import each
from reading import file_of, lines

from reservoir_cli.transfer.detect_format import choose
from reservoir_cli.transfer.formats.registry import importers

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


@each("other", ARGUMENTS)
def test_arguments_of_tools_do_not_count(other):
    call = {"type": "tool_use", "id": "t1", "name": "f", "input": ARGUMENTS[other]}
    reply = {"role": "assistant", "content": [call]}
    session = {"type": "assistant", "uuid": "u", "sessionId": "s", "parentUuid": None}
    assert choose(file_of(lines({**session, "message": reply}))).name == "claude-code"
    function = {"name": "f", "arguments": ARGUMENTS[other]}
    asked = {"role": "assistant", "content": None, "tool_calls": [{"function": function}]}
    body = {"messages": [{"role": "user", "content": "q"}, asked]}
    assert choose(file_of(lines(body))).name == "openai"


#: A document that a person pasted, longer than what is read of a file at first.
PASTED = "Page by page, the ledger of the tannery. " * 2_500
ASKED = {"role": "user", "content": "Sum it up."}
VERSION = {"type": "singleStep", "role": "user", "content": [{"type": "text", "text": PASTED}]}
NODE = {"id": "n", "parent": None, "message": {"author": {"role": "user"}, "content": {}}}
BACKUPS = {f"hides/part{number}.py": {"version": 1, "at": "today"} for number in range(3_000)}
LATE_KEYS = {
    "lm-studio": {"name": PASTED, "messages": [{"versions": [VERSION], "currentlySelected": 0}]},
    "anthropic": {"system": [{"type": "text", "text": PASTED}], "messages": [ASKED]},
    "openai": {"tools": [{"function": {"description": PASTED}}], "messages": [ASKED]},
    "claude-code": {
        "type": "file-history-snapshot",
        "snapshot": BACKUPS,
        "isSnapshotUpdate": False,
    },
    "codex": {"timestamp": PASTED, "type": "session_meta", "payload": {"id": "s"}},
    "chatgpt": {"title": PASTED, "mapping": {"n": NODE}},
    "sharegpt": {"note": PASTED, "conversations": [{"from": "human", "value": "x"}]},
    "open-webui": {"title": PASTED, "chat": {"history": {"messages": {}, "currentId": "x"}}},
}


@each("form", LATE_KEYS)
@each("layout", [None, 2])
def test_keys_count_wherever_they_are(form, layout):
    text = json.dumps(LATE_KEYS[form], indent=layout)
    assert text.find('"messages"' if form in ("anthropic", "openai") else PASTED[-20:]) != 0
    assert len(text) > 100_000
    assert choose(file_of(text)).name == form


def test_a_text_that_quotes_a_format_is_not_in_it():
    quoted = json.dumps({"mapping": {}, "sessionId": "s", "payload": {"type": "response_item"}})
    assert choose(file_of(lines({"role": "user", "content": PASTED + quoted}))).name == "openai"


def test_each_importer_is_found_by_its_signs():
    for name, importer in importers().items():
        assert importer.name == name
        assert importer.title
        assert importer.tables == () or all(importer.tables)
