"""Questions that have a context already, from a hook or from the user, get no other."""

import json
from typing import Any

import pytest
from dialogue import HELLO, OLDER, QUESTION, assistant, chat, completion, user
from each import each

from reservoir_cli.context.render.context_frame import wrap
from reservoir_cli.server.proxy.providers.ollama import OLLAMA_GENERATE
from reservoir_cli.server.proxy.providers.openai_chat import CHAT

pytestmark = pytest.mark.usefixtures("older")

FRAME = wrap("context from a hook: the queue lost jobs in March")
AROUND = "<system-reminder>\nprompt hook adds:\n{}\n</system-reminder>"
#: Turns of a question to which a hook, or the user, has added a context.
FRAMED: dict[str, list[dict[str, Any]]] = {
    "behind the question": [user(f"{QUESTION}\n\n{FRAME}")],
    "before the question": [user(f"{FRAME}\n\n{QUESTION}")],
    "indented": [user(QUESTION + "\n" + FRAME.replace("\n", "\n    "))],
    "with the question inside": [user(wrap("older words", QUESTION))],
    "in a reminder": [user(f"{QUESTION}\n{AROUND.format(FRAME)}")],
    "another part": [
        user("")
        | {"content": [{"type": "text", "text": text} for text in (AROUND.format(FRAME), QUESTION)]}
    ],
    "a system message behind it": [HELLO, {"role": "system", "content": FRAME}],
    "a developer message before it": [{"role": "developer", "content": FRAME}, HELLO],
    "another message of the user": [user(AROUND.format(FRAME)), HELLO],
}


@each("name", FRAMED)
def test_a_question_that_has_a_context_gets_no_other(served, provider, client, new_partition, name):
    provider.reply = completion()
    turn, url = FRAMED[name], f"{served.root}/{new_partition()}/proxy{CHAT}"
    client.post(url, json=chat(*turn))
    client.post(url, json=chat(*turn, assistant(), user("and the job queue?")))
    first, second = (json.loads(request.body)["messages"] for request in provider.requests[-2:])
    assert first == turn
    assert second[: len(turn)] == turn
    assert OLDER in second[-1]["content"]


def test_a_context_elsewhere_or_a_damaged_one_is_no_context_of_the_question(
    served, provider, client
):
    provider.reply = completion()
    damaged = FRAME.replace("March", "April")
    for history in (
        [user(f"{QUESTION}\n{damaged}")],
        [user(FRAME), assistant(), HELLO],
        [user("?"), assistant(FRAME), HELLO],
    ):
        client.post(served.root + CHAT, json=chat(*history))
        sent = json.loads(provider.requests[-1].body)["messages"][-1]["content"]
        assert OLDER in sent.removeprefix(str(history[-1]["content"]))


def test_a_prompt_that_is_one_text_and_has_a_context_gets_no_other(served, provider, client):
    body = {"model": "m", "prompt": f"{QUESTION}\n\n{FRAME}"}
    answer = client.post(served.root + OLLAMA_GENERATE, json=body)
    assert answer.headers["x-reservoir"] == "skipped; reason=it has a context"
    assert json.loads(provider.requests[0].body) == body


def test_what_a_hook_has_quoted_earlier_in_a_conversation_is_not_recalled_again(
    served, provider, client
):
    provider.reply = completion()
    quoted = wrap(f"[Recalled Messages]\n[#1] quoted 2026-03-05, user: {OLDER}")
    turns = [user(f"{QUESTION}\n\n{quoted}"), assistant(), user("and why not Redis as a queue?")]
    answer = client.post(served.root + CHAT, json=chat(*turns))
    assert answer.headers["x-reservoir"] == "skipped; reason=recalled before"
