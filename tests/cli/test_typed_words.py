"""A short option may have its value after an equals sign, as a long one."""

import re

import typer
from each import each

from reservoir_cli.cli.app import app
from reservoir_cli.cli.help import split_short_options

COMMANDS = typer.main.get_command(app).commands


def parameters(name):
    found = COMMANDS[name]
    inner = getattr(found, "commands", {}).values()
    return [parameter for command in (found, *inner) for parameter in command.params]


@each("name", COMMANDS)
def test_every_short_option_with_a_value_takes_it_after_an_equals_sign(name):
    options = [option for option in parameters(name) if option.param_type_name == "option"]
    short = [
        letter
        for option in options
        if not option.is_flag
        for letter in option.opts
        if re.fullmatch("-[^-]", letter)
    ]
    for letter in short:
        words = split_short_options(options, [f"{letter}=a=b", "x"], interspersed=True)
        assert list(words) == [letter, "a=b", "x"], letter


@each(
    ("words", "expected"),
    [
        (["-p=work"], ["-p", "work"]),
        (["-p="], ["-p", ""]),
        (["-p==work"], ["-p", "=work"]),
        (["-p", "=work"], ["-p", "=work"]),
        (["-pwork=1"], ["-pwork=1"]),
        (["-yp=work"], ["-yp", "work"]),
        (["-yp", "-p=x"], ["-yp", "-p=x"]),
        (["-y=work"], ["-y=work"]),
        (["-z=1", "-p=a"], ["-z=1", "-p", "a"]),
        (["--match", "-p=work"], ["--match", "-p=work"]),
        (["--match=-p=work", "-p=a"], ["--match=-p=work", "-p", "a"]),
        (["word", "-p=a", "--", "-p=a"], ["word", "-p", "a", "--", "-p=a"]),
        (["-", "-p=a"], ["-", "-p", "a"]),
    ],
)
def test_only_the_sign_behind_a_short_option_is_left_out(words, expected):
    assert list(split_short_options(parameters("forget"), words, interspersed=True)) == expected


def test_the_words_of_a_subcommand_are_left_to_it():
    words = ["--config", "-p=x", "db", "-p=x"]
    options = typer.main.get_command(app).params
    assert list(split_short_options(options, words, interspersed=False)) == words


def test_a_partition_is_named_without_the_sign(cli):
    cli("ingest", "-p=work", "-i=desk", stdin="buy flour")
    shown = cli("view", "-p=work", "--json").document["messages"]
    assert [(row["partition"], row["instance"]) for row in shown] == [("work", "desk")]
    assert cli("search", "--keyword", "flour", "-n=1", "-p=work").out
    assert cli("view", "-p=", code=2).err.startswith("error: ")
