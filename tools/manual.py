"""Write the man page, ``docs/reservoir.1``, from the help texts.

Run ``python tools/manual.py`` after a help text has changed; a test holds the page to them.
"""

import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

from reservoir_cli import __version__
from reservoir_cli.cli.app import app

PAGE = Path(__file__).parents[1] / "docs" / "reservoir.1"
#: Exit codes and what they say.
EXIT_CODES = {
    0: "Done. A read that finds nothing is done, too.",
    1: "The operation failed, or doctor found a fault.",
    2: "Wrong usage: an unknown option, name or value.",
    3: "The store cannot be opened, read or written: damaged, newer, out of reach, or not allowed.",
    4: "Others were writing to the store for too long.",
    5: "The model or token counter is not available.",
    6: "context --strict, and something was left out or cut; the context is printed.",
    130: "Interrupted.",
    143: "Terminated.",
}
ENVIRONMENT = {
    "RESERVOIR_HOME": "One folder for settings, store, cache and log.",
    "RESERVOIR_CONFIG": "The settings file.",
    "RESERVOIR_DB": "The store.",
    "RESERVOIR_<SETTING>": "A setting, such as RESERVOIR_PARTITION=work, before that of the file.",
    "RESERVOIR_DEBUG": "With 1, errors come with a traceback.",
    "NO_COLOR": "Whatever it is set to, output has no colour.",
}
FILES = {
    "~/.config/reservoir/reservoir.toml": "Settings. reservoir config --path says where they are.",
    "~/.local/share/reservoir/reservoir.db": "The store. reservoir doctor says where it is.",
    "~/.local/state/reservoir/log/reservoir.log": "The log: a line for each context that "
    "was truncated. reservoir doctor says where it is.",
}
#: What is said for the program as a whole.
DESCRIPTION = """\
Reservoir keeps conversations with language models in one file, finds the few messages that answer
a question, however far back they lie, and prints a message list that fits a token budget.

Messages live in a partition (a person, a project) and in it in an instance (a tool, a topic).
Nothing crosses a partition unless asked to.

Data goes to standard output, everything else to standard error. A time without a zone is local;
printed times are UTC."""


def page() -> str:
    """The man page in roff."""
    group = typer.main.get_command(app)
    context = typer.Context(group, info_name="reservoir", help_option_names=["-h", "--help"])
    return "\n".join(_lines(group, context)) + "\n"


def _lines(group: Any, context: Any) -> Iterator[str]:
    names = list(group.commands)
    yield '.\\" Made from the help texts by tools/manual.py.'
    yield f'.TH RESERVOIR 1 "" "reservoir {__version__}" "User commands"'
    yield ".SH NAME"
    yield "reservoir \\- " + _roff(_first(group.help).rstrip("."))
    yield ".SH SYNOPSIS"
    yield ".B reservoir"
    yield "[\\fIoptions\\fR] \\fIcommand\\fR [\\fIarguments\\fR]"
    yield ".SH DESCRIPTION"
    yield from _paragraphs(DESCRIPTION)
    yield ".SH OPTIONS"
    yield "These stand before the command."
    yield from _records(group, context)
    yield ".SH COMMANDS"
    for name in names:
        yield from _command(group.commands[name], name, context)
    for title, entries in (
        ("EXIT STATUS", EXIT_CODES),
        ("ENVIRONMENT", ENVIRONMENT),
        ("FILES", FILES),
    ):
        yield f".SH {title}"
        for term, about in entries.items():
            yield from (".TP", f".B {_roff(str(term))}", _roff(about))


def _command(command: Any, name: str, context: Any) -> Iterator[str]:
    """What a command does and takes; then the commands that it has of its own."""
    own = typer.Context(command, info_name=name.split()[-1], parent=context)
    yield f".SS {_roff(name)}"
    yield f".B reservoir {_roff(name)}"
    yield _roff(" ".join(command.collect_usage_pieces(own)))
    yield ".PP"
    yield from _paragraphs(inspect.cleandoc(command.help))
    yield from _records(command, own, without="--help")
    yield ".PP"
    yield "Example:"
    yield from _literal(command.epilog.removeprefix("Example: "))
    for inner, each in getattr(command, "commands", {}).items():
        yield from _command(each, f"{name} {inner}", own)


def _first(text: str) -> str:
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split())


def _records(command: Any, context: Any, without: str | None = None) -> Iterator[str]:
    """Arguments and options with what they do."""
    for words, about in command.records(context):
        if without is None or without not in words:
            yield from (".TP", f".B {_roff(words)}", _roff(" ".join(about.split())))


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.split("\n\n")):
        if number:
            yield ".PP"
        yield _roff(" ".join(paragraph.split()))


def _literal(text: str) -> Iterable[str]:
    return (".RS", ".nf", _roff(text), ".fi", ".RE")


def _roff(text: str) -> str:
    """Text as roff prints it."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    text = re.sub(r"`([^`]+)`", r"\\fB\1\\fR", text)
    text = re.sub(r"[^\x00-\x7f]", lambda match: f"\\[u{ord(match[0]):04X}]", text)
    return f"\\&{text}" if text.startswith(".") else text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8", newline="\n")
