"""Stack the parts of a value into a bar, and draw it."""

from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a stacked bar: its start and size as fractions of the whole bar."""

    name: str
    start: float
    size: float
    value: str


def stack(values: Iterable[tuple[str, float]], whole: float, decimals: int) -> list[Part]:
    """Return the parts of a bar of this size; their values are printed with ``decimals``."""
    parts, start = [], 0.0
    for name, value in values:
        size = max(0.0, value) / whole if whole > 0 else 0.0
        parts.append(Part(name, start, size, f"{value:,.{decimals}f}"))
        start += size
    return parts


def draw(parts: Iterable[Part], width: int, height: int) -> Markup:
    """Return the rectangles of a stacked bar, quicker than a template would."""
    rectangles = [
        f'<rect class="part {part.name}" x="{width * part.start:.2f}" '
        f'width="{width * part.size:.2f}" height="{height}"/>'
        for part in parts
        if part.size > 0
    ]
    return Markup("".join(rectangles))  # names of parts are constants
