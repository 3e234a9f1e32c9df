"""Protocols of providers: requests get blocks, streams are passed on, and both are stored."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import plain_http
import pytest
from dialogue import ANSWER, HELLO, QUESTION, assistant, chat, texts, user
from upstream import ReceivedRequest, Reply

from reservoir_cli.context.render.context_frame import unwrap
from reservoir_cli.messages import Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.server.proxy.parse_request import conversation_of
from reservoir_cli.server.proxy.providers.anthropic import MESSAGES
from reservoir_cli.server.proxy.providers.ollama import OLLAMA_CHAT
from reservoir_cli.server.proxy.providers.openai_chat import CHAT
from reservoir_cli.server.proxy.providers.openai_responses import RESPONSES

pytestmark = pytest.mark.usefixtures("older")


def event(kind: str, **data: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()


def delta(reason: str | None = None, **fields: Any) -> bytes:
    choice = {"index": 0, "delta": fields, "finish_reason": reason}
    return f"data: {json.dumps({'id': 'c', 'choices': [choice]})}\n\n".encode()


CALL = {"type": "function_call", "call_id": "t1", "name": "look", "arguments": '{"q": 1}'}
OUTPUT = {
    "type": "message",
    "id": "m1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": ANSWER}],
}
STREAMS: dict[str, list[bytes]] = {
    CHAT: [
        delta(content="It lost "),
        delta(content="jobs when it restarted."),
        delta(tool_calls=[{"index": 0, "id": "t1", "function": {"name": "look"}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": '{"q": '}}]),
        delta("tool_calls", tool_calls=[{"index": 0, "function": {"arguments": "1}"}}]),
        b"data: [DONE]\n\n",
    ],
    MESSAGES: [
        event("message_start", message={"id": "msg_1", "usage": {"cache_read_input_tokens": 7}}),
        event("content_block_start", index=0, content_block={"type": "thinking", "thinking": ""}),
        event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "hm"}),
        event("content_block_start", index=1, content_block={"type": "text", "text": ""}),
        event("ping"),
        event("content_block_delta", index=1, delta={"type": "text_delta", "text": ANSWER}),
        event("content_block_stop", index=1),
        event(
            "content_block_start",
            index=2,
            content_block={"type": "tool_use", "id": "t1", "name": "look", "input": {}},
        ),
        event(
            "content_block_delta",
            index=2,
            delta={"type": "input_json_delta", "partial_json": '{"q": 1}'},
        ),
        event("message_delta", delta={"stop_reason": "tool_use"}),
        event("message_stop"),
    ],
    RESPONSES: [
        event("response.created", response={"id": "r1", "status": "in_progress"}),
        event("response.output_text.delta", item_id="m1", content_index=0, delta=ANSWER[:9]),
        event("response.output_text.delta", item_id="m1", content_index=0, delta=ANSWER[9:]),
        event("response.output_item.done", output_index=0, item=OUTPUT),
        event("response.output_item.done", output_index=1, item=CALL),
        event(
            "response.completed",
            response={"id": "r1", "status": "completed", "output": [OUTPUT, CALL]},
        ),
    ],
    OLLAMA_CHAT: [
        b'{"message":{"role":"assistant","content":"It lost jobs "},"done":false}\n',
        b'{"message":{"role":"assistant","content":"when it restarted.","tool_calls":'
        b'[{"id":"t1","function":{"name":"look","arguments":{"q": 1}}}]},"done":false}\n',
        b'{"message":{"role":"assistant","content":""},"done":true}\n',
    ],
}


@pytest.mark.parametrize("path", STREAMS)
def test_exchanges_of_each_protocol_get_blocks_and_are_stored(served, provider, client, path):
    kind = "application/x-ndjson" if path == OLLAMA_CHAT else "text/event-stream"
    provider.reply = Reply(STREAMS[path], kind)
    key = "input" if path == RESPONSES else "messages"
    answer = client.post(served.root + path, json={"model": "m", key: [HELLO], "stream": True})
    assert answer.content == provider.reply.whole
    sent = json.loads(provider.requests[0].body)[key][0]["content"]
    assert unwrap(sent).text == QUESTION
    served.settle()
    with Reservoir.open(served.store) as reservoir:
        question, reply = reservoir.view(Scope("default", "proxy"), 0)
    assert (question.content, reply.content) == (QUESTION, ANSWER)
    assert question.trace_id == reply.trace_id
    (call,) = reply.tool_calls
    assert (call.id, call.name, json.loads(call.arguments)) == ("t1", "look", {"q": 1})
    assert "partial" not in reply.tags


@pytest.mark.parametrize(
    ("words", "window", "note"),
    [
        (1_600, 2_048, "skipped; reason=the window is full"),
        (1_600, 8_192, "added"),
        (1_600, 0, "added"),
        (1_600, "2048", "added"),
        (6_000, 32_768, "skipped; reason=the window is full"),  # the model's is smaller
    ],
)
def test_the_window_that_a_request_sets_is_respected(served, provider, client, words, window, note):
    body = chat(user("word " * words), assistant(), HELLO, options={"num_ctx": window})
    answer = client.post(served.root + OLLAMA_CHAT, json=body | {"model": "llama3"})
    assert answer.headers["x-reservoir"].startswith(note)


@pytest.mark.parametrize(
    ("path", "turn", "result"),
    [
        (
            CHAT,
            {"role": "assistant", "content": ANSWER, "tool_calls": [
                {"id": "t1", "function": {"name": "look", "arguments": '{"q": 1}'}}
            ]},
            {"role": "tool", "tool_call_id": "t1", "content": "42"},
        ),
        (
            MESSAGES,
            {"role": "assistant", "content": [
                {"type": "text", "text": ANSWER},
                {"type": "tool_use", "id": "t1", "name": "look", "input": {"q": 1}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "42"}
            ]},
        ),
    ],
)  # fmt: skip
def test_steps_of_an_agent_are_stored_once_and_get_no_new_block(
    served, provider, client, path, turn, result
):
    provider.reply = Reply(STREAMS[path])
    client.post(served.root + path, json=chat(HELLO))
    answer = client.post(served.root + path, json=chat(HELLO, turn, result))
    assert answer.headers["x-reservoir"] == "replayed=1"
    first, second = (json.loads(request.body)["messages"] for request in provider.requests)
    assert second == [first[0], turn, result]
    served.settle(2)
    with Reservoir.open(served.store) as reservoir:
        rows = reservoir.view(Scope("default", "proxy"), 0)
    assert [row.role for row in rows] == ["user", "assistant", "tool", "assistant"]


def test_fifty_streams_at_once_lose_nothing(served, provider, client):
    def reply(request: ReceivedRequest) -> Reply:
        number = unwrap(json.loads(request.body)["messages"][0]["content"]).text.split()[-1]
        delta = {"index": 0, "delta": {"content": f"answer {number}"}, "finish_reason": "stop"}
        return Reply([b"data: " + json.dumps({"choices": [delta]}).encode() + b"\n\n"])

    provider.answer = reply

    def ask(number: int) -> bytes:
        return plain_http.post(
            served.root + CHAT, json=chat(user(f"what is number {number}")), timeout=120
        ).content

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(ask, range(50)))
    assert all(f"answer {number}".encode() in answer for number, answer in enumerate(answers))
    rows = texts(served, 50)
    assert sorted(rows) == sorted(
        text for number in range(50)
        for text in (f"user: what is number {number}", f"assistant: answer {number}")
    )  # fmt: skip


@pytest.mark.parametrize(
    "user", ["user_1_account__session_{}", '{{"device_id": "d", "session_id": "{}"}}']
)
def test_a_session_in_the_metadata_names_the_conversation(user):
    session = "11111111-2222-4333-8444-555555555555"
    assert conversation_of({"metadata": {"user_id": user.format(session)}}, {}) == session


def test_a_sync_of_the_same_session_adds_nothing(served, provider, client, tmp_path):
    session = "11111111-2222-4333-8444-555555555555"
    headers = {"X-Claude-Code-Session-Id": session}
    provider.reply = Reply(STREAMS[MESSAGES])
    client.post(served.root + MESSAGES, json=chat(HELLO), headers=headers)
    assert len(texts(served, 1, "claude-code")) == 2
    folder = tmp_path / "projects" / "p"
    folder.mkdir(parents=True)
    thinking = {"type": "thinking", "thinking": "hm"}
    call = {"type": "tool_use", "id": "t1", "name": "look", "input": {"q": 1}}
    blocks = [thinking, {"type": "text", "text": ANSWER}, call]
    result = [{"type": "tool_result", "tool_use_id": "t1", "content": "42"}]
    lines = [
        ("user", {"role": "user", "content": QUESTION}),
        ("assistant", {"role": "assistant", "id": "msg_1", "content": blocks}),
        ("user", {"role": "user", "content": result}),
        ("user", {"role": "user", "content": "Thanks. " + QUESTION}),
    ]
    rows = [
        {
            "type": kind,
            "uuid": f"u{number}",
            "parentUuid": f"u{number - 1}" if number else None,
            "sessionId": session,
            "timestamp": f"2026-05-09T12:00:0{number}Z",
            "message": message,
        }
        for number, (kind, message) in enumerate(lines)
    ]
    log = folder / f"{session}.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for imported in (2, 0):
        with Reservoir.open(served.store) as reservoir:
            assert reservoir.import_files(log, form="claude-code").imported == imported
    stored = texts(served, 1, "claude-code")
    expected = [
        "user: Thanks. " + QUESTION,
        "user: " + QUESTION,
        "tool: 42",
        "assistant: " + ANSWER,
    ]
    assert sorted(stored) == sorted(expected)


def test_cached_tokens_of_providers_are_counted(served, provider, client, home):
    home.mkdir(exist_ok=True)
    settings = '[sources.codex]\npath = "/nowhere"\n'  # conversations of this client are not stored
    (home / "reservoir.toml").write_text(settings, encoding="utf-8")
    details = {"prompt_tokens": 40, "prompt_tokens_details": {"cached_tokens": 30}}
    last = b"data: " + json.dumps({"usage": details}).encode()
    provider.reply = Reply([*STREAMS[CHAT][:-1], last])
    client.post(served.root + CHAT, json=chat(HELLO))
    usage = {"input_tokens": 10, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 30}
    provider.reply = Reply([event("message_start", message={"id": "m", "usage": usage})])
    client.post(served.root + MESSAGES, json=chat(HELLO), headers={"x-reservoir-store": "no"})
    provider.reply = Reply([event("message_start", message={"id": "m", "usage": usage})])
    client.post(served.root + MESSAGES, json=chat(HELLO), headers={"User-Agent": "codex/1"})
    odd = {"prompt_tokens": -1, "prompt_tokens_details": {"cached_tokens": True}}
    provider.reply = Reply([b"data: " + json.dumps({"usage": odd}).encode()])
    client.post(served.root + CHAT, json=chat(HELLO))
    served.settle(4)
    with Reservoir.open(served.store) as reservoir:
        counted = {"count": 2, "request_tokens": 100, "cached_tokens": 50, "cached_share": 0.5}
        stats = reservoir.stats()
        assert stats["answers"] == counted
        assert stats["runs"] == 0
        assert reservoir.view(Scope("default", "codex"), 0) == []
    assert [line.rpartition("cached=")[2].split()[0] for line in served.lines[::2]] == ["30", "20"]
