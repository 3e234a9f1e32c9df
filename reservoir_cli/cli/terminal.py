"""A console whose text cannot control the terminal. Imports Rich, so it is imported on demand."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from reservoir_cli.util.unicode_text import escaped


class Terminal(Console):
    """A console that escapes control characters of all text; only its own styles pass."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render an object, and escape its text."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else escaped(text), style, control)
