"""What the form of the window asks for, and where its sliders stand."""

from dataclasses import dataclass

from reservoir_cli.context.request import ContextOptions
from reservoir_cli.context.types import FORMATS
from reservoir_cli.errors import UsageError
from reservoir_cli.server.web.query_parameters import Query, name_of, number_of, share_of, text_of
from reservoir_cli.settings.schema import Settings

#: The budget if neither a budget nor a model is given.
_BUDGET = 4_000


@dataclass(frozen=True, slots=True)
class Question:
    """What the form of the view asks for; an absent option is left to the settings."""

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
    def of(cls, query: Query) -> "Question":
        """Read the form.

        :raises UsageError: something in it means nothing.
        """
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
            _BUDGET if budget is None and model is None else budget,
            form,
            _options(query),
            tuple(number for number in [number_of(query, "without")] if number),
        )


def _printable(text: str) -> str:
    """Return a question without control characters: it is pasted into a terminal, too."""
    return "".join(letter for letter in text if letter.isprintable() or letter == "\n")


def _options(query: Query) -> ContextOptions:
    """Read the sliders; one that is where it was has not been set.

    A form sends all its sliders, and beside each what it was at first, ``was-NAME``.
    """
    excerpts, over = text_of(query, "excerpts"), number_of(query, "excerpt_over")
    if excerpts not in ("", "auto", "off"):
        raise UsageError("excerpts are auto or off")
    return ContextOptions(
        similarity_weight=_moved(query, "similarity_weight", 1),
        recency_weight=_moved(query, "recency_weight", 1),
        recall_floor=_moved(query, "recall_floor", 2),
        excerpts=None if excerpts == text_of(query, "was-excerpts") else excerpts or None,
        excerpt_over=None if _is_unmoved(query, "excerpt_over") else over,
    )


def _moved(query: Query, name: str, most: float) -> float | None:
    value = share_of(query, name, most)
    return None if _is_unmoved(query, name) else value


def _is_unmoved(query: Query, name: str) -> bool:
    return bool(text_of(query, name)) and text_of(query, name) == text_of(query, f"was-{name}")


@dataclass(frozen=True, slots=True)
class Slider:
    """A number that is moved by hand.

    :param was: where it stands when nobody moves it.
    """

    name: str
    label: str
    value: float
    was: str
    most: float
    step: float


def sliders(given: ContextOptions, usual: Settings, floor: float) -> list[Slider]:
    """Return the sliders, each where it stands now.

    :param usual: the settings without the sliders.
    :param floor: the one in force without the sliders: it goes by the model, and the store.
    """
    return [
        _slider("similarity_weight", "similarity", given, usual.similarity_weight, 1, 0.01),
        _slider("recency_weight", "recency", given, usual.recency_weight, 1, 0.01),
        _slider("recall_floor", "floor", given, floor, 2, 0.001),
        _slider("excerpt_over", "excerpts over", given, usual.excerpt_over, 2_000, 1),
    ]


def _slider(
    name: str, label: str, given: ContextOptions, usual: float, most: float, step: float
) -> Slider:
    was = round(usual / step) * step  # a browser moves a slider to its next step
    moved = getattr(given, name)
    return Slider(name, label, was if moved is None else moved, f"{was:g}", most, step)
