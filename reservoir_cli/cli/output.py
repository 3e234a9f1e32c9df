"""The only place that prints. Data goes to stdout, everything else to stderr.

On a terminal Rich dresses it; in a pipe nothing is added to the data.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TextIO

from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Scope, StoredMessage, plain_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID
    from rich.table import Table
    from rich.text import Text

_ROLE_STYLES = {
    "user": "bold cyan",
    "assistant": "bold green",
    "system": "magenta",
    "tool": "yellow",
}
#: What could command a terminal, or show text in another order than it has: control characters,
#: and those that embed, override and isolate directions. Tab and line feed may stay.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
#: A column of text that is narrower says nothing.
_LEGIBLE = 24
_color = True


def configure(*, color: bool) -> None:
    """Use colour on terminals, or never."""
    global _color
    _color = color and not os.environ.get("NO_COLOR")


class ClosedPipe(Exception):
    """Whoever read our output has seen enough."""


def write(text: str) -> None:
    """Print data: to the last byte as it is, but for what could command a terminal.

    :raises ClosedPipe: nobody reads it any more.
    :raises ReservoirError: it cannot be written, as on a full disk.
    """
    progress.stop()
    try:
        sys.stdout.write(_shown(text) if sys.stdout.isatty() else text)
        sys.stdout.flush()
    except BrokenPipeError:
        _silence(sys.stdout)
        raise ClosedPipe from None
    except OSError as error:
        _silence(sys.stdout)
        raise ReservoirError(f"cannot write the output: {error.strerror}") from None


def _silence(stream: TextIO) -> None:
    """Let what is left in a stream's buffer go nowhere at exit, instead of failing once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def document(fields: Mapping[str, Any]) -> None:
    """Print one JSON document."""
    write_json({"schema_version": 1, **fields})


def write_json(value: Any) -> None:
    """Print a value as indented JSON; what UTF-8 cannot hold is written as an escape."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2)
    write(text + "\n")


def lines(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print JSON Lines: one row a line, no envelope."""
    write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def note(text: str) -> None:
    """Tell the person something on stderr."""
    _tell("note: ", text, "dim")


def warn(text: str) -> None:
    """Warn the person on stderr."""
    _tell("warning: ", text, "yellow")


def aside(text: str) -> None:
    """A line on stderr that needs no word before it, such as a summary."""
    _tell("", text, "dim")


def ask(question: str) -> bool:
    """Put a question on the terminal; anything but y or yes is a no."""
    progress.stop()
    sys.stderr.write(f"{_line(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def error(failure: ReservoirError, *, as_json: bool) -> None:
    """Show an error: one line, and a hint if there is one."""
    _tell("error: ", failure.message, "bold red")
    if failure.hint:
        _tell("hint: ", failure.hint, "yellow")
    if as_json:
        document(
            {
                "error": {
                    "kind": failure.kind,
                    "message": failure.message,
                    "hint": failure.hint,
                    "exit_code": failure.exit_code,
                }
            }
        )


def elsewhere(
    scope: Scope,
    places: Sequence[tuple[str, str, int]],
    *,
    in_partition: str = "--all-instances",
    beyond: str = "--all-partitions",
) -> None:
    """Say where messages are, after a read that found none in its scope.

    :param in_partition: the option that reads the whole partition.
    :param beyond: the option that reads everything, if there is one.
    """
    if not places:
        note("nothing is stored yet: reservoir ingest")
        return
    others = [place for place in places if not _inside(scope, place)]
    if not others:
        return
    partition, instance, count = max(
        others, key=lambda place: (place[0] == scope.partition, place[2])
    )
    if partition == scope.partition:
        ways = [f"-i {instance}", in_partition]
    else:
        ways = [f"-p {partition} -i {instance}", *([beyond] if beyond else [])]
    noun = "message" if count == 1 else "messages"
    note(f"nothing in {scope}; {count:,} {noun} in {partition}/{instance} ({', or '.join(ways)})")


def messages(found: Sequence[StoredMessage], *, timestamps: bool, oneline: bool) -> None:
    """Print messages as ``role: content``."""
    if sys.stdout.isatty():
        for each in found:
            _console(sys.stdout).print(_dressed(each, timestamps, oneline), soft_wrap=True)
    else:
        write("".join(f"{message_line(each, timestamps, oneline)}\n" for each in found))


def message_line(message: StoredMessage, timestamps: bool, oneline: bool) -> str:
    """A message as it is printed in a pipe."""
    text = plain_text(message)
    if oneline:
        text = text.replace("\r\n", "\\n").replace("\n", "\\n").replace("\r", "\\n")
    return f"{_stamp(message) if timestamps else ''}{message.role}: {text}"


def hits(ranked: Sequence[tuple[int, float, StoredMessage, Sequence[StoredMessage]]]) -> None:
    """Print search results: rank, score, message, and what is linked to it."""
    if not sys.stdout.isatty():
        out = []
        for rank, _, message, linked in ranked:
            out.append(f"{rank}. {message_line(message, False, False)}\n")
            out += [f"   {message_line(each, False, False)}\n" for each in linked]
        write("".join(out))
        return
    from rich.text import Text

    for rank, score, message, linked in ranked:
        head = Text().append(f"{rank}. ", "bold").append_text(_dressed(message, False, False))
        head.append(_shown(f"\n   {_stamp(message).rstrip()} score {score:.3f}"), "dim")
        _console(sys.stdout).print(head, soft_wrap=True)
        for each in linked:
            _console(sys.stdout).print(
                Text("   ").append_text(_dressed(each, False, False)), soft_wrap=True
            )


def window_text(text: str) -> None:
    """Print a context; on a terminal titles and roles are set off."""
    if not sys.stdout.isatty():
        write(text)
        return
    from rich.text import Text

    dressed = Text(_shown(text))
    dressed.highlight_regex(r"(?m)^\[[^\]\n]+\]$", "bold magenta")
    dressed.highlight_regex(r"(?m)^\d{4}-\d\d-\d\d$", "dim")
    for role, style in _ROLE_STYLES.items():
        dressed.highlight_regex(rf"(?m)^{role}:", style)
    _console(sys.stdout).print(dressed, soft_wrap=True, end="")


def table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[str] = ()
) -> None:
    """Print a table; in a pipe its cells are parted by tabs and there is no head.

    :param numeric: columns that are set to the right.
    """
    if sys.stdout.isatty():
        _console(sys.stdout).print(_rich_table(columns, rows, numeric))
    else:
        write("".join("\t".join(map(_cell, row)) + "\n" for row in rows))


def _cell(text: str) -> str:
    """What stands between tabs, on one line."""
    return text.replace("\t", "\\t").replace("\r", "\\r").replace("\n", "\\n")


def side_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[str] = ()
) -> None:
    """Print a table to stderr, in columns even where it is no terminal.

    The last column takes what room a terminal has left, and is left out where that is little.
    """
    widths = [max(len(row[at]) for row in (columns, *rows)) for at in range(len(columns) - 1)]
    if sys.stderr.isatty():
        console = _console(sys.stderr)
        left = console.width - sum(widths) - 2 * len(columns)
        if left >= _LEGIBLE:
            rows = [(*row[:-1], row[-1][:left]) for row in rows]
        else:
            columns, rows = columns[:-1], [row[:-1] for row in rows]
        console.print(_rich_table(columns, rows, numeric))
        return
    columns, rows = columns[:-1], [row[:-1] for row in rows]
    for row in (columns, *rows):
        cells = [
            cell.rjust(width) if name in numeric else cell.ljust(width)
            for cell, width, name in zip(row, widths, columns, strict=True)
        ]
        sys.stderr.write("  ".join(cells).rstrip() + "\n")


def _rich_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[str]
) -> "Table":
    """A table without a frame; cells that are too long are folded."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    shown = Table(box=SIMPLE_HEAD, show_header=any(columns), show_edge=False, padding=(0, 1, 0, 0))
    for name in columns:
        shown.add_column(name, justify="right" if name in numeric else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(_plain(cell) for cell in row))
    return shown


class ProgressBar:
    """Long work on stderr, if that is a terminal; it makes way for anything that is printed.

    Call it with what is being done, how much of it is done, and how much there is (0: unknown).
    """

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show how far the work has come."""
        if not sys.stderr.isatty():
            return
        if self._bar is None or self._task is None:
            from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

            columns = (
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.fields[share]}"),
            )
            self._bar = Progress(
                *columns,
                console=_console(sys.stderr),
                transient=True,
                redirect_stdout=False,  # stdout may be a pipe, and it is not the bar's
                redirect_stderr=False,
            )
            self._task = self._bar.add_task(what, total=None, share="")
            self._bar.start()
        share = f"{done:,} of {total:,}" if total else ""
        self._bar.update(
            self._task, description=what, completed=done, total=total or None, share=share
        )

    def stop(self) -> None:
        """Take the bar off the screen."""
        if self._bar is not None:
            self._bar.stop()
        self._bar = self._task = None


progress = ProgressBar()


def _tell(prefix: str, text: str, style: str) -> None:
    progress.stop()
    line = f"{prefix}{_line(text)}"
    try:
        if sys.stderr.isatty() and _color:
            from rich.text import Text

            _console(sys.stderr).print(Text(line), style=style, soft_wrap=True)
        else:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()
    except OSError:
        _silence(sys.stderr)  # nobody listens; the data matters, not the remarks


def _console(file: TextIO) -> "Console":
    from rich.console import Console

    progress.stop()
    system: Literal["auto"] | None = "auto" if _color else None
    return Console(file=file, color_system=system, highlight=False, markup=False, emoji=False)


def _plain(text: str) -> "Text":
    from rich.text import Text

    return Text(_shown(text))


def _dressed(message: StoredMessage, timestamps: bool, oneline: bool) -> "Text":
    from rich.text import Text

    text = message_line(message, False, oneline)
    shown = Text()
    shown.append(_shown(_stamp(message)) if timestamps else "", "dim")
    shown.append(f"{message.role}:", _ROLE_STYLES[message.role.value])
    return shown.append(_shown(text.removeprefix(f"{message.role}:")))


def _stamp(message: StoredMessage) -> str:
    return f"{message.created_at.isoformat(timespec='seconds')} [{message.trace_id[:8]}] "


def _shown(text: str) -> str:
    """Text for a terminal: what could command it is written out.

    JSON stays JSON: what it allows raw in its texts is written as it escapes it.
    """
    return text if text.isascii() and text.isprintable() else _CONTROL.sub(_written_out, text)


def _written_out(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 0x20 else f"\\u{number:04x}"


def _line(text: str) -> str:
    """Text for a terminal on one line."""
    return _shown(text.replace("\n", "\\n"))


def _inside(scope: Scope, place: tuple[str, str, int]) -> bool:
    return scope.partition in (None, place[0]) and scope.instance in (None, place[1])
