"""Request bodies in the form of each provider."""

import json
from dataclasses import replace

import pytest
from each import each
from validators import problems
from windows import (
    CALLING,
    EVERYTHING,
    METER,
    OLD,
    PROVIDERS,
    REPLY,
    RESULT,
    SEARCH,
    TURNS,
    USER,
    stored,
    window,
)

from reservoir_cli import UsageError
from reservoir_cli.context.render.context_frame import unwrap
from reservoir_cli.context.render.formats import count_turns


@pytest.mark.parametrize("form", ["openai", "azure"])
def test_openai_bodies_have_model_and_messages(form):
    body = window(TURNS, OLD, **EVERYTHING).to(form)
    assert list(body) == ["model", "messages"]
    assert [message["role"] for message in body["messages"]] == [
        *["system"] * 5,
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert body["messages"][6] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "search", "arguments": '{"q": "fox"}'},
            }
        ],
    }
    assert body["messages"][7] == {"role": "tool", "content": "in line 7", "tool_call_id": "call_1"}
    assert problems(form, body) == []


def test_azure_bodies_equal_openai_bodies():
    context = window(TURNS, OLD, **EVERYTHING)
    assert json.dumps(context.to("azure")) == json.dumps(context.to("openai"))


def test_content_is_null_only_with_tool_calls():
    with_text = stored(2, "assistant", "I look", tool_calls=(SEARCH,))
    blank = stored(2, "assistant", " \n", tool_calls=(SEARCH,))
    for call, content in ((with_text, "I look"), (CALLING, None), (blank, None)):
        body = window([USER, call, RESULT]).to("openai")
        assert body["messages"][1]["content"] == content
        assert all(
            message["content"] for message in body["messages"] if "tool_calls" not in message
        )


def test_ollama_bodies_are_for_native_chat():
    body = window(TURNS, **EVERYTHING).to("ollama")
    assert body["stream"] is False
    assert set(body) == {"model", "messages", "stream", "options"}
    assert body["options"] == {"num_ctx": 100_000}
    assert "options" not in window(TURNS, model=None).to("ollama")
    calling, result = body["messages"][-4:-2]
    assert calling["tool_calls"] == [{"function": {"name": "search", "arguments": {"q": "fox"}}}]
    assert calling["content"] == ""
    assert result == {"role": "tool", "content": "in line 7", "tool_name": "search"}
    assert problems("ollama", body) == []


def test_anthropic_bodies_have_one_system_text_and_alternating_turns():
    body = window(TURNS, OLD, **EVERYTHING).to("anthropic")
    assert body["max_tokens"] == 4_096
    assert body["system"] == (
        "Be brief.\n---\n[Procedure: deploy]\nStep one.\n---\n[Procedure: undo]\nStep two."
    )
    first, calling, result, reply, *rest = body["messages"]
    titles = [block["text"].split("\n")[0] for block in first["content"]]
    assert titles == [
        "[Retrieved Knowledge]",
        "[Past Conversation Context]",
        "[Recalled Messages]",
        "where is the fox?",
    ]
    use = {"type": "tool_use", "id": "call_1", "name": "search", "input": {"q": "fox"}}
    assert calling == {"role": "assistant", "content": [use]}
    answer = {"type": "tool_result", "tool_use_id": "call_1", "content": "in line 7"}
    assert result == {"role": "user", "content": [answer]}
    assert reply == {"role": "assistant", "content": [{"type": "text", "text": REPLY.content}]}
    assert rest == [{"role": "user", "content": [{"type": "text", "text": "what now?"}]}]
    assert problems("anthropic", body) == []


def test_results_come_before_text_and_adjacent_turns_are_merged():
    two_calls = stored(2, "assistant", "a", tool_calls=(SEARCH, replace(SEARCH, id="call_2")))
    second = stored(4, "tool", "two", tool_call_id="call_2")
    body = window([USER, stored(2, "assistant", "b"), two_calls, RESULT, second]).to("anthropic")
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    kinds = [[block["type"] for block in message["content"]] for message in body["messages"]]
    assert kinds == [
        ["text"],
        ["text", "text", "tool_use", "tool_use"],
        ["tool_result", "tool_result", "text"],
    ]
    assert problems("anthropic", body) == []


@pytest.mark.parametrize(("reserve", "expected"), [(0, 1), (1, 1), (8_192, 8_192)])
def test_max_tokens_is_the_reserve_and_never_zero(reserve, expected):
    assert window(reserve=reserve).to("anthropic")["max_tokens"] == expected


@each(
    ("arguments", "expected"),
    [
        ('{"q": "fox"}', {"q": "fox"}),
        ('{ "q":"\\u00e4", "q2": 1.0 }', {"q": "ä", "q2": 1.0}),
        ("", {}),
        ("{}", {}),
        ("not json", {"_raw": "not json"}),
        ("[1, 2]", {"_raw": "[1, 2]"}),
        ("null", {"_raw": "null"}),
        ('"text"', {"_raw": '"text"'}),
        ('{"a": ', {"_raw": '{"a": '}),
        ("[" * 100_000, {"_raw": "[" * 100_000}),
    ],
)
def test_arguments_are_an_object_or_its_json_as_the_provider_requires(arguments, expected):
    call = replace(CALLING, tool_calls=(replace(SEARCH, arguments=arguments),))
    bodies = {form: window([USER, call, RESULT]).to(form) for form in PROVIDERS}
    assert bodies["ollama"]["messages"][1]["tool_calls"][0]["function"]["arguments"] == expected
    assert bodies["anthropic"]["messages"][1]["content"][0]["input"] == expected
    for form in ("openai", "azure"):
        text = bodies[form]["messages"][1]["tool_calls"][0]["function"]["arguments"]
        assert json.loads(text) == expected
        if arguments and "_raw" not in expected:
            assert text == arguments


@each("form", PROVIDERS)
@each(
    "arguments",
    [
        pytest.param('{"limit": NaN}', id="NaN"),
        pytest.param('{"limit": [-Infinity]}', id="infinity"),
        pytest.param('{"limit": 1e999}', id="too large a number"),
        pytest.param('{"text": "\\ud83d"}', id="half a surrogate pair"),
    ],
)
def test_a_body_is_strict_json_even_with_invalid_arguments(form, arguments):
    call = replace(CALLING, tool_calls=(replace(SEARCH, arguments=arguments),))
    assert problems(form, window([USER, call, RESULT]).to(form)) == []


@each("form", PROVIDERS)
def test_deeply_nested_arguments_can_be_written_and_counted(form):
    deep = '{"a":' * 600 + "1" + "}" * 600
    call = replace(CALLING, tool_calls=(replace(SEARCH, arguments=deep),))
    context = window([USER, call, RESULT])
    assert problems(form, context.to(form)) == []
    assert count_turns(context.turns, form, METER) > 600


@each("call_id", ["x" * 41, "functions.bash:0", "ä", "", "a b", "call|1"])
@each("form", PROVIDERS)
def test_invalid_ids_are_replaced_consistently_in_call_and_result(form, call_id):
    call = replace(CALLING, tool_calls=(replace(SEARCH, id=call_id),))
    body = window([USER, call, replace(RESULT, tool_call_id=call_id), REPLY]).to(form)
    assert problems(form, body) == []
    if form in ("openai", "azure"):
        sent_id = body["messages"][1]["tool_calls"][0]["id"]
        assert sent_id == body["messages"][2]["tool_call_id"] != call_id
    if form == "anthropic":
        sent_id = body["messages"][1]["content"][0]["id"]
        assert sent_id == body["messages"][2]["content"][0]["tool_use_id"] != call_id


@pytest.mark.parametrize("call_id", ["call_1", "x" * 40, "A-b_9"])
def test_valid_ids_are_kept(call_id):
    call = replace(CALLING, tool_calls=(replace(SEARCH, id=call_id),))
    body = window([USER, call, replace(RESULT, tool_call_id=call_id)]).to("openai")
    assert body["messages"][1]["tool_calls"][0]["id"] == call_id
    assert body["messages"][2]["tool_call_id"] == call_id


@each("form", PROVIDERS)
def test_a_repeated_id_gets_its_own_result(form):
    repeated = [replace(message, content=f"{message.content}!") for message in (RESULT, REPLY)]
    body = window([*TURNS, USER, CALLING, *repeated]).to(form)
    assert problems(form, body) == []
    printed = json.dumps(body)
    assert printed.index('"in line 7"') < printed.index('"in line 7!"')


@each("form", PROVIDERS)
@each("name", ["web.search", "n" * 65, "größe", "a b"])
def test_invalid_names_are_replaced(form, name):
    call = replace(CALLING, tool_calls=(replace(SEARCH, name=name),))
    assert problems(form, window([USER, call, RESULT]).to(form)) == []


@each("form", PROVIDERS)
@each("content", ["", "  ", "\n"])
def test_an_empty_result_is_sent_as_a_text_that_says_so(form, content):
    body = window([USER, CALLING, replace(RESULT, content=content), REPLY]).to(form)
    assert problems(form, body) == []


@each("form", PROVIDERS)
def test_a_blank_system_prompt_is_left_out(form):
    assert problems(form, window(TURNS, system=" \n").to(form)) == []


# An empty query


@pytest.mark.parametrize("query", ["", "  \n"])
def test_an_empty_query_gives_no_current_message(query):
    context = window(TURNS, query=query)
    assert "assistant: in line 7, it seems\n[/Reservoir " in context.to("text")
    assert unwrap(context.to("text")) == ("", (), 1)
    assert "Current" not in context.to("markdown")
    assert [row["section"] for row in context.to("json")["messages"]] == ["history"] * 4


@each("form", PROVIDERS)
def test_without_a_query_a_body_ends_with_the_last_question(form):
    body = window([*TURNS, stored(5, "user", "and the dog?"), CALLING, RESULT], query="").to(form)
    assert problems(form, body) == []
    assert "and the dog?" in json.dumps(body["messages"][-1])
    printed = json.dumps(window(TURNS, OLD, query="", **EVERYTHING).to(form))
    assert "in line 7" not in printed
    assert "Step two." in printed
    assert "an old one" in printed


@each("form", [*PROVIDERS, "text", "markdown"])
def test_nothing_to_send_is_an_error(form):
    with pytest.raises(UsageError, match="nothing to send"):
        window(query=" ").to(form)


@each("form", PROVIDERS)
def test_a_body_without_anything_to_answer_is_an_error(form):
    with pytest.raises(UsageError, match="nothing to send"):
        window(recalled=OLD, query="", **EVERYTHING).to(form)
