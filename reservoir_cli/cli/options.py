"""Options that several commands share, and what stands before the command."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reservoir_cli.cli import completion, console, nothing_found
from reservoir_cli.errors import ReservoirError, StoreCorruptError, UsageError
from reservoir_cli.messages import Scope, StoredMessage, clean_text, parse_role
from reservoir_cli.settings.location import is_on_a_server
from reservoir_cli.util.files import LARGEST, read_stream
from reservoir_cli.util.times import parse_time

if TYPE_CHECKING:
    from reservoir_cli.reservoir import Filter, IdField, Reservoir
    from reservoir_cli.settings.config import Config


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


Partition = Annotated[
    str | None,
    typer.Option(
        "-p",
        "--partition",
        metavar="NAME",
        help='A person, a project (default: the setting "partition").',
        autocompletion=completion.partitions,
        callback=_name,
    ),
]
#: The partition of a report, which is about everything without it.
OnlyPartition = Annotated[
    str | None,
    typer.Option(
        "-p",
        "--partition",
        metavar="NAME",
        help="A person, a project (default: everything).",
        autocompletion=completion.partitions,
        callback=_name,
    ),
]
OnePartition = Annotated[
    str,
    typer.Option(
        "-p",
        "--partition",
        metavar="NAME",
        help="A person, a project.",
        autocompletion=completion.partitions,
        callback=_name,
    ),
]
Instance = Annotated[
    str | None,
    typer.Option(
        "-i",
        "--instance",
        metavar="NAME",
        help="A tool, a topic in it (default: the one named like the partition).",
        autocompletion=completion.instances,
        callback=_name,
    ),
]
#: The instance of a read.
ReadInstance = Annotated[
    str | None,
    typer.Option(
        "-i",
        "--instance",
        metavar="NAME",
        help="A tool, a topic in it (default: all of the partition).",
        autocompletion=completion.instances,
        callback=_name,
    ),
]
#: The instance of a context.
ContextInstance = Annotated[
    str | None,
    typer.Option(
        "-i",
        "--instance",
        metavar="NAME",
        help="A tool, a topic in it: take messages of it alone (default: recall from the whole "
        "partition; history of the instance named like it, else of the newest).",
        autocompletion=completion.instances,
        callback=_name,
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
#: What completes a role.
a_role = completion.among("user", "assistant", "system", "tool")
Match = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Only those that hold this text; case is ignored."),
]
Since = Annotated[
    str | None, typer.Option(metavar="T", help="From a time on: 2026-05-09, 7d, yesterday.")
]
Until = Annotated[str | None, typer.Option(metavar="T", help="Up to a time, or an age.")]
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
        autocompletion=completion.models,
    ),
]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
JsonLines = Annotated[bool, typer.Option("--jsonl", help="Print a JSON object a line.")]

#: Seconds that a program which answers others waits while others write.
_PATIENCE = 10.0
#: How many characters of a message are shown in a line.
_SHOWN = 100
#: The greatest number SQLite can hold.
MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Globals:
    """What was given before the command."""

    config: Path | None = None
    db: str | None = None
    offline: bool = False


def globals_of(ctx: typer.Context) -> Globals:
    """Return the global options of this run."""
    found = ctx.find_object(Globals)
    return found if found is not None else Globals()


def load_config(ctx: typer.Context) -> "Config":
    """Read the settings of this run, and warn of what is ignored in them."""
    from reservoir_cli.settings import config

    known = config.load(globals_of(ctx).config)
    for warning in known.warnings:
        console.warn(warning)
    return known


def one_reserve(reserve: int | None, output_reserve: int | None) -> int | None:
    """Return the reserve that was typed, by either name of the option."""
    if reserve is not None and output_reserve is not None:
        console.warn("--output-reserve is ignored: --reserve is given, too")
    return output_reserve if reserve is None else reserve


@contextmanager
def open_reservoir(ctx: typer.Context, *, create: bool = False) -> "Iterator[Reservoir]":
    """Open the store that this run is about, with its settings.

    :param create: make the store when it is not there.
    """
    from reservoir_cli.reservoir import Reservoir

    given = globals_of(ctx)
    if given.db and not create and not is_on_a_server(given.db) and not Path(given.db).exists():
        console.warn(f"there is no store at {given.db}")
    with Reservoir.open(
        given.db,
        config_file=given.config,
        create=create,
        offline=given.offline,
        notify=console.warn,
        progress=console.progress,
    ) as reservoir:
        try:
            yield reservoir
        except _ODD as error:
            _blame_damage(reservoir, error)
            raise
        finally:
            console.progress.stop()


def opener(ctx: typer.Context) -> "Callable[..., Reservoir]":
    """Return what opens the store for a program that answers others, as ``Reservoir.open``."""
    given = globals_of(ctx)

    def open_it(**asked: Any) -> "Reservoir":
        from reservoir_cli.reservoir import Reservoir

        usual = {"config_file": given.config, "offline": given.offline, "patience": _PATIENCE}
        return Reservoir.open(given.db, ready_only=True, **{**usual, **asked})

    return open_it


#: What values that no store holds may end in, wherever they come to.
_ODD = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)


def _blame_damage(reservoir: "Reservoir", error: Exception) -> None:
    """Call an unforeseen error what it is if the store is damaged.

    :raises StoreCorruptError: it is.
    """
    if reservoir.database.is_damaged():
        what = f"the store {reservoir.location} is corrupt"
        raise StoreCorruptError(what, hint=StoreCorruptError.WAY_OUT) from error


def read_scope(
    reservoir: "Reservoir",
    partition: str | None,
    instance: str | None,
    all_instances: bool,
    all_partitions: bool,
    *,
    one_instance: bool = False,
) -> Scope:
    """Return the scope of a read.

    :param one_instance: without ``-i`` take the instance named like the partition.
    :raises UsageError: options that contradict each other.
    """
    if all_partitions and (partition or instance):
        raise UsageError(
            "--all-partitions contradicts -p and -i", hint="leave -p and -i out to read everything"
        )
    if all_instances and instance:
        raise UsageError(
            "--all-instances contradicts -i",
            hint="leave -i out for the whole partition, --all-instances for that instance",
        )
    if all_partitions:
        return Scope(None)
    scope = reservoir.scope(partition, instance)
    if all_instances or (instance is None and not one_instance):
        return Scope(scope.partition)
    return scope


def message_filter(
    *,
    role: str | None = None,
    trace_id: str | None = None,
    conversation_id: str | None = None,
    since: str | None = None,
    until: str | None = None,
    text: str | None = None,
    source: str | None = None,
    project: str | None = None,
    tag: str | None = None,
    pinned: bool = False,
    secrets: bool = False,
) -> "Filter":
    """Which messages are meant, as it was typed.

    :raises UsageError: an unknown role, what is no time, or an empty text.
    """
    from reservoir_cli.reservoir import Filter

    if text is not None and not text.strip():
        raise UsageError("--match needs a text", hint='--match "some words"')
    now = datetime.now(UTC)
    return Filter(
        role=parse_role(role).value if role else None,
        trace_id=trace_id,
        conversation_id=conversation_id,
        since=parse_time(since, now) if since else None,
        until=parse_time(until, now) if until else None,
        text=clean_text(text) if text else None,
        source=clean_text(source) if source else None,
        project=clean_text(project) if project else None,
        tag=tag,
        pinned=pinned,
        secrets=secrets,
    )


#: What a filter is called where it is typed, if that is not its name.
_FILTERS = {"text": "match", "trace_id": "trace-id", "conversation_id": "conversation"}


def why_nothing(reservoir: "Reservoir", scope: Scope, where: "Filter") -> str:
    """Why a read found nothing: the filters that no message passes, or where messages are."""
    if not reservoir.view(scope, 1):
        return nothing_found.sentence(scope, reservoir.lookup.places())
    open_to_all = asdict(type(where)())
    typed = [
        f"--{_FILTERS.get(name, name)}"
        for name, value in asdict(where).items()
        if value != open_to_all[name]
    ]
    return describe_no_match("message", scope, typed, where) if typed else ""


def describe_no_match(noun: str, scope: Scope, typed: Sequence[str], where: "Filter") -> str:
    """Say that nothing in a scope passes the filters that were typed."""
    does = f"has the tag {where.tag}" if typed == ["--tag"] else f"passes {' and '.join(typed)}"
    return f"no {noun} in {nothing_found.place(scope)} {does}"


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


def whole_id(
    reservoir: "Reservoir", field: "IdField", typed: str | None, scope: Scope
) -> str | None:
    """Complete the beginning of a trace or conversation id; what is none is returned as typed.

    :raises UsageError: several ids of the scope begin so, and none is exactly this.
    """
    if typed is None:
        return None
    ids = reservoir.lookup.ids_starting_with(field, clean_text(typed), scope)
    if typed in ids or not ids:
        return typed
    if len(ids) > 1:
        shown = ", ".join(ids[:3]) + (", …" if len(ids) > 3 else "")
        raise UsageError(
            f"--{_FILTERS[field]} {typed} is not unique: {shown}", hint="type more of the id"
        )
    return ids[0]


def joined(words: Sequence[str]) -> str:
    """Join the words of a question that was typed without quotes; ``-`` alone is stdin."""
    return text_or_stdin(" ".join(words))


def first_words(message: StoredMessage) -> str:
    """Return a message in one line: its number, its role, and how it begins."""
    line = f"#{message.id} {console.message_line(message, False, True)}"
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


def no_message(reservoir: "Reservoir", number: int, scope: Scope) -> ReservoirError:
    """Return the error for a message that is not where it was looked for; say where it is."""
    hint = "on a terminal, reservoir view and reservoir search show the numbers"
    for each in reservoir.messages([number]):
        hint = f"it is in partition {each.partition}: -p {each.partition}"
    return ReservoirError(f"no message {number} in {nothing_found.place(scope)}", hint=hint)


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
    from reservoir_cli.transfer.importers import decode

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
        raise ReservoirError(f"cannot read stdin: {error.strerror}") from None


def say_elsewhere(
    reservoir: "Reservoir", partition: str, instance: str | None, where: "Filter"
) -> None:
    """Say why a context found no message: its filters, or where messages are."""
    from reservoir_cli.reservoir import Filter

    scope = Scope(partition, instance)
    if not reservoir.view(scope, 1):
        nothing_found.tell(
            scope, reservoir.lookup.places(), in_partition="--recall-scope partition"
        )
    elif where != Filter() and not reservoir.view(scope, 1, where):
        console.note(why_nothing(reservoir, scope, where))
