"""What is mistyped on a first day, and the exact command that is meant."""

import re
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from reservoir_cli.cli.command_list import EXAMPLES
from reservoir_cli.errors import UsageError

#: Options of all commands, and what they take.
BEFORE_COMMAND = {"--config": " FILE", "--db": " PATH", "--offline": "", "--no-color": ""}
#: Words that are no commands, each with the commands that may be meant.
_NO_COMMANDS = {
    "list": "reservoir view lists messages, reservoir conversations lists conversations",
    "ls": "reservoir view lists messages, reservoir conversations lists conversations",
    "show": "reservoir view --id N",
    "cat": "reservoir view --id N",
    "history": "reservoir view 20",
    "status": "reservoir stats, or reservoir doctor",
    "get": "reservoir config get KEY",
    "set": "reservoir config set KEY=VALUE",
    "import": "reservoir ingest FILE",
    "add": 'echo "…" | reservoir ingest',
    "ask": 'reservoir context "…"',
    "query": 'reservoir context "…"',
    "delete": "reservoir forget --id N",
    "remove": "reservoir forget --id N",
    "rm": "reservoir forget --id N",
    "find": "reservoir search TERM",
    "grep": "reservoir search --keyword TERM",
    "setup": "reservoir init",
}
#: What an argument that a command does not take stands for: a number, and any other word.
_STANDS_FOR = {
    "forget": ("--id", "--match"),
    "view": ("--id", "-p"),
    **dict.fromkeys(("conversations", "stats", "export", "summarize", "init", "mcp"), ("-p", "-p")),
}
#: Options that take a time, which may be of several words.
_TIMES = ("--since", "--until", "--before", "--at")
#: A number where a command takes one alone, such as ``view 5``.
_COUNT = "[COUNT]"
#: Options of other programs, each with those that may be meant; a command has at most one.
_MEANT_OPTIONS = {
    **dict.fromkeys(("-n", "--limit", "--count", "--last"), (_COUNT, "--limit", "--recent")),
    **dict.fromkeys(("--tokens", "--max-tokens"), ("--budget",)),
    **dict.fromkeys(("--from", "--after"), ("--since",)),
    "--force": ("--yes",),
    "--output": ("-o",),
}
#: What the option parser says, and how one says it.
_IN_WORDS = (
    (r"'\[?([A-Z]+)\]?'", r"\1"),
    (r"is not a valid int\w*( range)?$", "is not a whole number"),
    (r"is not a valid float( range)?$", "is not a number"),
    (r"is not in the range x>=(\S+)$", r"is less than \1"),
    (r"is not in the range (\S+)<=x<=(\S+)$", r"is not between \1 and \2"),
)
#: A command of more characters, such as one with a whole question, is not repeated in a hint.
_LONGEST = 200


def command_line(words: list[str]) -> list[str]:
    """Return the command line; `help` and `version` are commands as in other programs.

    :raises UsageError: what is typed is no command; the hint is the one that is meant.
    """
    if words[:1] == ["help"]:
        return [*words[1:2], "--help"]
    if words[:1] == ["version"]:
        return ["--version"]
    if words and (meant := _NO_COMMANDS.get(words[0])):
        raise UsageError(f"no such command {words[0]!r}", hint=meant)
    before = _scope_before(words)
    if before and len(words) > before and words[before] in EXAMPLES:
        hint = _typed([*words[before:], *words[:before]])
        raise UsageError(f"{words[0]} goes behind the command", hint=hint)
    if _names_a_partition_first(words):
        place = [] if words[0] == "reservoir" else ["-p", words[0]]
        hint = _typed([*words[1:], *place])
        raise UsageError(f"no such command {words[0]!r}", hint=hint)
    return words


def _scope_before(words: list[str]) -> int:
    """Return how many words of a partition and an instance stand before the command."""
    count = 0
    while words[count : count + 1] and re.match("-[pi]|--(partition|instance)", words[count]):
        count += 1 if re.match("-[pi].|--[a-z]+=", words[count]) else 2
    return count


def _names_a_partition_first(words: list[str]) -> bool:
    """Return whether a name, and no mistyped command, stands before a command."""
    if len(words) < 2 or words[0] in EXAMPLES or words[0][:1] == "-" or words[1] not in EXAMPLES:
        return False
    from difflib import get_close_matches

    return not get_close_matches(words[0], EXAMPLES)


def as_usage_error(failure: Any, group: Any) -> UsageError:
    """Turn a complaint of the option parser into an error of ours.

    :param group: the whole program.
    """
    context = getattr(failure, "ctx", None)
    name = context.command_path if context else "reservoir"
    option = getattr(failure, "option_name", None)
    if option in BEFORE_COMMAND:
        return UsageError(
            f"{option} goes before the command",
            hint=name.replace(" ", f" {option}{BEFORE_COMMAND[option]} ", 1),
        )
    message = " ".join(failure.format_message().split()).rstrip(".")
    hint = _meant(failure, message, context) if context else _as_written(option, group)
    for pattern, words in _IN_WORDS:
        message = re.sub(pattern, words, message)
    return UsageError(message[:1].lower() + message[1:], hint=hint or f"{name} --help")


def _as_written(option: str | None, group: Any) -> str | None:
    """How an option is written with its values, such as ``reservoir view --since T``."""
    name = next((word for word in sys.argv[1:] if word in EXAMPLES), None)
    if name is None:
        return None
    command = group.commands[name]
    with command.make_context(name, [], resilient_parsing=True) as context:
        for parameter in command.params:
            if option in parameter.opts:
                return f"reservoir {name} {option} {parameter.make_metavar(context)}"
    return None


def _meant(failure: Any, message: str, context: Any) -> str | None:
    """Return the command that a person most likely meant."""
    if option := getattr(failure, "option_name", None):
        return _with_option(option, context.command)
    if message.startswith("Missing"):
        return _with_missing(failure.param, context)
    if match := re.search(r"'((\d{1,9})[kK])' is not a valid int", message):
        return _replaced(match[1], f"{match[2]}000")
    if match := re.search(r"extra arguments?\S* \((.*)\)$", message):
        return _with_extra(match[1], context.info_name)
    is_argument = getattr(getattr(failure, "param", None), "param_type_name", "") == "argument"
    if is_argument and (match := re.search(r"'([^']*)' is not a valid int", message)):
        return _with_extra(match[1], context.info_name)
    return None


def _with_option(typed: str, command: Any) -> str | None:
    """Replace an option that a command does not have by the one that is meant."""
    words = sys.argv[1:]
    number = typed[1:] if re.fullmatch(r"-\d+", typed) else ""
    if typed not in words:
        return None
    known = {name for parameter in command.params for name in (*parameter.opts, parameter.metavar)}
    for meant in _MEANT_OPTIONS.get("-n" if number else typed, ()):
        if meant in known:
            shown = [*([] if meant == _COUNT else [meant]), *([number] if number else [])]
            at = words.index(typed)
            return _typed([*words[:at], *shown, *words[at + 1 :]])
    return None


def _with_missing(parameter: Any, context: Any) -> str | None:
    """Return what was typed, and behind it what is missing."""
    names = [] if parameter.param_type_name == "argument" else [parameter.opts[0]]
    return _typed([*sys.argv[1:], *names, parameter.make_metavar(context)])


def _with_extra(extra: str, name: str) -> str | None:
    """Return the command with arguments that it does not take where they belong.

    :param extra: these arguments, parted by blanks.
    """
    words = sys.argv[1:]
    if (place := _place(extra, words)) is None:
        return None
    before, behind = words[: place[0]], words[place[1] :]
    is_time = len(before) > 1 and before[-2] in _TIMES
    if is_time or name == "edit":  # several words without quotes
        return _typed([*before[:-1], f"{before[-1]} {extra}", *behind])
    if name not in _STANDS_FOR:
        return None
    is_number = extra.removeprefix("#").isdecimal()
    option = _STANDS_FOR[name][0 if is_number else 1]
    if option == "-p" and {"-p", "--partition"} & set(words):
        return None
    return _typed([*before, option, extra.removeprefix("#") if is_number else extra, *behind])


def _place(text: str, words: Sequence[str]) -> tuple[int, int] | None:
    """Return where a text begins and ends among words, the last place if it has several."""
    for start in range(len(words) - 1, 0, -1):
        for end in range(start + 1, len(words) + 1):
            if " ".join(words[start:end]) == text:
                return start, end
    return None


def _replaced(word: str, other: str) -> str | None:
    """Return what was typed with another word in place of one."""
    return _typed([other if typed == word else typed for typed in sys.argv[1:]])


def swapped(one: str, other: str) -> str | None:
    """Return what was typed with two of its words in each other's place."""
    turned = {one: other, other: one}
    return _typed([turned.get(word, word) for word in sys.argv[1:]])


def _typed(words: Sequence[str]) -> str | None:
    """Return a command as it is typed, unless it is too long for a hint."""
    line = shlex.join(["reservoir", *words])
    return line if len(line) <= _LONGEST else None
