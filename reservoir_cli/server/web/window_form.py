"""Read the form of the context view, position its sliders, and build the command that prints it."""

import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from reservoir_cli.context.prepare_request import ContextOptions
from reservoir_cli.context.request import FORMATS
from reservoir_cli.errors import UsageError
from reservoir_cli.server.web.check_parameters import (
    Query,
    fraction_of,
    name_of,
    number_of,
    text_of,
)
from reservoir_cli.settings.schema import Settings

BUDGET = 4_000  # the default budget in tokens, if no model is given either
#: Options of ``reservoir context``, by setting.
_COMMAND_OPTIONS = {"recall_floor": "--floor", "excerpts": "--excerpts"}


@dataclass(frozen=True, slots=True)
class WindowForm:
    """The fields of the form; the settings decide absent options."""

    text: str
    asked: bool
    partition: str | None
    instance: str | None
    model: str | None
    budget: int | None
    form: str
    options: ContextOptions
    without: tuple[int, ...]

    @classmethod
    def of(cls, query: Query) -> "WindowForm":
        """Read the form; raise UsageError if a field is invalid."""
        model, asked = name_of(query, "model"), "q" in query
        budget = number_of(query, "budget")
        form = text_of(query, "format") or "text"
        if form not in FORMATS:
            raise UsageError(f"unknown format {form!r}", hint=f"formats are {', '.join(FORMATS)}")
        return cls(
            _printable(text_of(query, "q")),
            asked,
            name_of(query, "p"),
            name_of(query, "i"),
            model,
            BUDGET if budget is None and model is None else budget,
            form,
            _options(query),
            tuple(number for number in [number_of(query, "without")] if number),
        )


def read_form(query: Query) -> tuple[WindowForm, UsageError | None]:
    """Read the form without its invalid fields, and what is wrong with the first one."""
    try:
        return WindowForm.of(query), None
    except UsageError as error:
        problem = error
    valid: dict[str, str] = {}
    for name, value in query.items():
        with suppress(UsageError):
            WindowForm.of({**valid, name: value})
            valid[name] = value
    return WindowForm.of(valid), problem


def _printable(text: str) -> str:
    """Return a question without control characters, since the command is pasted into a terminal."""
    return "".join(letter for letter in text if letter.isprintable() or letter == "\n")


def _options(query: Query) -> ContextOptions:
    """Read the sliders that were moved: a form sends the initial value of each as ``was-NAME``."""
    excerpts, over = text_of(query, "excerpts"), number_of(query, "excerpt_over")
    if excerpts not in ("", "auto", "off"):
        raise UsageError("excerpts are auto or off")
    return ContextOptions(
        similarity_weight=_moved_value(query, "similarity_weight", 1),
        recency_weight=_moved_value(query, "recency_weight", 1),
        recall_floor=_moved_value(query, "recall_floor", 2),
        excerpts=None if excerpts == text_of(query, "was-excerpts") else excerpts or None,
        excerpt_over=None if _is_unmoved(query, "excerpt_over") else over,
    )


def _moved_value(query: Query, name: str, most: float) -> float | None:
    value = fraction_of(query, name, most)
    return None if _is_unmoved(query, name) else value


def _is_unmoved(query: Query, name: str) -> bool:
    return bool(text_of(query, name)) and text_of(query, name) == text_of(query, f"was-{name}")


@dataclass(frozen=True, slots=True)
class Slider:
    """A slider for a number; ``was`` is its initial value, as the form sends it."""

    name: str
    label: str
    value: float
    was: str
    most: float
    step: float


def sliders(options: ContextOptions, usual: Settings, floor: float) -> list[Slider]:
    """Return the sliders at their positions; ``usual`` and ``floor`` hold if they are not moved."""
    return [
        _slider("similarity_weight", "similarity", options, usual.similarity_weight, 1, 0.01),
        _slider("recency_weight", "recency", options, usual.recency_weight, 1, 0.01),
        _slider("recall_floor", "floor", options, floor, 2, 0.001),
        _slider("excerpt_over", "excerpts over", options, usual.excerpt_over, 2_000, 1),
    ]


def _slider(
    name: str, label: str, options: ContextOptions, usual: float, most: float, step: float
) -> Slider:
    was = round(usual / step) * step  # browsers round a slider to its steps
    moved = getattr(options, name)
    return Slider(name, label, was if moved is None else moved, f"{was:g}", most, step)


def context_command(question: WindowForm, partition: str, database: str | None = None) -> str:
    """Return the command for the window on the page; no ``database`` stands for the default."""
    flags = question.options.flags()
    named = {
        "--partition": partition,
        "--instance": question.instance,
        "--model": question.model,
        "--budget": question.budget,
        "--format": None if question.form == "text" else question.form,
        **{option: flags.pop(name, None) for name, option in _COMMAND_OPTIONS.items()},
    }
    words = ["reservoir", *(["--db", database] if database else []), "context"]
    for option, value in named.items():
        if value is not None:
            words += _option_words(option, str(value))
    # Settings without an option are passed in the environment.
    environment = [f"RESERVOIR_{name.upper()}={value}" for name, value in flags.items()]
    argument = ["--", question.text] if question.text.startswith("-") else [question.text]
    return " ".join([*environment, shlex.join([*words, *argument])])


def _option_words(option: str, value: str) -> Iterator[str]:
    """Yield an option and its value; a value that looks like an option is joined with ``=``."""
    if value.startswith("-"):
        yield f"{option}={value}"
    else:
        yield from (option, value)
