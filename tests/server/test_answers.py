"""Answers in forms that not every provider sends are stored as the official clients read them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from dialogue import ANSWER, assistant, chat, completion, texts, user
from each import each
from upstream import Reply

from reservoir_cli.messages import Message, Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.server.proxy.answer import Answer
from reservoir_cli.server.proxy.parse_request import parse
from reservoir_cli.server.proxy.providers.anthropic import MESSAGES
from reservoir_cli.server.proxy.providers.ollama import OLLAMA_CHAT
from reservoir_cli.server.proxy.providers.openai_chat import CHAT
from reservoir_cli.server.proxy.providers.openai_responses import RESPONSES
from reservoir_cli.server.proxy.providers.registry import protocol_at
from reservoir_cli.transfer.reading.foreign_values import obj

FIRST, SECOND = '{"x": 1}', '{"y": 2}'


def chat_delta(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}]}


def tool_delta(index: int, **call: Any) -> dict[str, Any]:
    return chat_delta(tool_calls=[{"index": index, **call}])


def function(name: str, arguments: str) -> dict[str, str]:
    return {"name": name, "arguments": arguments}


def text_delta(item: str, text: str, kind: str = "output_text") -> dict[str, Any]:
    place = {"item_id": item, "output_index": 0, "content_index": 0}
    return {"type": f"response.{kind}.delta", **place, "delta": text}


def output(item: str, **part: str) -> dict[str, Any]:
    return {"type": "message", "id": item, "role": "assistant", "content": [part]}


def started(input: dict[str, Any]) -> dict[str, Any]:
    block = {"type": "tool_use", "id": "t1", "name": "look", "input": input}
    return {"type": "content_block_start", "index": 0, "content_block": block}


def piece(text: str) -> dict[str, Any]:
    delta = {"type": "input_json_delta", "partial_json": text}
    return {"type": "content_block_delta", "index": 0, "delta": delta}


COMPLETED = {
    "type": "response.completed",
    "response": {"status": "completed", "output": [output("d", type="output_text", text=ANSWER)]},
}
DONE = {
    "type": "response.output_item.done",
    "output_index": 0,
    "item": output("c", type="output_text", text=ANSWER),
}
#: An answer for which the provider searched the web.
SEARCHED = [
    {"type": "text", "text": "I'll search."},
    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
    {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
    {"type": "text", "text": "It is "},
    {"type": "text", "text": "Paris", "citations": []},
    {"type": "text", "text": "."},
]
ANSWERS: dict[str, tuple[str, list[Any], str, list[tuple[str, str, str]]]] = {
    "refusal": (CHAT, [chat_delta(refusal="I can"), chat_delta(refusal="not.")], "I cannot.", []),
    "audio": (
        CHAT,
        [chat_delta(audio={"id": "a"}), chat_delta(audio={"transcript": "Hello."})],
        "Hello.",
        [],
    ),
    "list of parts": (
        CHAT,
        [chat_delta(content=[{"type": "thinking"}, {"type": "text", "text": "Hi"}])],
        "Hi",
        [],
    ),
    "function call": (
        CHAT,
        [chat_delta(function_call=function("look", '{"x"')), chat_delta(
            function_call={"arguments": ": 1}"}
        )],
        "",
        [("", "look", FIRST)],
    ),
    "calls in turns": (
        CHAT,
        [
            tool_delta(1, id="b", function=function("read", "")),
            tool_delta(0, id="a", function=function("look", '{"x"')),
            tool_delta(1, function={"arguments": SECOND}),
            tool_delta(0, function={"arguments": ": 1}"}),
        ],
        "",
        [("b", "read", SECOND), ("a", "look", FIRST)],
    ),
    "calls with one number": (
        CHAT,
        [
            tool_delta(0, id="a", function=function("look", FIRST)),
            tool_delta(0, id="b", function=function("read", SECOND)),
        ],
        "",
        [("a", "look", FIRST), ("b", "read", SECOND)],
    ),
    "custom tool": (
        CHAT,
        [{"choices": [{"message": {"tool_calls": [
            {"id": "a", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}
        ]}}]}],
        "",
        [("a", "sql", "SELECT 1")],
    ),
    "input at the start": (MESSAGES, [started({"x": 1})], "", [("t1", "look", FIRST)]),
    "input in pieces": (MESSAGES, [started({}), piece('{"x"'), piece(": 1}")], "", [
        ("t1", "look", FIRST)
    ]),
    "citations": (
        MESSAGES,
        [{"type": "message", "content": SEARCHED}],
        "I'll search.\n\nIt is Paris.",
        [],
    ),
    "texts of one message": (
        RESPONSES,
        [{"object": "response", "output": [
            {"type": "message", "content": [
                {"type": "output_text", "text": text} for text in ("It is ", "Paris.")
            ]},
            {"type": "message", "content": [{"type": "output_text", "text": "Anything else?"}]},
        ]}],
        "It is Paris.\n\nAnything else?",
        [],
    ),
    "changing ids": (
        RESPONSES,
        [text_delta("a", ANSWER[:4]), text_delta("b", ANSWER[4:]), DONE, COMPLETED],
        ANSWER,
        [],
    ),
    "changing ids, cut": (
        RESPONSES, [text_delta("a", ANSWER[:4]), text_delta("b", ANSWER[4:])], ANSWER, []
    ),
    "no numbers": (
        RESPONSES,
        [{"type": "response.output_text.delta", "delta": ANSWER}, COMPLETED],
        ANSWER,
        [],
    ),
    "refusal in pieces": (
        RESPONSES,
        [text_delta("a", "I can", "refusal"), text_delta("a", "not.", "refusal")],
        "I cannot.",
        [],
    ),
    "refusal at once": (
        RESPONSES,
        [{"object": "response", "output": [output("a", type="refusal", refusal="No.")]}],
        "No.",
        [],
    ),
}  # fmt: skip


@each("name", ANSWERS)
def test_an_answer_is_read_whole(name):
    path, values, text, calls = ANSWERS[name]
    answer = Answer()
    for value in values:
        protocol_at(path).collect(answer, value)
    message = answer.message()
    assert message == Message("assistant", text, tool_calls=message.tool_calls if message else ())
    assert [(call.id, call.name, call.arguments) for call in message.tool_calls] == calls


def test_a_function_call_and_its_result_are_stored(served, provider, client):
    call = {"role": "assistant", "content": None, "function_call": function("look", FIRST)}
    body = json.dumps({"choices": [{"message": call, "finish_reason": "function_call"}]}).encode()
    provider.reply = Reply([body], "application/json", framing="length")
    client.post(served.root + CHAT, json=chat(user("look")))
    provider.reply = completion()
    result = {"role": "function", "name": "look", "content": "42"}
    client.post(served.root + CHAT, json=chat(user("look"), call, result))
    assert texts(served, 2) == ["user: look", "assistant: ", "tool: 42", f"assistant: {ANSWER}"]
    with Reservoir.open(served.store) as reservoir:
        (stored,) = reservoir.view(Scope("default", "proxy"), 0)[1].tool_calls
    assert (stored.name, stored.arguments) == ("look", FIRST)


def test_members_without_a_value_are_ignored(served, provider, client):
    choice = {"index": None, "message": assistant(), "finish_reason": "stop"}
    body = json.dumps({"choices": [choice], "error": None}).encode()
    provider.reply = Reply([body], "application/json", framing="length")
    client.post(served.root + CHAT, json=chat(user("why?")))
    assert texts(served, 1) == ["user: why?", f"assistant: {ANSWER}"]
    with Reservoir.open(served.store) as reservoir:
        assert not reservoir.view(Scope("default", "proxy"), 0)[1].tags


def test_a_conversation_whose_instructions_mention_a_title_is_stored(served, provider, client):
    instruction = {"role": "system", "content": "You write articles that have a short title."}
    question = [instruction, user("an article on queues")]
    provider.reply = completion("Queues.")
    client.post(served.root + CHAT, json=chat(*question))
    provider.reply = completion("A long article on queues.")
    client.post(served.root + CHAT, json=chat(*question, assistant("Queues."), user("longer")))
    assert texts(served, 2) == [
        "user: an article on queues",
        "assistant: Queues.",
        "user: longer",
        "assistant: A long article on queues.",
    ]


def test_a_resent_answer_with_tools_of_the_provider_is_stored_once(served, provider, client):
    body = json.dumps({"type": "message", "content": SEARCHED}).encode()
    provider.reply = Reply([body], "application/json", framing="length")
    history: list[Any] = [user("the capital?")]
    client.post(served.root + MESSAGES, json=chat(*history))
    history += [{"role": "assistant", "content": SEARCHED}, user("sure?")]
    client.post(served.root + MESSAGES, json=chat(*history))
    answer = "assistant: I'll search.\n\nIt is Paris."
    assert texts(served, 2) == ["user: the capital?", answer, "user: sure?", answer]


def test_a_picture_does_not_fill_the_window(served, provider, client):
    provider.reply = completion()
    picture = {"url": "data:image/png;base64," + "iVBORw0KGgo" * 100_000}
    parts = [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": picture}]
    body = chat({"role": "user", "content": parts}) | {"model": "gpt-4o"}
    answer = client.post(served.root + CHAT, json=body)
    assert answer.headers["x-reservoir"] == "skipped; reason=no messages"


def picture(data: str, **more: Any) -> dict[str, Any]:
    """Return a question about a picture."""
    image = {"type": "image_url", "image_url": {"url": data}, **more}
    return {"role": "user", "content": [{"type": "text", "text": "read it"}, image]}


def test_questions_about_different_pictures_keep_their_answers(served, provider, client):
    for number in range(2):
        provider.reply = completion(f"Page {number}.")
        question = picture(f"data:image/png;base64,{number}")
        client.post(served.root + CHAT, json=chat(question))
        client.post(served.root + CHAT, json=chat(user("look") | {"images": [str(number)]}))
    answers = [text for text in texts(served, 4) if text.startswith("assistant")]
    assert answers == [f"assistant: Page {number}." for number in (0, 0, 1, 1)]


def test_the_answer_to_a_picture_without_words_is_stored(served, provider, client):
    history: list[Any] = [user("")]
    history[0]["content"] = picture("data:image/png;base64,1")["content"][1:]
    stored = ["user: [image]", "assistant: A cat.", "user: its colour?", "assistant: Grey."]
    for number, answer in enumerate(("A cat.", "Grey."), 1):
        provider.reply = completion(answer)
        client.post(served.root + CHAT, json=chat(*history))
        assert texts(served, number) == stored[: 2 * number]
        history += [assistant(answer), user("its colour?")]
    sent = [json.loads(request.body)["messages"][0] for request in provider.requests]
    assert sent == [history[0]] * 2
    with Reservoir.open(served.store) as reservoir:
        rows = reservoir.view(Scope("default", "proxy"), 0)
    assert len({row.conversation_id for row in rows}) == 1


def test_a_picture_that_is_sent_again_is_the_same():
    address = "https://files.example/a.png?signature="
    mark = {"cache_control": {"type": "ephemeral"}}
    pictures = picture(f"{address}1", **mark), picture(f"{address}2"), picture("data:,2")
    bodies = [json.dumps(chat(message)).encode() for message in pictures]
    first, again, other = (parse(CHAT, body, {}).questions[0].id for body in bodies)
    assert first == again != other


def test_a_picture_beside_a_question_is_no_word_of_it():
    request = parse(CHAT, json.dumps(chat(picture("data:,1"))).encode(), {})
    assert request.messages[0].content == "read it\n[image]"
    assert request.questions[0].text == "read it"


def test_a_name_of_a_model_can_be_stored():
    body = json.dumps({**chat(user("Which kiln?")), "model": "kiln\ud800\0"}).encode()
    assert parse(CHAT, body, {}).model == "kiln\ufffd\ufffd"


ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 2**70, "", "\0\ud800", [], {}, [None], {"a": {}}, [[]], [1, "x"]),
)
SHAPES: dict[str, list[dict[str, Any]]] = {
    CHAT: [
        tool_delta(0, id="c1", type="function", function=function("look", FIRST)),
        tool_delta(0, function={"arguments": SECOND}),
        chat_delta(content=ANSWER),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ],
    MESSAGES: [
        started({}),
        piece(FIRST),
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "text_delta", "text": ANSWER},
        },
        {"type": "message_stop"},
    ],
    RESPONSES: [
        {
            "type": "response.output_item.done",
            "output_index": 1,
            "item": {
                "type": "function_call",
                "id": "f",
                "call_id": "c1",
                "name": "look",
                "arguments": FIRST,
            },
        },
        DONE,
    ],
    OLLAMA_CHAT: [
        {"message": {"tool_calls": [{"function": {"name": "look", "arguments": {"x": 1}}}]}},
        {"message": assistant(), "done": True},
    ],
}


def odd_forms(value: Any) -> Iterator[Any]:
    """Yield a value with each of its parts replaced by each odd value."""
    yield from ODD
    items = list(value.items() if isinstance(value, dict) else enumerate(value))
    for key, part in items:
        if isinstance(part, (dict, list)):
            forms = odd_forms(part)
        else:
            forms = iter(ODD)
        for form in forms:
            changed = value.copy()
            changed[key] = form
            yield changed


@pytest.mark.parametrize("path", SHAPES)
def test_an_odd_tool_call_does_not_lose_the_answer(path):
    events = SHAPES[path]
    for odd in odd_forms(events[0]):
        answer = Answer()
        for event in (odd, *events[1:]):
            protocol_at(path).collect(answer, obj(event))
        message = answer.message()
        assert message, odd
        assert ANSWER in message.content, odd


def test_an_answer_of_one_call_without_a_name_does_not_lose_the_question(served, provider, client):
    call = {"id": "c1", "type": "function", "function": {"name": None, "arguments": "{}"}}
    choice = {"index": 0, "message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}
    body = json.dumps({"id": "x", "choices": [choice]}).encode()
    provider.reply = Reply([body], "application/json", framing="length")
    client.post(served.root + CHAT, json=chat(user("why?")))
    assert texts(served, 1) == ["user: why?"]


def test_an_odd_tool_call_in_the_history_does_not_lose_the_exchange(served, provider, client):
    provider.reply = completion()
    call = {"id": "c1", "type": "function", "function": function("look", FIRST)}
    forms = [*odd_forms({"role": "assistant", "content": None, "tool_calls": [call]})]
    for number, odd in enumerate(forms):
        history = [user(f"first {number}?"), odd, user(f"second {number}?")]
        body = json.dumps(chat(*history)).encode()
        answer = client.post(f"{served.root}/p/i{CHAT}", content=body)
        assert answer.headers["x-reservoir"] != "skipped; reason=form", odd
    served.settle(len(forms))
    with Reservoir.open(served.store) as reservoir:
        stored = {message.content for message in reservoir.view(Scope("p"), 0)}
    assert stored >= {f"second {number}?" for number in range(len(forms))}


#: Reported counts of answers, and the tokens of their text; ``None`` if they say nothing of it.
REPORTED = {
    "chat": (
        CHAT,
        [chat_delta(content=ANSWER), {"choices": [{"index": 0, "finish_reason": "stop"}]}],
        {"usage": {"completion_tokens": 30, "completion_tokens_details": {"reasoning_tokens": 8}}},
        22,
    ),
    "chat with a prediction": (
        CHAT,
        [chat_delta(content=ANSWER), {"choices": [{"index": 0, "finish_reason": "stop"}]}],
        {
            "usage": {
                "completion_tokens": 90,
                "completion_tokens_details": {"rejected_prediction_tokens": 61},
            }
        },
        29,
    ),
    "chat with thinking": (
        CHAT,
        [chat_delta(reasoning_content="Hm."), chat_delta(content=ANSWER)],
        {"choices": [{"index": 0, "finish_reason": "stop"}], "usage": {"completion_tokens": 30}},
        None,
    ),
    "two choices": (
        CHAT,
        [{"choices": [{"index": 1, "delta": {"content": ANSWER}}]}],
        {"choices": [{"index": 0, "finish_reason": "stop"}], "usage": {"completion_tokens": 30}},
        None,
    ),
    "without an end": (
        CHAT,
        [chat_delta(content=ANSWER)],
        {"usage": {"completion_tokens": 30}},
        None,
    ),
    "messages": (
        MESSAGES,
        [
            {"type": "message_start", "message": {"id": "m", "usage": {"output_tokens": 1}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}},
            {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 31}},
        ],
        {"type": "message_stop"},
        31,
    ),
    "messages with thinking": (
        MESSAGES,
        [{"type": "content_block_start", "index": 0, "content_block": {"type": "thinking"}}],
        {"type": "message_delta", "usage": {"output_tokens": 31}},
        None,
    ),
    "a call": (
        MESSAGES,
        [],
        {
            "type": "message",
            "usage": {"output_tokens": 31},
            "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}],
        },
        None,
    ),
    "responses": (
        RESPONSES,
        [],
        {
            "type": "response.completed",
            "response": {
                "status": "completed",
                "usage": {"output_tokens": 40, "output_tokens_details": {"reasoning_tokens": 7}},
                "output": [{"type": "reasoning"}, output("d", type="output_text", text=ANSWER)],
            },
        },
        33,
    ),
    "ollama": (
        OLLAMA_CHAT,
        [{"message": {"content": ANSWER}}],
        {"message": {"content": ""}, "done": True, "eval_count": 34},
        34,
    ),
    "no number": (
        OLLAMA_CHAT,
        [{"message": {"content": ANSWER}}],
        {"done": True, "eval_count": "34"},
        None,
    ),
}


@each("name", REPORTED)
def test_the_tokens_of_a_text_are_those_that_its_provider_reports(name):
    path, values, last, expected = REPORTED[name]
    answer = Answer()
    for value in [*values, last]:
        protocol_at(path).collect(answer, value)
    assert answer.text_tokens == expected
