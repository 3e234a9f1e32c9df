"""The validators find what each provider refuses."""

from typing import Any

from each import each
from validators import problems

ASKS = {"role": "user", "content": "go on"}


def _call_message(*ids: str, **changed: Any) -> dict[str, Any]:
    function = {"name": "f", "arguments": "{}"}
    calls = [{"id": call_id, "type": "function", "function": function} for call_id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls, **changed}


def _result(call_id: str, text: str = "done") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def _call_and_result(call: dict[str, Any]) -> list[dict[str, Any]]:
    return [_call_message(tool_calls=[call]), _result(call.get("id", "")), ASKS]


def _function(name: str = "f", arguments: Any = "{}", **changed: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": "a", "type": "function", "function": function, **changed}


GOOD_OPENAI = [ASKS, _call_message("a", "b"), _result("b"), _result("a"), ASKS]
BAD_OPENAI = [
    ("role 'context' is unknown", [{"role": "context", "content": "x"}, ASKS]),
    (
        "tool_calls in a message of role user",
        [{**_call_message("a"), "role": "user"}, _result("a")],
    ),
    ("tool_calls is empty", [_call_message(content="x"), ASKS]),
    ("content is null, and there are no calls", [{"role": "user", "content": None}]),
    ("content is not a string", [{"role": "user", "content": 7}]),
    ("content is blank", [{"role": "user", "content": " \n"}]),
    ("a tool message without tool_call_id", [{"role": "tool", "content": "x"}, ASKS]),
    ("tool_call_id in a message of role user", [{**ASKS, "tool_call_id": "a"}]),
    ("name of a message does not match its pattern", [{**ASKS, "name": "a b"}]),
    ("id of a call does not match its pattern", _call_and_result(_function(id="x" * 41))),
    ("id of a call does not match its pattern", _call_and_result(_function(id="a.b"))),
    ("id of a call does not match its pattern", _call_and_result(_function(id=""))),
    ("type of a call is not function", _call_and_result(_function(type="custom"))),
    ("name of a function does not match its pattern", _call_and_result(_function("web.search"))),
    ("name of a function does not match its pattern", _call_and_result(_function("n" * 65))),
    ("arguments are not a string", _call_and_result(_function(arguments={}))),
    (
        "a tool message is not a response to a preceding message with tool_calls",
        [ASKS, _result("a"), ASKS],
    ),
    (
        "a tool message is not a response to a preceding message with tool_calls",
        [_call_message("a"), _result("a"), _result("a"), ASKS],
    ),
    (
        "tool_calls are not followed by tool messages responding to each tool_call_id",
        [_call_message("a", "b"), _result("a"), ASKS],
    ),
    (
        "tool_calls are not followed by tool messages responding to each tool_call_id",
        [_call_message("a"), ASKS, _result("a"), ASKS],
    ),
    (
        "two calls of a message have one id",
        [_call_message("a", "a"), _result("a"), _result("a"), ASKS],
    ),
    ("the last message is not the user's", [ASKS, {"role": "assistant", "content": "x"}]),
    ("messages: at least one message is required", []),
]


@each("form", ["openai", "azure"])
@each(("rule", "messages"), BAD_OPENAI)
def test_the_validator_finds_what_openai_refuses(form, rule, messages):
    assert rule in problems(form, {"model": "m", "messages": messages})


def _ollama_call(name: Any = "f", arguments: Any = None) -> dict[str, Any]:
    function = {"name": name, "arguments": {} if arguments is None else arguments}
    return {"role": "assistant", "content": "", "tool_calls": [{"function": function}]}


OLLAMA_RESULT = {"role": "tool", "tool_name": "f", "content": "done"}
GOOD_OLLAMA = [ASKS, _ollama_call(), OLLAMA_RESULT, ASKS]
BAD_OLLAMA = [
    ("role 'context' is unknown", [{"role": "context", "content": "x"}, ASKS]),
    ("content is not a string", [{"role": "user", "content": None}]),
    ("content is blank", [{"role": "user", "content": " "}]),
    ("tool_calls in a message of role user", [{**_ollama_call(), "role": "user"}]),
    ("a call without a name", [_ollama_call(""), {**OLLAMA_RESULT, "tool_name": ""}, ASKS]),
    ("arguments are not an object", [_ollama_call(arguments="{}"), OLLAMA_RESULT, ASKS]),
    ("a result names no tool that was called right before it", [ASKS, OLLAMA_RESULT, ASKS]),
    (
        "a result names no tool that was called right before it",
        [_ollama_call("g"), OLLAMA_RESULT, ASKS],
    ),
    ("a call without a result", [_ollama_call(), ASKS]),
]


@each(("rule", "messages"), BAD_OLLAMA)
def test_the_validator_finds_what_ollama_refuses(rule, messages):
    assert rule in problems("ollama", {"model": "m", "messages": messages, "stream": False})


def _message(role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def _use(call_id: str = "a", **changed: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "f", "input": {}, **changed}


def _tool_result(call_id: str = "a", text: str = "done") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": text}


def _anthropic(*messages: dict[str, Any], **changed: Any) -> dict[str, Any]:
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    return {"model": "m", "max_tokens": 1, "messages": list(messages), "tools": tools, **changed}


TEXT = {"type": "text", "text": "x"}
HELLO = _message("user", TEXT)
USED, ANSWERED = _message("assistant", TEXT, _use()), _message("user", _tool_result(), TEXT)
GOOD_ANTHROPIC = _anthropic(HELLO, USED, ANSWERED, system="be brief")
BAD_ANTHROPIC = [
    ("max_tokens is not a whole number from 1", _anthropic(HELLO, max_tokens=0)),
    ("max_tokens is not a whole number from 1", _anthropic(HELLO, max_tokens=None)),
    ("system is not a text", _anthropic(HELLO, system=" ")),
    ("system is not a text", _anthropic(HELLO, system=None)),
    ("the first message is not the user's", _anthropic(_message("assistant", TEXT), HELLO)),
    ("roles do not alternate", _anthropic(HELLO, HELLO)),
    ("role 'system' is unknown", _anthropic(_message("system", TEXT), HELLO)),
    ("content is empty", _anthropic(_message("user"))),
    (
        "text content blocks must contain non-whitespace text",
        _anthropic(_message("user", {"type": "text", "text": " \n"})),
    ),
    (
        "text content blocks must contain non-whitespace text",
        _anthropic({"role": "user", "content": ""}),
    ),
    ("a block tool_use in a message of role user", _anthropic(_message("user", _use()))),
    (
        "a block tool_result in a message of role assistant",
        _anthropic(HELLO, _message("assistant", _tool_result())),
    ),
    (
        "content of a tool_result is blank",
        _anthropic(HELLO, USED, _message("user", _tool_result("a", ""))),
    ),
    (
        "tool_result blocks do not come first",
        _anthropic(HELLO, USED, _message("user", TEXT, _tool_result())),
    ),
    (
        "id of a tool_use does not match its pattern",
        _anthropic(HELLO, _message("assistant", _use("a.b"))),
    ),
    (
        "name of a tool_use does not match its pattern",
        _anthropic(HELLO, _message("assistant", _use(name="a b"))),
    ),
    (
        "input is not an object",
        _anthropic(HELLO, _message("assistant", _use(input="{}")), ANSWERED),
    ),
    (
        "tool_use ids were found without tool_result blocks immediately after",
        _anthropic(HELLO, USED, HELLO),
    ),
    (
        "tool_use ids were found without tool_result blocks immediately after",
        _anthropic(HELLO, USED),
    ),
    (
        "a tool_result has no corresponding tool_use block in the previous message",
        _anthropic(ANSWERED),
    ),
    (
        "each tool_use must have a single result",
        _anthropic(HELLO, USED, _message("user", _tool_result(), _tool_result())),
    ),
    ("tool_use ids must be unique", _anthropic(HELLO, USED, ANSWERED, USED, ANSWERED)),
    (
        "requests which include tool_use or tool_result blocks must define tools",
        _anthropic(HELLO, USED, ANSWERED, tools=[]),
    ),
    (
        "a tool_use of a tool that is not defined",
        _anthropic(HELLO, _message("assistant", _use(name="g")), ANSWERED),
    ),
    ("tool names must be unique", _anthropic(HELLO, tools=2 * GOOD_ANTHROPIC["tools"])),
    (
        "name of a tool does not match its pattern",
        _anthropic(HELLO, tools=[{"name": "a b", "input_schema": {"type": "object"}}]),
    ),
    ("input_schema of a tool is not an object", _anthropic(HELLO, tools=[{"name": "f"}])),
]


@each(("rule", "body"), BAD_ANTHROPIC)
def test_the_validator_finds_what_anthropic_refuses(rule, body):
    assert rule in problems("anthropic", body)


@each(
    ("form", "body"),
    [
        ("openai", {"model": "m", "messages": GOOD_OPENAI}),
        ("azure", {"model": "m", "messages": GOOD_OPENAI}),
        ("ollama", {"model": "m", "messages": GOOD_OLLAMA, "stream": False}),
        ("anthropic", GOOD_ANTHROPIC),
    ],
)
def test_the_validator_accepts_a_valid_body_and_no_invalid_one(form, body):
    assert problems(form, body) == []
    assert "model is required" in problems(form, {**body, "model": ""})
    assert "messages: at least one message is required" in problems(form, {**body, "messages": []})
    for value in (float("nan"), "\ud800"):
        errors = problems(form, {**body, "x": value})
        assert any(error.startswith("the body is not JSON") for error in errors)
    if form == "ollama":
        assert problems(form, {**body, "stream": True}) == ["stream is not false"]
