"""Requests that a client makes for itself are not stored, and those of the user always are."""

import json

import httpx2
import pytest
from dialogue import ANSWER, HELLO, OLDER, QUESTION, assistant, chat, completion, texts, user
from proxied import Served
from upstream import Reply, Upstream

from reservoir_cli.server.proxy.protocols import CHAT, OLLAMA_CHAT, OLLAMA_GENERATE

pytestmark = pytest.mark.usefixtures("older")


def test_side_requests_are_passed_unchanged_and_not_stored(
    served: Served, provider: Upstream, client: httpx2.Client
) -> None:
    provider.reply = completion("Redis")
    title = {"role": "system", "content": "You are a title generator. Output a title."}
    bodies = [
        chat(title, HELLO),
        chat(HELLO, max_tokens=1),
        chat(user(f"### Task:\nGenerate a title.\n<chat_history>\n{QUESTION}\n</chat_history>")),
        chat(user("Generate a title for this conversation:\n"), HELLO),
    ]
    for body in bodies:
        answer = client.post(served.root + CHAT, json=body)
        assert answer.headers["x-reservoir"] == "skipped; reason=side request"
    assert [json.loads(request.body) for request in provider.requests] == bodies
    assert texts(served, 4) == []


def test_a_completion_of_code_in_an_editor_is_passed_unchanged_and_not_stored(
    served: Served, provider: Upstream, client: httpx2.Client
) -> None:
    provider.reply = completion("x + 1")
    for more in ({"raw": True}, {"suffix": "print(f(2))"}):
        body = {"prompt": "# the job queue of Redis\ndef f(x): return ", **more}
        client.post(served.root + OLLAMA_GENERATE, json=body)
        assert json.loads(provider.requests[-1].body) == body
    assert texts(served, 2) == []


@pytest.mark.parametrize("limit", [1, 0, -1])
@pytest.mark.parametrize("path", [OLLAMA_CHAT, OLLAMA_GENERATE])
def test_a_request_to_ollama_for_one_token_is_not_stored(
    served: Served, provider: Upstream, client: httpx2.Client, path: str, limit: int
) -> None:
    body = json.dumps({"message": assistant(), "done": True}).encode()
    provider.reply = Reply([body], "application/json", framing="length")
    request = chat(HELLO, prompt=QUESTION, options={"num_predict": limit})
    client.post(served.root + path, json=request)
    stored = [] if limit == 1 else [f"user: {QUESTION}", f"assistant: {ANSWER}"]
    assert texts(served, 1) == stored


@pytest.mark.parametrize("key", ["max_tokens", "max_completion_tokens"])
def test_an_answer_without_a_limit_is_stored(
    served: Served, provider: Upstream, client: httpx2.Client, key: str
) -> None:
    provider.reply = completion()
    client.post(served.root + CHAT, json=chat(HELLO, **{key: -1}))
    assert texts(served, 1) == [f"user: {QUESTION}", f"assistant: {ANSWER}"]


DOCUMENTS = """### Task:
Respond to the user query using the provided context, incorporating inline citations.

### Guidelines:
- If uncertain, ask the user for clarification.

<context>
<source id="1" name="notes.md">We had four queues.</source>
</context>
"""


@pytest.mark.parametrize("form", ["{}", "\n<user_query>\n{}\n</user_query>\n{}"])
def test_a_question_about_documents_is_stored_without_them(
    served: Served, provider: Upstream, client: httpx2.Client, form: str
) -> None:
    provider.reply = completion()
    client.post(served.root + CHAT, json=chat(user(DOCUMENTS + form.format(QUESTION, QUESTION))))
    sent = json.loads(provider.requests[0].body)["messages"][0]["content"]
    assert OLDER in sent.removeprefix(DOCUMENTS)
    follow_up = user(DOCUMENTS + form.format("and then?", "and then?"))
    client.post(served.root + CHAT, json=chat(HELLO, assistant(), follow_up))
    answer = f"assistant: {ANSWER}"
    assert texts(served, 2) == [f"user: {QUESTION}", answer, "user: and then?", answer]


def test_a_task_that_the_user_writes_is_stored(
    served: Served, provider: Upstream, client: httpx2.Client
) -> None:
    provider.reply = completion()
    client.post(served.root + CHAT, json=chat(user("### Task:\nName three queues.")))
    assert texts(served, 1) == ["user: ### Task:\nName three queues.", f"assistant: {ANSWER}"]
