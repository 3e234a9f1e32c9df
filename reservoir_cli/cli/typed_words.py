"""Read the words of a command line where the option parser would misunderstand them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from reservoir_cli.cli.mistyped_commands import replace_words
from reservoir_cli.errors import UsageError

#: Dashes that editors and web pages show in place of one or two hyphens, and a word that begins
#: with one: its beginning, the name and perhaps a value.
_DASHES = "\u2010-\u2015\u2212\ufe58\ufe63\uff0d"
_DASHED = rf"(?s)(?=-?[{_DASHES}])[-{_DASHES}]+([A-Za-z][\w-]*)(=.*)?"


def split_short_options(
    parameters: Iterable[Any], words: list[str], *, interspersed: bool
) -> Iterator[str]:
    """Yield the words without the equals sign in ``-p=work``: the parser would read ``=work``.

    :param interspersed: whether options may follow arguments.
    """
    options = {name: option for option in parameters for name in option.opts}
    rest = iter(words)
    for word in rest:
        if word == "--" or not (interspersed or word.startswith("-")):
            yield from (word, *rest)
            return
        end = _end_of_option(word, options)
        if word[:2] != "--" and end and word[end:].startswith("="):
            yield from (word[:end], word[end + 1 :])
        else:
            yield word
            if end == len(word):
                yield from islice(rest, 1)  # its value, which may look like an option


def _end_of_option(word: str, options: dict[str, Any]) -> int:
    """Return where the value of the last option in a word such as ``-qp`` begins; 0 for none."""
    if word.startswith("--"):
        return len(word) if _takes_value(options.get(word)) else 0
    for end, letter in enumerate(word[1:] if word.startswith("-") else "", 2):
        if f"-{letter}" not in options:
            return 0
        if _takes_value(options[f"-{letter}"]):
            return end
    return 0


def _takes_value(option: Any) -> bool:
    return option is not None and not (option.is_flag or option.count)


def join_explain_all(args: list[str]) -> list[str]:
    """Make ``--explain all`` one option, but only at the end: a question may follow it."""
    joined = list(args)
    for index, word in enumerate(args[:-1]):
        if word == "--":
            break
        is_last = index + 2 == len(args) or args[index + 2].startswith("-")
        if word == "--explain" and args[index + 1] == "all" and is_last:
            joined[index + 1] = "--explain-all"
    return joined


def refuse_dashes(words: Sequence[str], parameters: Iterable[Any]) -> None:
    """Refuse options with dashes of web pages; other words, as of a question, are left alone.

    :raises UsageError: the hint is the command with hyphens.
    """
    words = words[: words.index("--") if "--" in words else None]
    unusual = (word for word in words if not word.isascii())
    dashed = [match for word in unusual if (match := re.fullmatch(_DASHED, word))]
    known = {name for parameter in parameters for name in parameter.opts} if dashed else ()
    meant = {
        match[0]: f"{option}{match[2] or ''}"
        for match in dashed
        if (option := f"{'-' if len(match[1]) == 1 else '--'}{match[1]}") in known
    }
    if meant:
        first = next(iter(meant))
        raise UsageError(f"{first!r} begins with a dash that is not a hyphen", replace_words(meant))
