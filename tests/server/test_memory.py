"""Blocks that the proxy adds to requests, adds again to later ones, and messages that it stores."""

import json
import threading
import time
from typing import Any

import pytest
from dialogue import ANSWER, HELLO, OLDER, QUESTION, assistant, chat, completion, texts, user
from upstream import ReceivedRequest, Reply

from reservoir_cli.context.render.context_frame import unwrap
from reservoir_cli.messages import Message, Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.server.proxy.endpoint import url_of
from reservoir_cli.server.proxy.providers.anthropic import MESSAGES
from reservoir_cli.server.proxy.providers.openai_chat import CHAT
from reservoir_cli.settings.upstreams import Upstream as UpstreamSetting
from reservoir_cli.util.timeouts import LOCKED_STORE_OF_RUN

pytestmark = pytest.mark.usefixtures("older")


def block_of(request: ReceivedRequest) -> str:
    """Return the only block in a request; check that the rest is what the client sent."""
    content = json.loads(request.body)["messages"][-1]["content"]
    assert unwrap(content).text == QUESTION
    assert unwrap(content).contexts == 1
    return str(content.removeprefix(QUESTION))


def test_a_question_gets_one_block_and_no_other_byte_changes(served, provider, client):
    provider.reply = completion()
    body = json.dumps(chat({"role": "system", "content": "be brief"}, HELLO, tools=[])).encode()
    answer = client.post(served.root + CHAT, content=body, headers={"Authorization": "Bearer k"})
    assert answer.content == provider.reply.whole
    assert answer.headers["x-reservoir"].startswith("added; tokens=")
    block = block_of(provider.requests[0])
    assert OLDER in block
    assert (
        provider.requests[0].body.replace(json.dumps(block, ensure_ascii=False)[1:-1].encode(), b"")
        == body
    )
    assert provider.requests[0].header("authorization") == "Bearer k"


def test_headers_and_query_are_passed_on_except_hop_by_hop_ones_and_ours(served, provider, client):
    headers = {
        "X-Stainless-Lang": "python",
        "User-Agent": "test/1",
        "Connection": "keep-alive, X-Hop",
        "X-Hop": "1",
        "X-Reservoir-Store": "no",
        "Accept-Encoding": "br",
    }
    client.post(f"{served.root}{MESSAGES}?beta=true&a=%20b", json=chat(HELLO), headers=headers)
    (request,) = provider.requests
    assert request.path == "/v1/messages?beta=true&a=%20b"
    names = {name.lower() for name, _ in request.headers}
    assert {"x-stainless-lang", "user-agent", "content-type"} <= names
    assert not {"x-hop", "x-reservoir-store", "connection"} & names
    assert request.header("accept-encoding") == "identity"
    assert request.header("user-agent") == "test/1"


def test_later_requests_get_the_same_blocks_byte_for_byte(served, provider, client):
    provider.reply = completion()
    history = [HELLO]
    for turn in range(3):
        client.post(served.root + CHAT, json=chat(*history))
        history += [assistant(), user(f"and what about the job queue, part {turn}?")]
    requests = [json.loads(request.body)["messages"] for request in provider.requests]
    assert unwrap(requests[0][0]["content"]).contexts == 1
    assert requests[1][0] == requests[2][0] == requests[0][0]
    assert requests[2][2] == requests[1][2]
    # Each request begins with the bytes of the previous one.
    for before, after in zip(provider.requests, provider.requests[1:], strict=False):
        assert after.body.startswith(before.body.partition(b'],"temperature"')[0])


def test_the_same_text_as_a_list_of_blocks_is_the_same_question(served, provider, client):
    provider.reply = completion()
    client.post(served.root + CHAT, json=chat(HELLO))
    parts = [
        {"type": "text", "text": "<system-reminder>todo</system-reminder>"},
        {"type": "text", "text": QUESTION, "cache_control": {"type": "ephemeral"}},
    ]
    client.post(
        served.root + CHAT, json=chat({"role": "user", "content": parts}, assistant(), user("?"))
    )
    first, second = (json.loads(request.body)["messages"][0] for request in provider.requests)
    assert second["content"][1]["text"] == first["content"]
    assert second["content"][0] == parts[0]
    assert second["content"][1]["cache_control"] == {"type": "ephemeral"}


def test_a_forgotten_or_edited_message_is_not_quoted_again(served, provider, client):
    provider.reply = completion()
    for change in ("edit", "forget"):
        history = [user(f"{QUESTION} {change}")]
        client.post(served.root + CHAT, json=chat(*history))
        assert unwrap(json.loads(provider.requests[-1].body)["messages"][0]["content"]).contexts
        with Reservoir.open(served.store) as reservoir:
            key = reservoir.search("March", mode="keyword", partition="default")[0].message.key
            reservoir.edit(key, OLDER + " Really.") if change == "edit" else reservoir.forget([key])
        client.post(served.root + CHAT, json=chat(*history, assistant(), user("ok")))
        assert json.loads(provider.requests[-1].body)["messages"][0] == history[0]


def test_blocks_are_added_and_repeated_while_another_program_writes(served, provider, client):
    provider.reply = completion()
    with Reservoir.open(served.store) as writing, writing.store.write():
        for messages in ([HELLO], [HELLO, assistant(), user("ok")]):
            client.post(served.root + CHAT, json=chat(*messages))
    first, second = (json.loads(request.body)["messages"][0] for request in provider.requests)
    assert unwrap(first["content"]).contexts == 1
    assert second == first
    assert len(texts(served, 2)) == 4


def test_count_tokens_gets_the_same_blocks_and_stores_nothing(served, provider, client):
    provider.reply = Reply([b'{"input_tokens": 9}'], "application/json", framing="length")
    client.post(f"{served.root}{MESSAGES}/count_tokens", json=chat(HELLO))
    client.post(served.root + MESSAGES, json=chat(HELLO))
    assert provider.requests[0].body == provider.requests[1].body
    assert block_of(provider.requests[0])
    assert texts(served, 2) == []


def test_a_resent_history_is_stored_once(served, provider, client):
    provider.reply = completion()
    history: list[dict[str, Any]] = [HELLO]
    expected = [f"user: {QUESTION}", f"assistant: {ANSWER}"]
    client.post(served.root + CHAT, json=chat(*history))
    # The client returns the answer in another form.
    parts = [{"type": "text", "text": ANSWER + " "}]
    history += [{"role": "assistant", "content": parts}, user("and then?")]
    provider.reply = completion("Then we took Postgres.")
    client.post(served.root + CHAT, json=chat(*history))
    client.post(served.root + CHAT, json=chat(*history))
    expected += ["user: and then?", "assistant: Then we took Postgres."]
    assert texts(served, 3) == expected


def test_a_retry_replaces_the_answer(served, provider, client):
    for text in ("No idea.", ANSWER):
        provider.reply = completion(text)
        client.post(served.root + CHAT, json=chat(HELLO))
    assert texts(served, 2) == [f"user: {QUESTION}", f"assistant: {ANSWER}"]


def test_the_answers_of_different_models_to_a_question_are_kept(served, provider, client):
    for model in ("m", "n"):
        provider.reply = completion(f"I am {model}.")
        client.post(served.root + CHAT, json=chat(HELLO) | {"model": model})
    question = f"user: {QUESTION}"
    expected = [question, "assistant: I am m.", question, "assistant: I am n."]
    assert texts(served, 2) == expected


def test_continued_answers_are_kept(served, provider, client):
    history = [HELLO, assistant("It lost")]
    for text in (" jobs", " in March"):
        provider.reply = completion(text)
        client.post(served.root + CHAT, json=chat(*history))
        history[-1] = assistant(history[-1]["content"] + text)
    assert {"assistant: jobs", "assistant: in March"} < set(texts(served, 2))


def test_a_cache_key_separates_conversations_and_does_not_join_them(served, provider, client):
    provider.reply = completion()
    keys = {"a": ["one", "two"], "b": ["one"]}
    for key, questions in keys.items():
        for question in questions:
            for history in ([user(question)], [user(question), assistant(), user("and then?")]):
                client.post(served.root + CHAT, json=chat(*history, prompt_cache_key=key))
    served.settle(6)
    with Reservoir.open(served.store) as reservoir:
        rows = reservoir.view(Scope("default", "proxy"), 0)
    conversations: dict[str, list[str]] = {}
    for row in rows:
        conversations.setdefault(str(row.conversation_id), []).append(row.content)
    expected = [[first, ANSWER, "and then?", ANSWER] for first in ("one", "two", "one")]
    assert list(conversations.values()) == expected


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("x-reservoir-bypass", "1"),
        ("x-reservoir-bypass", "True"),
        ("x-reservoir-store", "no"),
        ("x-reservoir-store", "off"),
    ],
)
def test_headers_switch_the_memory_off(served, provider, client, header, value):
    provider.reply = completion()
    client.post(served.root + CHAT, json=chat(HELLO), headers={header: value})
    added = json.loads(provider.requests[0].body) != chat(HELLO)
    assert added == (header == "x-reservoir-store")
    assert texts(served, 1) == []


def test_a_forgotten_message_does_not_come_back(served, provider, client):
    provider.reply = completion()
    client.post(served.root + CHAT, json=chat(HELLO))
    assert len(texts(served, 1)) == 2
    with Reservoir.open(served.store) as reservoir:
        reservoir.forget([row.key for row in reservoir.view(Scope("default", "proxy"), 0)])
    for _ in range(2):
        client.post(served.root + CHAT, json=chat(HELLO, assistant(), user("and then?")))
    assert texts(served, 3) == ["user: and then?", f"assistant: {ANSWER}"]


@pytest.mark.parametrize("headers", [{}, {"x-session-id": "s"}])
def test_a_deleted_question_that_is_asked_again_later_is_stored(served, provider, client, headers):
    for number in range(3):
        provider.reply = completion(f"Answer {number}.")
        client.post(served.root + CHAT, json=chat(HELLO), headers=headers)
        expected = [f"user: {QUESTION}", f"assistant: Answer {number}."]
        assert texts(served, number + 1) == expected
        if number < 2:
            with Reservoir.open(served.store) as reservoir:
                reservoir.forget([row.key for row in reservoir.view(Scope("default", "proxy"), 0)])
    provider.reply = completion("Later.")
    history = [HELLO, assistant("Answer 2."), user("and then?")]
    client.post(served.root + CHAT, json=chat(*history), headers=headers)
    assert texts(served, 4) == [*expected, "user: and then?", "assistant: Later."]


@pytest.mark.parametrize("headers", [{}, {"x-session-id": "s"}])
def test_steps_of_an_agent_that_is_asked_again_after_the_deletion_are_stored(
    served, provider, client, headers
):
    for number in range(2):
        call = {"id": f"c{number}", "function": {"name": "look", "arguments": "{}"}}
        turn = {"role": "assistant", "content": f"I look {number}.", "tool_calls": [call]}
        body = json.dumps({"choices": [{"message": turn, "finish_reason": "tool_calls"}]})
        provider.reply = Reply([body.encode()], "application/json", framing="length")
        client.post(served.root + CHAT, json=chat(HELLO), headers=headers)
        result = {"role": "tool", "tool_call_id": f"c{number}", "content": "42"}
        provider.reply = completion(f"Answer {number}.")
        client.post(served.root + CHAT, json=chat(HELLO, turn, result), headers=headers)
        steps = [f"assistant: I look {number}.", "tool: 42", f"assistant: Answer {number}."]
        assert texts(served, 2 * number + 2) == [f"user: {QUESTION}", *steps]
        with Reservoir.open(served.store) as reservoir:
            reservoir.forget([row.key for row in reservoir.view(Scope("default", "proxy"), 0)])


def test_a_retry_that_is_answered_after_the_deletion_is_not_stored(served, provider, client):
    provider.reply = completion()
    client.post(served.root + CHAT, json=chat(HELLO))
    assert len(texts(served, 1)) == 2

    def delete_and_answer(_: ReceivedRequest) -> Reply:
        with Reservoir.open(served.store) as reservoir:
            reservoir.forget([row.key for row in reservoir.view(Scope("default", "proxy"), 0)])
        return completion("Another answer.")

    provider.answer = delete_and_answer
    client.post(served.root + CHAT, json=chat(HELLO))
    assert texts(served, 2) == []


def test_partition_and_instance_come_from_the_path(served, provider, client):
    provider.reply = completion()
    paths = {
        "/work/desk/v1/chat/completions": ("work", "desk"),
        "/partition/p%20q/instance/i/v1/chat/completions": ("p q", "i"),
        "/v1/partition/w/instance/x/chat/completions": ("w", "x"),
    }
    for path in paths:
        answer = client.post(served.root + path, json=chat(HELLO))
        assert answer.headers["x-reservoir"] == "skipped; reason=no messages"
    assert {request.path for request in provider.requests} == {CHAT}
    served.settle(len(paths))
    with Reservoir.open(served.store) as reservoir:
        for place in paths.values():
            assert len(reservoir.view(Scope(*place), 0)) == 2, place


def test_a_compacted_conversation_continues_under_its_id(served, provider, client):
    provider.reply = completion()
    headers = {"X-Claude-Code-Session-Id": "11111111-2222-4333-8444-555555555555"}
    client.post(served.root + CHAT, json=chat(HELLO), headers=headers)
    provider.reply = completion("Yes.")
    shortened = [
        user("Summary: Redis is gone."),
        assistant("ok"),
        HELLO,
        assistant(),
        user("still?"),
    ]
    client.post(served.root + CHAT, json=chat(*shortened), headers=headers)
    assert texts(served, 2, "claude-code") == [
        f"user: {QUESTION}",
        f"assistant: {ANSWER}",
        "user: Summary: Redis is gone.",
        "assistant: ok",
        "user: still?",
        "assistant: Yes.",
    ]
    with Reservoir.open(served.store) as reservoir:
        rows = reservoir.view(Scope("default", "claude-code"), 0)
    assert {row.conversation_id for row in rows} == set(headers.values())


def test_a_client_that_is_synced_is_not_stored(store_path, provider, client, home):
    import proxied

    home.mkdir(exist_ok=True)
    settings = '[sources.codex]\npath = "/nowhere"\n'
    (home / "reservoir.toml").write_text(settings, encoding="utf-8")
    provider.reply = completion()
    with proxied.serving(store_path, {"openai": provider.url}) as served:
        for agent in ("codex_cli_rs/0.169", "python"):
            client.post(served.root + CHAT, json=chat(HELLO), headers={"User-Agent": agent})
        assert len(texts(served, 2)) == 2
        assert texts(served, 2, "codex") == []


def test_a_secret_is_masked_in_a_block(served, provider, client):
    key = "AKIA" + "Q7XN2VD4KLP3ZWTM"
    with Reservoir.open(served.store) as reservoir:
        reservoir.ingest(
            [Message("user", f"why we drop the Redis job queue key is {key}")], embed=False
        )
    provider.reply = completion()
    client.post(served.root + CHAT, json=chat(HELLO))
    assert "job queue key is" in block_of(provider.requests[0])
    assert key.encode() not in provider.requests[0].body


def test_storing_does_not_wait_for_the_embedding_of_another_answer(served, provider, client):
    provider.reply = completion()
    embedded = threading.Event()
    busy = served.state.embedder.submit(lambda _: embedded.wait(60))
    try:
        client.post(served.root + CHAT, json=chat(HELLO))
        assert len(texts(served, 1)) == 2
        assert not busy.done()
    finally:
        embedded.set()


def test_changed_settings_apply_immediately(served, provider, client, home):
    key = "AKIA" + "Q7XN2VD4KLP3ZWTM"
    with Reservoir.open(served.store) as reservoir:
        reservoir.ingest([Message("user", f"the Redis job queue key is {key}")], embed=False)
    provider.reply = completion()
    home.mkdir(exist_ok=True)
    file, shown, stored = home / "reservoir.toml", [], []
    broken, empty = 'redact = "off', home / "empty.toml"
    empty.write_text('redact = "off"', encoding="utf-8")
    for number, text in enumerate(('redact = "off"', 'redact = "remove"', broken, broken)):
        if number < 3:
            (home / "new.toml").write_text(text, encoding="utf-8")
            (home / "new.toml").replace(file)
        client.post(served.root + CHAT, json=chat(user(f"{QUESTION} {number} {key}")))
        shown.append(provider.requests[-1].body.count(key.encode()) > 1)
        served.settle(number + 1)
        with Reservoir.open(served.store, config_file=empty) as reservoir:
            rows = reservoir.view(Scope("default", "proxy"), 0)
        stored.append(key in rows[-2].content)
    assert shown == stored == [True, False, False, False]
    lines = [line for line in served.lines if "settings" in line]
    assert len(lines) == 1
    assert str(file) in lines[0]


def test_upstreams_and_partition_follow_the_settings(served, provider, client, home):
    provider.reply = completion()
    home.mkdir(exist_ok=True)
    text = f'partition = "work"\n[upstreams.other]\nurl = "{provider.url}/v1"\n'
    other = {"x-reservoir-upstream": "other"}
    assert client.post(served.root + CHAT, json=chat(HELLO), headers=other).status_code == 404
    (home / "reservoir.toml").write_text(text, encoding="utf-8")
    assert client.post(served.root + CHAT, json=chat(HELLO), headers=other).status_code == 200
    served.settle(2)
    with Reservoir.open(served.store) as reservoir:
        assert len(reservoir.view(Scope("work", "proxy"), 0)) == 2


@pytest.mark.parametrize(
    ("protocol", "url", "expected"),
    [
        ("openai", "http://localhost:8080", "http://localhost:8080/v1/models?a=b"),
        ("openai", "https://v2.host/openai/v1", "https://v2.host/openai/v1/models?a=b"),
        ("openai", "https://v2.host/inference", "https://v2.host/inference/v1/models?a=b"),
        ("openai", "https://host/v1beta/openai", "https://host/v1beta/openai/models?a=b"),
        ("openai", "https://host/api/v3", "https://host/api/v3/models?a=b"),
        ("anthropic", "https://host/v1", "https://host/v1/models?a=b"),
        ("anthropic", "https://host/v1/id/claude", "https://host/v1/id/claude/v1/models?a=b"),
    ],
)
def test_the_url_of_an_upstream_may_contain_the_version(protocol, url, expected):
    assert url_of(UpstreamSetting("u", protocol, url), "/v1/models", b"a=b") == expected


def test_a_recall_is_recorded_after_the_answer_however_long_another_program_writes(
    served, provider, client
):
    provider.reply = completion()
    with Reservoir.open(served.store) as writing, writing.store.write():
        client.post(served.root + CHAT, json=chat(HELLO))
        time.sleep(2 * LOCKED_STORE_OF_RUN)
    served.settle(1)
    recalls = served.state.reader.submit(lambda store: store.stats()["recalls"]).result(60)
    assert recalls["runs"] == 1
