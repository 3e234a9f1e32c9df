"""Build the shell command that prints the context window shown on the page."""

import shlex
from collections.abc import Iterator

from reservoir_cli.context.prepare_request import ContextOptions
from reservoir_cli.settings.schema import Value

#: Options of ``reservoir context``, by setting.
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
    """Return the command, quoted for a shell.

    :param database: the store, if it is not the default one.
    """
    named: dict[str, Value] = {
        "--partition": partition,
    }
    flags = options.flags()
    optional = {
        "--instance": instance,
        "--model": model,
        "--budget": budget,
        "--format": None if form == "text" else form,
        **{option: flags.pop(name, None) for name, option in _OPTIONS.items()},
    }
    named |= {option: value for option, value in optional.items() if value is not None}
    words = ["reservoir", *(["--db", database] if database else []), "context"]
    for option, value in named.items():
        words += _option_words(option, str(value))
    # Settings without an option are passed in the environment.
    environment = [f"RESERVOIR_{name.upper()}={value}" for name, value in flags.items()]
    argument = ["--", question] if question.startswith("-") else [question]
    return " ".join([*environment, shlex.join([*words, *argument])])


def _option_words(option: str, value: str) -> Iterator[str]:
    """Yield an option and its value; a value that looks like an option is joined with ``=``."""
    if value.startswith("-"):
        yield f"{option}={value}"
    else:
        yield from (option, value)
