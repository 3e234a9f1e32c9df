"""Requests that a client makes for itself are not stored, and those of the user always are."""

import json
from itertools import product

import pytest
from dialogue import ANSWER, HELLO, OLDER, QUESTION, assistant, chat, completion, texts, user
from each import each
from upstream import Reply

from reservoir_cli.server.proxy.providers.ollama import OLLAMA_CHAT, OLLAMA_GENERATE
from reservoir_cli.server.proxy.providers.openai_chat import CHAT

pytestmark = pytest.mark.usefixtures("older")


def test_side_requests_are_passed_unchanged_and_not_stored(served, provider, client):
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
    served, provider, client
):
    provider.reply = completion("x + 1")
    for more in ({"raw": True}, {"suffix": "print(f(2))"}):
        body = {"prompt": "# the job queue of Redis\ndef f(x): return ", **more}
        client.post(served.root + OLLAMA_GENERATE, json=body)
        assert json.loads(provider.requests[-1].body) == body
    assert texts(served, 2) == []


@each(("path", "limit"), list(product([OLLAMA_CHAT, OLLAMA_GENERATE], [1, 0, -1])))
def test_a_request_to_ollama_for_one_token_is_not_stored(
    served, provider, client, new_partition, path, limit
):
    body = json.dumps({"message": assistant(), "done": True}).encode()
    provider.reply = Reply([body], "application/json", framing="length")
    request = chat(HELLO, prompt=QUESTION, options={"num_predict": limit})
    partition = new_partition()
    client.post(f"{served.root}/{partition}/proxy{path}", json=request)
    stored = [] if limit == 1 else [f"user: {QUESTION}", f"assistant: {ANSWER}"]
    assert texts(served, len(provider.requests), partition=partition) == stored


@pytest.mark.parametrize("key", ["max_tokens", "max_completion_tokens"])
def test_an_answer_without_a_limit_is_stored(served, provider, client, key):
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
def test_a_question_about_documents_is_stored_without_them(served, provider, client, form):
    provider.reply = completion()
    client.post(served.root + CHAT, json=chat(user(DOCUMENTS + form.format(QUESTION, QUESTION))))
    sent = json.loads(provider.requests[0].body)["messages"][0]["content"]
    assert OLDER in sent.removeprefix(DOCUMENTS)
    follow_up = user(DOCUMENTS + form.format("and then?", "and then?"))
    client.post(served.root + CHAT, json=chat(HELLO, assistant(), follow_up))
    answer = f"assistant: {ANSWER}"
    assert texts(served, 2) == [f"user: {QUESTION}", answer, "user: and then?", answer]


def test_a_task_that_the_user_writes_is_stored(served, provider, client):
    provider.reply = completion()
    client.post(served.root + CHAT, json=chat(user("### Task:\nName three queues.")))
    assert texts(served, 1) == ["user: ### Task:\nName three queues.", f"assistant: {ANSWER}"]


#: Requests of clients for a summary, in our own words.
SUMMARY_REQUESTS = (
    "Your job now is to write a thorough summary of the whole conversation up to here. Mention "
    "each file that was touched and each decision, so that the work can continue without a break.",
    "CHECKPOINT. Prepare a handoff for the agent that will take over this session.\n\n- what is "
    "done\n- what the user prefers\n- which next steps remain, in the order in which to take them",
    "Provide a complete prompt for continuing this work in a fresh session: what we have done so "
    "far, which files matter, what we are in the middle of, and what to do when we go on.",
    "The context window is almost full. Condense the history above: keep commands, paths, errors "
    "and their causes, leave out greetings, and end with a list of what is pending at the moment.",
)
#: How messages begin with which clients go on after that.
SUMMARIES = (
    "This chat is continued from a previous one, which was too long. What happened before:",
    "<context_summary>\n<goal>",
    "Another model worked on this and produced a summary of its steps:",
    "The conversation so far was compacted. Its essence:",
    "# Session summary\n",
    "Here is a summary of the earlier conversation:",
)
#: Questions that mention summaries.
ABOUT_SUMMARIES = (
    "please write a summary of our meeting with the supplier about prices for queues, in two "
    "paragraphs, with the discounts that they offered, and mention the next steps for each of us",
    "why does the summary of the job queue from spring not mention Redis? We lost jobs then, "
    "twice, and somebody wrote a page about it, with the context of each failure and the times",
    "summarize our conversation",
)
LONG = " We talked about the queue, and about what the failover did to it." * 8


@each(("request_for", "place"), list(product(SUMMARY_REQUESTS, ["user", "system"])))
def test_a_request_for_a_summary_is_a_side_request(served, provider, client, request_for, place):
    provider.reply = completion("A summary.")
    history = [HELLO, assistant()]
    if place == "user":
        body = chat(*history, user(request_for))
    else:
        body = chat({"role": "system", "content": request_for}, *history, user("Begin."))
    answer = client.post(served.root + CHAT, json=body)
    assert answer.headers["x-reservoir"] == "skipped; reason=side request"
    assert json.loads(provider.requests[-1].body) == body
    assert texts(served, len(provider.requests)) == []


@each("beginning", SUMMARIES)
def test_nothing_is_recalled_for_the_turn_that_carries_a_summary(
    served, provider, client, new_partition, beginning
):
    provider.reply = completion()
    url = f"{served.root}/{new_partition()}/proxy{CHAT}"
    summary = user(f"{beginning} {LONG}\n\n{QUESTION}")
    answer = client.post(url, json=chat(summary))
    assert answer.headers["x-reservoir"] == "skipped; reason=it has a summary"
    client.post(url, json=chat(summary, assistant(), HELLO))
    sent = json.loads(provider.requests[-1].body)["messages"]
    assert sent[0] == summary
    assert OLDER in sent[2]["content"]


@pytest.mark.parametrize("question", ABOUT_SUMMARIES)
def test_a_question_about_a_summary_is_stored_and_enriched_as_any_other(
    served, provider, client, question
):
    provider.reply = completion()
    answer = client.post(served.root + CHAT, json=chat(HELLO, assistant(), user(question)))
    assert "side request" not in answer.headers["x-reservoir"]
    assert "summary" not in answer.headers["x-reservoir"]
    assert f"user: {question}" in texts(served, 1)
