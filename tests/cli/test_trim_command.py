"""``reservoir trim`` as a process."""

import json

import pytest

SYSTEM = {"role": "system", "content": "You are an agent."}
FILLER = "the quick brown fox jumps over the lazy dog " * 20
OLD = [
    {"role": "user", "content": f"read a {FILLER}"},
    {"role": "assistant", "content": f"a is read {FILLER}"},
    {"role": "user", "content": f"read b {FILLER}"},
    {"role": "assistant", "content": f"b is read {FILLER}"},
]
CALL = {"id": "c", "type": "function", "function": {"name": "read", "arguments": '{"x": "ü"}'}}
TURN = [
    {"role": "user", "content": "now read c"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "done"},
]
LIST = [SYSTEM, *OLD, *TURN]
CUT = [SYSTEM, *OLD[2:], *TURN]


@pytest.fixture
def trim(cli):
    """Return a function that runs ``reservoir trim`` on a document from stdin."""

    def trimming(document, *arguments, code=0, env=None):
        text = document if isinstance(document, str) else json.dumps(document)
        return cli("trim", *arguments, stdin=text, code=code, env=env)

    return trimming


def test_a_list_from_stdin_is_trimmed(trim):
    result = trim(LIST, "--iteration", "2", "--budget", "500")
    assert result.document == CUT


def test_a_request_body_is_printed_as_a_request_body(trim):
    body = {"model": "m", "messages": LIST, "temperature": 0.5, "metadata": {"a": None}}
    result = trim(body, "--iteration", "2", "--budget", "500")
    assert result.document == {**body, "messages": CUT}
    assert list(result.document) == list(body)


def test_a_responses_body_is_trimmed_by_pairs(trim):
    question, following = ({"role": "user", "content": text} for text in ("list", "open a.py"))
    call = {"type": "function_call", "call_id": "c", "name": "ls", "arguments": FILLER * 4}
    output = {"type": "function_call_output", "call_id": "c", "output": "a.py"}
    said = {"role": "assistant", "content": [{"type": "output_text", "text": "a.py"}]}
    items = [question, {"type": "reasoning", "summary": []}, call, output, said, following]
    body = {"model": "m", "input": items, "store": False}
    result = trim(body, "--iteration", "2", "--budget", "500")
    assert result.document == {**body, "input": [question, said, following]}
    assert "6 messages, 3 trimmed" in result.err
    assert trim(items, "--iteration", "2", "--budget", "500").document == result.document["input"]


def test_an_anthropic_body_keeps_results_with_their_calls(trim):
    call = {"type": "tool_use", "id": "t", "name": "read", "input": {"text": FILLER}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "short"}
    messages = [
        {"role": "user", "content": "start"},
        {"role": "assistant", "content": [call, {**call, "id": "u"}, {**call, "id": "v"}]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": [{"type": "text", "text": "next"}]},
    ]
    body = {"model": "m", "max_tokens": 9, "system": "brief", "messages": messages}
    trimmed = trim(body, "--iteration", "2", "--budget", "500", "--format", "anthropic")
    assert trimmed.document == {**body, "messages": [messages[0], *messages[3:]]}


@pytest.mark.parametrize("form", ["openai", "anthropic", "auto"])
def test_every_format_in_the_help_is_accepted(trim, form):
    arguments = ("--iteration", "2", "--budget", "500", "--format", form)
    assert trim(LIST, *arguments).document == CUT


def test_a_file_is_read_like_stdin(cli, trim, tmp_path):
    file = tmp_path / "loop.json"
    file.write_text(json.dumps(LIST), encoding="utf-8")
    arguments = ("--iteration", "2", "--budget", "500")
    assert cli("trim", str(file), *arguments).document == CUT
    assert cli("trim", *arguments, "-", stdin=json.dumps(LIST)).document == CUT
    assert json.loads(file.read_text(encoding="utf-8")) == LIST


def test_a_missing_file_is_exit_1_and_named(cli, tmp_path):
    absent = str(tmp_path / "absent.json")
    result = cli("trim", absent, "--iteration", "2", "--budget", "500", code=1)
    assert absent in result.err
    assert result.out == ""


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("--iteration", "1", "--budget", "500"), id="the first iteration"),
        pytest.param(("--iteration", "9"), id="the setting is off by default"),
        pytest.param(("--iteration", "9", "--budget", "0"), id="0 is off"),
        pytest.param(("--iteration", "9", "--budget", "500", "--turn-start", "1"), id="no old"),
        pytest.param(("--iteration", "9", "--budget", "100000"), id="it fits"),
    ],
)
def test_a_short_list_is_printed_unchanged(trim, arguments):
    assert trim(LIST, *arguments).document == LIST


def test_a_budget_under_500_is_raised_to_500_with_a_note(trim):
    small = trim(LIST, "--iteration", "2", "--budget", "50")
    assert small.document == trim(LIST, "--iteration", "2", "--budget", "500").document == CUT
    assert "500" in small.err
    assert trim(LIST, "--iteration", "2", "--budget", "1").document == CUT


def test_the_budget_of_the_setting_is_used_and_raised_to_500_too(trim):
    env = {"RESERVOIR_CONTEXT_BUDGET_TOKENS": "60"}
    assert trim(LIST, "--iteration", "2", env=env).document == CUT
    untrimmed = trim(LIST, "--iteration", "2", "--budget", "0", env=env)
    assert untrimmed.document == LIST


def test_the_turn_starts_at_the_given_index(trim):
    arguments = ("--iteration", "2", "--budget", "500", "--turn-start")
    assert trim(LIST, *arguments, "3").document == LIST
    assert trim(LIST[:5], *arguments, "5").document == CUT[:3]


def test_a_turn_after_the_end_is_exit_2(trim):
    result = trim(LIST, "--iteration", "2", "--budget", "500", "--turn-start", "9", code=2)
    assert "9" in result.err
    assert result.out == ""


def test_a_list_without_a_question_has_no_old_part(trim):
    messages = [SYSTEM, *(message for message in OLD if message["role"] == "assistant")]
    assert trim(messages, "--iteration", "2", "--budget", "500").document == messages


@pytest.mark.parametrize(
    ("messages", "start"),
    [
        pytest.param([SYSTEM, TURN[0], *OLD[1::2] * 2], 1, id="the only question"),
        pytest.param([SYSTEM, *OLD[1::2] * 2], 0, id="no question"),
    ],
)
def test_a_long_turn_that_cannot_be_trimmed_is_noted(trim, messages, start):
    result = trim(messages, "--iteration", "2", "--budget", "500")
    assert result.document == messages
    assert result.err.startswith(
        f"note: nothing was trimmed: the current turn begins at message {start}"
    )
    assert "--turn-start I" in result.err
    later = trim(
        messages, "--iteration", "2", "--budget", "500", "--turn-start", str(len(messages))
    )
    assert len(later.document) < len(messages)
    for arguments in (
        ("--iteration", "1", "--budget", "500"),
        ("--iteration", "2"),
        ("--iteration", "2", "--budget", "9000"),
    ):
        assert "note" not in trim(messages, *arguments).err


def test_a_terminal_is_told_what_to_type(cli):
    shown = cli.talk("trim", "--iteration", "1", answers=[("end it with Ctrl-D", "\x03")])
    assert "note: type the list of messages, then end it with Ctrl-D" in shown.out


@pytest.mark.parametrize(
    "document",
    [
        "not json",
        "",
        "{",
        '"text"',
        "7",
        "null",
        '{"model": "m"}',
        '{"messages": {}}',
        "[1]",
        '["x"]',
    ],
)
def test_anything_but_a_list_of_messages_is_exit_1(trim, document):
    result = trim(document, "--iteration", "2", "--budget", "500", code=1)
    assert result.out == ""
    assert result.err.startswith("error: ")
    assert "Traceback" not in result.err
    assert "unexpected" not in result.err


@pytest.mark.parametrize("number", ["1e400", "-1e400", "NaN", "Infinity"])
def test_a_number_that_no_request_can_hold_is_named_as_the_reason(trim, number):
    document = f'[{{"role": "user", "content": {number}}}]'
    error = trim(document, "--iteration", "2", code=1).err
    assert error.startswith("error: stdin has a number that is too large, or NaN\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--iteration", "2", "--format", "yaml"),
        ("--iteration", "2", "--format", "ollama"),
        ("--iteration", "-1"),
        ("--iteration", "two"),
        ("--iteration", "2", "--turn-start", "-1"),
        ("--iteration", "2", "--budget", "much"),
        (),
    ],
)
def test_wrong_usage_is_exit_2(trim, arguments):
    result = trim(LIST, *arguments, code=2)
    assert result.out == ""
    assert result.err.startswith("error: ")


@pytest.mark.parametrize(
    "odd",
    [
        {"role": "assistant", "content": "x", "tool_calls": 5},
        {"role": "assistant", "content": "x", "tool_calls": [{"id": ["a"]}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": {"a": 1}}]},
        {"role": ["user"], "content": {"a": 1}},
        {},
    ],
    ids=["calls are a number", "id is a list", "use id is an object", "role is a list", "empty"],
)
def test_odd_messages_are_printed_unchanged(trim, odd):
    result = trim([SYSTEM, *OLD, odd, *TURN], "--iteration", "2", "--budget", "500")
    assert result.document == [SYSTEM, *OLD[2:], odd, *TURN]


def test_half_a_surrogate_pair_is_printed_unchanged(trim):
    # Valid JSON, as after cutting a text in the middle of an emoji.
    odd = {"role": "user", "content": "half of a pair: \ud83d"}
    assert trim([SYSTEM, odd, *TURN], "--iteration", "1").document == [SYSTEM, odd, *TURN]


def test_only_the_list_is_on_stdout(trim):
    result = trim(LIST, "--iteration", "2", "--budget", "50")
    assert json.loads(result.out) == CUT
    assert result.out.endswith("]\n")
    assert "ü" in result.out


def test_nothing_is_stored(cli, trim):
    trim(LIST, "--iteration", "2", "--budget", "500")
    assert not cli.db.exists()
