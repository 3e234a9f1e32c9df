"""Commands and options in notes and hints can be pasted into a shell, whatever the names are."""

import re
import shlex

from each import each

from reservoir_cli.cli.nothing_found import describe_elsewhere
from reservoir_cli.messages import Scope

PLACES = [("my notes", "big one", 3)]


def options_in(text: str) -> list[str]:
    """Split the options that a note offers in parentheses as a shell does."""
    (offered,) = re.findall(r"\(([^()]*)\)$", text)
    return shlex.split(offered.split(", or ")[0])


@each(
    ("scope", "beyond", "options"),
    [
        (Scope("my notes", "else"), "", ["-i", "big one"]),
        (Scope("elsewhere", None), "", ["-p", "my notes"]),
        (Scope("elsewhere", "x"), "--all-partitions", ["-p", "my notes", "-i", "big one"]),
    ],
)
def test_a_note_quotes_names_with_spaces(scope, beyond, options):
    assert options_in(describe_elsewhere(scope, PLACES, beyond=beyond)) == options


def test_a_missing_message_is_found_by_the_option_of_the_hint(cli):
    number = cli.say("hello", "-p", "my notes")
    hint = cli("view", "--id", str(number), code=1).err.splitlines()[-1]
    option = shlex.split(hint.rpartition(": ")[2])
    assert cli("view", "--id", str(number), *option).out == "user: hello\n"


def test_the_note_after_a_merge_sets_the_default_partition(cli):
    cli.say("hello")
    notes = cli("partitions", "rename", "default", "my notes", "--yes").err
    command = shlex.split(notes.rpartition("partition: reservoir ")[2].splitlines()[0])
    assert cli(*command).code == 0
    assert cli("view").out == "user: hello\n"


@each(
    ("typed", "hint"),
    [
        (["db", "copy"], "reservoir db copy SOURCE TARGET"),
        (["db", "copy", "a.db"], "reservoir db copy a.db TARGET"),
        (["tag"], "reservoir tag ID NAME..."),
        (["trim", "a.json"], "reservoir trim a.json --iteration K"),
        (["view", ""], "reservoir view --help"),
        (["context", "why", "--system", "@-"], "- alone reads stdin"),
    ],
)
def test_the_hint_of_an_incomplete_or_wrong_command_says_what_to_type(cli, typed, hint):
    assert cli(*typed, code=2).err.splitlines()[-1] == f"hint: {hint}"


@each(
    ("typed", "hint"),
    [
        ("doctor repair", "doctor --repair"),
        ("serve stop", "serve --stop"),
        ("embed rebuild", "embed --rebuild"),
        ("stats json", "stats --json"),
        ("stats work", "stats -p work"),
    ],
)
def test_an_argument_that_names_an_option_suggests_it(cli, typed, hint):
    error = f"error: too many arguments: {typed.split()[1]}"
    assert cli(*typed.split(), code=2).err.splitlines() == [error, f"hint: reservoir {hint}"]


@each(
    ("typed", "client"),
    [("claude-code", "claude"), ("Gemini-CLI", "gemini"), ("claude-dektop", "claude-desktop")],
)
def test_the_title_of_a_client_suggests_its_name(cli, typed, client):
    assert f"hint: did you mean {client}? " in cli("connect", typed, "--dry-run", code=2).err


@each(
    ("typed", "hint"),
    [
        ("context why \u2014budget 60", "context why --budget 60"),
        ("search redis \u2212n 3", "search redis -n 3"),
        ("view \u2013-json", "view --json"),
        ("view -\u2013json \u2014limit", "view --json '\u2014limit'"),
        ("export \u2010\u2010format=json", "export --format=json"),
        ("db copy a b \u2014dry-run", "db copy a b --dry-run"),
        ("\u2014offline view", "--offline view"),
    ],
)
def test_an_option_with_a_typographic_dash_is_refused(cli, typed, hint):
    first, last = cli(*typed.split(), code=2).err.splitlines()
    assert first.endswith(" begins with a dash that is not a hyphen")
    assert last == f"hint: reservoir {hint}"


@each(
    "question",
    [
        "why \u2014 in short \u2014 redis",
        "\u2014redis",
        "-- \u2014budget",
        "is \u2014budget/x known",
    ],
)
def test_a_question_may_contain_dashes(cli, question):
    words = question.split()
    asked = cli("context", *words).out
    assert asked.endswith(f"{question.removeprefix('-- ')}\n")


def test_a_tilde_that_no_shell_expanded_is_the_home_folder(cli):
    cli.say("hello")
    (cli.home / "settings.toml").write_text('partition = "work"\n', encoding="utf-8")
    assert cli("--config", "~/settings.toml", "config", "get", "partition").out == "work\n"
    cli("export", "--output=~/out.jsonl")
    assert "already there 1" in cli("ingest", "--no-embed", "~/out.jsonl").err
    cli("backup", "~/copy.db")
    assert cli("--db", "~/copy.db", "view").err == ""
    cli("doctor", "--salvage", "~/salvaged.db")
    assert (cli.home / "salvaged.db").exists()
    (cli.home / "list.json").write_text("[]", encoding="utf-8")
    assert cli("trim", "~/list.json", "--iteration", "1").out == "[]\n"
    (cli.home / "system.txt").write_text("Be brief.", encoding="utf-8")
    assert "Be brief." in cli("context", "hello", "--system", "@~/system.txt").out
    assert not (cli.home.parent / "~").exists()
