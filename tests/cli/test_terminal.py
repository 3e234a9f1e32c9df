"""Output on terminals."""

import re
import sqlite3
from contextlib import closing
from itertools import product

import pytest
from each import each

from reservoir_cli.cli.command_list import EXAMPLES

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
NASTY = "red \x1b[31m bell \x07 c1 \x9b del \x7f\nnext line"


@pytest.fixture
def filled_cli(cli):
    cli.say("why did we drop Redis?")
    cli.say("it lost jobs", "--role", "assistant")
    return cli


READS = [
    ["view", "--timestamps"],
    ["search", "--keyword", "redis"],
    ["context", "what else?"],
    ["config", "--list"],
]


@pytest.mark.parametrize("command", READS, ids=lambda command: command[0])
def test_a_terminal_gets_colour(filled_cli, command):
    shown = filled_cli.on_terminal(*command)
    assert shown.code == 0
    assert COLOUR.search(shown.out)


def test_the_column_for_context_is_not_headed_available(cli):
    head = COLOUR.sub("", cli.on_terminal("models").out).splitlines()[0]
    assert " for context " in head
    assert "available" not in head


@pytest.mark.parametrize("command", READS, ids=lambda command: command[0])
def test_no_color_leaves_no_escape_sequence(filled_cli, command):
    by_variable = filled_cli.on_terminal(*command, env={"NO_COLOR": "1"})
    by_option = filled_cli.on_terminal("--no-color", *command)
    assert by_variable.code == by_option.code == 0
    assert by_variable.out
    assert "\x1b" not in by_variable.out
    assert "\x1b" not in by_option.out


@pytest.mark.parametrize("command", READS, ids=lambda command: command[0])
def test_a_pipe_never_gets_escape_sequences(filled_cli, command):
    result = filled_cli(
        *command, env={"FORCE_COLOR": "1", "CLICOLOR_FORCE": "1", "COLORTERM": "truecolor"}
    )
    assert result.out
    assert "\x1b" not in result.out + result.err


@pytest.mark.parametrize("command", READS, ids=lambda command: command[0])
def test_stdout_in_a_pipe_gets_its_data_while_stderr_is_a_terminal(filled_cli, command):
    piped = filled_cli(*command)
    shown = filled_cli.on_terminal(*command, streams=("stderr",))
    assert shown.code == 0
    assert shown.out == piped.out


def test_a_document_goes_to_a_pipe_while_stderr_is_a_terminal(cli):
    shown = cli.on_terminal("ingest", "--no-embed", "--json", streams=("stderr",))
    assert shown.out.startswith("{")


def test_control_characters_are_made_visible_on_a_terminal(cli):
    cli.say(NASTY)
    for command in (["view"], ["search", "--keyword", "bell"], ["context", "what?"]):
        shown = cli.on_terminal(*command, env={"NO_COLOR": "1"}).out
        assert re.search(r"red (\\x1b|\\e|\^\[|␛)\[31m bell", shown), shown
        for control in "\x07\x9b\x7f":
            assert control not in shown
        assert "\x1b[31m" not in shown
        assert "next line" in shown


def test_a_pipe_gets_control_characters_as_they_are(cli):
    cli.say(NASTY)
    assert cli("view").out == f"user: {NASTY}\n"
    assert NASTY in cli("search", "--keyword", "bell").out
    assert NASTY in cli("context", "what?").out


def test_control_characters_of_names_are_made_visible_on_stderr(cli):
    cli.say("hello", "-i", "evil")
    with closing(sqlite3.connect(cli.db)) as raw, raw:  # an earlier version stored such names
        raw.execute("UPDATE messages SET instance = ?", ["evil\x1b[31m"])
    raw.close()
    arguments = ("view", "-i", "default")
    shown = cli.on_terminal(*arguments, streams=("stderr",), env={"NO_COLOR": "1"})
    assert "evil" in shown.err
    assert "\x1b[31m" not in shown.err


def test_a_terminal_shows_the_same_text_as_a_pipe_after_dim_ids(filled_cli):
    piped = filled_cli("view", "--timestamps").out
    shown = filled_cli.on_terminal("view", "--timestamps").out
    assert re.sub(r"(?m)^#\d ", "", COLOUR.sub("", shown)) == piped
    for row in filled_cli.rows():
        assert f"\x1b[2m#{row['id']} \x1b[0m" in shown


def test_a_search_on_a_terminal_shows_three_lines_with_the_words_marked(cli):
    conversation = {"title": "Job queue", "source": "claude", "model": None}
    text = (
        "Filler words before it. " * 30 + "It lost jobs at night.\n\n" + "And more after it. " * 30
    )
    cli.store({"content": text, "conversation_id": "c1", "conversation": conversation})
    size = {"COLUMNS": "72"}
    shown = cli.on_terminal("search", "--keyword", "lost", "job", env=size).out
    assert re.search(r"\x1b\[1;31mlost\x1b\[0m \x1b\[1;31mjobs\x1b\[0m", shown)
    heading, *passage = COLOUR.sub("", shown).splitlines()
    assert heading == "1. user · 2026-05-09 · #1 · default/default · Job queue"
    assert len(passage) == 2
    assert passage[0].startswith("   …")
    assert passage[1].endswith("…")
    assert max(map(len, passage)) <= 72
    whole = COLOUR.sub("", cli.on_terminal("search", "lost", "--full", env=size).out)
    assert " ".join(whole.split()).endswith(" ".join(text.split()))
    line = COLOUR.sub("", cli.on_terminal("search", "lost", "--oneline").out)
    assert line.count("\n") == 1
    assert line.startswith("1. #1 user: Filler")


def test_times_are_local_on_a_terminal(cli):
    cli.say("hello", "--role", "assistant", "--at", "2026-05-09T23:30:00Z")
    zone = {"TZ": "CET-1", "NO_COLOR": "1"}
    assert "#1 2026-05-10T00:30:00+01:00 [" in cli.on_terminal("view", "--timestamps", env=zone).out
    assert " · 2026-05-10 · " in cli.on_terminal("search", "hello", env=zone).out
    wide = {**zone, "COLUMNS": "120"}
    for command in (["partitions"], ["forget", "--id", "1", "--dry-run"]):
        assert " 2026-05-10T00:30+01:00 " in cli.on_terminal(*command, env=wide).out
    recalled = cli("context", "and then?", "--recent", "0", "--floor", "0", env=zone)
    assert "\n2026-05-10\n" in recalled.out
    assert "2026-05-09T23:30:00+00:00 [" in cli("view", "--timestamps", env=zone).out


def test_a_view_on_a_terminal_names_the_instance_if_there_are_several(cli):
    cli.store({"content": "mine"}, {"content": "next door", "instance": "other"})
    plain = {"NO_COLOR": "1"}
    assert (
        cli.on_terminal("view", env=plain).out
        == "#1 default · user: mine\n#2 other · user: next door\n"
    )
    assert cli.on_terminal("view", "-i", "other", env=plain).out == "#2 user: next door\n"


def test_a_table_fits_a_narrow_terminal(filled_cli):
    command = ("context", "why did we drop Redis in the end?", "--explain")
    for width, shown_column, hidden_column in ((60, "prio", "day"), (140, "text", "")):
        shown = filled_cli.on_terminal(
            *command, streams=("stderr",), env={"COLUMNS": str(width)}
        ).err
        lines = COLOUR.sub("", shown).splitlines()
        head, rule, *rows = lines[
            next(index for index, line in enumerate(lines) if line[:3] == "id ") :
        ]
        assert max(map(len, (head, rule, *rows[:2]))) <= width
        assert shown_column in head.split()
        assert hidden_column not in head.split()
        assert len([row for row in rows if " newest" in row]) == 1


@pytest.mark.parametrize("width", [24, 40, 60])
def test_numbers_are_whole_on_a_narrow_terminal(filled_cli, width):
    narrow = {"COLUMNS": str(width), "NO_COLOR": "1"}
    shown = filled_cli.on_terminal("models", env=narrow).out
    [row] = [line for line in shown.splitlines() if line.startswith("gpt-4o ")]
    assert row.split()[1] == "128,000"
    assert max(map(len, shown.splitlines())) <= width
    filled_cli.store(*({"content": "x", "partition": "reading list"} for _ in range(12)))
    shown = filled_cli.on_terminal("partitions", env=narrow).out
    assert "messages" in shown
    assert re.search(r"(?m)^readin.* 12( |$)", shown)


def test_words_of_a_title_are_not_broken_on_a_narrow_terminal(cli):
    conversation = {"title": "Backgrounds of interprocess jobs", "source": "claude", "model": None}
    cli.store(
        {"content": "hi", "conversation_id": "0" * 8 + "-1111" * 3 + "-" + "2" * 12}
        | {"conversation": conversation}
    )
    for width in (60, 70, 80):
        shown = cli.on_terminal("conversations", env={"COLUMNS": str(width), "NO_COLOR": "1"}).out
        assert all(word in shown for word in conversation["title"].split()), shown
        assert all(len(line) <= width for line in shown.splitlines())


def test_the_texts_of_an_explanation_end_with_whole_words(cli):
    cli.say("constitutional monarchies " * 9)
    shown = COLOUR.sub(
        "", cli.on_terminal("search", "constitutional", "--explain", streams=("stderr",)).err
    )
    [row] = [line for line in shown.splitlines() if "…" in line]
    assert re.search(r" (constitutional|monarchies)…\s*$", row)


def test_times_are_dim_and_messages_are_not(filled_cli):
    shown = filled_cli.on_terminal("view", "--timestamps").out
    assert re.search(r"\x1b\[2m20\d\d-", shown)
    assert not re.search(r"\x1b\[(\d+;)*2(;\d+)*m[^\x1b]*why did we", shown)


def test_errors_are_coloured_on_a_terminal(cli):
    shown = cli.on_terminal("view", "many", streams=("stderr",)).err
    assert re.fullmatch(
        r"\x1b\[1;31merror: \x1b\[0m[^\x1b]+\n\x1b\[33mhint: \x1b\[0m[^\x1b]+\n", shown
    )


def test_a_long_line_is_not_broken_on_a_terminal(cli):
    text = "word " * 200 + "end"
    cli.say(text)
    assert COLOUR.sub("", cli.on_terminal("view").out) == f"#1 user: {text}\n"


def test_rich_markup_in_a_message_is_printed_as_text(cli):
    cli.say("[bold]not bold[/bold] :smile: [/] 3 [link=x]")
    shown = COLOUR.sub("", cli.on_terminal("view").out)
    assert shown == "#1 user: [bold]not bold[/bold] :smile: [/] 3 [link=x]\n"


def test_a_context_without_a_question_on_a_terminal_is_wrong_usage(cli):
    shown = cli.on_terminal("context", streams=("stdin",))
    assert shown.code == 2
    assert "error: " in shown.out + shown.err


@pytest.mark.parametrize("command", [["--help"], ["view", "--help"], []], ids=" ".join)
def test_help_on_a_terminal_differs_only_in_colour(cli, command):
    piped = cli(*command, env={"COLUMNS": "80"}).out
    shown = cli.on_terminal(*command, env={"COLUMNS": "80"}).out
    assert COLOUR.search(shown)
    assert COLOUR.sub("", shown) == piped
    for plain in (
        cli.on_terminal(*command, env={"COLUMNS": "80", "NO_COLOR": "1"}),
        cli.on_terminal("--no-color", *command, env={"COLUMNS": "80"}),
    ):
        assert plain.out == piped


@each("name", EXAMPLES)
def test_help_describes_the_command_and_its_summary_fits_a_screen(cli, name):
    whole, summary = cli(name, "--help"), cli(name, "-h", env={"COLUMNS": "80"})
    for shown in (whole, summary):
        assert shown.err == ""
        assert shown.out.startswith(f"Usage: reservoir {name} ")
        # Bash must be able to run the example, which may be wrapped.
        assert re.search(rf"Example: [^\n]*(\n  [^\n]+)*?reservoir {name}", shown.out)
        assert not re.search("[\x1b╭│─]", shown.out)
        # Options or subcommands.
        listed = re.findall(r"^  (?:(?:-\w, )?--[\w-]+|[a-z][a-z-]*  +[A-Z])", shown.out, re.M)
        assert len(listed) >= 2
    assert len(summary.out.splitlines()) <= 24
    assert summary.out.endswith(f"  Example: {EXAMPLES[name]}\n")  # on one line, to be copied
    options = re.findall(r"(?m)^  (?:-\w, )?(--[a-z-]+)(?: \S+)*  +\S", whole.out)
    assert {*options} - {"--help"} <= set(re.findall(r"--[a-z][\w-]+", summary.out))


@each(
    ("name", "width"),
    [*product(EXAMPLES, ["60"]), ("context", "80"), ("context", "140"), ("forget", "120")],
)
def test_help_fits_the_terminal(cli, name, width):
    lines = cli(name, "--help", env={"COLUMNS": width}).out.splitlines()
    assert max(map(len, lines)) < int(width)
    assert not [line for line in lines if "<=x" in line or "x>=" in line or "<str>" in line]
    assert not [line for line in lines if re.search(r"\w-$", line)]  # no option is divided


def test_without_a_command_the_program_prints_the_summary(cli):
    assert cli().out == cli("-h").out
    assert len(cli("-h", env={"COLUMNS": "80"}).out.splitlines()) <= 24
    assert all(re.search(rf" {name}\b", cli().out) for name in EXAMPLES)


def test_a_dumb_terminal_gets_plain_text(filled_cli):
    assert "\x1b" not in filled_cli.on_terminal("view", env={"TERM": "dumb"}).out
