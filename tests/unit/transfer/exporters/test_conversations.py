"""Exports for other programs: OpenAI, Anthropic, ShareGPT, Markdown."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from validators import problems

from reservoir_cli.messages import Conversation, Message, Scope, StoredMessage, ToolCall
from reservoir_cli.redaction import Redactor
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.records import Filter
from reservoir_cli.transfer import exporters
from reservoir_cli.transfer.importers import File, Record, importers
from reservoir_cli.transfer.reports import ExportReport

Adding = Callable[..., list[StoredMessage | None]]
MASK = Redactor(lambda _: "off")
FORMS = ["openai", "anthropic", "sharegpt"]


def exported(store: Store, form: str) -> tuple[str, ExportReport]:
    totals = ExportReport()
    text = "".join(exporters.export(store, Scope(None), Filter(), form, totals, mask=MASK))
    return text, totals


def lines(store: Store, form: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in exported(store, form)[0].splitlines()]


def call(identity: str, arguments: str = '{"path": "a"}') -> ToolCall:
    return ToolCall(identity, "read", arguments)


def result(identity: str, content: str = "done") -> Message:
    return Message("tool", content, tool_call_id=identity, name="read", conversation_id="c")


def said(role: str, content: str, *calls: ToolCall, **more: Any) -> Message:
    return Message(role, content, tool_calls=calls, **{"conversation_id": "c", **more})


TALK = (
    said("system", "Be brief."),
    said("user", "Read both files."),
    said("assistant", "Reading.", call("one"), call("two")),
    result("one", "first"),
    result("two", ""),
    said("assistant", "Both are short."),
    said("user", "Thanks."),
)

BROKEN: dict[str, tuple[Message, ...]] = {
    "whole": TALK,
    "a call without a result": (said("user", "go"), said("assistant", "", call("one"))),
    "a result without its call": (said("user", "go"), result("one")),
    "a result before its call": (
        said("user", "go"),
        result("one"),
        said("assistant", "", call("one")),
    ),
    "a message between call and result": (
        said("user", "go"),
        said("assistant", "", call("one")),
        said("user", "wait"),
        result("one"),
    ),
    "two results of one call": (
        said("user", "go"),
        said("assistant", "", call("one")),
        result("one", "a"),
        result("one", "b"),
    ),
    "a result that is there twice": (
        said("user", "go"),
        said("assistant", "", call("one")),
        result("one", "a"),
        result("one", "a"),
    ),
    "a reply first": (
        said("system", "Be brief."),
        said("assistant", "Hello!", call("one")),
        result("one", "a"),
        said("user", "go"),
        result("one", "b"),
    ),
    "only a reply": (said("assistant", "Hello!"),),
    "an id that is used twice": (
        said("user", "go"),
        said("assistant", "", call("one")),
        result("one", "a"),
        said("assistant", "", call("one")),
        result("one", "b"),
    ),
    "arguments that are no JSON": (
        said("user", "go"),
        said("assistant", "", call("one", "print(1)")),
        result("one"),
    ),
    "a blank message": (said("user", "go"), said("user", " ")),
}


@pytest.mark.parametrize("form", ["openai", "anthropic"])
@pytest.mark.parametrize("messages", BROKEN.values(), ids=BROKEN)
def test_an_exported_conversation_is_a_valid_request(
    store: Store, add: Adding, form: str, messages: tuple[Message, ...]
) -> None:
    add(*messages, said("user", "go on"))
    [body] = lines(store, form)
    required = {"model": "m", "max_tokens": 100} if form == "anthropic" else {"model": "m"}
    assert problems(form, {**body, **required}) == []


@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_a_duplicate_result_is_exported_once(store: Store, add: Adding, form: str) -> None:
    add(*BROKEN["a result that is there twice"][:2], result("one", "the result"), said("user", "?"))
    add(result("one", "the result"))
    assert exported(store, form)[0].count("the result") == 1


@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_no_conversation_begins_with_a_reply(store: Store, add: Adding, form: str) -> None:
    add(*BROKEN["a reply first"])
    [body] = lines(store, form)
    roles = [message["role"] for message in body["messages"] if message["role"] != "system"]
    assert set(roles) == {"user"}
    assert "assistant: Hello!" in json.dumps(body)


@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_tool_results_never_get_the_role_system(store: Store, add: Adding, form: str) -> None:
    add(*BROKEN["a result without its call"])
    [body] = lines(store, form)
    assert [message["role"] for message in body["messages"]] == ["user"] * len(body["messages"])
    assert "system" not in body


@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_a_conversation_without_text_is_left_out(store: Store, add: Adding, form: str) -> None:
    add(said("user", " "))
    assert exported(store, form)[0] == ""


@pytest.mark.parametrize("form", [*FORMS, "markdown"])
@pytest.mark.parametrize("messages", BROKEN.values(), ids=BROKEN)
def test_no_message_is_lost(
    store: Store, add: Adding, form: str, messages: tuple[Message, ...]
) -> None:
    add(*messages)
    text = exported(store, form)[0]
    for message in messages:
        assert message.content.strip() in text
        assert len(message.tool_calls) <= text.count("read")


@pytest.mark.parametrize("form", FORMS)
def test_an_export_can_be_imported(store: Store, add: Adding, form: str) -> None:
    add(*TALK)
    text = exported(store, form)[0]
    read = list(importers()[form].read(File.of_bytes("f", text.encode())))
    messages = [record.message for record in read if isinstance(record, Record)]
    assert len(messages) == len(read)
    by_role = [(message.role, message.content) for message in messages if message.content]
    expected = [(message.role, message.content or "[no output]") for message in TALK]
    if form == "sharegpt":
        expected = [row for row in expected if row[1] != "[no output]"]
    assert by_role == expected
    answered_ids = {message.tool_call_id for message in messages if message.role == "tool"}
    assert answered_ids == {call.id for message in messages for call in message.tool_calls}
    assert len(answered_ids) == 2


@pytest.mark.parametrize("form", FORMS)
def test_each_conversation_is_a_line_and_so_are_messages_outside_of_conversations(
    store: Store, add: Adding, form: str
) -> None:
    add(said("user", "a", conversation_id="c"), said("user", "x", conversation_id=None))
    add(said("user", "b", conversation_id="d"), said("user", "y", conversation_id=None))
    add(said("user", "c", conversation_id="c"))
    key, content = ("conversations", "value") if form == "sharegpt" else ("messages", "content")
    texts = [
        "".join(_text(message[content]) for message in line[key]) for line in lines(store, form)
    ]
    assert texts == ["ac", "xy", "b"]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


@pytest.mark.parametrize("form", FORMS)
def test_thinking_is_left_out_and_counted(store: Store, add: Adding, form: str) -> None:
    thought = said("system", "Let me think of it.", name="thinking")
    add(*TALK, thought)
    text, totals = exported(store, form)
    assert "think" not in text
    assert (totals.messages, totals.left_out) == (len(TALK), 1)
    markdown, totals = exported(store, "markdown")
    assert "Let me think of it." in markdown
    assert (totals.messages, totals.left_out) == (len(TALK) + 1, 0)


def test_sharegpt_keeps_details_of_a_conversation(store: Store, add: Adding) -> None:
    add(*TALK)
    store.add_conversations(Scope("p", "i"), [Conversation("c", "Files", "chatgpt", "gpt-4")])
    [line] = lines(store, "sharegpt")
    assert (line["id"], line["title"], line["model"]) == ("c", "Files", "gpt-4")
    assert [turn["from"] for turn in line["conversations"]] == [
        *("system", "human", "gpt"),
        *("function_call", "observation", "function_call", "observation"),
        *("gpt", "human"),
    ]


def test_markdown_names_conversation_speaker_and_time(store: Store, add: Adding) -> None:
    add(*TALK)
    store.add_conversations(Scope("p", "i"), [Conversation("c", "Two\nfiles")])
    text = exported(store, "markdown")[0]
    assert text.startswith("# Two files\n\n*p/i*\n\n## system · 2026-05-09T12:00:00+00:00\n\nBe ")
    assert '## assistant · 2026-05-09T12:00:00+00:00\n\nReading.\n[call read {"path": "a"}]' in text


def test_a_name_of_several_lines_stays_in_its_heading(store: Store, add: Adding) -> None:
    add(said("user", "Hello.", name="Ann\n# Nobody said this"))
    text = exported(store, "markdown")[0]
    assert "\n## user (Ann # Nobody said this) · 2026" in text


@pytest.mark.parametrize("form", [*FORMS, "markdown"])
def test_an_empty_store_is_an_empty_text(store: Store, form: str) -> None:
    assert exported(store, form)[0] == ""
