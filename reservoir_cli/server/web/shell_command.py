"""The command that prints the window of the page, quoted for a shell."""

import shlex
from collections.abc import Iterator

from reservoir_cli.context.request import ContextOptions
from reservoir_cli.settings.schema import Value

#: Options of ``reservoir context`` by the settings that they stand for.
_OPTIONS = {"recall_floor": "--floor", "excerpts": "--excerpts"}


def context_command(
    question: str,
    *,
    database: str | None,
    partition: str,
    instance: str | None,
    model: str | None,
    budget: int | None,
    form: str,
    options: ContextOptions,
) -> str:
    """Return the command.

    :param database: where the store is, if it is not the usual one.
    """
    named: dict[str, Value] = {
        "--partition": partition,
    }
    flags = options.flags()
    given = {
        "--instance": instance,
        "--model": model,
        "--budget": budget,
        "--format": None if form == "text" else form,
        **{option: flags.pop(name, None) for name, option in _OPTIONS.items()},
    }
    named |= {option: value for option, value in given.items() if value is not None}
    words = ["reservoir", *(["--db", database] if database else []), "context"]
    for option, value in named.items():
        words += _given(option, str(value))
    # Settings without an option are set for this run alone.
    environment = [f"RESERVOIR_{name.upper()}={value}" for name, value in flags.items()]
    ending = ["--", question] if question.startswith("-") else [question]
    return " ".join([*environment, shlex.join([*words, *ending])])


def _given(option: str, value: str) -> Iterator[str]:
    """Yield an option with its value; one that looks like an option is tied to it."""
    if value.startswith("-"):
        yield f"{option}={value}"
    else:
        yield from (option, value)
