import json
from typing import Any

import pytest
from each import each
from reading import lines, read, records, roles_and_texts, skipped

from reservoir_cli.messages import Message
from reservoir_cli.transfer.formats.chatgpt import ChatGPT


def node(
    name: str, parent: str | None, role: str = "user", text: Any = None, **more: Any
) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [text or name]}
    message = {"id": name, "author": {"role": role}, "content": content, **more}
    return {"id": name, "parent": parent, "children": [], "message": message}


def conversation(*nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    mapping = {item["id"]: item for item in nodes}
    return {"conversation_id": "c", "mapping": mapping, "current_node": nodes[-1]["id"], **more}


def messages(*conversations: dict[str, Any]) -> list[Message]:
    entries = read(lines(*conversations), ChatGPT())
    assert skipped(entries) == []
    return [record.message for record in records(entries)]


def contents_of(*conversations: dict[str, Any]) -> list[str]:
    return [message.content for message in messages(*conversations)]


FORK = (
    node("q", None),
    node("old", "q", "assistant", create_time=9.0),
    node("new", "q", "assistant", create_time=5.0),
    node("end", "new", create_time=6.0),
)


def test_only_the_branch_seen_last_is_read():
    assert contents_of(conversation(*FORK)) == ["q", "new", "end"]
    assert contents_of(conversation(*FORK, current_node="old")) == ["q", "old"]


@each("current", [None, "gone", 7, ["end"]])
def test_without_a_current_node_the_leaf_with_the_latest_time_is_the_end(current):
    assert contents_of(conversation(*FORK, current_node=current)) == ["q", "old"]


def test_messages_in_a_circle_are_read_once():
    assert contents_of(conversation(node("a", "b"), node("b", "a"))) == ["a", "b"]
    assert contents_of(conversation(node("a", "a"))) == ["a"]
    late = node("b", "a", create_time=2.0)
    circle = conversation(node("a", "b", create_time=1.0), late, current_node=None)
    assert contents_of(circle) == ["a", "b"]


def test_a_branch_without_its_beginning_is_read_from_its_first_message():
    assert contents_of(conversation(node("a", "gone"), node("b", "a"))) == ["a", "b"]


TIMES = [
    ([None, 10.0, None], None, [10, 10, 10]),
    ([10.0, None, 20.0], None, [10, 10, 20]),
    ([None, None], 5, [5, 5]),
    ([None, None], None, [None, None]),
    (["x", -1, 1e300, True, 12.5], None, [12.5] * 5),
]


@each(("times", "start", "expected"), TIMES)
def test_a_message_without_a_time_gets_that_of_its_neighbour(times, start, expected):
    nodes = [node(str(index), str(index - 1), create_time=time) for index, time in enumerate(times)]
    created = [message.created_at for message in messages(conversation(*nodes, create_time=start))]
    assert [time and time.timestamp() for time in created] == expected


def test_without_a_time_of_creation_that_of_the_last_change_counts():
    nodes = [node("a", None, create_time=None, update_time=7.0), node("b", "a", update_time=9.0)]
    created = [message.created_at for message in messages(conversation(*nodes, create_time=5.0))]
    assert [time and time.timestamp() for time in created] == [7, 9]


HIDDEN = [
    {"weight": 0},
    {"weight": 0.0},
    {"metadata": {"is_visually_hidden_from_conversation": True}},
    {"content": {"content_type": "user_editable_context", "text": "x"}},
    {"content": {"content_type": "model_editable_context", "text": "x"}},
    {"content": {"content_type": "reasoning_recap", "content": "x"}},
    {"content": {"content_type": "text", "parts": [""]}},
    {"content": {"content_type": "text", "parts": []}},
    {"content": {"content_type": "text", "parts": None}},
    {"content": None},
]


@each("more", HIDDEN)
def test_hidden_messages_are_skipped(more):
    assert contents_of(conversation(node("a", None), node("b", "a", **more), node("c", "b"))) == [
        "a",
        "c",
    ]


CONTENTS = [
    ({"content_type": "text", "parts": ["one", "two"]}, "one\ntwo"),
    ({"content_type": "code", "language": "python", "text": "print()"}, "print()"),
    (
        {"content_type": "multimodal_text", "parts": [None, {"text": "heard"}, "read"]},
        "heard\nread",
    ),
    (
        {"content_type": "multimodal_text", "parts": [{"content_type": "audio_asset_pointer"}]},
        "[audio]",
    ),
    (
        {
            "content_type": "multimodal_text",
            "parts": [
                {"content_type": "audio_transcription", "text": "spoken"},
                {"content_type": "real_time_user_audio_video_asset_pointer"},
                {"content_type": "audio_asset_pointer"},
            ],
        },
        "spoken",
    ),
    ({"content_type": "multimodal_text", "parts": [{"a": 1}, 5]}, "[part]\n[part]"),
    ({"content_type": "tether_quote", "url": "x", "text": "quoted"}, "quoted"),
    ({"content_type": "tether_browsing_display", "result": "found"}, "found"),
    ({"content_type": "brand_new", "content": "words"}, "words"),
    ("words", "words"),
]


@each(("content", "text"), CONTENTS)
def test_content_of_each_kind_becomes_text(content, text):
    assert contents_of(conversation(node("a", None, content=content))) == [text]


def test_a_call_is_linked_to_exactly_one_result_of_its_tool():
    call = {"recipient": "web.search"}
    imported = messages(
        conversation(
            node("q", None),
            node("c1", "q", "assistant", "query", **call),
            node("c2", "c1", "assistant", "print()", recipient="python"),
            node("r1", "c2", "tool", "hit", author={"role": "tool", "name": "web"}),
            node("r2", "r1", "tool", "hit", author={"role": "tool", "name": "web.run"}),
            node("r3", "r2", "tool", "0", author={"role": "tool", "name": "python"}),
            node("r4", "r3", "tool", "?", author={"role": "tool"}),
        )
    )
    calls = [call for message in imported for call in message.tool_calls]
    assert [(call.id, call.name, call.arguments) for call in calls] == [
        ("c1", "web.search", "query"),
        ("c2", "python", "print()"),
    ]
    assert [message.tool_call_id for message in imported if message.role == "tool"] == [
        "c1",
        None,
        "c2",
        None,
    ]


def test_what_is_written_into_a_canvas_is_text():
    created = {"name": "Essay", "type": "document", "content": "# Title\n\nIts first line."}
    updated = {"updates": [{"pattern": ".*", "multiple": True, "replacement": "New\nlines."}]}
    commented = {"comments": [{"pattern": "New", "comment": "Why new?"}, {"pattern": "x"}, 3]}
    imported = messages(
        conversation(
            node("q", None),
            node("c1", "q", "assistant", json.dumps(created), recipient="canmore.create_textdoc"),
            node("c2", "c1", "assistant", json.dumps(updated), recipient="canmore.update_textdoc"),
            node(
                "c3", "c2", "assistant", json.dumps(commented), recipient="canmore.comment_textdoc"
            ),
            node("c4", "c3", "assistant", "no JSON", recipient="canmore.update_textdoc"),
            node("c5", "c4", "assistant", '{"content": "x"}', recipient="web.open"),
        )
    )[1:]
    assert [message.content for message in imported] == [
        created["content"],
        "New\nlines.",
        "Why new?",
        "",
        "",
    ]
    assert [call.arguments for message in imported for call in message.tool_calls] == [
        '{"name": "Essay", "type": "document"}',
        '{"updates": [{"pattern": ".*", "multiple": true}]}',
        '{"comments": [{"pattern": "New"}, {"pattern": "x"}, 3]}',
        "no JSON",
        '{"content": "x"}',
    ]


def test_messages_without_ids_get_unique_ones_for_each_conversation():
    def nameless(identity: str | None) -> dict[str, Any]:
        return conversation(
            node("a", None, id=None, text="hi"), node("b", "a", id=None), conversation_id=identity
        )

    imported = messages(nameless("one"), nameless("two"), nameless(None))
    assert len({message.source_id for message in imported}) == 6
    assert len({message.conversation_id for message in imported}) == 3
    assert imported[4].conversation_id == imported[4].source_id
    assert messages(nameless("one"))[1].source_id == imported[1].source_id


def test_skipped_records_are_reported_in_the_order_of_the_file():
    broken = conversation(
        node("a", None, author={"role": "robot"}),
        {"id": "b", "parent": "a", "message": 5},
        node("c", "b", author={"role": "robot"}),
        {"id": "d", "parent": "c", "message": "x"},
    )
    entries = read(lines(broken), ChatGPT())
    assert skipped(entries) == [
        ("the document, message 1", "unknown role"),
        ("the document, message 2", "not a message"),
        ("the document, message 3", "unknown role"),
        ("the document, message 4", "not a message"),
    ]


@each(("damaged", "reported"), [({"parent": 5}, 0), ({"parent": "gone"}, 0), (None, 1), ("x", 1)])
def test_a_damaged_node_does_not_hide_those_before_it(damaged, reported):
    whole = conversation(node("a", None), node("b", "a"), node("c", "b", "assistant"))
    nodes = whole["mapping"]
    for parent, child in (("a", "b"), ("b", "c")):
        nodes[parent]["children"] = [child]
    nodes["b"] = nodes["b"] | damaged if isinstance(damaged, dict) else damaged
    entries = read(lines(whole), ChatGPT())
    assert [record.message.content for record in records(entries)] == [
        name for name in "abc" if name != "b" or not reported
    ]
    assert skipped(entries) == [("the document, message 2", "not a message")] * reported


def test_a_newer_export_has_the_same_message_ids():
    older = messages(conversation(*FORK[:1], FORK[2]))
    newer = messages(conversation(*FORK))
    assert [(message.source_id, message.trace_id) for message in newer][:2] == [
        (message.source_id, message.trace_id) for message in older
    ]


def marked(*fields: str) -> str:
    """Return a marker that the application renders, as it is in the text."""
    return "\ue200" + "\ue202".join(fields) + "\ue201"


CITED = marked("cite", "turn0search3", "turn0search1")
FILE = marked("filecite", "turn0file1")
LISTED = marked("navlist", "More", "turn0news1,turn0news2")
LINKED = marked("url", "The SQLite page", "turn0search0")
PERSON = marked("entity", '["people", "Ada Lovelace", 0]')
UNNAMED, NUMBER = marked("entity", '["people"]'), marked("entity", '["people", 1]')
MARKS = [
    (f"It is fast {CITED}, yes.", "It is fast, yes."),
    (f"See{FILE} it.", "See it."),
    (f"\ue203It is fast.\ue204{CITED}", "It is fast."),
    (f"By {PERSON}.", "By Ada Lovelace."),
    (f"By {marked('entity', 'Ada Lovelace')}.", "By Ada Lovelace."),
    (f"Seen: {UNNAMED}.", 'Seen: ["people"].'),
    (f"Seen {NUMBER}.", "Seen."),
    (f"From {LINKED}", "From The SQLite page"),
    (f"Done.\n{LISTED}", "Done.\n"),
    ("cut \ue200cite\ue202turn0search3", "cut \ue200cite\ue202turn0search3"),
    ("an icon \ue203 of a font", "an icon \ue203 of a font"),
]


@each(("text", "expected"), MARKS)
def test_citations_of_an_answer_are_removed_and_its_text_stays(text, expected):
    thoughts = {"content_type": "thoughts", "thoughts": [{"content": text}]}
    thinking = node("thinking", "q", "assistant")
    thinking["message"]["content"] = thoughts
    answer = node("a", "thinking", "assistant", text)
    assert contents_of(conversation(node("q", None, text=text), thinking, answer)) == [
        text,
        expected,
        expected,
    ]


def test_an_answer_of_citations_only_is_empty():
    assert contents_of(
        conversation(node("q", None), node("a", "q", "assistant", marked("cite", "x")))
    ) == ["q"]


REPORT = {"report_message": {"content": {"parts": [f"# Queues {CITED}\n\nUse one."]}}}


@pytest.mark.parametrize("state", [REPORT, json.dumps(REPORT)])
@pytest.mark.parametrize("hidden", [True, False])
def test_the_report_of_a_deep_research_is_a_reply(state, hidden):
    metadata = {
        "chatgpt_sdk": {"widget_state": state},
        "is_visually_hidden_from_conversation": hidden,
    }
    tool = node("t", "q", "tool", " ", metadata=metadata)
    again = node("t2", "t", "tool", " ", metadata=metadata)
    read_messages = messages(conversation(node("q", None), tool, again, node("next", "t2")))
    replies = [message for message in read_messages if message.role == "assistant"]
    assert [(reply.content, reply.source_id) for reply in replies] == [
        ("# Queues\n\nUse one.", "t#report")
    ]
    assert [read_messages[0].content, read_messages[-1].content] == ["q", "next"]


@each("state", ["", "{", "[]", 7, {"report_message": "x"}, {"status": "running"}])
def test_a_research_without_a_report_has_no_reply(state):
    tool = node("t", "q", "tool", "ok", metadata={"chatgpt_sdk": {"widget_state": state}})
    assert contents_of(conversation(node("q", None), tool)) == ["q", "ok"]


def test_the_output_of_code_that_can_be_cited_is_read():
    tool = node("t", "q", "tool")
    tool["message"]["content"] = {"content_type": "citable_code_output", "output_str": "L0: 42"}
    assert contents_of(conversation(node("q", None), tool)) == ["q", "L0: 42"]


@each("current", ["stray", "root", "absent", None, 7])
def test_a_pointer_to_a_branch_without_messages_is_not_followed(current):
    def node(key: str, parent: str | None, role: str, words: str, time: float) -> dict[str, Any]:
        content = {"content_type": "text", "parts": [words]}
        said = {"id": key, "author": {"role": role}, "create_time": time, "content": content}
        return {"id": key, "parent": parent, "message": said if time else None}

    mapping = {
        "root": node("root", None, "", "", 0),
        "q": node("q", "root", "user", "Which vat?", 1),
        "old": node("old", "q", "assistant", "The first.", 2),
        "new": node("new", "q", "assistant", "The second.", 3),
        "stray": node("stray", None, "assistant", " ", 9),
    }
    conversation = {"id": "c", "mapping": mapping, "current_node": current}
    entries = read(json.dumps([conversation]))
    assert roles_and_texts(entries) == [("user", "Which vat?"), ("assistant", "The second.")]
    assert roles_and_texts(read(json.dumps([conversation | {"current_node": "old"}]))) == [
        ("user", "Which vat?"),
        ("assistant", "The first."),
    ]
