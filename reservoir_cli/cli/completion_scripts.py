"""Tab completion in bash, zsh, fish and PowerShell.

No shell ever evaluates a stored name: only names without shell syntax are offered, on lines.
"""

import os
import re
import shlex
import sys
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from typer.core import TyperArgument, TyperGroup, TyperOption

from reservoir_cli.cli.command_list import COMPLETED_SHELL, SUMMARIES, CommandGroup
from reservoir_cli.errors import ReservoirError, UsageError

#: The variable with PowerShell's command line: old versions mangle quotes in arguments.
_LINE = "_RESERVOIR_LINE"
#: Characters, besides letters, marks and digits, that names may contain to be offered.
_HARMLESS = "_ .@:+/-"
_NO_FILES = 1  # the exit code that lets a script offer no files; PowerShell offers them always
#: The metavars of options and arguments that take files.
_FILE = re.compile("FILE|PATH|TARGET|^SOURCE$")
_POWERSHELLS = ("powershell", "pwsh")  # the names of PowerShell, old and new
#: Windows has the profile in a folder that may be redirected, and may forbid scripts.
_NOT_INSTALLED = () if os.name == "posix" else _POWERSHELLS
#: Installs the script by hand: creates the profile, and adds the script once.
_PASTE = (
    "if (!(Test-Path $PROFILE)) { New-Item -Force $PROFILE }; "
    "reservoir --show-completion | Add-Content $PROFILE"
)
#: The scripts in ``completions``, which wheels also put where shells look for them.
_FOLDER = Path(__file__).with_name("completions")
_SCRIPTS = {
    "bash": "reservoir.bash",
    "zsh": "_reservoir",
    "fish": "reservoir.fish",
    **dict.fromkeys(_POWERSHELLS, "reservoir.ps1"),
}


def is_asking() -> bool:
    """Return whether a completion script runs this process; drop the variable otherwise."""
    if os.environ.get(COMPLETED_SHELL) in _SCRIPTS:
        return True
    os.environ.pop(COMPLETED_SHELL, None)
    return False


def answer(group: Any) -> int:
    """Print completions; if none, the exit code says whether the shell should offer files."""
    shell = os.environ.pop(COMPLETED_SHELL)
    with suppress(Exception, SystemExit):
        ctx, target, word = _find_target(group, _typed_words(shell, sys.argv[1:]))
        lines = _format_lines(shell, sys.argv[1:], _complete(ctx, target, word))
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        takes_files = _FILE.search(getattr(target, "metavar", None) or "")
        return 0 if lines or takes_files else _NO_FILES
    return 0


def _typed_words(shell: str, arguments: Sequence[str]) -> list[str]:
    if shell == "zsh":
        return list(arguments)
    if shell == "fish":
        return [*arguments[:-1], arguments[-1].lstrip("\"'")]
    line = arguments[0] if shell == "bash" else os.environ.get(_LINE, "")
    return _split(line)[0][1:]


def _format_lines(
    shell: str, arguments: Sequence[str], items: Sequence[tuple[str, str]]
) -> list[str]:
    if shell == "bash":
        words, is_quoted = _split(arguments[0])
        replaced = arguments[1].lstrip("\"'").replace("\\", "")
        return _for_bash(items, words[-1], replaced, is_quoted)
    if shell == "zsh":
        return [_describe(*item) for item in items]
    if shell == "fish":
        option = arguments[-1].partition("=")
        prefix = f"{option[0]}=" if option[1] and option[0].startswith("-") else ""
        return [_describe(prefix + value, about) for value, about in items]
    current = _value_of(_typed_words(shell, arguments)[-1])
    return [_describe(_quote(value), about) for value, about in items if value.startswith(current)]


def _for_bash(
    items: Sequence[tuple[str, str]], word: str, replaced: str, is_quoted: bool
) -> list[str]:
    """Return values as bash inserts them, in place of ``replaced``: it breaks words at colons."""
    typed = _value_of(word)
    start = len(typed) - len(replaced) if typed.endswith(replaced) else 0
    values = [value[start:] for value, _ in items if value.startswith(typed)]
    return values if is_quoted else [value.replace(" ", "\\ ") for value in values]


def _value_of(word: str) -> str:
    return word.partition("=")[2] if word.startswith("-") and "=" in word else word


def _quote(value: str) -> str:
    return value if value.replace("-", "").isalnum() else f"'{value}'"


def _describe(value: str, about: str) -> str:
    return f"{value}\t{about}" if about else value


def _split(line: str) -> tuple[list[str], bool]:
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        words.extend(lexer)
    except ValueError:  # the line ends within quotes, or after a backslash
        state: str = vars(lexer)["state"]
        return [*words, lexer.token or ""], state in ("'", '"')
    is_between = line[-1:].isspace() and not (words and words[-1][-1:].isspace())
    return [*words, ""] if is_between or not words else words, False


def _find_target(group: Any, words: Sequence[str]) -> tuple[Any, Any, str]:
    *before, word = words
    ctx, before = _command_at(group, before)
    if word.startswith("-") and "=" in word:
        option, _, word = word.partition("=")
        before.append(option)
    target = _option_awaiting_value(ctx, before)
    if target is None:
        target = ctx.command if word.startswith("-") and "--" not in before else _argument(ctx)
    return ctx, target, word


def _complete(ctx: Any, target: Any, word: str) -> list[tuple[str, str]]:
    if isinstance(target, CommandGroup) and not word.startswith("-"):
        return list(SUMMARIES.items())
    # The shell or the caller filters by the word; only options must begin with its dash.
    is_option = target is ctx.command
    items = target.shell_complete(ctx, word[:1] if is_option and word[:1] == "-" else "")
    pairs = [(str(item.value), item.help or "") for item in items if item.type == "plain"]
    return [pair for pair in pairs if _is_harmless(pair[0], is_option=is_option)]


def _is_harmless(value: str, *, is_option: bool) -> bool:
    if value.startswith("-") and not is_option:
        return False
    value = value.removesuffix("=")
    return bool(value) and all(
        character in _HARMLESS or unicodedata.category(character)[0] in "LMN" for character in value
    )


def _command_at(group: Any, words: Sequence[str]) -> tuple[Any, list[str]]:
    """Return the context of the innermost named command, and the words after its name."""
    command, name, parent = group, "reservoir", None
    rest = list(words)
    while True:
        ctx = command.make_context(name, list(rest), parent=parent, resilient_parsing=True)
        arguments = command.make_parser(ctx).parse_args(list(rest))[1]
        if not isinstance(command, TyperGroup) or not arguments:
            return ctx, rest
        subcommand = command.get_command(ctx, arguments[0])
        if subcommand is None:
            raise UsageError(f"no command {arguments[0]!r}")
        command, name, parent, rest = subcommand, arguments[0], ctx, list(arguments[1:])


def _option_awaiting_value(ctx: Any, words: Sequence[str]) -> Any:
    for option in ctx.command.get_params(ctx):
        if isinstance(option, TyperOption) and not option.is_flag and not option.count:
            for word in words[-option.nargs :]:
                if word in option.opts:
                    return option
    return None


def _argument(ctx: Any) -> Any:
    """Return the first argument that has no value yet, else the command itself."""
    for argument in ctx.command.get_params(ctx):
        if isinstance(argument, TyperArgument) and (
            argument.nargs == -1 or not ctx.params.get(str(argument.name))
        ):
            return argument
    return ctx.command


def script() -> str:
    """Return the completion script for the current shell."""
    return _read_script(_current_shell())


def _read_script(shell: str) -> str:
    return (_FOLDER / _SCRIPTS[shell]).read_text(encoding="utf-8")


def install() -> str:
    """Install the completion script for the current shell; return a message for the user."""
    shell = _current_shell()
    if shell in _NOT_INSTALLED:
        raise UsageError(
            f"cannot install completion for {shell} on Windows",
            hint=f"paste this into {shell}: {_PASTE}",
        )
    path, profile, line = _locate(shell)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_read_script(shell), encoding="utf-8")
        if profile is not None:
            _append_line(profile, line)
    except OSError as error:
        raise ReservoirError(
            f"cannot write {error.filename}: {error.strerror}",
            hint="reservoir --show-completion prints what belongs there",
        ) from None
    loaded = f", which {profile} loads" if profile else ""
    return (
        f"{shell} completion installed in {path}{loaded}; open a new terminal to use it, "
        f"or run: {'. $PROFILE' if shell in _POWERSHELLS else f'exec {shell}'}"
    )


def _append_line(profile: Path, line: str) -> None:
    text = profile.read_bytes() if profile.exists() else b""
    if line.encode() not in text.splitlines():
        end = b"" if not text or text.endswith(b"\n") else b"\n"
        with profile.open("ab") as file:
            file.write(end + line.encode() + b"\n")


def _locate(shell: str) -> tuple[Path, Path | None, str]:
    """Return the script's path, the profile if the shell needs one, and the line to add to it."""
    home = Path.home()
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    if shell == "bash":
        path = home / ".bash_completions" / "reservoir.sh"
        return path, home / ".bashrc", f"source {shlex.quote(str(path))}"
    if shell == "zsh":
        profile = Path(os.environ.get("ZDOTDIR") or home) / ".zshrc"
        line = "fpath+=~/.zfunc; autoload -Uz compinit; compinit"
        return home / ".zfunc" / "_reservoir", profile, line
    if shell == "fish":
        return config / "fish" / "completions" / "reservoir.fish", None, ""
    path = config / "powershell" / "reservoir_completion.ps1"
    # In single quotes PowerShell evaluates nothing; it also takes curly ones for such quotes.
    quoted = re.sub("(['\u2018-\u201b])", r"\1\1", str(path))
    return path, path.with_name("Microsoft.PowerShell_profile.ps1"), f". '{quoted}'"


def _current_shell() -> str:
    import shellingham  # Typer requires it

    with suppress(shellingham.ShellDetectionFailure, OSError):
        shell: str = shellingham.detect_shell()[0]
        if shell in _SCRIPTS:
            return shell
    raise UsageError(
        "cannot detect a supported shell", hint="run it in bash, zsh, fish or PowerShell"
    )
