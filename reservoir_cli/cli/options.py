"""Options that several commands share, and what is typed or answered on a terminal."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from reservoir_cli.cli import completion_values, console
from reservoir_cli.cli.global_options import globals_of
from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.messages import StoredMessage, clean_text
from reservoir_cli.settings import config
from reservoir_cli.settings.config import Config
from reservoir_cli.util.read_files import LARGEST, decode, read_stream


def _name(value: str | None) -> str | None:
    """Check a name that was typed, and return it.

    :raises UsageError: it is empty.
    """
    if value is not None and not value.strip():
        raise UsageError(
            "a partition, instance, trace or tag needs a name, not an empty text",
            hint="leave the option out",
        )
    return clean_text(value) if value else None


def _partition(about: str) -> Any:
    return typer.Option(
        "-p",
        "--partition",
        metavar="NAME",
        help=f"A person, a project{about}.",
        autocompletion=completion_values.partitions,
        callback=_name,
    )


def _instance(about: str) -> Any:
    return typer.Option(
        "-i",
        "--instance",
        metavar="NAME",
        help=f"A tool, a topic in it{about}.",
        autocompletion=completion_values.instances,
        callback=_name,
    )


Partition = Annotated[str | None, _partition(' (default: the setting "partition")')]
#: The partition of a report, which is about everything without it.
OnlyPartition = Annotated[str | None, _partition(" (default: everything)")]
OnePartition = Annotated[str, _partition("")]
Instance = Annotated[str | None, _instance(" (default: the one named like the partition)")]
#: The instance of a read.
ReadInstance = Annotated[str | None, _instance(" (default: all of the partition)")]
#: The instance of a context.
ContextInstance = Annotated[
    str | None,
    _instance(
        ": take messages of it alone (default: recall from the whole partition; history of the "
        "instance named like it, else of the newest)"
    ),
]
#: Every read does this without being asked.
AllInstances = Annotated[bool, typer.Option("--all-instances", hidden=True)]
EveryInstance = Annotated[
    bool, typer.Option("--all-instances", help="Take all instances of the partition.")
]
AllPartitions = Annotated[bool, typer.Option("--all-partitions", help="Take everything there is.")]
TraceId = Annotated[
    str | None,
    typer.Option(
        "--trace-id", metavar="ID", help="What a question and its replies share.", callback=_name
    ),
]
Conversation = Annotated[str | None, typer.Option(metavar="ID", help="Only this conversation.")]
#: What completes a role.
a_role = completion_values.among("user", "assistant", "system", "tool")
Match = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Only those that hold this text; case is ignored."),
]
Since = Annotated[
    str | None,
    typer.Option(metavar="T", help="From a time on: 2026-05-09 (with that day), 7d, yesterday."),
]
Until = Annotated[
    str | None,
    typer.Option(
        metavar="T", help="Up to a time, or an age; 2026-05-09 means its start: without that day."
    ),
]
RoleFilter = Annotated[
    str | None,
    typer.Option(
        "--role",
        metavar="ROLE",
        help="Only user, assistant, system or tool.",
        autocompletion=a_role,
    ),
]
Source = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Only what came from this tool, such as chatgpt or cli."),
]
Project = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Only conversations held in a folder of this name."),
]
Tag = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Only messages with this tag.", callback=_name),
]
ConversationTag = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Only conversations that have this tag.", callback=_name),
]
Timestamps = Annotated[bool, typer.Option("--timestamps", help="Put time and trace id in front.")]
OneLine = Annotated[
    bool, typer.Option("--oneline", help="One message a line; line breaks become \\n.")
]
Reserve = Annotated[
    int | None,
    typer.Option("--reserve", metavar="N", min=0, help="Tokens kept free for the answer."),
]
#: The older name of --reserve.
OutputReserve = Annotated[
    int | None, typer.Option("--output-reserve", metavar="N", min=0, hidden=True)
]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Model to plan for; `models` lists them.",
        autocompletion=completion_values.models,
    ),
]
NoEmbed = Annotated[bool, typer.Option("--no-embed", help="Store only; `embed` catches up later.")]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
JsonLines = Annotated[bool, typer.Option("--jsonl", help="Print a JSON object a line.")]

#: How many characters of a message are shown in a line.
_SHOWN = 100
#: The greatest number SQLite can hold.
MOST = 2**63 - 1


def load_config(ctx: typer.Context) -> Config:
    """Read the settings of this run, and warn of what is ignored in them."""
    known = config.load(globals_of(ctx).config)
    for warning in known.warnings:
        console.warn(warning)
    return known


def one_reserve(reserve: int | None, output_reserve: int | None) -> int | None:
    """Return the reserve that was typed, by either name of the option."""
    if reserve is not None and output_reserve is not None:
        console.warn("--output-reserve is ignored: --reserve is given, too")
    return output_reserve if reserve is None else reserve


def is_number(typed: str) -> bool:
    """Return whether a text is a number, with or without ``#``."""
    digits = typed.strip().removeprefix("#")
    return digits.isascii() and digits.isdigit()


def message_number(typed: str, name: str = "--id") -> int:
    """Read the number of a message, with or without ``#``.

    :param name: of the option or argument.
    :raises UsageError: it is no number that a message can have.
    """
    digits = typed.strip().removeprefix("#")
    if not is_number(typed):
        raise UsageError(f"{name}: {typed!r} is not a message number", hint="use 12 or '#12'")
    if not 1 <= int(digits[:20]) <= MOST:
        raise UsageError(f"{name}: {typed} is not between 1 and {MOST}", hint="use 12 or '#12'")
    return int(digits)


def joined(words: Sequence[str]) -> str:
    """Join the words of a question that was typed without quotes; ``-`` alone is stdin."""
    return text_or_stdin(" ".join(words))


def first_words(message: StoredMessage) -> str:
    """Return a message in one line: its number, its role, and how it begins."""
    line = f"#{message.id} {console.message_line(message, False, True)}"
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


def can_ask() -> bool:
    """Whether somebody sits at a terminal, to answer."""
    return sys.stdin is not None and sys.stdin.isatty()


def require_answer(question: str, yes: bool) -> None:
    """Refuse to go on where a question cannot be asked.

    :raises UsageError: stdin is no terminal, and ``--yes`` was not given.
    """
    if not yes and not can_ask():
        raise UsageError(f"there is no terminal to ask at: {question}", hint="add --yes")


def confirm(question: str, yes: bool) -> None:
    """Ask a person, unless they said yes beforehand; without a yes the run ends with 1."""
    require_answer(question, yes)
    if not yes and not console.ask(question):
        console.note("nothing was changed")
        raise typer.Exit(1)


def counted(count: int, noun: str) -> str:
    """Count something in words, such as ``1 message`` or ``1,200 messages``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def one_form(**flags: bool) -> None:
    """Refuse two options that each choose what is printed.

    :raises UsageError: more than one is set.
    """
    given = [f"--{name}" for name, value in flags.items() if value]
    if len(given) > 1:
        raise UsageError(
            f"choose one of {' and '.join(given)}", hint=f"leave {' or '.join(given[1:])} out"
        )


def text_or_stdin(text: str) -> str:
    """Return what was typed; for ``-``, the text on stdin."""
    if text != "-":
        return clean_text(text)
    return decode(read_stdin(), "stdin")[0].strip()


def read_stdin(most: int = LARGEST) -> bytes:
    """All of stdin; nothing when it is closed.

    :param most: how many bytes it may have.
    :raises ReservoirError: it has more, or cannot be read.
    """
    if sys.stdin is None:
        return b""
    try:
        return read_stream(sys.stdin.buffer, most)
    except OSError as error:
        raise ReservoirError(
            f"cannot read stdin: {error.strerror}",
            hint=f"pipe in a text or a file of at most {most >> 20} MB",
        ) from None
