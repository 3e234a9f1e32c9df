"""``reservoir trim`` as a process."""

import json

import pytest
from each import each

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


def test_a_list_from_stdin_or_a_file_is_trimmed_in_every_format_of_the_help(cli, trim, tmp_path):
    file = tmp_path / "loop.json"
    file.write_text(json.dumps(LIST), encoding="utf-8")
    arguments = ("--iteration", "2", "--budget", "500")
    for form in ("openai", "anthropic", "auto"):
        assert trim(LIST, *arguments, "--format", form).document == CUT
    result = trim(LIST, *arguments)
    assert result.out.endswith("]\n")
    assert "ü" in result.out
    for source in ((str(file),), ("-",)):
        assert cli("trim", *source, *arguments, stdin=json.dumps(LIST)).out == result.out
    assert json.loads(file.read_text(encoding="utf-8")) == LIST
    assert result.document == CUT
    assert not cli.db.exists(), "nothing is stored"


def test_a_request_body_is_printed_as_a_request_body(trim):
    body = {"model": "m", "messages": LIST, "temperature": 0.5, "metadata": {"a": None}}
    result = trim(body, "--iteration", "2", "--budget", "500")
    assert result.document == {**body, "messages": CUT}
    assert list(result.document) == list(body)


def test_a_body_for_gemini_is_trimmed_by_pairs(trim):
    picture = {"inlineData": {"mimeType": "image/png", "data": "A" * 90_000}}
    question = {"role": "user", "parts": [{"text": "list"}, picture]}
    call = {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {"x": FILLER * 4}}}]}
    output = {"role": "user", "parts": [{"functionResponse": {"name": "ls", "response": {}}}]}
    said, following = {"role": "model", "parts": [{"text": "a.py"}]}, {"role": "user", "parts": []}
    body = {"contents": [question, call, output, said, following], "generationConfig": {}}
    result = trim(body, "--iteration", "2", "--budget", "500")
    assert result.document == {**body, "contents": [question, said, following]}
    asked = {**body, "contents": [question, said, question, said, following]}
    kept = trim(asked, "--iteration", "2", "--budget", "1700").document["contents"]
    assert kept == asked["contents"]  # the picture counts as 1,600 tokens, not as its data


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


def test_a_missing_file_is_exit_1_and_named(cli, tmp_path):
    absent = str(tmp_path / "absent.json")
    result = cli("trim", absent, "--iteration", "2", "--budget", "500", code=1)
    assert absent in result.err
    assert result.out == ""


@each(
    ("messages", "arguments"),
    [
        (LIST, ("--iteration", "1", "--budget", "500")),
        (LIST, ("--iteration", "9")),  # the setting is off by default
        (LIST, ("--iteration", "9", "--budget", "0")),
        (LIST, ("--iteration", "9", "--budget", "500", "--turn-start", "1")),
        (LIST, ("--iteration", "2", "--budget", "500", "--turn-start", "3")),
        (LIST, ("--iteration", "9", "--budget", "100000")),
        ([SYSTEM, *OLD[1::2]], ("--iteration", "2", "--budget", "500")),  # no question
    ],
)
def test_a_list_without_old_messages_or_that_fits_is_printed_unchanged(trim, messages, arguments):
    assert trim(messages, *arguments).document == messages


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
    assert trim(LIST[:5], *arguments, "5").document == CUT[:3]
    assert "9" in trim(LIST, *arguments, "9", code=2).err


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


NOT_FINITE = "error: stdin has a number that is too large, or NaN\n"


@each(
    ("document", "error"),
    [
        *((f'[{{"role": "user", "content": {number}}}]', NOT_FINITE)
          for number in ("1e400", "-1e400", "NaN", "Infinity")),
        *((document, "error: ") for document in (
            "not json", "", "{", '"text"', "7", "null", '{"model": "m"}', '{"messages": {}}',
            "[1]", '["x"]',
        )),
    ],
)  # fmt: skip
def test_anything_but_a_list_of_messages_is_exit_1(trim, document, error):
    result = trim(document, "--iteration", "2", "--budget", "500", code=1)
    assert result.out == ""
    assert result.err.startswith(error)
    assert "Traceback" not in result.err
    assert "unexpected" not in result.err


@each(
    "arguments",
    [
        ("--iteration", "2", "--format", "yaml"),
        ("--iteration", "2", "--format", "ollama"),
        ("--iteration", "-1"),
        ("--iteration", "two"),
        ("--iteration", "2", "--turn-start", "-1"),
        ("--iteration", "2", "--budget", "500", "--turn-start", "9"),
        ("--iteration", "2", "--budget", "much"),
        (),
    ],
)
def test_wrong_usage_is_exit_2(trim, arguments):
    result = trim(LIST, *arguments, code=2)
    assert result.out == ""
    assert result.err.startswith("error: ")


@each(
    "odd",
    [
        {"role": "assistant", "content": "x", "tool_calls": 5},
        {"role": "assistant", "content": "x", "tool_calls": [{"id": ["a"]}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": {"a": 1}}]},
        {"role": ["user"], "content": {"a": 1}},
        {},
        # Valid JSON, as after cutting a text in the middle of an emoji.
        {"role": "assistant", "content": "half of a pair: \ud83d"},
    ],
)
def test_odd_messages_are_printed_unchanged(trim, odd):
    result = trim([SYSTEM, *OLD, odd, *TURN], "--iteration", "2", "--budget", "500")
    assert result.document == [SYSTEM, *OLD[2:], odd, *TURN]
