"""Light commands import nothing heavy; help and README list every command."""

import re
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from each import each

from reservoir_cli.cli.command_list import EXAMPLES, GROUPS, SUMMARIES, Commands

README = Path(__file__).parents[2] / "README.md"
COMMANDS = sorted(EXAMPLES)
HEAVY = {
    *("numpy", "sqlite_utils", "torch", "sentence_transformers", "transformers", "tokenizers"),
    *("huggingface_hub", "onnxruntime", "tomlkit", "tomli_w", "platformdirs", "tiktoken"),
    "simsimd",
}
LIGHT = [
    (["view"], ("rich",)),
    (["view", "--json"], ("rich",)),
    (["config", "--get", "partition"], ("rich", "sqlite3")),
    (["config", "--list"], ("rich", "sqlite3")),
    (["ingest", "--no-embed"], ("rich",)),
    (["stats"], ("rich",)),
    (["export"], ("rich",)),
    (["search", "--keyword", '"up to" date*'], ("rich",)),
    (["search", "--keyword", "store", "--json", "--link", "--role", "user"], ("rich",)),
    (["partitions"], ("rich",)),
    (["conversations"], ("rich",)),
    (["models"], ("rich", "sqlite3")),
    (["budget", "--max", "150000"], ("rich", "sqlite3")),
    (["trim", "-", "--iteration", "2"], ("rich", "sqlite3")),
    (["connect"], ("rich", "sqlite3")),
    (["--version"], ("rich",)),
]


@pytest.mark.parametrize(("arguments", "others"), LIGHT, ids=lambda value: " ".join(value))
def test_a_light_command_imports_nothing_heavy(cli, arguments, others):
    cli.say("the store is there and up to date")
    result = cli(
        *arguments,
        stdin="[]" if "trim" in arguments else "hello",
        command=(sys.executable, "-X", "importtime", "-m", "reservoir_cli"),
    )
    imported = {
        line.rsplit("|", 1)[1].strip().split(".")[0]
        for line in result.err.splitlines()
        if line.startswith("import time:")
    }
    assert "typer" in imported
    assert "reservoir_cli" in imported
    too_heavy = imported & HEAVY.union(others)
    assert not too_heavy


@pytest.mark.model
def test_a_keyword_search_of_embedded_messages_loads_neither_numpy_nor_the_model(samples):
    command = (sys.executable, "-X", "importtime", "-m", "reservoir_cli")
    result = samples("search", "--keyword", "redis queue", "-p", "work", command=command)
    assert "redis" in result.out.lower()
    assert "reservoir_cli.retrieval.search" in result.err
    assert not re.search(
        r"\| +(numpy|onnxruntime|tokenizers|torch|transformers)$", result.err, re.M
    )


TORCH = ("torch", "sentence_transformers", "transformers", "huggingface_hub", "onnx", "onnxscript")


@pytest.mark.model
@pytest.mark.parametrize(
    "arguments",
    [
        ["context", "why did we drop redis?", "-p", "work"],
        ["recall", "why did we drop redis?", "-p", "work"],
        ["search", "--semantic", "redis", "-p", "work"],
        ["search", "redis", "-p", "work"],
        ["ingest"],
    ],
    ids=["context", "recall", "search by meaning", "search", "ingest"],
)
def test_a_compiled_model_needs_no_torch(samples, arguments):
    command = (sys.executable, "-X", "importtime", "-m", "reservoir_cli")
    result = samples(*arguments, stdin="hello", command=command)
    imported = set(re.findall(r"^import time:.*\| +([\w.]+)$", result.err, re.M))
    assert {"onnxruntime", "tokenizers"} <= imported
    heavy = {*TORCH, *(["numpy.ma"] if int(version("numpy").partition(".")[0]) >= 2 else [])}
    assert not imported & heavy


def test_the_commands_of_this_version_are_registered():
    assert set(COMMANDS) >= {"ingest", "view", "search", "context", "config", "embed"}


@pytest.mark.parametrize(
    "command", [["view"], ["search", "--keyword", "hello"], ["context", "hi?"]]
)
@pytest.mark.parametrize("scope", [[], ["-i", "nowhere"]], ids=["alone", "instance"])
def test_options_that_a_note_names_exist(cli, command, scope):
    cli.say("hello", *(["-i", "else"] if scope else ["-p", "work", "-i", "else"]))
    notes = cli(*command, *scope).err
    (suggestions,) = re.findall(r"^note: nothing in \S+; .*\((.*)\)$", notes, re.M)
    known = cli(command[0], "--help").out
    for option in re.findall(r"--?[\w-]+", suggestions):
        assert re.search(rf"(^| |, ){option}\b", known, re.M), option


def test_help_lists_every_command_with_a_sentence(cli):
    shown = cli("--help").out
    for name in COMMANDS:
        assert re.search(rf"^  {name} +\S", shown, re.M)


def test_the_list_of_commands_has_the_summary_of_each_command():
    commands = Commands()
    assert {name: commands[name].get_short_help_str() for name in COMMANDS} == SUMMARIES
    assert sorted(name for names in GROUPS.values() for name in names) == COMMANDS
    assert not any(commands[name].hidden for name in COMMANDS)


@pytest.mark.parametrize("command", [[], ["view"]], ids=["list", "view"])
def test_the_list_of_commands_loads_none_of_them(cli, command):
    program = (sys.executable, "-X", "importtime", "-m", "reservoir_cli")
    result = cli(*command, "--help", command=program)
    # Every command imports the module of common options.
    assert bool(re.search(r"reservoir_cli\.cli\.options$", result.err, re.M)) == bool(command)


@each("name", COMMANDS)
def test_the_readme_knows_every_command(name):
    assert f"reservoir {name}" in README.read_text(encoding="utf-8")


def test_the_readme_names_no_command_that_does_not_exist():
    text = README.read_text(encoding="utf-8")
    named = re.findall(r"(?:^|[|`;(] ?)reservoir ([a-z]+)(?= |$|`)", text, re.M)
    assert named
    assert set(named) <= set(COMMANDS)


def test_nothing_is_written_outside_the_home(cli, tmp_path):
    cli.say("hello")
    cli("config", "--set", "partition=work")
    cli("context", "hello?", "--save", stdin="")
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    allowed = {"reservoir.db", "reservoir.toml", "reservoir.log", "cache"}
    names = {path.name for path in cli.home.iterdir()}
    assert {name.removesuffix("-wal").removesuffix("-shm") for name in names} <= allowed
