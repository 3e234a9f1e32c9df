"""The options before the command: their values, and repeating them in suggested commands."""

import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import typer

from reservoir_cli.errors import UsageError, mask_passwords

#: A word as the shell reads it, with its quotes.
_WORD = r"""(?:'[^']*'|"[^"]*"|[^\s'"])+"""
#: Options before the command; a value does not begin with a dash.
_OPTIONS = rf"(?:--[a-z-]+(?:=\S+)?(?: (?!-){_WORD})? )*?"
_typed: dict[str, str] = {}
_command = ""  # a pattern


class Globals(NamedTuple):
    """The options before the command."""

    config: Path | None = None
    db: str | None = None
    offline: bool = False


def globals_of(ctx: typer.Context) -> Globals:
    """Return the global options of this run."""
    return ctx.find_object(Globals) or Globals()


def repeat(option: str, value: str | None, commands: Iterable[str]) -> None:
    """Repeat an option in suggested commands, which would otherwise work on another store."""
    global _command
    if value is None:
        _typed.pop(option, None)
        return
    _typed[option] = f"{option} {shlex.quote(mask_passwords(value))} "
    # "db copy" names both of its stores.
    names = "|".join(commands)
    _command = rf"(?<![\w./-])reservoir (?=({_OPTIONS})(?:{names})(?![\w-])(?! --help| copy ))"


def complete(text: str) -> str:
    """Return a text with the typed options in each command that does not have them."""
    return re.sub(_command, _add_options, text) if _typed and "reservoir " in text else text


def _add_options(match: re.Match[str]) -> str:
    present = match[1]
    missing = (words for option, words in _typed.items() if option not in present)
    return match[0] + "".join(missing)


def parse_path(typed: str) -> Path:
    """Return a path; the shell does not expand ``~`` within quotes or after an equals sign.

    :raises UsageError: the path is empty, as that of an unset variable.
    """
    if not typed:
        raise UsageError("the name of a file is empty", hint="name a file")
    return Path(os.path.expanduser(typed))
