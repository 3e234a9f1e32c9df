"""Special cases of the histories of Gemini CLI and Copilot, and resumed sessions."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from databases import create_database
from reading import (
    SAMPLES,
    entries_by_file,
    file_of,
    last_conversation,
    lines,
    read,
    records,
    roles_and_texts,
    skipped,
)

from reservoir_cli.reservoir import Reservoir
from reservoir_cli.transfer.detect_format import choose
from reservoir_cli.transfer.formats.copilot_chat import CopilotChat
from reservoir_cli.transfer.reading.importer import Record

# Sessions that were resumed, and imported in between


def sample_until(name: str, mark: str, count: int) -> Callable[[Path, int], Path]:
    """Return a function that writes a sample as it was before some of its resumptions.

    :param mark: a text in each line that begins or resumes the session.
    """

    def write(folder: Path, resumed: int) -> Path:
        sample_lines = (SAMPLES / name).read_text(encoding="utf-8").splitlines(keepends=True)
        starts = [index for index, line in enumerate(sample_lines) if mark in line]
        assert len(starts) == count
        end = starts[resumed + 1] if resumed + 1 < count else len(sample_lines)
        path = folder / name
        path.write_text("".join(sample_lines[:end]), encoding="utf-8")
        return path

    return write


def opencode_until(folder: Path, resumed: int) -> Path:
    """Write opencode's database as it was before some of its resumptions."""
    path = folder / "opencode.db"
    path.unlink(missing_ok=True)
    create_database(folder, "opencode")
    with closing(sqlite3.connect(path)) as database, database:
        query = 'SELECT id FROM message WHERE data LIKE \'%"role":"user"%\' ORDER BY id'
        questions = [row[0] for row in database.execute(query)]
        assert len(questions) == 3
        if resumed < 2:
            database.execute("DELETE FROM message WHERE id >= ?", [questions[resumed + 1]])
    return path


RESUMED: dict[str, tuple[Callable[[Path, int], Path], list[int]]] = {
    "gemini-cli": (sample_until("gemini-cli.jsonl", '"projectHash"', 3), [3, 5, 2]),
    "copilot-cli": (sample_until("copilot-cli.jsonl", '"parentAgentTaskId"', 3), [3, 6, 3]),
    "opencode": (opencode_until, [3, 6, 3]),
}


@pytest.mark.parametrize(("write", "new_counts"), RESUMED.values(), ids=RESUMED)
def test_a_resumed_session_adds_only_what_is_new(write, new_counts, tmp_path):
    with Reservoir.open(tmp_path / "store.db") as reservoir:
        for resumed, count in enumerate(new_counts):
            first = reservoir.import_files(write(tmp_path, resumed))
            second = reservoir.import_files(write(tmp_path, resumed))
            assert (first.imported, first.already) == (count, sum(new_counts[:resumed]))
            assert (second.imported, second.already) == (0, sum(new_counts[: resumed + 1]))


# Gemini CLI

HEADER = {"sessionId": "s1", "projectHash": "0" * 64, "startTime": "2026-05-10T08:00:00Z"}


def turn(identity: str, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    timestamp = "2026-05-10T08:00:00Z"
    return {"id": identity, "timestamp": timestamp, "type": kind, "content": content, **more}


def test_a_rewound_turn_is_left_out():
    entries = read(
        lines(
            HEADER,
            turn("1", "user", "How long?"),
            turn("2", "gemini", "1.2 m."),
            turn("3", "user", "How blue?"),
            turn("4", "gemini", "Not at all."),
            {"$rewindTo": "3"},
            turn("5", "user", "How heavy?"),
        )
    )
    assert [content for _, content in roles_and_texts(entries)] == [
        "How long?",
        "1.2 m.",
        "How heavy?",
    ]


def test_a_rewind_to_an_unknown_message_removes_nothing():
    entries = read(lines(HEADER, turn("1", "user", "How long?"), {"$rewindTo": "9"}))
    assert roles_and_texts(entries) == [("user", "How long?")]


def test_message_ids_get_the_session_as_a_prefix_unless_unique():
    unique = "4b31fad5-5045-47c0-85e0-9eecd8c0e6c2"
    entries = read(lines(HEADER, turn("1", "user", "How long?"), turn(unique, "user", "Why?")))
    assert [record.message.source_id for record in records(entries)] == ["s1:1", unique]


def test_text_of_the_program_in_a_chat_is_left_out():
    entries = read(
        lines(
            HEADER,
            turn("1", "user", [{"text": "<session_context>\nToday is Sunday.</session_context>"}]),
            turn("2", "user", "/chat save birds"),
            turn("7", "gemini", "/usr holds programs."),
            turn("3", "info", "Saved."),
            turn("4", "user", [{"text": "How long?"}, {"fileData": {"mimeType": "image/png"}}]),
            turn("5", "user", "<state_snapshot>They talked of birds.</state_snapshot>"),
            turn("6", "gemini", "Got it. Thanks for the additional context!"),
            turn("8", "user", "Here is the user's editor context as a JSON object. It is open."),
            turn("9", "user", "System: Potential loop detected. Details: birds. Step back."),
            turn("10", "user", [{"text": "Please continue."}]),
        )
    )
    assert roles_and_texts(entries) == [
        ("assistant", "/usr holds programs."),
        ("user", "How long?\n[image]"),
    ]
    assert skipped(entries) == []


FILE_PARTS = [
    {"text": "Which bird is in @nest.txt?"},
    {"text": "\n<system_note>\nUse the tool.\n</system_note>\n"},
    {"text": "\n--- Content from referenced files ---"},
    {"text": "\nContent from @nest.txt:\n"},
    {"text": "An owl."},
    {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
    {"text": "\n--- End of content ---"},
    {"text": "Be short."},
]


def test_files_that_a_question_names_in_gemini_cli_are_left_out():
    as_text = "".join(part.get("text", "") for part in [FILE_PARTS[0], *FILE_PARTS[2:5]])
    as_text += "\n--- End of content ---"
    entries = read(lines(HEADER, turn("1", "user", FILE_PARTS), turn("2", "user", as_text)))
    assert roles_and_texts(entries) == [
        ("user", "Which bird is in @nest.txt?\n[image]\nBe short."),
        ("user", "Which bird is in @nest.txt?"),
    ]


def test_what_gemini_cli_displayed_is_the_question():
    def sent(identity: str, content: str, displayed: str | None) -> dict[str, Any]:
        more = {} if displayed is None else {"displayContent": [{"text": displayed}]}
        return turn(identity, "user", [{"text": content}], **more)

    entries = read(
        lines(
            HEADER,
            sent("1", "You review code. Review the parser.", "/review the parser"),
            sent("2", "The linter failed. Mend that.", "/review the parser"),
            sent("3", "You review code. Review the parser.", "/review the parser"),
            sent("4", "Why?", None),
            sent("5", "Please continue.", "Why?"),
            sent("6", "How long? In metres.", "How long?"),
        )
    )
    texts = [content for _, content in roles_and_texts(entries)]
    assert texts == ["/review the parser", "/review the parser", "Why?", "How long?"]


def test_a_subagent_of_gemini_cli_belongs_to_its_session(tmp_path):
    chats = tmp_path / "birds" / "chats"
    (chats / "s1").mkdir(parents=True)
    main = lines(HEADER, turn("1", "user", "How long?\nDO NOT INDEX"), turn("2", "gemini", "1 m."))
    (chats / "session-2026-05-10T08-00-s1.jsonl").write_text(main, encoding="utf-8")
    header = HEADER | {"sessionId": "helper", "kind": "subagent"}
    helper = lines(header, turn("3", "user", "Measure it."), turn("4", "gemini", "1 m."))
    (chats / "s1" / "helper.jsonl").write_text(helper, encoding="utf-8")
    imported = entries_by_file(tmp_path)["birds/chats/s1/helper.jsonl"]
    assert {record.parent for record in records(imported)} == {"s1"}
    assert last_conversation(imported).project == "birds"
    with Reservoir.open(tmp_path / "birds.db") as reservoir:
        assert reservoir.import_files(tmp_path).imported == 0


def test_messages_missing_from_a_compressed_list_are_kept():
    first, second = turn("1", "user", "How long?"), turn("2", "user", "How heavy?")
    entries = read(lines(HEADER, first, second, {"$set": {"messages": [second]}}))
    assert [content for _, content in roles_and_texts(entries)] == ["How long?", "How heavy?"]


def test_calls_and_results_of_a_list_equal_those_of_the_lines():
    call = {"id": "c1", "name": "look", "args": {"at": "sea"}}
    answer = {"functionResponse": {"id": "c1", "name": "look", "response": {"output": "fish"}}}
    question = turn("1", "user", "What is in the sea?")
    by_lines = [
        question,
        turn("2", "gemini", "Let me see.", toolCalls=[{**call, "result": [answer]}]),
        turn("3", "user", [answer]),
    ]
    as_list = [
        question,
        turn("2", "gemini", [{"text": "Let me see."}, {"functionCall": call}]),
        turn("2_response", "user", [answer]),
    ]
    imported = records(read(lines(HEADER, *by_lines)))
    assert [record.message.content for record in imported] == [
        question["content"],
        "Let me see.",
        "fish",
    ]
    assert records(read(lines(HEADER, {"$set": {"messages": as_list}}))) == imported


@pytest.mark.parametrize(("folder", "project"), [("birds", "birds"), ("0" * 64, None)])
def test_the_folder_of_a_session_is_its_project(folder, project):
    file = file_of(lines(HEADER, turn("1", "user", "How long?")), f"tmp/{folder}/chats/a.jsonl")
    assert last_conversation(list(choose(file).read(file))).project == project


def test_the_list_of_typed_questions_next_to_sessions_is_skipped():
    log = [{"sessionId": "s1", "messageId": 0, "type": "user", "message": "How long?"}]
    file = file_of(json.dumps(log), "logs.json")
    assert choose(file).name == "gemini-cli"
    assert read(json.dumps(log)) == []


# Copilot


def test_the_project_is_the_folder_open_in_vs_code(tmp_path):
    sessions = tmp_path / "workspaceStorage/0f1e/chatSessions"
    sessions.mkdir(parents=True)
    shutil.copy(SAMPLES / "copilot-chat.jsonl", sessions)
    workspace = sessions.parent / "workspace.json"
    for content, project in (
        ('{"folder": "file:///home/ann/my%20birds"}', "my birds"),
        ('{"workspace": "file:///c%3A/src/birds.code-workspace"}', "birds"),
        ("[", None),
    ):
        workspace.write_text(content)
        [entries] = entries_by_file(tmp_path, "copilot-chat").values()
        assert last_conversation(entries).project == project
    workspace.rename(tmp_path / "elsewhere.json").write_text('{"folder": "file:///birds"}')
    workspace.symlink_to(tmp_path / "elsewhere.json")
    [entries] = entries_by_file(sessions).values()
    assert last_conversation(entries).project is None


def test_a_log_and_its_resulting_document_give_the_same_messages():
    first = {"requestId": "r1", "message": {"text": "How long?"}, "response": [{"value": "1.2 m"}]}
    second = {"requestId": "r2", "message": {"text": "How heavy?"}, "response": []}
    session = {"version": 3, "sessionId": "c1", "creationDate": 1, "requests": [first]}
    log = lines(
        {"kind": 0, "v": session},
        {"kind": 2, "k": ["requests"], "v": [second]},
        {"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": " long."}]},
        {"kind": 1, "k": ["requests", 1, "response"], "v": [{"value": "Three kilos."}]},
    )
    first = first | {"response": [{"value": "1.2 m long."}]}
    second = second | {"response": [{"value": "Three kilos."}]}
    document = json.dumps(session | {"requests": [first, second]})
    assert records(read(log)) == records(read(document))
    assert [content for _, content in roles_and_texts(read(log))][1::2] == [
        "1.2 m long.",
        "Three kilos.",
    ]


def test_a_response_of_many_parts_is_one_text():
    parts = [{"value": "x"}, {"kind": "undoStop"}] * 100_000
    request = {"requestId": "r1", "message": {"text": "Why?"}, "response": parts}
    entries = read(json.dumps({"sessionId": "c", "creationDate": 1, "requests": [request]}))
    assert roles_and_texts(entries)[1:] == [("assistant", "x" * 100_000)]


def test_a_log_without_its_beginning_is_skipped():
    log = lines(*[{"kind": 1, "k": ["customTitle"], "v": "x"}] * 3)
    assert skipped(read(log)) == [("line 1", "no session that this changes")]


def test_a_log_that_is_too_large_is_read_up_to_the_limit(monkeypatch):
    monkeypatch.setattr("reservoir_cli.transfer.formats.copilot_chat._MOST", 1 << 20)
    session = {"sessionId": "c1", "requests": [{"requestId": "r1", "message": {"text": "Why?"}}]}
    updates = [{"kind": 1, "k": ["inputState"], "v": "x" * 400_000}] * 10
    entries = read(lines({"kind": 0, "v": session}, *updates), CopilotChat())
    assert skipped(entries) == [("what follows", "a log of more than 1 MB")]
    assert roles_and_texts(entries) == [("user", "Why?")]


def event(identity: str, kind: str, data: dict[str, Any], **more: Any) -> dict[str, Any]:
    timestamp = "2026-05-10T08:00:00Z"
    return {
        "type": kind,
        "data": data,
        "id": identity,
        "timestamp": timestamp,
        "parentId": None,
        **more,
    }


START = event("e0", "session.start", {"sessionId": "s1", "context": {"cwd": "C:\\src\\birds"}})


def test_rewound_events_and_questions_of_copilot_itself_are_left_out():
    entries = read(
        lines(
            START,
            event("e1", "user.message", {"content": "How long?"}),
            event("e2", "assistant.message", {"content": "2 m."}),
            event("e3", "session.snapshot_rewind", {"upToEventId": "e1", "eventsRemoved": 2}),
            event("e4", "user.message", {"content": "Read this skill", "source": "skill-pdf"}),
            event("e5", "user.message", {"content": "Go on", "isAutopilotContinuation": True}),
            event(
                "e6",
                "user.message",
                {"content": "How heavy?", "attachments": [{"type": "file", "path": "/a/b.txt"}]},
            ),
        )
    )
    assert roles_and_texts(entries) == [("user", "[file b.txt]\nHow heavy?")]
    assert (last_conversation(entries).id, last_conversation(entries).project) == ("s1", "birds")


@pytest.mark.parametrize(
    ("name", "named", "title"),
    [
        ("birds", "true", "birds"),
        ("'Ann''s: birds'", "true", "Ann's: birds"),
        ("|-\n  two\n  lines", "true", None),
        ("how long is a pelican?", "false", None),
    ],
)
def test_the_name_that_the_user_gave_to_a_session_of_copilot_is_its_title(
    tmp_path, name, named, title
):
    question = event("e1", "user.message", {"content": "How long?"})
    reply = event("e2", "assistant.message", {"content": "A map."}, agentId="a1")
    (tmp_path / "events.jsonl").write_text(lines(START, question, reply), encoding="utf-8")
    about = f"id: s1\ncwd: /src\nname: {name}\nuser_named: {named}\nsummary_count: 0\n"
    (tmp_path / "workspace.yaml").write_text(about, encoding="utf-8")
    [entries] = entries_by_file(tmp_path / "events.jsonl").values()
    titles = {
        record.conversation.id: record.conversation.title
        for record in records(entries)
        if record.conversation
    }
    assert titles == {"s1": title, "s1/a1": None}


def test_a_subagent_of_copilot_has_its_own_conversation():
    task, failed = {"content": "Look it up", "source": "agent-s1"}, {"message": "no"}
    reply = {"content": "A map.", "parentToolCallId": "c1"}
    entries = read(
        lines(
            START,
            event("e1", "user.message", {"content": "How long?"}),
            event("e2", "user.message", task, agentId="a1"),
            event("e3", "assistant.message", reply, agentId="a1"),
            event("e4", "assistant.message", reply),
            event("e5", "tool.execution_complete", {"toolCallId": "c1", "error": failed}),
            event("e6", "assistant.message", {"content": "1.2 m.", "model": "gpt-5"}),
            event("e7", "user.message", task),
        )
    )
    rows = [(record.message.conversation_id, record.message.content) for record in records(entries)]
    assert rows == [
        ("s1", "How long?"),
        ("s1/a1", "Look it up"),
        ("s1/a1", "A map."),
        ("s1/c1", "A map."),
        ("s1", "no"),
        ("s1", "1.2 m."),
    ]


def test_a_session_of_copilot_has_the_selected_model_until_a_reply_names_one():
    start = event("e0", "session.start", {"sessionId": "s1", "selectedModel": "gpt-5"})
    replies = [{"content": "1.2 m."}, {"content": "Or 2.", "model": "gpt-6"}, {"content": "Yes."}]
    told = [event(f"e{n}", "assistant.message", reply) for n, reply in enumerate(replies, 1)]
    found = [record.conversation for record in records(read(lines(start, *told)))]
    assert [about.model for about in found if about] == ["gpt-5", "gpt-6", "gpt-6"]


def test_a_session_without_its_beginning_is_named_by_its_folder(tmp_path):
    path = tmp_path / "s9" / "events.jsonl"
    path.parent.mkdir()
    path.write_text(lines(event("e1", "user.message", {"content": "How long?"})))
    assert last_conversation(entries_by_file(path)[""]).id == "s9"


def test_the_id_of_a_growing_message_does_not_change():
    def ids(*response: dict[str, Any]) -> dict[str, str]:
        request = {"requestId": "r1", "message": {"text": "Why?"}, "response": list(response)}
        document = {"sessionId": "c", "creationDate": 1, "requests": [request]}
        imported: list[Record] = records(read(json.dumps(document)))
        return {record.message.content: str(record.message.source_id) for record in imported}

    thinking, reply = {"kind": "thinking", "value": "Hm."}, {"value": "Because."}
    early, late = ids(thinking), ids(thinking, reply)
    assert early.items() <= late.items()
    assert len(set(late.values())) == 3
