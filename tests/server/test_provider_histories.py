"""Conversations whose history the provider keeps: each request contains only what is new."""

import json
from typing import Any

import httpx2
import pytest
from dialogue import HELLO, QUESTION, texts
from proxied import Served
from upstream import Reply, Upstream

from reservoir_cli.messages import Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.server import limits
from reservoir_cli.server.proxy.providers.ollama import OLLAMA_GENERATE
from reservoir_cli.server.proxy.providers.openai_responses import RESPONSES

QUESTIONS = ["plan a trip", "continue", "continue", "continue"]
ANSWERS = ["Where to?", "Day one.", "Day two.", "Day three."]
STORED = [
    text
    for question, answer in zip(QUESTIONS, ANSWERS, strict=True)
    for text in (f"user: {question}", f"assistant: {answer}")
]


def document(**values: Any) -> Reply:
    return Reply([json.dumps(values).encode()], "application/json", framing="length")


def response(id: str, *output: dict[str, Any]) -> Reply:
    return document(id=id, object="response", status="completed", output=output)


def message(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text}
    return {"type": "message", "id": "m", "role": "assistant", "content": [part]}


def ask_responses(served: Served, provider: Upstream, client: httpx2.Client, **more: Any) -> None:
    for number, (question, answer) in enumerate(zip(QUESTIONS, ANSWERS, strict=True)):
        provider.reply = response(f"r{number}", message(answer))
        previous = {"previous_response_id": f"r{number - 1}"} if number and not more else {}
        client.post(served.root + RESPONSES, json={"input": question, **previous, **more})


def ask_generate(served: Served, provider: Upstream, client: httpx2.Client) -> None:
    for number, (question, answer) in enumerate(zip(QUESTIONS, ANSWERS, strict=True)):
        provider.reply = document(response=answer, done=True, context=list(range(number + 1)))
        body = {"prompt": question, "context": list(range(number))}
        client.post(served.root + OLLAMA_GENERATE, json=body)


def conversations(served: Served) -> set[str | None]:
    with Reservoir.open(served.store) as reservoir:
        return {row.conversation_id for row in reservoir.view(Scope("default", "proxy"), 0)}


@pytest.mark.parametrize("ask", [ask_responses, ask_generate])
def test_equal_questions_of_a_conversation_keep_their_answers(served, provider, client, ask):
    ask(served, provider, client)
    assert texts(served, len(QUESTIONS)) == STORED
    assert len(conversations(served)) == 1


def test_a_reference_that_is_no_text_is_passed_on(served, provider, client):
    body = b'{"input": "continue", "previous_response_id": "\\ud800"}'
    assert client.post(served.root + RESPONSES, content=body).status_code == 200
    assert provider.requests[0].body == body
    assert "a request could not be read: UnicodeEncodeError" in served.lines


@pytest.mark.parametrize("conversation", ["conv_1", {"id": "conv_1"}])
def test_a_conversation_at_the_provider_keeps_its_id_and_all_answers(
    served, provider, client, conversation
):
    ask_responses(served, provider, client, conversation=conversation)
    assert texts(served, len(QUESTIONS)) == STORED
    assert conversations(served) == {"conv_1"}


def test_a_retry_from_the_same_response_replaces_the_answer(served, provider, client):
    for number, answer in enumerate(("No idea.", "Day one.")):
        provider.reply = response(f"r{number}", message(answer))
        body = {"input": "continue", "previous_response_id": "unknown"}
        client.post(served.root + RESPONSES, json=body)
    assert texts(served, 2) == ["user: continue", "assistant: Day one."]


def test_the_answer_to_a_tool_result_is_stored(served, provider, client):
    call = {"type": "function_call", "call_id": "t1", "name": "look", "arguments": "{}"}
    provider.reply = response("r0", call)
    client.post(served.root + RESPONSES, json={"input": "look it up"})
    result = {"type": "function_call_output", "call_id": "t1", "output": "42"}
    provider.reply = response("r1", message("It is 42."))
    body = {"input": [result], "previous_response_id": "r0"}
    answer = client.post(served.root + RESPONSES, json=body)
    assert answer.headers["x-reservoir"] == "skipped; reason=no question"
    assert json.loads(provider.requests[-1].body) == body
    expected = ["user: look it up", "assistant: ", "tool: 42", "assistant: It is 42."]
    assert texts(served, 2) == expected
    assert len(conversations(served)) == 1


@pytest.mark.usefixtures("older")
def test_blocks_that_the_provider_keeps_count_towards_the_limit(
    served, provider, client, monkeypatch
):
    monkeypatch.setattr(limits, "CONVERSATION_BUDGET", limits.MIN_BUDGET + 1)
    provider.reply = response("r0", message("Because."))
    first = client.post(served.root + RESPONSES, json={"input": [HELLO]})
    body = {"input": f"once more: {QUESTION}", "previous_response_id": "r0"}
    second = client.post(served.root + RESPONSES, json=body)
    assert first.headers["x-reservoir"].startswith("added")
    assert second.headers["x-reservoir"] == "skipped; reason=enough was added"
