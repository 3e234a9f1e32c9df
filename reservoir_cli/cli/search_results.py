"""What a search prints: its hits in a pipe, and on a terminal."""

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


#: Characters of a passage in a pipe.
_SNIPPET = 300
#: Lines of text below the heading of a hit.
_LINES = 2
_INDENT = "   "
#: Legible on dark and light terminals alike, as in grep.
_WORD = "bold red"


@dataclass(frozen=True, slots=True)
class Form:
    """How hits are printed."""

    full: bool = False
    snippets: bool = False
    oneline: bool = False
    timestamps: bool = False

    @property
    def cuts(self) -> bool:
        """Whether passages are printed instead of whole messages."""
        if self.full or self.oneline:
            return False
        return self.snippets or sys.stdout.isatty()


def print_hits(hits: Sequence[Hit], form: Form) -> None:
    """Print hits: in a pipe a message each, on a terminal its best passage."""
    if not sys.stdout.isatty():
        console.write("".join(_piped(hit, form) for hit in hits))
        return
    for hit in hits:
        console.texts(_dressed(hit, form))


def _piped(hit: Hit, form: Form) -> str:
    lines = [f"{hit.rank}. {_line(hit.message, hit, form)}\n"]
    lines += [f"{_INDENT}{_line(message, None, form)}\n" for message in hit.linked]
    return "".join(lines)


def _line(message: StoredMessage, hit: Hit | None, form: Form) -> str:
    if not form.cuts:
        return console.message_line(message, form.timestamps, form.oneline)
    words, passage = (hit.words, hit.passage) if hit else ((), None)
    part, _ = choose_part(plain_text(message), words, passage, _SNIPPET)
    return f"{console.stamp(message) if form.timestamps else ''}{message.role}: {part}"


def _dressed(hit: Hit, form: Form) -> "Iterator[Text]":
    """Yield the lines of a hit on a terminal."""
    from rich.text import Text

    if form.oneline:
        yield _on_one_line(hit, form)
        return
    width = console.columns()
    yield _heading(hit.message, f"{hit.rank}. ", hit.title, form, width)
    text = plain_text(hit.message)
    if form.full:
        yield Text(_INDENT).append_text(_marked(text, hit.words, f"\n{_INDENT}"))
    else:
        yield from _passage(hit, text, width - len(_INDENT))
    for message in hit.linked:
        yield _heading(message, f"{_INDENT}↳ ", None, form, width)
        part, _ = choose_part(plain_text(message), (), None, max(8, width - 2 * len(_INDENT) - 1))
        yield Text(2 * _INDENT).append(console.escaped(part))


def _heading(
    message: StoredMessage, start: str, title: str | None, form: Form, width: int
) -> "Text":
    """Return the line above a hit: role, day, number, place and title, as far as there is room."""
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
    lines = _wrapped(_marked(part, words, " "), max(8, width))
    if len(lines) > _LINES:
        lines[_LINES - 1].truncate(max(8, width) - 1)
        lines[_LINES - 1].append("…")
    for line in lines[:_LINES]:
        yield type(line)(_INDENT).append_text(line)


def _wrapped(text: "Text", width: int) -> "list[Text]":
    from rich.console import Console

    lines = list(text.wrap(Console(width=width), width))
    for line in lines:
        line.rstrip()
    return [line for line in lines if line.plain]


def _on_one_line(hit: Hit, form: Form) -> "Text":
    from rich.text import Text

    message = hit.message
    line = Text(f"{hit.rank}. ", "bold").append(f"#{message.id} ", "dim")
    line.append(console.stamp(message) if form.timestamps else "", "dim")
    line.append(f"{message.role}: ", console.ROLE_STYLES[message.role.value])
    return line.append_text(_marked(plain_text(message), hit.words, "\\n"))


def _marked(text: str, words: Sequence[tuple[int, int]], newline: str) -> "Text":
    """Return a text for a terminal with some words set off.

    :param newline: what stands for a line break.
    """
    from rich.text import Text

    def plain(part: str) -> str:
        return console.escaped(part.replace("\r\n", "\n")).replace("\n", newline)

    marked, at = Text(), 0
    for start, end in words:
        if start >= at:
            marked.append(plain(text[at:start])).append(plain(text[start:end]), _WORD)
            at = end
    return marked.append(plain(text[at:]))
