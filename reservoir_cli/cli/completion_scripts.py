"""Tab completion in bash, zsh, fish and PowerShell.

A stored name may hold anything, so no shell ever evaluates one: our scripts read answers one a
line, and only names without shell syntax are offered.
"""

import os
import shlex
import sys
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from typer.core import TyperArgument, TyperGroup, TyperOption

from reservoir_cli.cli.command_list import SUMMARIES, CommandGroup
from reservoir_cli.errors import ReservoirError, UsageError

#: A completion script names its shell in this variable.
VARIABLE = "_RESERVOIR_COMPLETE"
#: PowerShell passes its command line in this one: old versions mangle quotes in arguments.
_LINE = "_RESERVOIR_LINE"
#: What a name may hold beside letters, marks and digits, and still be offered.
_HARMLESS = "_ .@:+/-"
#: Scripts of earlier versions evaluate what they are given; they are answered by a constant.
_OLD_ZSH = "_message 'run reservoir --install-completion again'"

_BASH = r"""
_reservoir_completion() {
    local word
    COMPREPLY=()
    while IFS= read -r word; do
        COMPREPLY+=("$word")
    done < <(_RESERVOIR_COMPLETE=bash command reservoir "${COMP_LINE:0:COMP_POINT}" "$2" \
        </dev/null 2>/dev/null)
}

complete -o default -F _reservoir_completion reservoir
"""
_ZSH = r"""
#compdef reservoir

_reservoir_completion() {
    local -a answers values shown suffix
    local answer
    answers=("${(@f)$(_RESERVOIR_COMPLETE=zsh command reservoir \
        "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" </dev/null 2>/dev/null)}")
    for answer in $answers; do
        values+=("${answer%%$'\t'*}")
        shown+=("${answer/$'\t'/  -- }")
    done
    if (( ! $#values )); then
        _files
        return
    fi
    [[ $PREFIX == --*=* ]] && compset -P '*='
    [[ $values[1] == *= ]] && suffix=(-S '')
    [[ $shown[1] == *' -- '* ]] && suffix+=(-l)
    compadd $suffix -d shown -a values
}

if [[ $funcstack[1] == _reservoir ]]; then
    _reservoir_completion "$@"
else
    compdef _reservoir_completion reservoir
fi
"""
_FISH = r"""
function __reservoir_complete
    set --local words (commandline --current-process --tokenize --cut-at-cursor)
    set --erase words[1]
    set --local current (commandline --current-token --cut-at-cursor)
    set --local answers (env _RESERVOIR_COMPLETE=fish reservoir $words "$current" \
        </dev/null 2>/dev/null)
    if set --query answers[1]
        printf '%s\n' $answers
    else
        __fish_complete_path "$current"
    end
end

complete --command reservoir --no-files --arguments '(__reservoir_complete)'
"""
_POWERSHELL = r"""
Register-ArgumentCompleter -Native -CommandName reservoir -ScriptBlock {
    param($word, $tree, $cursor)
    $Env:_RESERVOIR_COMPLETE = "powershell"
    $Env:_RESERVOIR_LINE = if ($word) { "$tree" } else { "$tree " }
    try {
        reservoir | ForEach-Object {
            $value, $help = $_ -split "`t", 2
            if (-not $help) { $help = $value }
            [System.Management.Automation.CompletionResult]::new(
                $value, $value, 'ParameterValue', $help)
        }
    } finally {
        Remove-Item Env:_RESERVOIR_COMPLETE, Env:_RESERVOIR_LINE
    }
}
"""
_SCRIPTS = {
    "bash": _BASH,
    "zsh": _ZSH,
    "fish": _FISH,
    "powershell": _POWERSHELL,
    "pwsh": _POWERSHELL,
}


def is_asking() -> bool:
    """Whether a completion script runs us; any other value of the variable is dropped."""
    asking = os.environ.get(VARIABLE, "")
    if asking in _SCRIPTS or asking.startswith(("complete_", "source_")):
        return True
    os.environ.pop(VARIABLE, None)
    return False


def answer(group: Any) -> int:
    """Print what may follow on the command line of the shell that asks; return the exit code.

    It never complains: an error is an empty answer, for which the shell offers files.
    """
    shell = os.environ.pop(VARIABLE)
    if shell not in _SCRIPTS:
        sys.stdout.write(f"{_OLD_ZSH}\n" if shell == "complete_zsh" else "")
        return int(shell == "complete_fish")  # it asks whether there are answers
    lines: list[str] = []
    with suppress(Exception, SystemExit):
        lines = _answers(group, shell, sys.argv[1:])
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def _answers(group: Any, shell: str, given: Sequence[str]) -> list[str]:
    """Format completions for a shell, one a line, some with a tab and a description."""
    if shell == "bash":
        words, is_quoted = _split(given[0])
        replaced = given[1].lstrip("\"'").replace("\\", "")
        return _for_bash(_offered(group, words[1:]), words[-1], replaced, is_quoted)
    if shell == "zsh":
        return [_described(*item) for item in _offered(group, given)]
    if shell == "fish":
        option = given[-1].partition("=")
        start = f"{option[0]}=" if option[1] and option[0].startswith("-") else ""
        words = [*given[:-1], given[-1].lstrip("\"'")]
        return [_described(start + value, about) for value, about in _offered(group, words)]
    words, _ = _split(os.environ.get(_LINE, ""))
    current = _value_of(words[-1])
    offered = [item for item in _offered(group, words[1:]) if item[0].startswith(current)]
    return [_described(_quoted(value), about) for value, about in offered]


def _for_bash(
    offered: Sequence[tuple[str, str]], word: str, replaced: str, is_quoted: bool
) -> list[str]:
    """Values as bash puts them on the line: in place of a part of the word, and unchanged.

    :param replaced: the end of the word, which bash breaks at signs such as a colon.
    """
    typed = _value_of(word)
    stays = len(typed) - len(replaced) if typed.endswith(replaced) else 0
    values = [value[stays:] for value, _ in offered if value.startswith(typed)]
    return values if is_quoted else [value.replace(" ", "\\ ") for value in values]


def _value_of(word: str) -> str:
    """Return the part of a word to complete: of ``--option=value`` the value."""
    return word.partition("=")[2] if word.startswith("-") and "=" in word else word


def _quoted(value: str) -> str:
    """Quote a value for PowerShell."""
    return value if value.replace("-", "").isalnum() else f"'{value}'"


def _described(value: str, about: str) -> str:
    return f"{value}\t{about}" if about else value


def _split(line: str) -> tuple[list[str], bool]:
    """Split a line into words, the unfinished one last, and say if a quote is open in it."""
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        words.extend(lexer)
    except ValueError:  # the line ends within quotes, or behind a backslash
        state: str = vars(lexer)["state"]
        return [*words, lexer.token or ""], state in ("'", '"')
    is_between = line[-1:].isspace() and not (words and words[-1][-1:].isspace())
    return [*words, ""] if is_between or not words else words, False


def _offered(group: Any, words: Sequence[str]) -> list[tuple[str, str]]:
    """Return what may replace the last word, each with a description or an empty text."""
    *before, word = words
    ctx, before = _command_at(group, before)
    if word.startswith("-") and "=" in word:
        option, _, word = word.partition("=")
        before.append(option)
    asked = _awaiting(ctx, before)
    if asked is None:
        asked = ctx.command if word.startswith("-") and "--" not in before else _argument(ctx)
    if isinstance(asked, CommandGroup) and not word.startswith("-"):
        return list(SUMMARIES.items())
    # The shell, or the caller, keeps what goes with the word; only an option has to begin like it.
    items = asked.shell_complete(ctx, word[:1] if asked is ctx.command and word[:1] == "-" else "")
    offered = [(str(item.value), item.help or "") for item in items if item.type == "plain"]
    is_option = asked is ctx.command
    return [item for item in offered if _is_harmless(item[0], is_option=is_option)]


def _is_harmless(value: str, *, is_option: bool) -> bool:
    """Whether no shell finds syntax in a value, and our own parser no option."""
    if value.startswith("-") and not is_option:
        return False
    value = value.removesuffix("=")
    return bool(value) and all(
        sign in _HARMLESS or unicodedata.category(sign)[0] in "LMN" for sign in value
    )


def _command_at(group: Any, words: Sequence[str]) -> tuple[Any, list[str]]:
    """Return the innermost command that is named, and the words after its name."""
    command, name, parent = group, "reservoir", None
    rest = list(words)
    while True:
        ctx = command.make_context(name, list(rest), parent=parent, resilient_parsing=True)
        behind = command.make_parser(ctx).parse_args(list(rest))[1]
        if not isinstance(command, TyperGroup) or not behind:
            return ctx, rest
        known = command.get_command(ctx, behind[0])
        if known is None:
            raise UsageError(f"no command {behind[0]!r}")
        command, name, parent, rest = known, behind[0], ctx, list(behind[1:])


def _awaiting(ctx: Any, words: Sequence[str]) -> Any:
    """Return the option that takes the next word as its value."""
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
    """Return the completion script for the shell we run in."""
    return _SCRIPTS[_current_shell()].lstrip()


def install() -> str:
    """Install the script for the shell we run in; return what was done, in words.

    :raises ReservoirError: a file cannot be written.
    """
    shell = _current_shell()
    if shell not in _PLACES:
        raise UsageError(
            f"cannot install completion for {shell}",
            hint="reservoir --show-completion >> $PROFILE",
        )
    path, profile, line = _PLACES[shell]()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_SCRIPTS[shell].lstrip(), encoding="utf-8")
        if profile is not None:
            _append_line(profile, line)
    except OSError as error:
        raise ReservoirError(
            f"cannot write {error.filename}: {error.strerror}",
            hint="reservoir --show-completion prints what belongs there",
        ) from None
    loaded = f", which {profile} loads" if profile else ""
    return (
        f"{shell} completion installed in {path}{loaded}; it works in the next terminal, "
        f"or here after: exec {shell}"
    )


def _append_line(profile: Path, line: str) -> None:
    """Add a line to a file unless it is there."""
    text = profile.read_bytes() if profile.exists() else b""
    if line.encode() not in text.splitlines():
        end = b"" if not text or text.endswith(b"\n") else b"\n"
        with profile.open("ab") as file:
            file.write(end + line.encode() + b"\n")


def _bash() -> tuple[Path, Path | None, str]:
    path = Path.home() / ".bash_completions" / "reservoir.sh"
    return path, Path.home() / ".bashrc", f"source {shlex.quote(str(path))}"


def _zsh() -> tuple[Path, Path | None, str]:
    profile = Path(os.environ.get("ZDOTDIR") or Path.home()) / ".zshrc"
    line = "fpath+=~/.zfunc; autoload -Uz compinit; compinit"
    return Path.home() / ".zfunc" / "_reservoir", profile, line


def _fish() -> tuple[Path, Path | None, str]:
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return config / "fish" / "completions" / "reservoir.fish", None, ""


#: For each shell the script, a file that loads it, and the line that stands there.
_PLACES = {"bash": _bash, "zsh": _zsh, "fish": _fish}


def _current_shell() -> str:
    """Find the shell that runs us.

    :raises UsageError: it is none that we know.
    """
    import shellingham  # Typer requires it

    with suppress(shellingham.ShellDetectionFailure, OSError):
        shell: str = shellingham.detect_shell()[0]
        if shell in _SCRIPTS:
            return shell
    raise UsageError(
        "cannot tell which shell this is", hint="run it in bash, zsh, fish or PowerShell"
    )
