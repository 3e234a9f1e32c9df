"""Print the hits of a search, to a pipe or a terminal."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reservoir_cli.cli import console
from reservoir_cli.messages import StoredMessage, plain_text
from reservoir_cli.retrieval.search_hits import Hit
from reservoir_cli.retrieval.snippet import choose_part
from reservoir_cli.util.clock import to_local

if TYPE_CHECKING:
    from rich.text import Text


#: Characters of a passage printed to a pipe.
_SNIPPET = 300
#: Lines of text below the heading of a hit.
_LINES = 2
_INDENT = "   "
#: Legible on dark and light terminals alike, as in grep.
_WORD = "bold red"


@dataclass(frozen=True, slots=True)
class Form:
    """The format of hits."""

    full: bool = False
    snippets: bool = False
    oneline: bool = False
    timestamps: bool = False

    @property
    def cuts(self) -> bool:
        """Passages are printed instead of whole messages."""
        if self.full or self.oneline:
            return False
        return self.snippets or sys.stdout.isatty()


def print_hits(hits: Sequence[Hit], form: Form) -> None:
    """Print hits; by default whole messages to a pipe, and best passages to a terminal."""
    if not sys.stdout.isatty():
        console.write("".join(_plain_lines(hit, form) for hit in hits))
        return
    for hit in hits:
        console.texts(_styled_lines(hit, form))


def _plain_lines(hit: Hit, form: Form) -> str:
    lines = [f"{hit.rank}. {_line(hit.message, hit, form)}\n"]
    lines += [f"{_INDENT}{_line(message, None, form)}\n" for message in hit.linked]
    return "".join(lines)


def _line(message: StoredMessage, hit: Hit | None, form: Form) -> str:
    if not form.cuts:
        return console.message_line(message, form.timestamps, form.oneline)
    words, passage = (hit.words, hit.passage) if hit else ((), None)
    part, _ = choose_part(plain_text(message), words, passage, _SNIPPET)
    return f"{console.stamp(message) if form.timestamps else ''}{message.role}: {part}"


def _styled_lines(hit: Hit, form: Form) -> "Iterator[Text]":
    """Yield the lines of a hit on a terminal."""
    from rich.text import Text

    if form.oneline:
        yield _styled_line(hit, form)
        return
    width = console.columns()
    yield _heading(hit.message, f"{hit.rank}. ", hit.title, form, width)
    text = plain_text(hit.message)
    if form.full:
        yield Text(_INDENT).append_text(_highlight(text, hit.words, f"\n{_INDENT}"))
    else:
        yield from _passage(hit, text, width - len(_INDENT))
    for message in hit.linked:
        yield _heading(message, f"{_INDENT}↳ ", None, form, width)
        part, _ = choose_part(plain_text(message), (), None, max(8, width - 2 * len(_INDENT) - 1))
        yield Text(2 * _INDENT).append(console.escaped(part))


def _heading(
    message: StoredMessage, start: str, title: str | None, form: Form, width: int
) -> "Text":
    """Return the line above a hit: role, day, number, place and title, cut to the width."""
    from rich.text import Text

    day = f"{to_local(message.created_at):%Y-%m-%d}"
    moment = console.stamp(message).strip() if form.timestamps else day
    place = f"{message.partition}/{message.instance}"
    about = " ".join((title or "").split())
    parts = [moment, f"#{message.id}", place, *([about] if about else [])]
    heading = Text(start, "bold")
    heading.append(message.role.value, console.ROLE_STYLES[message.role.value])
    heading.append(console.escaped(f" · {' · '.join(parts)}"), "dim")
    heading.truncate(max(width, len(start) + len(message.role.value)), overflow="ellipsis")
    return heading


def _passage(hit: Hit, text: str, width: int) -> "Iterator[Text]":
    """Yield the passage of a hit in at most two lines."""
    from rich.cells import cell_len

    room = max(16, _LINES * width - 12)
    size = room
    part, words = choose_part(text, hit.words, hit.passage, size)
    if (cells := cell_len(console.escaped(part))) > room:
        size = max(8, room * len(part) // cells)
        part, words = choose_part(text, hit.words, hit.passage, size)
    lines = _wrap(_highlight(part, words, " "), max(8, width))
    if len(lines) > _LINES:
        lines[_LINES - 1].truncate(max(8, width) - 1)
        lines[_LINES - 1].append("…")
    for line in lines[:_LINES]:
        yield type(line)(_INDENT).append_text(line)


def _wrap(text: "Text", width: int) -> "list[Text]":
    from rich.console import Console

    lines = list(text.wrap(Console(width=width), width))
    for line in lines:
        line.rstrip()
    return [line for line in lines if line.plain]


def _styled_line(hit: Hit, form: Form) -> "Text":
    from rich.text import Text

    message = hit.message
    line = Text(f"{hit.rank}. ", "bold").append(f"#{message.id} ", "dim")
    line.append(console.stamp(message) if form.timestamps else "", "dim")
    line.append(f"{message.role}: ", console.ROLE_STYLES[message.role.value])
    return line.append_text(_highlight(plain_text(message), hit.words, "\\n"))


def _highlight(text: str, words: Sequence[tuple[int, int]], newline: str) -> "Text":
    """Return a text for a terminal with highlighted words.

    :param words: start and end of each word in the text.
    :param newline: replaces line breaks.
    """
    from rich.text import Text

    def escape(part: str) -> str:
        return console.escaped(part.replace("\r\n", "\n")).replace("\n", newline)

    styled, position = Text(), 0
    for start, end in words:
        if start >= position:
            styled.append(escape(text[position:start])).append(escape(text[start:end]), _WORD)
            position = end
    return styled.append(escape(text[position:]))
