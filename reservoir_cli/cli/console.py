"""The only module that prints: data to stdout, all else to stderr; pipes get plain data."""

import errno
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TextIO

from reservoir_cli.cli.global_options import complete
from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import StoredMessage, plain_text
from reservoir_cli.util.clock import to_local
from reservoir_cli.util.progress import pace
from reservoir_cli.util.unicode_text import escaped

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.text import Text

    from reservoir_cli.cli.terminal_tables import Terminal

ROLE_STYLES = {
    "user": "bold cyan",
    "assistant": "bold green",
    "system": "magenta",
    "tool": "yellow",
}
SHOWN_ID = 8  # how many characters of a trace id are printed
#: Labels of the fields of a store's contents, if other than the field's name.
HELD = {"pending": "not embedded yet"}
_color = True
_quiet = False


def configure(*, color: bool) -> None:
    """Allow or forbid colour on terminals."""
    global _color
    _color = color


def _uses_color() -> bool:
    return _color and not os.environ.get("NO_COLOR")


def be_quiet(quiet: bool) -> None:
    """Suppress notes and summaries from now on, if wanted; warnings and errors stay."""
    global _quiet
    _quiet = _quiet or quiet


class ClosedPipe(Exception):
    """The reader of stdout has closed the pipe."""


def is_quiet() -> bool:
    """Return whether notes and summaries are suppressed."""
    return _quiet


def write(text: str, *, styled: bool = False) -> None:
    """Print data unchanged, except that control characters are escaped on terminals.

    :param styled: the text is our own, and contains the control characters of its style.
    :raises ClosedPipe: the reader has closed the pipe; a ReservoirError if writing failed.
    """
    progress.stop()
    try:
        sys.stdout.write(escaped(text) if sys.stdout.isatty() and not styled else text)
        sys.stdout.flush()
    except BrokenPipeError:
        _silence(sys.stdout)
        raise ClosedPipe from None
    except OSError as error:
        _silence(sys.stdout)
        raise _unwritten_error(error) from None


def _unwritten_error(error: OSError) -> ReservoirError:
    if error.errno == errno.EBADF:
        hint = "leave it open, or redirect it to a file"
        return ReservoirError("cannot write the output: stdout is closed", hint=hint)
    return ReservoirError(
        f"cannot write the output: {error.strerror}", hint="write it to a place with enough room"
    )


def _silence(stream: TextIO) -> None:
    """Discard what is left in a stream's buffer, so that the flush at exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def document(fields: Mapping[str, Any]) -> None:
    """Print one JSON document."""
    write_json({"schema_version": 1, **fields})


def write_json(value: Any) -> None:
    """Print a value as indented JSON; see :func:`json_text`."""
    write(json_text(value))


def json_text(value: Any) -> str:
    """Return a value as indented JSON with a final line break; non-UTF-8 text is escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2)
    return text + "\n"


def lines(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print JSON Lines: one row per line, no envelope."""
    write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def note(text: str) -> None:
    """Print a note to stderr, unless quiet."""
    if not _quiet:
        _print_line("note: ", complete(text), "dim")


def warn(text: str) -> None:
    """Print a warning to stderr."""
    _print_line("warning: ", complete(text), "yellow")


def aside(text: str) -> None:
    """Print a line without a label, such as a summary, to stderr, unless quiet."""
    if not _quiet:
        _print_line("", text, "dim")


def summary(text: str) -> None:
    """Print a summary to stderr, unless quiet; on a terminal it is wrapped between words."""
    if not _quiet:
        legend(text)


def trace(text: str) -> None:
    """Print a line of a traceback to stderr."""
    _print_line("", text, "dim")


def legend(text: str) -> None:
    """Print the legend of a table to stderr; on a terminal it is wrapped between words."""
    if sys.stderr.isatty():
        _console(sys.stderr).print(_dim(text))
    else:
        _print_line("", text, "dim")


def ask(question: str, *, usual: bool = False) -> bool:
    """Ask a yes-or-no question; ``usual`` is what Enter means, any answer but y or yes means no."""
    answer = read_answer(f"{question} {'[Y/n]' if usual else '[y/N]'}")
    if answer == "":
        return usual
    return answer is not None and answer.lower() in ("y", "yes")


def read_answer(question: str) -> str | None:
    """Print a question on the terminal and read a line; ``None`` at end of file (Ctrl-D)."""
    progress.stop()
    try:
        sys.stderr.write(f"{_line(question)} ")
        sys.stderr.flush()
        line = sys.stdin.readline()
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        raise
    if not line:
        sys.stderr.write("\n")
        return None
    return line.strip()


def error(failure: ReservoirError, *, as_json: bool) -> None:
    """Print an error and its hint; those who do not read stdout still get it on stderr."""
    fields = describe_error(failure)
    _print_line("error: ", failure.message, "bold red")
    if fields["hint"]:
        _print_line("hint: ", fields["hint"], "yellow")
    if as_json:
        with suppress(ClosedPipe, ReservoirError):
            document({"error": fields})


def describe_error(failure: ReservoirError) -> dict[str, Any]:
    """Return an error as plain JSON values."""
    return {
        "kind": failure.kind,
        "message": failure.message,
        "hint": complete(failure.hint) if failure.hint else failure.hint,
        "exit_code": failure.exit_code,
    }


def messages(
    rows: Sequence[StoredMessage], *, timestamps: bool, oneline: bool, focus: int | None = None
) -> None:
    """Print messages as ``role: content``; a terminal also shows ids, and channels that differ."""
    if sys.stdout.isatty():
        width = max((len(f"#{message.id}") for message in rows), default=0)
        prefix_of = _channel_prefix(rows)
        for message in rows:
            line = _dim(f"#{message.id} ".rjust(width + 1))
            if message.id == focus:
                line.stylize("not dim bold reverse", 0, width)
            line.append(escaped(prefix_of(message)), "dim")
            line.append_text(_styled_message(message, timestamps, oneline))
            _console(sys.stdout).print(line, soft_wrap=True)
    else:
        write("".join(f"{message_line(message, timestamps, oneline)}\n" for message in rows))


def _channel_prefix(rows: Sequence[StoredMessage]) -> Callable[[StoredMessage], str]:
    if len({(message.partition, message.instance) for message in rows}) < 2:
        return lambda _: ""
    if len({message.partition for message in rows}) < 2:
        return lambda message: f"{message.instance} · "
    return lambda message: f"{message.partition}/{message.instance} · "


def message_line(message: StoredMessage, timestamps: bool, oneline: bool) -> str:
    """Format a message as it is printed to a pipe."""
    text = plain_text(message)
    if oneline:
        text = text.replace("\r\n", "\\n").replace("\n", "\\n").replace("\r", "\\n")
    return f"{stamp(message) if timestamps else ''}{message.role}: {text}"


def texts(lines: "Iterable[Text]") -> None:
    """Print styled lines; in a pipe without their style."""
    if not sys.stdout.isatty():
        write("".join(f"{line.plain}\n" for line in lines))
        return
    console = _console(sys.stdout)
    for line in lines:
        console.print(line, soft_wrap=True)


def is_terminal() -> bool:
    """Return whether stdout is a terminal."""
    return sys.stdout.isatty()


def columns() -> int:
    """Return the width of the terminal."""
    return _console(sys.stdout).width


def window_text(text: str) -> None:
    """Print a context; on a terminal its titles and roles are highlighted."""
    if not sys.stdout.isatty():
        write(text)
        return
    from rich.text import Text

    styled = Text(escaped(text))
    styled.highlight_regex(r"(?m)^\[[^\]\n]+\]$", "bold magenta")
    styled.highlight_regex(r"(?m)^\d{4}-\d\d-\d\d$", "dim")
    for role, style in ROLE_STYLES.items():
        styled.highlight_regex(rf"(?m)^(\[#\d+\] )?{role}:", style)
    _console(sys.stdout).print(styled, soft_wrap=True, end="")


def style_help(text: str) -> str:
    """Return a help text; on a terminal, style its headings and options."""
    if not sys.stdout.isatty() or not _uses_color():
        return text
    from rich.text import Text

    styled = Text(text)
    styled.highlight_regex(r"(?m)^[A-Z][A-Za-z, ]*:", "bold")
    styled.highlight_regex(r"(?m)^  (\[?[A-Za-z]+\]?(\.\.\.)?)(?=  )", "bold cyan")
    styled.highlight_regex(r"(?<![\w-])--?[a-z][\w-]*", "cyan")
    styled.highlight_regex(r"\[(default|required)[^]]*\]", "dim")
    console = _console(sys.stdout)
    with console.capture() as output:
        console.print(styled, soft_wrap=True, end="")
    return output.get()


def table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[str] = ()
) -> None:
    """Print a table; in a pipe its cells are separated by tabs, without a header."""
    if sys.stdout.isatty():
        _console(sys.stdout).print_table(columns, rows, numeric=numeric)
    else:
        write("".join("\t".join(map(_cell, row)) + "\n" for row in rows))


def _cell(text: str) -> str:
    return text.replace("\t", "\\t").replace("\r", "\\r").replace("\n", "\\n")


def side_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    numeric: Sequence[str] = (),
    spare: Sequence[str] = (),
) -> None:
    """Print a table to stderr; the last column, and ``spare`` ones, only if there is room."""
    if sys.stderr.isatty():
        terminal = _console(sys.stderr)
        terminal.print_table(columns, rows, numeric=numeric, spare=spare, cut=columns[-1])
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
    """A progress bar on a terminal's stderr, which is removed when anything else is printed.

    One-time work, whose description ends in ``, once``, is noted in a pipe, too.
    """

    def __init__(self) -> None:
        self._noted: set[str] = set()
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._start: tuple[str, int, float] = ("", 0, 0.0)

    def __call__(self, description: str, done: int, total: int) -> None:
        """Show the progress of the described work; a total of 0 is unknown."""
        once = description.endswith(", once")
        if not sys.stderr.isatty():
            if once and description not in self._noted:
                self._noted.add(description)
                note(description)
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
                redirect_stdout=False,  # stdout may be a pipe
                redirect_stderr=False,
            )
            self._task = self._bar.add_task(description, total=None, share="")
            self._bar.start()
        share = self._pace(description, done, total) if not once else f"{done}%" if total else ""
        self._bar.update(
            self._task, description=description, completed=done, total=total or None, share=share
        )

    def _pace(self, description: str, done: int, total: int) -> str:
        now = time.monotonic()
        if description != self._start[0] or done < self._start[1]:
            self._start = (description, done, now)
        _, first, since = self._start
        return pace(done, total, done - first, now - since)

    def stop(self) -> None:
        """Remove the bar from the screen."""
        if self._bar is not None:
            self._bar.stop()
        self._bar = self._task = None


progress = ProgressBar()


def _print_line(prefix: str, text: str, style: str) -> None:
    progress.stop()
    line = f"{prefix}{_line(text)}"
    try:
        if sys.stderr.isatty() and _uses_color():
            # Colour only the label: the text stays legible on any background.
            from rich.text import Text

            styled = Text(line)
            styled.stylize(style, 0, None if style == "dim" else len(prefix))
            _console(sys.stderr).print(styled, soft_wrap=True)
        else:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()
    except OSError:
        _silence(sys.stderr)  # stderr has no reader; go on for the sake of stdout


def _console(file: TextIO) -> "Terminal":
    from reservoir_cli.cli.terminal_tables import Terminal

    progress.stop()
    system: Literal["auto"] | None = "auto" if _uses_color() else None
    return Terminal(file=file, color_system=system, highlight=False, markup=False, emoji=False)


def _styled_message(message: StoredMessage, timestamps: bool, oneline: bool) -> "Text":
    from rich.text import Text

    text = message_line(message, False, oneline)
    styled = Text()
    styled.append(escaped(stamp(message)) if timestamps else "", "dim")
    styled.append(f"{message.role}:", ROLE_STYLES[message.role.value])
    return styled.append(escaped(text.removeprefix(f"{message.role}:")))


def _dim(text: str) -> "Text":
    from rich.text import Text

    return Text().append(text, "dim")


def stamp(message: StoredMessage) -> str:
    """Return the time and trace id of a message; the time is local on a terminal, else UTC."""
    moment = message.created_at
    if sys.stdout.isatty():
        moment = to_local(moment)
    return f"{moment.isoformat(timespec='seconds')} [{message.trace_id[:SHOWN_ID]}] "


def _line(text: str) -> str:
    return escaped(text.replace("\n", "\\n"))
