"""Command lines: every option of every command, with hostile words in it."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import typer
from hostile_values import paths, words
from hypothesis import strategies as st

from reservoir_cli.cli.app import app
from reservoir_cli.cli.command_list import EXAMPLES

#: Parameters that are paths, which must stay in the folder of the run.
_PATHS = {"files", "file", "out", "target", "config_file", "db"}
#: Options that change the store, or may.
_WRITERS = {"copy", "migrate", "index", "ingest", "embed", "forget", "backup", "doctor", "edit"}
#: Options and commands that run until they are ended.
_ENDLESS = {"watch"}
_SERVERS = {"open", "serve"}
_WRITING = {"--save", "--rename", "--merge", "--delete"}


@dataclass(frozen=True)
class Line:
    """The words of a command line, and its stdin."""

    arguments: tuple[str, ...]
    stdin: bytes

    @property
    def reads(self) -> bool:
        """Return whether the command must not change a message."""
        return not (_WRITERS | _WRITING) & set(self.arguments)


def commands() -> list[str]:
    """Return the commands as typed, such as ``db status``, except those that run a server."""
    group: Any = typer.main.get_command(app)
    subcommands = {name: getattr(group.commands[name], "commands", {}) for name in EXAMPLES}
    return [
        typed
        for name in EXAMPLES
        if name not in _SERVERS
        for typed in [f"{name} {subcommand}" for subcommand in subcommands[name]] or [name]
    ]


@cache
def lines(command: str) -> st.SearchStrategy[Line]:
    """Return a strategy for command lines with any options and any number of arguments."""
    command_object: Any = typer.main.get_command(app)
    for name in command.split():
        command_object = command_object.commands[name]
    parameters = [
        parameter for parameter in command_object.params if parameter.name not in _ENDLESS
    ]
    own_options = st.lists(st.one_of(*map(_typed, parameters)), max_size=4)
    before = st.lists(st.one_of(st.just(("--offline",)), _globals()), max_size=1)
    stdin = st.one_of(
        words.map(lambda text: text.encode("utf-8", "surrogateescape")),
        st.binary(max_size=60),
        st.just(b'[{"role": "user", "content": "x"}, {"role": "tool", "tool_call_id": 5}]'),
    )
    return st.builds(
        lambda first, options, stdin_bytes: Line(
            (*_flat(first), *command.split(), *_flat(options)), stdin_bytes
        ),
        before,
        own_options,
        stdin,
    )


def _flat(parts: list[tuple[str, ...]]) -> list[str]:
    return [word for part in parts for word in part]


def _globals() -> st.SearchStrategy[tuple[str, ...]]:
    return st.tuples(st.sampled_from(["--config", "--db"]), paths)


def _typed(parameter: Any) -> st.SearchStrategy[tuple[str, ...]]:
    """Return a strategy for a parameter as typed."""
    value = paths if parameter.name in _PATHS else words
    if parameter.param_type_name == "argument":
        return value.map(lambda word: (word,))
    names = st.sampled_from([*parameter.opts, *parameter.secondary_opts])
    if getattr(parameter, "is_flag", False):
        return names.map(lambda name: (name,))
    if parameter.nargs == 2:
        return st.tuples(names, value, value)
    return st.tuples(names, value).map(_join_option_to_value)


def _join_option_to_value(pair: tuple[str, str]) -> tuple[str, ...]:
    """Join an option and its value to one word if the value looks like an option."""
    name, value = pair
    if value != "--json":
        return pair
    return (f"{name}={value}" if name.startswith("--") else f"{name}{value}",)
