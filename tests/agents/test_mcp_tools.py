"""The MCP server's tools, and how it checks their arguments."""

import json

import pytest
from each import each

from reservoir_cli.agents.mcp.server import INSTRUCTIONS
from reservoir_cli.agents.mcp.tools import offered_tools
from reservoir_cli.errors import UsageError
from reservoir_cli.tokens import load_counter

TOOLS = offered_tools(["work", "home"])


def test_the_tools_and_their_parameters():
    assert {name: list(tool.parameters) for name, tool in TOOLS.items()} == {
        "recall": ["question", "budget", "since", "until", "partition"],
        "search": ["query", "limit", "since", "until", "mode"],
        "read": ["id", "around", "max_tokens"],
        "remember": ["text", "replaces"],
        "forget": ["id"],
    }
    assert "partition" not in offered_tools()["recall"].parameters
    assert list(offered_tools(read_only=True)) == ["recall", "search", "read"]


def test_an_agent_is_told_whether_it_may_correct_other_messages_than_notes():
    assert offered_tools()["forget"].about.endswith("stay: [mcp] correct is off.")
    assert offered_tools(corrects=True)["forget"].about.endswith("marked as outdated.")


def test_the_first_512_characters_of_the_instructions_are_complete():
    first, _, _ = INSTRUCTIONS.partition("\n\n")
    assert len(first) <= 512
    assert first.endswith(".")
    for word in ("recall", "whenever", "never instructions"):
        assert word in first


def test_absent_parameters_have_their_defaults():
    assert TOOLS["recall"].check({"question": "why?"}) == {
        "question": "why?",
        "budget": 1_500,
        "since": None,
        "until": None,
        "partition": None,
    }
    assert TOOLS["read"].check({"id": 7, "around": None}) == {
        "id": 7,
        "around": 4,
        "max_tokens": 2_000,
    }
    assert TOOLS["search"].check({"query": "x"})["limit"] == 10


@pytest.mark.parametrize("written", [12, "12", "#12", "[#12]", 12.0, " 12 ", "12.0"])
def test_a_number_may_be_written_as_models_write_it(written):
    assert TOOLS["read"].check({"id": written})["id"] == 12


WRONG = [
    ("recall", {}, "needs question"),
    ("recall", {"question": None}, "needs question"),
    ("recall", {"question": " \n"}, "needs text as question"),
    ("recall", {"question": 7}, "needs text as question"),
    ("recall", {"question": ["why?"]}, "needs text as question"),
    ("recall", {"question": "x" * 20_001}, "at most 20,000 characters as question"),
    ("recall", {"question": "x", "budget": 0}, "whole number from 100 to 20,000 as budget"),
    ("recall", {"question": "x", "budget": "many"}, "as budget"),
    ("recall", {"question": "x", "budget": True}, "as budget"),
    ("recall", {"question": "x", "budget": 1e300}, "as budget"),
    ("recall", {"question": "x", "budget": float("nan")}, "as budget"),
    ("recall", {"question": "x", "partition": "secret"}, "needs one of work, home as partition"),
    ("recall", {"question": "x", "query": "y"}, "has no parameter 'query'"),
    ("recall", {"question": "x", "a\x1b[31m\n": "y"}, r"has no parameter 'a\x1b[31m\n'"),
    ("search", {"query": "x", "mode": "fuzzy"}, "hybrid, keyword, semantic as mode"),
    ("search", {"query": "x", "mode": []}, "hybrid, keyword, semantic as mode"),
    ("search", {"query": "x", "limit": 51}, "from 1 to 50 as limit"),
    ("read", {"id": "abc"}, "as id"),
    ("read", {"id": "9" * 30}, "as id"),
    ("read", {"id": 0}, "as id"),
    ("read", {"id": 2**63}, "as id"),
    ("read", {"id": 1, "around": -1}, "as around"),
    ("remember", {"text": ""}, "needs text as text"),
    ("remember", {"text": "x", "role": "user"}, "has no parameter 'role'"),
]


@each(("tool", "arguments", "problem"), WRONG)
def test_wrong_arguments_are_named(tool, arguments, problem):
    with pytest.raises(UsageError) as caught:
        TOOLS[tool].check(arguments)
    assert problem in caught.value.message
    assert caught.value.message.startswith(tool)
    assert caught.value.hint
    assert all(name in caught.value.hint for name in TOOLS[tool].parameters)


def test_an_error_quotes_no_value_and_no_long_name():
    for arguments in (
        {"question": 5, "budget": "canary"},
        {"question": "canary", "budget": "canary"},
    ):
        with pytest.raises(UsageError) as caught:
            TOOLS["recall"].check(arguments)
        assert "canary" not in str(caught.value) + str(caught.value.hint)
    with pytest.raises(UsageError) as caught:
        TOOLS["recall"].check({"x" * 5_000: 1})
    assert len(caught.value.message) < 100


def test_the_schemas_refuse_the_same_arguments_as_the_check():
    for tool in TOOLS.values():
        schema = tool.schema()
        assert schema["additionalProperties"] is False
        required = [name for name, parameter in tool.parameters.items() if parameter.required]
        assert schema["required"] == required == required[:1]
        json.dumps(schema)


def test_instructions_and_tools_take_less_than_850_tokens():
    server = pytest.importorskip("reservoir_cli.agents.mcp.server", reason="mcp is not installed")
    counter = load_counter("approximate")
    rows = [
        server.describe(tool).model_dump(by_alias=True, exclude_none=True, mode="json")
        for tool in TOOLS.values()
    ]
    # The counter is above o200k for JSON; this is the longest form.
    assert counter.count(json.dumps({"tools": rows}) + INSTRUCTIONS) < 850
