"""Exports for other programs: OpenAI, Anthropic, ShareGPT, Markdown."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from validators import problems

from reservoir_cli.messages import Conversation, Filter, Message, Scope, StoredMessage, ToolCall
from reservoir_cli.redaction import Redactor
from reservoir_cli.storage.store import Store
from reservoir_cli.transfer.export import export_messages
from reservoir_cli.transfer.formats.registry import importers
from reservoir_cli.transfer.reading.decompressed_file import File
from reservoir_cli.transfer.reading.importer import Record
from reservoir_cli.transfer.reports import ExportReport

Adding = Callable[..., list[StoredMessage | None]]
MASK = Redactor(lambda _: "off")
FORMS = ["openai", "anthropic", "sharegpt"]


def export_text(store: Store, form: str) -> tuple[str, ExportReport]:
    totals = ExportReport()
    text = "".join(export_messages.export(store, Scope(None), Filter(), form, totals, mask=MASK))
    return text, totals


def lines(store: Store, form: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in export_text(store, form)[0].splitlines()]


def call(identity: str, arguments: str = '{"path": "a"}') -> ToolCall:
    return ToolCall(identity, "read", arguments)


def result(identity: str, content: str = "done") -> Message:
    return Message("tool", content, tool_call_id=identity, name="read", conversation_id="c")


def make_message(role: str, content: str, *calls: ToolCall, **more: Any) -> Message:
    return Message(role, content, tool_calls=calls, **{"conversation_id": "c", **more})


TALK = (
    make_message("system", "Be brief."),
    make_message("user", "Read both files."),
    make_message("assistant", "Reading.", call("one"), call("two")),
    result("one", "first"),
    result("two", ""),
    make_message("assistant", "Both are short."),
    make_message("user", "Thanks."),
)

BROKEN: dict[str, tuple[Message, ...]] = {
    "whole": TALK,
    "a call without a result": (
        make_message("user", "go"),
        make_message("assistant", "", call("one")),
    ),
    "a result without its call": (make_message("user", "go"), result("one")),
    "a result before its call": (
        make_message("user", "go"),
        result("one"),
        make_message("assistant", "", call("one")),
    ),
    "a message between call and result": (
        make_message("user", "go"),
        make_message("assistant", "", call("one")),
        make_message("user", "wait"),
        result("one"),
    ),
    "two results of one call": (
        make_message("user", "go"),
        make_message("assistant", "", call("one")),
        result("one", "a"),
        result("one", "b"),
    ),
    "a result that is there twice": (
        make_message("user", "go"),
        make_message("assistant", "", call("one")),
        result("one", "a"),
        result("one", "a"),
    ),
    "a reply first": (
        make_message("system", "Be brief."),
        make_message("assistant", "Hello!", call("one")),
        result("one", "a"),
        make_message("user", "go"),
        result("one", "b"),
    ),
    "only a reply": (make_message("assistant", "Hello!"),),
    "an id that is used twice": (
        make_message("user", "go"),
        make_message("assistant", "", call("one")),
        result("one", "a"),
        make_message("assistant", "", call("one")),
        result("one", "b"),
    ),
    "arguments that are no JSON": (
        make_message("user", "go"),
        make_message("assistant", "", call("one", "print(1)")),
        result("one"),
    ),
    "a blank message": (make_message("user", "go"), make_message("user", " ")),
}


@pytest.mark.parametrize("form", ["openai", "anthropic"])
@pytest.mark.parametrize("messages", BROKEN.values(), ids=BROKEN)
def test_an_exported_conversation_is_a_valid_request(store, add, form, messages):
    add(*messages, make_message("user", "go on"))
    [body] = lines(store, form)
    required = {"model": "m", "max_tokens": 100} if form == "anthropic" else {"model": "m"}
    assert problems(form, {**body, **required}) == []


@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_a_duplicate_result_is_exported_once(store, add, form):
    add(
        *BROKEN["a result that is there twice"][:2],
        result("one", "the result"),
        make_message("user", "?"),
    )
    add(result("one", "the result"))
    assert export_text(store, form)[0].count("the result") == 1


@pytest.mark.parametrize("form", FORMS)
def test_no_conversation_begins_with_a_reply(store, add, form):
    add(*BROKEN["a reply first"])
    [body] = lines(store, form)
    turns = body["conversations" if form == "sharegpt" else "messages"]
    authors = {turn.get("role") or turn["from"] for turn in turns}
    assert authors - {"system"} == {"human" if form == "sharegpt" else "user"}
    assert "assistant: Hello!" in json.dumps(body)


QUOTED = {"whole": 0, "a reply first": 3, "only a reply": 1, "a result without its call": 1}


@pytest.mark.parametrize(("name", "count"), QUOTED.items())
def test_quoted_messages_are_counted(store, add, name, count):
    add(*BROKEN[name])
    assert [export_text(store, form)[1].quoted for form in FORMS] == [count] * len(FORMS)
    assert export_text(store, "markdown")[1].quoted == 0


@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_tool_results_never_get_the_role_system(store, add, form):
    add(*BROKEN["a result without its call"])
    [body] = lines(store, form)
    assert [message["role"] for message in body["messages"]] == ["user"] * len(body["messages"])
    assert "system" not in body


@pytest.mark.parametrize("form", FORMS)
def test_a_conversation_without_text_is_left_out(store, add, form):
    add(make_message("user", " "))
    assert export_text(store, form)[0] == ""


@pytest.mark.parametrize("form", [*FORMS, "markdown"])
@pytest.mark.parametrize("messages", BROKEN.values(), ids=BROKEN)
def test_no_message_is_lost(store, add, form, messages):
    add(*messages)
    text = export_text(store, form)[0]
    for message in messages:
        assert message.content.strip() in text
        assert len(message.tool_calls) <= text.count("read")


@pytest.mark.parametrize("form", FORMS)
def test_an_export_can_be_imported(store, add, form):
    add(*TALK)
    text = export_text(store, form)[0]
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
def test_each_conversation_is_a_line_and_so_are_messages_outside_of_conversations(store, add, form):
    add(
        make_message("user", "a", conversation_id="c"),
        make_message("user", "x", conversation_id=None),
    )
    add(
        make_message("user", "b", conversation_id="d"),
        make_message("user", "y", conversation_id=None),
    )
    add(make_message("user", "c", conversation_id="c"))
    key, content = ("conversations", "value") if form == "sharegpt" else ("messages", "content")
    texts = [
        "".join(_text(message[content]) for message in line[key]) for line in lines(store, form)
    ]
    assert texts == ["ac", "xy", "b"]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


@pytest.mark.parametrize("form", FORMS)
def test_thinking_is_left_out_and_counted(store, add, form):
    thought = make_message("system", "Let me think of it.", name="thinking")
    add(*TALK, thought)
    text, totals = export_text(store, form)
    assert "think" not in text
    assert (totals.messages, totals.left_out) == (len(TALK), 1)
    markdown, totals = export_text(store, "markdown")
    assert "Let me think of it." in markdown
    assert (totals.messages, totals.left_out) == (len(TALK) + 1, 0)


def test_sharegpt_keeps_details_of_a_conversation(store, add):
    add(*TALK)
    store.add_conversations(Scope("p", "i"), [Conversation("c", "Files", "chatgpt", "gpt-4")])
    [line] = lines(store, "sharegpt")
    assert (line["id"], line["title"], line["model"]) == ("c", "Files", "gpt-4")
    assert [turn["from"] for turn in line["conversations"]] == [
        *("system", "human", "gpt"),
        *("function_call", "observation", "function_call", "observation"),
        *("gpt", "human"),
    ]


def test_markdown_names_conversation_speaker_and_time(store, add):
    add(*TALK)
    store.add_conversations(Scope("p", "i"), [Conversation("c", "Two\nfiles")])
    text = export_text(store, "markdown")[0]
    assert text.startswith("# Two files\n\n*p/i*\n\n## system · 2026-05-09T12:00:00+00:00\n\nBe ")
    assert '## assistant · 2026-05-09T12:00:00+00:00\n\nReading.\n[call read {"path": "a"}]' in text


def test_a_name_of_several_lines_stays_in_its_heading(store, add):
    add(make_message("user", "Hello.", name="Ann\n# Nobody said this"))
    text = export_text(store, "markdown")[0]
    assert "\n## user (Ann # Nobody said this) · 2026" in text


@pytest.mark.parametrize("form", [*FORMS, "markdown"])
def test_an_empty_store_is_an_empty_text(store, form):
    assert export_text(store, form)[0] == ""


@pytest.mark.parametrize(
    ("title", "heading"), [(None, "# Who opens the lock?"), ("Locks\nand keys", "# Locks and keys")]
)
def test_markdown_has_the_title_that_rows_have(store, add, title, heading):
    add(make_message("system", "Be brief."), make_message("user", "\nWho opens the lock?\nNow."))
    store.add_conversations(Scope("p", "i"), [Conversation("c", title, "chatgpt")])
    assert export_text(store, "markdown")[0].startswith(f"{heading}\n\n*p/i*\n\n## system")
