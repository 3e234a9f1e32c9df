"""Recognise mistyped options and arguments, and suggest the exact command in the hint."""

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from reservoir_cli.errors import UsageError, mask_passwords
from reservoir_cli.util.unicode_text import plain_digits, similar_names

#: Global options, each with the placeholder of its value.
BEFORE_COMMAND = {"--config": " FILE", "--db": " PATH"} | dict.fromkeys(
    ("--offline", "--no-plugins", "--no-color"), ""
)
#: The options meant by an extra argument: by a number, and by any other word.
_EXTRA_ARGUMENT_OPTIONS = {
    "forget": ("--id", "--match"),
    "view": ("--id", "-p"),
    **dict.fromkeys(("conversations", "stats", "export", "summarize", "init", "mcp"), ("-p", "-p")),
}
#: Options that take a time, which may consist of several words.
_TIMES = ("--since", "--until", "--before", "--at")
_COUNT = "[COUNT]"  # the metavar of a positional number, as in ``view 5``
#: Options of other programs, each with ours that may be meant; a command has at most one of these.
_SIMILAR_OPTIONS = {
    **dict.fromkeys(("-n", "--limit", "--count", "--last"), (_COUNT, "--limit", "--recent")),
    **dict.fromkeys(("--tokens", "--max-tokens"), ("--budget",)),
    **dict.fromkeys(("--from", "--after"), ("--since",)),
    "--force": ("--yes",),
    "--output": ("-o",),
}
#: Patterns in messages of the option parser, and their replacements in plain words.
_REWORDINGS = (
    (r"^Got unexpected extra arguments?\S* \((.*)\)$", r"too many arguments: \1"),
    (r"'\[?([A-Z]+)\]?'", r"\1"),
    (r"is not a valid int\w*( range)?$", "is not a whole number"),
    (r"is not a valid float( range)?$", "is not a number"),
    (r"is not in the range x>=(\S+)$", r"is less than \1"),
    (r"is not in the range (\S+)<=x<=(\S+)$", r"is not between \1 and \2"),
)
_LONGEST = 200  # longer commands, such as one with a whole question, are not repeated in a hint


def as_usage_error(failure: Any, group: Any) -> UsageError:
    """Convert an error of the option parser to a UsageError."""
    context = getattr(failure, "ctx", None)
    name = context.command_path if context else "reservoir"
    option = getattr(failure, "option_name", None)
    if option in BEFORE_COMMAND and not (context and context.parent):
        value = BEFORE_COMMAND[option]
        fault = f"needs a value:{value}" if value else "takes no value"
        return UsageError(f"{option} {fault}", hint=f"{name} {option}{value} COMMAND")
    if option in BEFORE_COMMAND:
        return UsageError(
            f"{option} goes before the command",
            hint=name.replace(" ", f" {option}{BEFORE_COMMAND[option]} ", 1),
        )
    if option and context and not context.parent and (command := _move_after(option, group)):
        return UsageError(f"{option} goes after the command", hint=command)
    message = _message(failure, context)
    hint = _suggest(failure, message, context) if context else _option_usage(option, group)
    for pattern, replacement in _REWORDINGS:
        message = re.sub(pattern, replacement, message)
    return UsageError(message[:1].lower() + message[1:], hint=hint or f"{name} --help")


def _message(failure: Any, context: Any) -> str:
    if not context or not hasattr(failure, "possibilities"):
        return " ".join(failure.format_message().split()).rstrip(".")
    names = [name for parameter in context.command.params for name in parameter.opts]
    options = [name.removeprefix("--") for name in names if name.startswith("-")]
    near = similar_names(failure.option_name.lstrip("-"), options)
    suggestions = ", ".join(f"'--{name}'" for name in near)
    return f"{failure.message}. Did you mean {suggestions}?" if near else str(failure.message)


def _named_command(group: Any) -> tuple[Any, list[str]]:
    command, names = group, []
    for word in sys.argv[1:]:
        if word in getattr(command, "commands", ()):
            command = command.commands[word]
            names.append(word)
    return command, names


def _move_after(option: str, group: Any) -> str | None:
    command, names = _named_command(group)
    if not names or not any(option in parameter.opts for parameter in command.params):
        return None
    words = sys.argv[1:]
    start = next(index for index, word in enumerate(words) if word.startswith(option))
    end = words.index(names[0])
    return quote_command([*words[:start], *words[end:], *words[start:end]])


def _option_usage(option: str | None, group: Any) -> str | None:
    """Return how an option is written with its values, such as ``reservoir view --since T``."""
    command, names = _named_command(group)
    with command.make_context(" ".join(names), [], resilient_parsing=True) as context:
        for parameter in command.params:
            if option in parameter.opts:
                return " ".join(["reservoir", *names, str(option), parameter.make_metavar(context)])
    return None


def _suggest(failure: Any, message: str, context: Any) -> str | None:
    if option := getattr(failure, "option_name", None):
        return _replace_option(option, context.command)
    if message.startswith("Missing"):
        return _add_missing(failure.param, context)
    if match := re.search(r"'((\d{1,9})[kK])' is not a valid int", message):
        return replace_words({match[1]: f"{match[2]}000"})
    if match := re.search(r"extra arguments?\S* \((.*)\)$", message):
        return _place_extra(match[1], context)
    is_argument = getattr(getattr(failure, "param", None), "param_type_name", "") == "argument"
    if is_argument and (match := re.search(r"'([^']+)' is not a valid int", message)):
        return _place_extra(match[1], context)
    return None


def _replace_option(typed: str, command: Any) -> str | None:
    number = typed[1:] if re.fullmatch(r"-\d+", typed) else ""
    if typed not in sys.argv[1:]:
        return None
    if (typed, command.name) == ("--json", "context"):  # it prints JSON in several formats
        return _replace_word(typed, "--format", "json")
    if typed.removeprefix("--") in getattr(command, "commands", ()):
        return replace_words({typed: typed.removeprefix("--")})
    names = {name for parameter in command.params for name in (*parameter.opts, parameter.metavar)}
    for option in _SIMILAR_OPTIONS.get("-n" if number else typed, ()):
        if option in names:
            replacement = [*([] if option == _COUNT else [option]), *([number] if number else [])]
            return _replace_word(typed, *replacement)
    return None


def _add_missing(parameter: Any, context: Any) -> str | None:
    if parameter.param_type_name != "argument":
        return quote_command([*sys.argv[1:], parameter.opts[0], parameter.make_metavar(context)])
    rest = context.command.params[context.command.params.index(parameter) :]
    missing = [p for p in rest if p.param_type_name == "argument" and p.required]
    words = sys.argv[1:]
    pair = next((word for word in words if "=" in word and word[:1] != "-"), None)
    if pair and len(missing) == 1:  # rename A=B
        return _replace_word(pair, *pair.split("=", 1))
    return quote_command([*words, *(p.make_metavar(context) for p in missing)])


def _place_extra(extra: str, context: Any) -> str | None:
    """Return the command with extra arguments turned into the option that is meant."""
    words, name = sys.argv[1:], context.info_name
    if (position := _find_words(extra, words)) is None:
        return None
    before, after = words[: position[0]], words[position[1] :]
    flags = [param for param in context.command.params if getattr(param, "is_flag", False)]
    if any(f"--{extra}" in flag.opts for flag in flags):
        return quote_command([*before, f"--{extra}", *after])
    is_time = len(before) > 1 and before[-2] in _TIMES
    if is_time or name == "edit":  # several words without quotes
        return quote_command([*before[:-1], f"{before[-1]} {extra}", *after])
    if name not in _EXTRA_ARGUMENT_OPTIONS:
        return None
    number = plain_digits(extra).removeprefix("#")
    is_number = number.isdecimal()
    option = _EXTRA_ARGUMENT_OPTIONS[name][0 if is_number else 1]
    if option == "-p" and {"-p", "--partition"} & set(words):
        return None
    return quote_command([*before, option, number if is_number else extra, *after])


def _find_words(text: str, words: Sequence[str]) -> tuple[int, int] | None:
    for start in range(len(words) - 1, 0, -1):
        for end in range(start + 1, len(words) + 1):
            if " ".join(words[start:end]) == text:
                return start, end
    return None


def _replace_word(word: str, *replacement: str) -> str | None:
    words = sys.argv[1:]
    index = words.index(word)
    return quote_command([*words[:index], *replacement, *words[index + 1 :]])


def replace_words(replacements: Mapping[str, str]) -> str | None:
    """Return the command line with words replaced."""
    return quote_command([replacements.get(word, word) for word in sys.argv[1:]])


def quote_command(words: Sequence[str]) -> str | None:
    """Return a command quoted for the shell, unless it is too long for a hint."""
    line = shlex.join(["reservoir", *map(mask_passwords, words)])
    return line if len(line) <= _LONGEST else None
