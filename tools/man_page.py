"""Write the man page, ``docs/reservoir.1``, from the help texts.

Run ``python tools/man_page.py`` after changing a help text; a test checks that they agree.
"""

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from reservoir_cli import __version__
from reservoir_cli.cli.app import app
from reservoir_cli.errors import EXIT_CODES

PAGE = Path(__file__).parents[1] / "docs" / "reservoir.1"
#: Variables that move the histories of other tools.
TOOLS = {
    "CLAUDE_CONFIG_DIR": "Claude Code",
    "CODEX_HOME": "Codex",
    "GEMINI_CLI_HOME": "Gemini CLI",
    "COPILOT_HOME": "Copilot CLI",
    "CLINE_DATA_DIR": "Cline",
    "CLINE_DIR": "Cline",
    "CLINE_SESSION_DATA_DIR": "Cline",
    "GOOSE_PATH_ROOT": "Goose",
    "LLM_USER_PATH": "llm",
    "AIDER_CHAT_HISTORY_FILE": "aider",
    "DATA_DIR": "Open WebUI",
    "OPENCODE_DB": "opencode",
    "KILO_DB": "Kilo Code",
    "QWEN_HOME": "Qwen Code",
    "KIMI_CODE_HOME": "Kimi Code",
    "KIMI_SHARE_DIR": "Kimi Code before its present version",
    "PI_CODING_AGENT_DIR": "Pi",
    "OPENCLAW_STATE_DIR": "OpenClaw",
    "AMP_HOME": "Amp",
    "CONTINUE_GLOBAL_DIR": "Continue",
    "HERMES_HOME": "Hermes",
}
ENVIRONMENT = {
    "RESERVOIR_HOME": "One folder for settings, store, cache and log.",
    "RESERVOIR_MODEL_CACHE": "The folder of compiled embedding models, which all homes share.",
    "RESERVOIR_CONFIG": "The settings file.",
    "RESERVOIR_DB": "The store.",
    "RESERVOIR_PLUGINS": "If set to off, nothing that other packages add is used.",
    "RESERVOIR_<SETTING>": "A setting, such as RESERVOIR_PARTITION=work; it overrides the file.",
    "RESERVOIR_DEBUG": "If set to 1, errors have a traceback.",
    "NO_COLOR": "If set to any value, output has no colour.",
    "VISUAL": "The editor that reservoir edit opens; it may have arguments.",
    "EDITOR": "The same, if VISUAL is not set.",
    "HF_HUB_OFFLINE": "If set to 1, no embedding model is downloaded.",
    "ANTHROPIC_API_KEY": "The key for the token counter anthropic:MODEL.",
    **{
        name: f"Also read by {tool}: tells init and sync where its history is."
        for name, tool in TOOLS.items()
    },
}
FILES = {
    "~/.config/reservoir/reservoir.toml": "Settings. reservoir config --path prints the path.",
    "~/.local/share/reservoir/reservoir.db": "The store. reservoir doctor prints the path.",
    "~/.local/state/reservoir/log/reservoir.log": "The log: a line for each context that "
    "was truncated. reservoir doctor prints the path.",
}
#: The description of the program.
DESCRIPTION = """\
Reservoir stores conversations with language models in one file, finds the few messages that answer
a question, however old they are, and prints a list of messages that fits a token budget.

A partition is a workspace (a person, a project), and an instance a channel in it (a tool, a topic).
A context never mixes partitions; search, view, conversations, export, move and forget take
--all-partitions.

Data goes to standard output, everything else to standard error. A time without a zone is local;
printed times are UTC."""


def page() -> str:
    """Return the man page in roff."""
    group = typer.main.get_command(app)
    context = typer.Context(group, info_name="reservoir", help_option_names=["-h", "--help"])
    return "\n".join(_lines(group, context)) + "\n"


def _lines(group: Any, context: Any) -> Iterator[str]:
    names = list(group.commands)
    yield '.\\" Generated from the help texts by tools/man_page.py.'
    yield f'.TH RESERVOIR 1 "" "reservoir {__version__}" "User commands"'
    yield ".SH NAME"
    yield "reservoir \\- " + _roff(_first(group.help).rstrip("."))
    yield ".SH SYNOPSIS"
    yield ".B reservoir"
    yield "[\\fIoptions\\fR] \\fIcommand\\fR [\\fIarguments\\fR]"
    yield ".SH DESCRIPTION"
    yield from _paragraphs(DESCRIPTION)
    yield ".SH OPTIONS"
    yield "These options precede the command."
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
        for term, description in entries.items():
            yield from (".TP", f".B {_roff(str(term))}", _roff(description))


def _command(command: Any, name: str, context: Any) -> Iterator[str]:
    """Yield the section of a command, then those of its subcommands."""
    command_context = typer.Context(command, info_name=name.split()[-1], parent=context)
    yield f".SS {_roff(name)}"
    yield f".B reservoir {_roff(name)}"
    yield _roff(" ".join(command.collect_usage_pieces(command_context)))
    yield ".PP"
    yield from _paragraphs(inspect.cleandoc(command.help))
    yield from _records(command, command_context, excluded=("-h", "--help", "-h, --help"))
    yield ".PP"
    yield "Example:"
    yield from _literal(command.epilog.removeprefix("Example: "))
    for subname, subcommand in getattr(command, "commands", {}).items():
        yield from _command(subcommand, f"{name} {subname}", command_context)


def _first(text: str) -> str:
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split())


def _records(command: Any, context: Any, excluded: Sequence[str] = ()) -> Iterator[str]:
    """Yield arguments and options with their help."""
    for words, description in command.records(context):
        if words not in excluded:
            yield from (".TP", f".B {_roff(words)}", _roff(" ".join(description.split())))


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.split("\n\n")):
        if number:
            yield ".PP"
        yield _roff(" ".join(paragraph.split()))


def _literal(text: str) -> Iterable[str]:
    return (".RS", ".nf", _roff(text), ".fi", ".RE")


def _roff(text: str) -> str:
    """Escape text for roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    text = re.sub(r"`([^`]+)`", r"\\fB\1\\fR", text)
    text = re.sub(r"[^\x00-\x7f]", lambda match: f"\\[u{ord(match[0]):04X}]", text)
    return f"\\&{text}" if text.startswith(".") else text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8", newline="\n")
