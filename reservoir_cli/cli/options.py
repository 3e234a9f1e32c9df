"""Declare options, complete their values, and read and check what the user types.

A panel is a section whose options are rare. Completion offers nothing on errors, and waits for no
locks.
"""

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Annotated, Any

import typer

from reservoir_cli.cli import console
from reservoir_cli.cli.global_options import Globals, globals_of
from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.messages import LARGEST_ID, Role, StoredMessage, clean_text, cut
from reservoir_cli.settings import config, paths
from reservoir_cli.settings.config import Config
from reservoir_cli.settings.read_settings import unknown_variables
from reservoir_cli.settings.store_locations import is_on_a_server
from reservoir_cli.util.progress import counted
from reservoir_cli.util.read_files import LARGEST, decode, read_stream
from reservoir_cli.util.unicode_text import plain_digits, plain_number

#: A callback of Typer: it maps the command line so far to possible values.
Completer = Callable[[typer.Context], Iterable[str]]


def flag(name: str, about: str, panel: str | None = None) -> Any:
    """Return an option without a value; ``--x/--no-x`` declares two."""
    return typer.Option(name, help=about, rich_help_panel=panel)


def option(
    metavar: str,
    about: str,
    *names: str,
    panel: str | None = None,
    choices: Sequence[str] = (),
    complete: Completer | None = None,
    **checks: Any,
) -> Any:
    """Return an option, named like its parameter without names; ``choices`` are completed.

    :param checks: ``min``, ``max``, ``callback`` or ``parser``.
    """
    complete = complete_among(*choices) if choices else complete
    return typer.Option(
        *names,
        metavar=metavar,
        help=about,
        rich_help_panel=panel,
        autocompletion=complete,
        **checks,
    )


def argument(
    metavar: str,
    about: str,
    *,
    choices: Sequence[str] = (),
    complete: Completer | None = None,
    **checks: Any,
) -> Any:
    """Return a positional argument, with the values and checks of :func:`option`."""
    complete = complete_among(*choices) if choices else complete
    return typer.Argument(metavar=metavar, help=about, autocompletion=complete, **checks)


def name_option(
    about: str,
    *names: str,
    metavar: str = "NAME",
    complete: Completer | None = None,
    panel: str | None = None,
) -> Any:
    """Return an option that takes a name or an id, which must not be empty."""
    return option(
        metavar, about, *names, panel=panel, complete=complete, callback=_check_typed_name
    )


def _check_typed_name(param: typer.CallbackParam, value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise UsageError(f"{param.opts[-1]} cannot be empty", hint="leave the option out")
    return clean_text(value) if value else None


def tokens_option(about: str, *names: str, least: int | None = 0, panel: str | None = None) -> Any:
    """Return an option for a number of tokens, such as 150,000; ``least=None`` allows any."""

    def parse(value: str | int) -> int:
        try:
            tokens = int(plain_number(str(value)))
        except ValueError:
            # Worded like Typer's own errors, which mistyped_commands rewords.
            raise typer.BadParameter(f"{value!r} is not a valid int.") from None
        if least is not None and tokens < least:
            raise typer.BadParameter(f"{tokens} is not in the range x>={least}.")
        return tokens

    return typer.Option(*names, metavar="N", help=about, parser=parse, rich_help_panel=panel)


def complete_among(*values: str) -> Completer:
    """Return a completer for a fixed set of values."""

    def complete(ctx: typer.Context) -> list[str]:
        return list(values)

    return complete


def complete_configured(names: Callable[[Config], Iterable[str]]) -> Completer:
    """Return a completer for names in the settings."""

    def complete(ctx: typer.Context) -> list[str]:
        try:
            return list(names(config.load(_root_option(ctx, "config_file"))))
        except ReservoirError:
            return []

    return complete


def complete_stored(kind: str) -> Completer:
    """Return a completer for a kind of names that :mod:`.completion_from_store` reads."""

    def complete(ctx: typer.Context) -> list[str]:
        from reservoir_cli.cli import completion_from_store

        locations = _root_option(ctx, "db"), _root_option(ctx, "config_file")
        return completion_from_store.read(kind, ctx.params, *locations)

    return complete


complete_partitions = complete_stored("partition")


def _root_option(ctx: typer.Context, name: str) -> Any:
    """Return a global option; during completion the callback that stores them has not run."""
    return ctx.find_root().params.get(name)


FILTERS = "Filters"  # the section of the options that select messages; ``-h`` has only their names
#: The section of the options for a message that is typed or piped in.
MESSAGE = "A message from stdin"
OUTPUT = "Output"  # the section of the options that choose what is printed, and how


def _partition(about: str) -> Any:
    return name_option(f"Workspace{about}.", "-p", "--partition", complete=complete_partitions)


def _instance(about: str) -> Any:
    complete = complete_stored("instance")
    return name_option(f"Channel in it{about}.", "-i", "--instance", complete=complete)


def model_option(about: str) -> Any:
    """Return the option for a known model."""
    names = complete_configured(lambda config: [model.name for model in config.known_models()])
    return name_option(about, complete=names)


def conversation_option(about: str, *names: str, panel: str | None = None) -> Any:
    """Return the option for a stored conversation."""
    return option("ID", about, *names, panel=panel, complete=complete_stored("conversation"))


ROLES = [role.value for role in Role]  #: What completes a role.

Partition = Annotated[str | None, _partition(' (default: the setting "partition")')]
#: The partition of a report; without it the report covers all of them.
OnlyPartition = Annotated[str | None, _partition(", such as a project (default: all)")]
OnePartition = Annotated[str, _partition(", such as a project")]
Instance = Annotated[str | None, _instance(" (default: the one named like it)")]
#: The instance of a read or of a context.
ReadInstance = Annotated[str | None, _instance(", such as a tool (default: all)")]
EveryInstance = Annotated[bool, flag("--all-instances", "Include all instances of the partition.")]
AllPartitions = Annotated[bool, flag("--all-partitions", "Include all partitions.")]
Ids = Annotated[list[str] | None, option("N", "The message with this number; repeatable.", "--id")]
TraceId = Annotated[
    str | None,
    name_option("Id that a question and its replies share.", metavar="ID", panel=MESSAGE),
]
Timestamps = Annotated[
    bool, flag("--timestamps", "Prefix each message with its time and trace id.", OUTPUT)
]
OneLine = Annotated[
    bool, flag("--oneline", "Print one message per line; line breaks become \\n.", OUTPUT)
]
Reserve = Annotated[int | None, tokens_option("Tokens reserved for the answer.", "--reserve")]
Model = Annotated[str | None, model_option("Model whose settings apply; `models` lists them.")]
NoEmbed = Annotated[bool, flag("--no-embed", "Store only; `embed` catches up later.")]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")]
Json = Annotated[bool, flag("--json", "Print one JSON document.")]
JsonLines = Annotated[bool, flag("--jsonl", "Print one JSON object per line.", OUTPUT)]

#: Variables that a program started outside this shell may not have.
_VARIABLES = ("RESERVOIR_HOME", "RESERVOIR_CONFIG", "RESERVOIR_DB")
_SHOWN = 100  # characters of a message's one-line preview


def load_config(ctx: typer.Context) -> Config:
    """Read the settings of this run, and print their warnings."""
    loaded = config.load(globals_of(ctx).config)
    for warning in loaded.warnings:
        console.warn(warning)
    return loaded


def wants_json(ctx: typer.Context, as_json: bool) -> bool:
    """Return whether ``--json`` was given after an action, or before it."""
    return as_json or bool(ctx.parent and ctx.parent.params.get("as_json"))


def warn_of_unknown_variables() -> None:
    """Print warnings about misspelt variables, for a command that reads no settings."""
    for warning in unknown_variables():
        console.warn(warning)


def warn_of_variables(flags: Globals, starter: str, command: str) -> None:
    """Warn if ``starter`` may use other files than this shell, which sets variables."""
    names = [name for name in _VARIABLES if os.environ.get(name)]
    missing = []
    if flags.config is None and paths.config_file().is_file():
        missing += ["--config", str(paths.config_file())]
    if flags.db is None:
        location = paths.store_location()
        missing += ["--db", "URL" if is_on_a_server(location) else location]
    if names and missing:
        console.warn(
            f"{' and '.join(names)} may not be set where {starter} starts reservoir; "
            f"to include the paths: reservoir {shlex.join(missing)} {command}"
        )


def is_number(typed: str) -> bool:
    """Return whether a text is a number, with or without ``#``."""
    digits = _digits_of(typed)
    return digits.isascii() and digits.isdigit()


def _digits_of(typed: str) -> str:
    return plain_digits(typed).strip().removeprefix("#")


def message_number(typed: str, name: str = "--id") -> int:
    """Parse a message number, with or without ``#``; ``name`` is for the UsageError."""
    digits = _digits_of(typed)
    if not is_number(typed):
        raise UsageError(f"{name}: {typed!r} is not a message number", hint="use 12 or '#12'")
    if not 1 <= int(digits[:20]) <= LARGEST_ID:
        problem = f"{name}: {typed} is not between 1 and {LARGEST_ID}"
        raise UsageError(problem, hint="use 12 or '#12'")
    return int(digits)


def question_of(words: Sequence[str] | None, command: str, others: Sequence[str] = ()) -> str:
    """Return the question that was typed, or that on stdin, which only one argument may use."""
    if not words and can_ask():
        raise UsageError("no question", hint=f'reservoir {command} "…", or pipe it in')
    words = words or ["-"]
    check_stdin_once([" ".join(words), *others])
    return text_or_stdin(" ".join(words), "question")


def first_words(message: StoredMessage) -> str:
    """Return a one-line preview of a message: its number, role and first words."""
    line = f"#{message.id} {console.message_line(message, False, True)}"
    return line if len(line) <= _SHOWN else f"{cut(line, _SHOWN - 1)}…"


def quote(verb: str, *names: str) -> str:
    """Return a verb and names as one types them in a shell, with ``--`` if a name needs it."""
    separator = ["--"] if any(name.startswith("-") for name in names) else []
    return shlex.join([verb, *separator, *names])


def can_ask() -> bool:
    """Return whether stdin is a terminal, so that the user can be asked."""
    return sys.stdin is not None and sys.stdin.isatty()


def require_answer(question: str, yes: bool) -> None:
    """Raise UsageError if the question cannot be asked, and ``--yes`` does not answer it."""
    if not yes and not can_ask():
        raise UsageError(f"cannot ask without a terminal: {question}", hint="add --yes")


def confirm(question: str, yes: bool) -> None:
    """Ask for confirmation unless ``--yes`` was given; exit with 1 if the answer is no."""
    require_answer(question, yes)
    if not yes and not console.ask(question):
        console.note("nothing was changed")
        raise typer.Exit(1)


def pronoun(count: int) -> str:
    """Return the pronoun for a number of messages."""
    return "it" if count == 1 else "them"


def note_count(note: str, count: int) -> None:
    """Note what happened to a number of messages, unless it is 0."""
    if count:
        console.note(f"{note}: {counted(count, 'message')}")


def describe_marked(conversations: Sized) -> str:
    """Describe conversations that were left out because the user marked them."""
    return f"marked DO NOT INDEX, and not imported: {counted(len(conversations), 'conversation')}"


def check_one_form(**flags: bool) -> None:
    """Raise UsageError if several options that choose the form of the output are set."""
    names = [f"--{name}" for name, value in flags.items() if value]
    if len(names) > 1:
        raise UsageError(
            f"choose one of {' and '.join(names)}", hint=f"leave {' or '.join(names[1:])} out"
        )


def text_or_stdin(text: str, what: str = "text") -> str:
    """Return the text, cleaned; for ``-``, the text on stdin, named ``what`` on a terminal."""
    if text != "-":
        return clean_text(text)
    return decode(read_stdin(what), "stdin")[0].strip()


def check_stdin_once(arguments: Sequence[str]) -> None:
    """Raise UsageError if more than one argument is ``-``."""
    if arguments.count("-") > 1:
        raise UsageError("stdin can be read only once", hint="use - only once")


def read_stdin(what: str, most: int = LARGEST) -> bytes:
    """Read all of stdin, or raise ReservoirError if it is too large; a closed one is empty."""
    if sys.stdin is None:
        return b""
    if can_ask():
        keys = "Ctrl-Z and Enter" if os.name == "nt" else "Ctrl-D"
        console.note(f"type the {what}, then end it with {keys}")
    try:
        return read_stream(sys.stdin.buffer, most)
    except OSError as error:
        raise ReservoirError(
            f"cannot read stdin: {error.strerror}",
            hint=f"pipe in a text or a file of at most {most >> 20} MB",
        ) from None
