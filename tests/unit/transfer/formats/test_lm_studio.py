"""Conversations of LM Studio."""

import json
from typing import Any

import pytest
from each import each
from reading import SAMPLES, file_of, last_conversation, read, records, roles_and_texts

from reservoir_cli.transfer.detect_format import choose
from reservoir_cli.transfer.formats.lm_studio import LmStudio

CHAT: dict[str, Any] = json.loads((SAMPLES / "lm-studio.json").read_text(encoding="utf-8"))


def step(text: str, identity: str | None = "1778328003000-0.25") -> dict[str, Any]:
    block = {"type": "contentBlock", "content": [{"type": "text", "text": text}]}
    return block | ({"stepIdentifier": identity} if identity else {})


def reply(*steps: dict[str, Any]) -> dict[str, Any]:
    version = {"type": "multiStep", "role": "assistant", "steps": list(steps)}
    return {"versions": [version], "currentlySelected": 0}


def question(*texts: str, selected: Any = 0) -> dict[str, Any]:
    versions = [
        {"type": "singleStep", "role": "user", "content": [{"type": "text", "text": text}]}
        for text in texts
    ]
    return {"versions": versions, "currentlySelected": selected}


def chat(*messages: Any, **more: Any) -> list[Any]:
    return read(json.dumps({"createdAt": 1778328000000, "messages": messages, **more}), LmStudio())


def ids(entries: list[Any]) -> list[str | None]:
    return [record.message.source_id for record in records(entries)]


def test_the_id_of_a_growing_reply_does_not_change():
    partial = chat(question("Why?"), reply(step("Be")))
    complete = chat(question("Why?"), reply(step("Because."), step("So.", "2-1")), question("And?"))
    assert ids(complete)[:2] == ids(partial)
    assert roles_and_texts(complete)[1] == ("assistant", "Because.\nSo.")


@each(("selected", "text"), [(0, "a"), (1, "b"), (7, "b"), (-1, "b"), (None, "b"), ("0", "b")])
def test_the_selected_version_is_read(selected, text):
    assert roles_and_texts(chat(question("a", "b", selected=selected))) == [("user", text)]


def test_a_rewritten_question_is_another_message():
    assert ids(chat(question("a"))) != ids(chat(question("a", "b", selected=1)))


def test_a_conversation_is_named_by_its_start_time_or_else_by_its_file():
    assert last_conversation(chat(question("a"))).id == "1778328000000"
    text = json.dumps({"messages": [question("a")]})
    file = file_of(text, "chats/1778328000123.conversation.json")
    assert last_conversation(list(LmStudio().read(file))).id == "1778328000123"


def test_steps_without_ids_are_identified_by_their_predecessors():
    entries = chat(question("a"), reply(step("b", None)), question("a"), reply(step("b", None)))
    assert len(set(ids(entries))) == 4


def test_a_call_without_an_id_is_named_by_its_number():
    request = {"type": "toolCallRequest", "callId": 7, "name": "f", "arguments": {"a": 1}}
    result = {"type": "toolCallResult", "callId": 7, "content": "x"}
    steps = [step("b") | {"content": [request]}, step("c", "9-1") | {"content": [result]}]
    call, answer = records(chat(reply(*steps)))
    assert call.message.tool_calls[0].id == answer.message.tool_call_id
    assert call.message.tool_calls[0].arguments == '{"a": 1}'


@pytest.mark.parametrize(
    ("document", "form"),
    [
        (CHAT, "lm-studio"),
        ({"messages": [{"role": "user", "content": "versions: currentlySelected"}]}, "openai"),
        ({"messages": [{"role": "user", "content": "x", "versions": []}]}, "openai"),
    ],
)
def test_a_conversation_is_distinguished_from_other_documents(document, form):
    assert choose(file_of(json.dumps(document))).name == form
