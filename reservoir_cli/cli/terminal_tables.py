"""A terminal that stored text cannot control, and tables that fit into it. Imports Rich."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from reservoir_cli.util.clock import to_local
from reservoir_cli.util.unicode_text import escaped

_LEGIBLE = 24  # minimum width of a text column
#: Columns whose cells may be wrapped or cut; others are shown whole if there is room.
_LONG = {"title", "value", "found", "to do", "message", "text"}
#: Columns that a narrow terminal leaves out, the first of them first.
_SPARE = ("bytes", "source", "from", "first", "reserve", "recommended", "for context", "last")
_MOMENT = re.compile(r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00\Z")
_MINUTE = re.compile(r"\A(\d{4}-\d\d-\d\d)T\d\d:\d\d[+-][\d:]+\Z")


class Terminal(Console):
    """A console that escapes control characters of all text; only its own styles pass."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render an object, and escape its text."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else escaped(text), style, control)

    def print_table(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        numeric: Sequence[str] = (),
        spare: Sequence[str] = _SPARE,
        cut: str | None = None,
    ) -> None:
        """Print a table without a frame, within the width of the terminal if possible.

        Times are local, to the minute with the offset, or only the day if room is short.

        :param cut: the column whose cells are cut rather than wrapped.
        """
        from rich.box import SIMPLE_HEAD  # other output needs no tables
        from rich.table import Table

        rows = [[_MOMENT.sub(_local_minute, cell) for cell in row] for row in rows]
        if _width(columns, rows) > self.width:
            rows = [[_MINUTE.sub(r"\1", cell) for cell in row] for row in rows]
        for name in spare:
            if name in columns and _width(columns, rows) > self.width:
                columns, rows = _without(columns.index(name), columns, rows)
        if cut in columns:
            index = columns.index(cut)
            room = self.width - _width(*_without(index, columns, rows)) - 2
            rows = [[*row[:index], _shorten(row[index], room), *row[index + 1 :]] for row in rows]
        table = Table(
            box=SIMPLE_HEAD, show_header=any(columns), show_edge=False, padding=(0, 1, 0, 0)
        )
        is_too_wide = _width(columns, rows) > self.width
        for index, name in enumerate(columns):
            is_number = name in numeric
            is_name = any(columns) and name not in _LONG
            whole = is_number or name == "id" or (is_name and not is_too_wide)
            table.add_column(
                name,
                justify="right" if is_number else "left",
                overflow="ellipsis" if whole else "fold",
                no_wrap=whole,
                # If there is no room, names are wrapped, since a cut number would say nothing.
                min_width=max(cell_len(row[index]) for row in (columns, *rows))
                if is_number
                else None,
            )
        for row in rows:
            table.add_row(*(Text(escaped(cell)) for cell in row))
        self.print(table)


def _local_minute(match: re.Match[str]) -> str:
    return to_local(datetime.fromisoformat(match[0])).isoformat(timespec="minutes")


def _without(
    index: int, columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    header, *others = ([*row[:index], *row[index + 1 :]] for row in (columns, *rows))
    return header, others


def _shorten(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    beginning = set_cell_size(text, width - 1)
    words = beginning.rpartition(" ")[0]
    # A word is not divided, unless it is the only one or a very long one.
    return f"{(words if len(words) > len(beginning) // 2 else beginning).rstrip()}…"


def _width(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    widths = [max(map(cell_len, cells)) for cells in zip(columns, *rows, strict=True)]
    for index, name in enumerate(columns):
        if name in _LONG:
            widths[index] = min(widths[index], _LEGIBLE)
    return sum(widths) + 2 * len(widths) - 1
