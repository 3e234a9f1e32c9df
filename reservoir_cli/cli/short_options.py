"""Accept ``-p=work``, as other programs do; the parser alone would read the name ``=work``."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any


def split_short_options(
    parameters: Iterable[Any], words: list[str], *, interspersed: bool
) -> Iterator[str]:
    """Yield the words of a command, without the equals sign between a short option and its value.

    :param parameters: the parameters of the command.
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
    """Return where an option that takes a value ends in a word; 0 if there is none.

    Several short options may follow one hyphen; only the last of them takes a value.
    """
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
