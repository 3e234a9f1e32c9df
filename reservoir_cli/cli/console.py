"""The only place that prints. Data goes to stdout, everything else to stderr.

On a terminal Rich dresses it; in a pipe nothing is added to the data.
"""

import errno
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TextIO

from reservoir_cli.cli import tables
from reservoir_cli.cli.progress import pace
from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import StoredMessage, plain_text
from reservoir_cli.util.clock import to_local

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID
    from rich.text import Text

ROLE_STYLES = {
    "user": "bold cyan",
    "assistant": "bold green",
    "system": "magenta",
    "tool": "yellow",
}
#: What could command a terminal, or show text in another order than it has: control characters,
#: and those that embed, override and isolate directions. Tab and line feed may stay.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_color = True
_quiet = False


def configure(*, color: bool) -> None:
    """Use colour on terminals, or never."""
    global _color
    _color = color


def _uses_color() -> bool:
    return _color and not os.environ.get("NO_COLOR")


def be_quiet(wanted: bool) -> None:
    """Print no notes and no summaries any more; warnings and errors stay."""
    global _quiet
    _quiet = _quiet or wanted


class ClosedPipe(Exception):
    """Whoever read our output has seen enough."""


def is_quiet() -> bool:
    """Return whether notes and summaries are left out."""
    return _quiet


def write(text: str) -> None:
    """Print data: to the last byte as it is, but for what could command a terminal.

    :raises ClosedPipe: nobody reads it any more.
    :raises ReservoirError: it cannot be written, as on a full disk.
    """
    progress.stop()
    try:
        sys.stdout.write(escaped(text) if sys.stdout.isatty() else text)
        sys.stdout.flush()
    except BrokenPipeError:
        _silence(sys.stdout)
        raise ClosedPipe from None
    except OSError as error:
        _silence(sys.stdout)
        reason = "stdout is closed" if error.errno == errno.EBADF else error.strerror
        raise ReservoirError(
            f"cannot write the output: {reason}", hint="send it to a place with room for it"
        ) from None


def _silence(stream: TextIO) -> None:
    """Let what is left in a stream's buffer go nowhere at exit, instead of failing once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def document(fields: Mapping[str, Any]) -> None:
    """Print one JSON document."""
    write_json({"schema_version": 1, **fields})


def write_json(value: Any) -> None:
    """Print a value as indented JSON; what UTF-8 cannot hold is written as an escape."""
    write(json_text(value))


def json_text(value: Any) -> str:
    """Return a value as indented JSON, which ends with a line break."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2)
    return text + "\n"


def lines(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print JSON Lines: one row a line, no envelope."""
    write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def note(text: str) -> None:
    """Print a remark to stderr."""
    if not _quiet:
        _tell("note: ", text, "dim")


def warn(text: str) -> None:
    """Warn the person on stderr."""
    _tell("warning: ", text, "yellow")


def aside(text: str) -> None:
    """Print a line to stderr that needs no word before it, such as a summary."""
    if not _quiet:
        _tell("", text, "dim")


def trace(text: str) -> None:
    """Print a line of a traceback to stderr."""
    _tell("", text, "dim")


def legend(text: str) -> None:
    """Explain a table on stderr; a terminal breaks it between words."""
    if sys.stderr.isatty():
        _console(sys.stderr).print(_dim(text))
    else:
        _tell("", text, "dim")


def ask(question: str, *, usual: bool = False) -> bool:
    """Put a question on the terminal; anything but y or yes is a no.

    :param usual: what Enter alone stands for.
    """
    answer = read_answer(f"{question} {'[Y/n]' if usual else '[y/N]'}")
    if answer == "":
        return usual
    return answer is not None and answer.lower() in ("y", "yes")


def read_answer(question: str) -> str | None:
    """Put a question on the terminal, and read a line; ``None`` where there is none (Ctrl-D)."""
    progress.stop()
    sys.stderr.write(f"{_line(question)} ")
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        sys.stderr.write("\n")
        return None
    return line.strip()


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


def messages(
    found: Sequence[StoredMessage], *, timestamps: bool, oneline: bool, focus: int | None = None
) -> None:
    """Print messages as ``role: content``.

    A terminal also shows their ids, and where they lie if that is not one instance.

    :param focus: id of a message whose id is set off.
    """
    if sys.stdout.isatty():
        width = max((len(f"#{each.id}") for each in found), default=0)
        name_of = _place_names(found)
        for each in found:
            shown = _dim(f"#{each.id} ".rjust(width + 1))
            if each.id == focus:
                shown.stylize("not dim bold reverse", 0, width)
            shown.append(escaped(name_of(each)), "dim")
            shown.append_text(_dressed(each, timestamps, oneline))
            _console(sys.stdout).print(shown, soft_wrap=True)
    else:
        write("".join(f"{message_line(each, timestamps, oneline)}\n" for each in found))


def _place_names(found: Sequence[StoredMessage]) -> Callable[[StoredMessage], str]:
    """Return what names the place of a message: nothing if all lie in one instance."""
    if len({(each.partition, each.instance) for each in found}) < 2:
        return lambda _: ""
    if len({each.partition for each in found}) < 2:
        return lambda each: f"{each.instance} · "
    return lambda each: f"{each.partition}/{each.instance} · "


def message_line(message: StoredMessage, timestamps: bool, oneline: bool) -> str:
    """Format a message as it is printed in a pipe."""
    text = plain_text(message)
    if oneline:
        text = text.replace("\r\n", "\\n").replace("\n", "\\n").replace("\r", "\\n")
    return f"{stamp(message) if timestamps else ''}{message.role}: {text}"


def texts(lines: "Iterable[Text]") -> None:
    """Print dressed lines to the terminal that stdout is."""
    console = _console(sys.stdout)
    for line in lines:
        console.print(line, soft_wrap=True)


def is_terminal() -> bool:
    """Return whether stdout is a terminal."""
    return sys.stdout.isatty()


def columns() -> int:
    """Return how wide the terminal is."""
    return _console(sys.stdout).width


def window_text(text: str) -> None:
    """Print a context; on a terminal titles and roles are set off."""
    if not sys.stdout.isatty():
        write(text)
        return
    from rich.text import Text

    dressed = Text(escaped(text))
    dressed.highlight_regex(r"(?m)^\[[^\]\n]+\]$", "bold magenta")
    dressed.highlight_regex(r"(?m)^\d{4}-\d\d-\d\d$", "dim")
    for role, style in ROLE_STYLES.items():
        dressed.highlight_regex(rf"(?m)^(\[#\d+\] )?{role}:", style)
    _console(sys.stdout).print(dressed, soft_wrap=True, end="")


def dressed_help(text: str) -> str:
    """Return a help text; on a terminal, style its headings and options."""
    if not sys.stdout.isatty() or not _uses_color():
        return text
    from rich.text import Text

    dressed = Text(text)
    dressed.highlight_regex(r"(?m)^(Usage|Arguments|Options|Commands|Example):", "bold")
    dressed.highlight_regex(r"(?m)^  (\[?[A-Za-z]+\]?(\.\.\.)?)(?=  )", "bold cyan")
    dressed.highlight_regex(r"(?<![\w-])--?[a-z][\w-]*", "cyan")
    dressed.highlight_regex(r"\[(default|required)[^]]*\]", "dim")
    console = _console(sys.stdout)
    with console.capture() as shown:
        console.print(dressed, soft_wrap=True, end="")
    return shown.get()


def table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[str] = ()
) -> None:
    """Print a table; in a pipe its cells are parted by tabs and there is no head.

    :param numeric: columns that are set to the right.
    """
    if sys.stdout.isatty():
        console = _console(sys.stdout)
        console.print(tables.fitted(columns, rows, console.width, plain=_plain, numeric=numeric))
    else:
        write("".join("\t".join(map(_cell, row)) + "\n" for row in rows))


def _cell(text: str) -> str:
    """Put the text of a table cell on one line."""
    return text.replace("\t", "\\t").replace("\r", "\\r").replace("\n", "\\n")


def side_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    numeric: Sequence[str] = (),
    spare: Sequence[str] = (),
) -> None:
    """Print a table to stderr, in columns even where it is no terminal.

    The last column is a text: it is cut to the room that a terminal has left.

    :param spare: columns that are left out where there is no room, the first of them first.
    """
    if sys.stderr.isatty():
        console = _console(sys.stderr)
        console.print(
            tables.fitted(
                columns,
                rows,
                console.width,
                plain=_plain,
                numeric=numeric,
                spare=spare,
                cut=columns[-1],
            )
        )
        return
    columns, rows = columns[:-1], [row[:-1] for row in rows]
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    for row in (columns, *rows):
        cells = [
            cell.rjust(width) if name in numeric else cell.ljust(width)
            for cell, width, name in zip(row, widths, columns, strict=True)
        ]
        sys.stderr.write("  ".join(cells).rstrip() + "\n")


class ProgressBar:
    """Long work on stderr, if that is a terminal, with its rate and the time that is left.

    It makes way for anything that is printed.

    Call it with what is being done, how much of it is done, and how much there is (0: unknown).
    Work that is done once, and says so, is told of in a pipe, too: nobody expects it.
    """

    def __init__(self) -> None:
        self._told: set[str] = set()
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._begun: tuple[str, int, float] = ("", 0, 0.0)

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show how far the work has come."""
        once = what.endswith(", once")
        if not sys.stderr.isatty():
            if once and what not in self._told:
                self._told.add(what)
                note(what)
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
        share = self._share(what, done, total) if not once else f"{done}%" if total else ""
        self._bar.update(
            self._task, description=what, completed=done, total=total or None, share=share
        )

    def _share(self, what: str, done: int, total: int) -> str:
        """Return how far the work has come, and how fast since its first call."""
        now = time.monotonic()
        if what != self._begun[0] or done < self._begun[1]:
            self._begun = (what, done, now)
        _, first, since = self._begun
        return pace(done, total, done - first, now - since)

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
        if sys.stderr.isatty() and _uses_color():
            # Only the label has a colour, which is legible on any background, as dim text is.
            from rich.text import Text

            shown = Text(line)
            shown.stylize(style, 0, None if style == "dim" else len(prefix))
            _console(sys.stderr).print(shown, soft_wrap=True)
        else:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()
    except OSError:
        _silence(sys.stderr)  # nobody listens; the data matters, not the remarks


def _console(file: TextIO) -> "Console":
    from rich.console import Console

    progress.stop()
    system: Literal["auto"] | None = "auto" if _uses_color() else None
    return Console(file=file, color_system=system, highlight=False, markup=False, emoji=False)


def _plain(text: str) -> "Text":
    from rich.text import Text

    return Text(escaped(text))


def _dressed(message: StoredMessage, timestamps: bool, oneline: bool) -> "Text":
    from rich.text import Text

    text = message_line(message, False, oneline)
    shown = Text()
    shown.append(escaped(stamp(message)) if timestamps else "", "dim")
    shown.append(f"{message.role}:", ROLE_STYLES[message.role.value])
    return shown.append(escaped(text.removeprefix(f"{message.role}:")))


def _dim(text: str) -> "Text":
    from rich.text import Text

    return Text().append(text, "dim")


def stamp(message: StoredMessage) -> str:
    """Return the time of a message, local on a terminal and UTC in a pipe, and its trace."""
    moment = message.created_at
    if sys.stdout.isatty():
        moment = to_local(moment)
    return f"{moment.isoformat(timespec='seconds')} [{message.trace_id[:8]}] "


def escaped(text: str) -> str:
    """Text for a terminal: what could command it is written out.

    JSON stays JSON: what it allows raw in its texts is written as it escapes it.
    """
    return text if text.isascii() and text.isprintable() else _CONTROL.sub(_written_out, text)


def _written_out(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 0x20 else f"\\u{number:04x}"


def _line(text: str) -> str:
    """Text for a terminal on one line."""
    return escaped(text.replace("\n", "\\n"))
