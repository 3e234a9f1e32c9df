"""Files of the same programs in other versions, and lists of messages that one has lying about."""

import json
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from each import each
from reading import (
    SAMPLES,
    entries_by_file,
    file_of,
    last_conversation,
    lines,
    records,
    roles_and_texts,
    skipped,
)
from reading import read as read_as

from reservoir_cli.transfer.detect_format import choose, find
from reservoir_cli.transfer.reading.importer import Record, Skipped

USER, REPLY = ("user", "Which wood floats?"), ("assistant", "Balsa.")
ASKED = {"role": "user", "content": "Which wood floats?"}
SAID = {"role": "assistant", "content": "Balsa."}
COMPLETION = {"object": "chat.completion", "model": "m", "choices": [{"index": 0, "message": SAID}]}
ITEMS = [
    {"role": "user", "content": [{"type": "input_text", "text": "Which wood floats?"}]},
    {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "By density."}]},
    {"type": "function_call", "call_id": "c", "name": "look_up", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "0.16"},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Balsa."}],
    },
]
TOOL_USE = {"type": "tool_use", "id": "c", "name": "look_up", "input": {}}
TOOL_RESULT = {"type": "tool_result", "tool_use_id": "c", "content": "0.16"}
THOUGHT, CALL, RESULT = ("system", "By density."), ("assistant", ""), ("tool", "0.16")
BLOCK = {"role": "assistant", "content": [{"type": "text", "text": "Balsa."}]}
PARTS = [
    {"role": "user", "parts": [{"text": "Which wood floats?"}]},
    {"role": "model", "parts": [{"text": "Balsa."}]},
]
WIRE: list[tuple[str, dict[str, Any]]] = [
    ("TurnBegin", {"user_input": "Which wood floats?"}),
    ("StepBegin", {"n": 1}),
    ("ContentPart", {"type": "think", "think": "By density."}),
    ("ToolCall", {"id": "c", "function": {"name": "look_up", "arguments": "{}"}}),
    ("ToolResult", {"tool_call_id": "c", "return_value": {"output": "0.16"}}),
    ("SteerInput", {"user_input": [{"type": "text", "text": "A light one."}]}),
    ("ContentPart", {"type": "text", "text": "Bal"}),
    ("ContentPart", {"type": "text", "text": "sa."}),
]
NESTED = {
    "messageId": "1",
    "text": "Which wood floats?",
    "isCreatedByUser": True,
    "children": [
        {"messageId": "2", "text": "Oak.", "isCreatedByUser": False, "createdAt": "2026-01-01"},
        {"messageId": "3", "text": "Balsa.", "isCreatedByUser": False, "createdAt": "2026-01-02"},
    ],
}
PAGE = [
    {"id": 0, "role": "system", "type": "root", "content": "", "parent": None},
    {"id": 1, "role": "user", "type": "text", "content": "Which wood floats?", "parent": 0},
    {"id": 2, "role": "assistant", "type": "text", "content": "Oak.", "parent": 1},
    {"id": 3, "role": "assistant", "type": "text", "content": "Balsa.", "parent": 1},
]
SHAPES: dict[str, tuple[str, str, list[tuple[str, str]]]] = {
    "a request of a batch": (
        "openai",
        lines({"custom_id": "q", "url": "/v1", "body": {"model": "m", "messages": [ASKED, SAID]}}),
        [USER, REPLY],
    ),
    "a response of a batch": (
        "openai",
        lines({"id": "b", "custom_id": "q", "response": {"status_code": 200, "body": COMPLETION}}),
        [REPLY],
    ),
    "a completion": ("openai", json.dumps(COMPLETION), [REPLY]),
    "a request for a response": (
        "openai",
        json.dumps({"model": "m", "instructions": "Be brief.", "input": ITEMS}),
        [("system", "Be brief."), USER, THOUGHT, CALL, RESULT, REPLY],
    ),
    "a request with one text": (
        "openai",
        json.dumps({"model": "m", "input": "Which wood floats?"}),
        [USER],
    ),
    "a response": (
        "openai",
        json.dumps({"object": "response", "model": "m", "output": ITEMS[1:]}),
        [THOUGHT, CALL, RESULT, REPLY],
    ),
    "conversations with roles": (
        "openai",
        lines({"id": "1", "conversations": [ASKED, SAID]}),
        [USER, REPLY],
    ),
    "a conversation with roles": (
        "openai",
        json.dumps([{"conversation": [ASKED, SAID]}]),
        [USER, REPLY],
    ),
    "a request of Anthropic's batches": (
        "anthropic",
        lines({"custom_id": "q", "params": {"system": "Be brief.", "messages": [ASKED, SAID]}}),
        [("system", "Be brief."), USER, REPLY],
    ),
    "a result of Anthropic's batches": (
        "anthropic",
        lines({"custom_id": "q", "result": {"type": "succeeded", "message": BLOCK}}),
        [REPLY],
    ),
    "a checkpoint of Gemini CLI": ("gemini-cli", json.dumps(PARTS), [USER, REPLY]),
    "a checkpoint with a type": (
        "gemini-cli",
        json.dumps({"history": PARTS, "authType": "key"}),
        [USER, REPLY],
    ),
    "a prompt of AI Studio": (
        "gemini",
        json.dumps(
            {
                "runSettings": {"model": "models/gem"},
                "systemInstruction": {"text": "Be brief."},
                "chunkedPrompt": {
                    "chunks": [
                        {"text": "Which wood floats?", "role": "user"},
                        {"text": "By density.", "role": "model", "isThought": True},
                        {"text": "Balsa.", "role": "model"},
                    ]
                },
            }
        ),
        [("system", "Be brief."), USER, THOUGHT, REPLY],
    ),
    "a journal of earlier versions of Kimi Code": (
        "kimi-code",
        lines(
            *(
                {"timestamp": 1_780_300_800 + n, "message": {"type": kind, "payload": payload}}
                for n, (kind, payload) in enumerate(WIRE)
            )
        ),
        [USER, CALL, THOUGHT, RESULT, ("user", "A light one."), REPLY],
    ),
    "a context of Kimi Code": (
        "kimi-code",
        lines({"role": "_checkpoint", "id": 0}, ASKED, {"role": "_usage", "token_count": 9}, SAID),
        [USER, REPLY],
    ),
    "nested messages of LibreChat": (
        "librechat",
        json.dumps({"conversationId": "c", "recursive": True, "messages": [NESTED]}),
        [USER, REPLY],
    ),
    "a document of llama.cpp's page": (
        "llama-cpp",
        json.dumps([{"conv": {"id": "c", "currNode": 3}, "messages": PAGE}]),
        [USER, REPLY],
    ),
    "responses of Grok that were written again": (
        "grok",
        json.dumps(
            {
                "conversations": [
                    {
                        "conversation": {"id": "c"},
                        "responses": [
                            {"response": {"_id": "1", "sender": "human", "message": USER[1]}},
                            {
                                "response": {
                                    "_id": "2",
                                    "sender": "assistant",
                                    "message": text,
                                    "parent_response_id": "1",
                                    "create_time": time,
                                }
                                | {"_id": text}
                            },
                        ],
                    }
                    for text, time in (("Balsa.", "2026-01-02T00:00:00Z"),)
                ]
            }
        ),
        [USER, REPLY],
    ),
    "a session of Pi with a name and a label": (
        "pi",
        lines(
            {"type": "session", "version": 3, "id": "s", "cwd": "/home/ann/raft"},
            {"type": "message", "id": "1", "parentId": None, "message": ASKED},
            {"type": "session_info", "id": "2", "parentId": "1", "name": "Rafts"},
            {"type": "label", "id": "3", "parentId": "2", "targetId": "1", "label": "start"},
            {"type": "message", "id": "4", "parentId": "3", "message": SAID},
        ),
        [USER, REPLY],
    ),
    "a session of Pi with parents that it does not hold": (
        "pi",
        lines(
            {"type": "session", "version": 3, "id": "s", "cwd": "/home/ann/raft"},
            {"type": "message", "id": "1", "parentId": "s", "message": ASKED},
            {"type": "message", "id": "2", "parentId": "call", "message": SAID},
        ),
        [USER, REPLY],
    ),
    "a session of the first version of Pi": (
        "pi",
        lines(
            {"type": "session", "id": "s", "cwd": "/home/ann/raft", "timestamp": "2025-12-01"},
            {"type": "message", "timestamp": "2025-12-01T00:00:00Z", "message": ASKED},
            {"type": "message", "timestamp": "2025-12-01T00:00:01Z", "message": SAID},
        ),
        [USER, REPLY],
    ),
    "a session of Qwen Code with a parent that it does not hold": (
        "qwen-code",
        lines(
            {"type": "user", "message": PARTS[0], "uuid": "1", "parentUuid": None}
            | {"sessionId": "s"},
            {"type": "assistant", "message": PARTS[1], "uuid": "3", "parentUuid": "2"}
            | {"sessionId": "s"},
        ),
        [USER, REPLY],
    ),
    "a journal of Kimi Code whose events name their parents": (
        "kimi-code",
        lines(
            {"type": "context.append_message", "message": ASKED | {"origin": {"kind": "user"}}},
            {"type": "context.append_loop_event", "event": {"type": "content.part"}},
            {
                "type": "context.append_loop_event",
                "event": {"type": "tool.result", "parentUuid": "c", "toolCallId": "c"}
                | {"result": {"output": "0.16", "content": "0.16"}},
            },
            {"type": "context.append_message", "message": SAID},
        ),
        [USER, RESULT, REPLY],
    ),
    "items of Codex without a type": (
        "codex",
        lines(
            {"type": "session_meta", "payload": {"id": "s", "cwd": "/home/ann/raft"}},
            {"type": "response_item", "payload": ITEMS[0]},
            {"type": "response_item", "payload": ITEMS[4]},
        ),
        [USER, REPLY],
    ),
    "a thread of Amp with an id of another kind": (
        "amp",
        json.dumps(
            {"v": 1, "id": "raft", "created": 1_780_300_800_000}
            | {"messages": [ASKED | {"messageId": 0}, SAID | {"messageId": 1}]}
        ),
        [USER, REPLY],
    ),
    "lines of Claude Code without a type": (
        "claude-code",
        lines(
            {"type": "summary", "summary": "Rafts"},
            {"sessionId": "s", "message": ASKED},
            {"sessionId": "s", "message": SAID},
        ),
        [USER, REPLY],
    ),
    "a log of Claude Code's web page": (
        "anthropic",
        json.dumps(
            {
                "loglines": [
                    {"type": "user", "message": ASKED},
                    {"type": "assistant", "message": {"role": "assistant", "content": [TOOL_USE]}},
                    {"type": "user", "message": {"role": "user", "content": [TOOL_RESULT]}},
                    {"type": "assistant", "message": SAID},
                ]
            }
        ),
        [USER, CALL, RESULT, REPLY],
    ),
    "messages whose types are their roles": (
        "anthropic",
        lines(
            {"type": "user", "message": {"content": "Which wood floats?"}},
            {"type": "assistant", "message": {"content": [TOOL_USE]}},
            {"type": "tool_result", "content": "0.16"},
            {"type": "assistant", "content": "Balsa."},
        ),
        [USER, CALL, RESULT, REPLY],
    ),
    "messages whose content is their text": (
        "openai",
        lines(
            {"type": "message", "role": "user", "text": "Which wood floats?", "session_id": "s"},
            {"role": "model", "message": "Balsa."},
        ),
        [USER, REPLY],
    ),
    "a request of OpenAI with schemas of Anthropic": (
        "openai",
        json.dumps(
            {
                "messages": [
                    ASKED,
                    {"role": "assistant", "tool_calls": [{"id": "c", "name": "look_up"}]},
                    {"role": "tool", "tool_call_id": "c", "content": "0.16"},
                    SAID,
                ],
                "tools": [{"name": "look_up", "input_schema": {"type": "object"}}],
            }
        ),
        [USER, CALL, RESULT, REPLY],
    ),
    "a session of Gemini CLI with the model's role": (
        "gemini-cli",
        json.dumps(
            {
                "sessionId": "s",
                "projectHash": "0" * 64,
                "messages": [
                    {"id": "1", "type": "user", "content": "Which wood floats?"},
                    {"id": "2", "type": "model", "content": "Balsa."},
                ],
            }
        ),
        [USER, REPLY],
    ),
    "a session of Pi without a tree": (
        "pi",
        lines(
            {"type": "session", "version": 1, "id": "s", "cwd": "/home/ann/raft"},
            {"type": "message", "timestamp": "2026-01-01T00:00:00Z", "message": ASKED},
            {"type": "message", "timestamp": "2026-01-01T00:00:01Z", "message": SAID},
        ),
        [USER, REPLY],
    ),
}


@each("name", SHAPES)
def test_a_shape_is_recognised_and_read(name):
    form, text, expected = SHAPES[name]
    importer = choose(file_of(text))
    assert importer.name == form
    entries = read_as(text, importer)
    assert skipped(entries) == []
    assert roles_and_texts(entries) == expected
    assert read_as(text, importer) == entries


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspaceStorage" / "a1"
    folder.mkdir(parents=True)
    about = {"folder": "file:///home/ann/my%20raft"}
    (folder / "workspace.json").write_text(json.dumps(about), encoding="utf-8")
    transcripts = folder / "GitHub.copilot-chat" / "transcripts"
    transcripts.mkdir(parents=True)
    shutil.copy(SAMPLES / "copilot-cli.jsonl", transcripts / "t1.jsonl")
    return folder


def entries_of(path: Path, form: str | None = None) -> list[Record | Skipped]:
    with ExitStack() as open_files:
        selection = find(path, form, open_files)
        return [entry for file in selection.files for entry in file.records()]


@pytest.mark.parametrize("form", [None, "copilot-chat"])
def test_a_transcript_of_copilot_belongs_to_its_workspace(workspace, form):
    entries = entries_of(workspace.parent, form)
    assert records(entries)
    assert {record.message.source for record in records(entries)} == {"copilot-chat"}
    conversation = last_conversation(entries)
    assert conversation.project in ("my raft", "taskboard")  # a session may name its own folder


def test_a_transcript_is_not_imported_beside_its_session(workspace):
    sessions = workspace / "chatSessions"
    sessions.mkdir()
    shutil.copy(SAMPLES / "copilot-chat.json", sessions / "t1.json")
    entries = records(entries_of(workspace, "copilot-chat"))
    assert len(entries) == len(records(entries_of(sessions, "copilot-chat")))


@pytest.mark.parametrize(
    ("name", "project", "parent"),
    [
        ("home-ann-raft/agent-transcripts/c1/c1.jsonl", "raft", None),
        ("home-ann-raft/agent-transcripts/c1.jsonl", "raft", None),
        ("home-ann-raft/agent-transcripts/c1/subagents/c2.jsonl", "raft", "c1"),
    ],
)
def test_a_transcript_of_cursor_names_its_project(name, project, parent, tmp_path):
    path = tmp_path / "projects" / name
    path.parent.mkdir(parents=True)
    shutil.copy(SAMPLES / "cursor.jsonl", path)
    entries = entries_of(tmp_path)
    assert last_conversation(entries).project == project
    assert {record.parent for record in records(entries)} == {parent}
    assert {record.message.conversation_id for record in records(entries)} == {path.stem}
    assert records(entries)[0].message.created_at is not None


def test_a_folder_with_dashes_is_found_by_its_path(tmp_path):
    real = tmp_path / "my-raft"
    real.mkdir()
    slug = str(real).strip("/").replace("/", "-")
    path = tmp_path / "projects" / slug / "agent-transcripts" / "c1.jsonl"
    path.parent.mkdir(parents=True)
    shutil.copy(SAMPLES / "cursor.jsonl", path)
    if "_" not in slug:
        assert last_conversation(entries_of(tmp_path / "projects")).project == "my-raft"


def test_a_session_of_kimi_code_is_described_by_the_files_around_it(tmp_path):
    session = tmp_path / "wd_raft" / "session_1"
    for agent in ("main", "agent-1"):
        (session / "agents" / agent).mkdir(parents=True)
        shutil.copy(SAMPLES / "kimi-code.jsonl", session / "agents" / agent / "wire.jsonl")
    state = {"title": "Tides", "workDir": "/home/ann/harbour"}
    (session / "state.json").write_text(json.dumps(state), encoding="utf-8")
    shutil.copy(SAMPLES / "kimi-code.jsonl", session / "context.jsonl")
    (session / "wire.jsonl").write_text("", encoding="utf-8")
    found = {
        record.conversation.id: (record.conversation.title, record.conversation.project)
        for record in records(entries_of(tmp_path, "kimi-code"))
        if record.conversation
    }
    assert found == {"session_1": ("Tides", "harbour"), "session_1/agent-1": (None, "harbour")}


def test_a_journal_of_kimi_code_without_words_does_not_hide_the_list_of_messages(tmp_path):
    session = tmp_path / "5f" / "s1"
    session.mkdir(parents=True)
    (session / "context.jsonl").write_text(
        lines({"role": "_checkpoint", "id": 0}, ASKED, SAID), encoding="utf-8"
    )
    journal = session / "wire.jsonl"
    journal.write_text(lines({"message": {"type": "TurnBegin"}}), encoding="utf-8")
    assert roles_and_texts(entries_of(tmp_path)) == [USER, REPLY]
    journal.write_text(
        lines(*({"message": {"type": kind, "payload": payload}} for kind, payload in WIRE)),
        encoding="utf-8",
    )
    assert roles_and_texts(entries_of(tmp_path)).count(REPLY) == 1


def test_parts_of_opencode_are_in_the_folder_of_the_id_in_a_message(tmp_path):
    about = {"id": "raft", "projectID": "p", "directory": "/home/ann/raft", "time": {"created": 1}}
    files = {
        "session/p/raft.json": about,
        "message/raft/1.json": {"id": "first", "role": "user", "time": {"created": 2}},
        "part/first/1.json": {"id": "a", "type": "text", "text": USER[1]},
    }
    for name, value in files.items():
        path = tmp_path / "storage" / name
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(value), encoding="utf-8")
    assert roles_and_texts(entries_of(tmp_path)) == [USER]


def test_the_whole_transcript_of_antigravity_is_preferred(tmp_path):
    logs = tmp_path / "brain" / "b1" / ".system_generated" / "logs"
    logs.mkdir(parents=True)
    for name in ("transcript.jsonl", "transcript_full.jsonl"):
        shutil.copy(SAMPLES / "antigravity.jsonl", logs / name)
    entries = records(entries_of(tmp_path))
    assert {record.message.conversation_id for record in entries} == {"b1"}
    assert len(entries) == len({record.message.source_id for record in entries}) == 5


def test_half_a_character_in_an_id_or_a_value_of_another_type_harms_no_message(tmp_path):
    messages = [
        {"role": "user", "messageId": number, "content": [{"type": "text", "text": "Why?"}]}
        for number in (0, "\ud83d", 2.5, {"n": 1}, None)
    ]
    thread = {"id": "T-\udc00", "messages": messages}
    (tmp_path / "T-1.json").write_text(json.dumps(thread), encoding="utf-8")
    session = {"sessionId": "s", "history": ["no entry", {"message": {"role": "tool"}}]}
    session["history"] += [{"message": {"role": "user", "content": "When?"}}]
    (tmp_path / "s.json").write_text(json.dumps(session), encoding="utf-8")
    read = {name: entries_by_file(tmp_path / name)[""] for name in ("T-1.json", "s.json")}
    ids = [record.message.source_id for record in records(read["T-1.json"])]
    assert len({identity.encode() for identity in ids}) == len(ids) == len(messages)
    assert ("user", "When?") in roles_and_texts(read["s.json"])
