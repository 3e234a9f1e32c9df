"""The command line's entry point: global options, error handling and exit codes."""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from reservoir_cli import __version__
from reservoir_cli.cli import console, mistyped_commands, unseen_errors
from reservoir_cli.cli.command_list import COMPLETED_SHELL, EXAMPLES, CommandGroup
from reservoir_cli.cli.global_options import Globals, parse_path, repeat
from reservoir_cli.cli.help import new_app
from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.maintenance.describe_version import describe_version
from reservoir_cli.settings.store_locations import check_location
from reservoir_cli.util import installed_plugins
from reservoir_cli.util.private_files import remove_temporary
from reservoir_cli.util.progress import explain_now

app = new_app(
    name="reservoir",
    cls=CommandGroup,
    help="Your conversations with every model in one private file, "
    "and the best context for the next question.",
    epilog="reservoir --help says what each command does, reservoir COMMAND -h how to use it.",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _show_version(is_set: bool) -> None:
    if is_set:
        console.write(f"{describe_version(__version__)}\n")
        raise typer.Exit


def _give_completion(param: typer.CallbackParam, is_set: bool) -> None:
    if is_set:
        from reservoir_cli.cli import completion_scripts

        if param.name == "_install":
            console.aside(completion_scripts.install())
        else:
            console.write(completion_scripts.script())
        raise typer.Exit


def _leave_out_plugins(is_set: bool) -> None:
    if is_set:
        installed_plugins.leave_out()


def _choose_color(unwanted: bool) -> None:
    """Apply ``--no-color``; eager, because ``--help`` prints and exits at once."""
    console.configure(color=not unwanted)


def _repeat(_: typer.Context, param: typer.CallbackParam, value: Any) -> Any:
    repeat(param.opts[0], value and str(value), EXAMPLES)
    return value


@app.callback()
def globals_(
    ctx: typer.Context,
    config_file: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            parser=parse_path,
            callback=_repeat,
            help="Settings file to use.",
        ),
    ] = None,
    db: Annotated[
        str | None, typer.Option("--db", metavar="PATH|URL", callback=_repeat, help="Store to use.")
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="No network, except to reach a store on a server.")
    ] = False,
    _no_plugins: Annotated[
        bool,
        typer.Option(
            "--no-plugins",
            callback=_leave_out_plugins,
            is_eager=True,
            help="Use nothing that other packages add by entry points.",
        ),
    ] = False,
    _no_color: Annotated[
        bool,
        typer.Option(
            "--no-color", callback=_choose_color, is_eager=True, help="Print without colour."
        ),
    ] = False,
    _quiet: Annotated[
        bool,
        typer.Option(
            "-q", "--quiet", callback=console.be_quiet, help="Print no notes or summaries."
        ),
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Print the versions of what is in use, and the model.",
        ),
    ] = False,
    _install: Annotated[
        bool,
        typer.Option(
            "--install-completion",
            callback=_give_completion,
            help="Install completion for the current shell.",
        ),
    ] = False,
    _show: Annotated[
        bool,
        typer.Option(
            "--show-completion",
            callback=_give_completion,
            help="Print the completion script for the current shell.",
        ),
    ] = False,
) -> None:
    """Handle the options before the command."""
    if db is not None:
        if not db.strip():
            raise UsageError("--db needs a path or a URL", hint="leave the option out")
        check_location(db, "--db")
    ctx.obj = Globals(config_file, db, offline)
    if ctx.invoked_subcommand is None:
        program: Any = ctx.command
        console.write(program.get_summary(ctx) + "\n", styled=True)


#: Memory to report an error with; Python may crash where it can get none at all.
_SPARE = bytearray(1 << 20)


def main(*, always_succeed: bool = False) -> None:
    """Run the command line and exit with its code."""
    # Ensure that the owner keeps access to new files; their modes are set where they are created.
    os.umask(os.umask(0o077) & 0o077)
    _take_streams()
    if not always_succeed:  # a hook has nothing to clean up, and would exit with 143
        signal.signal(signal.SIGTERM, _terminated)
    try:
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, _interrupted)
        code: Any = _complete() if COMPLETED_SHELL in os.environ else _run()
    except SystemExit as leaving:
        code = leaving.code
    except KeyboardInterrupt:
        code = 130
    except BaseException as failure:  # a panic in Rust is not an Exception
        _SPARE.clear()
        code = _report(_to_error(failure))
    _leave(0 if always_succeed or code is None else code if isinstance(code, int) else 1)


def _take_streams() -> None:
    """Make stdout and stderr UTF-8, and occupy the descriptors of closed standard streams.

    Otherwise the next opened file would get one, and output would be written to it.
    """
    for number in range(3):
        with suppress(OSError):
            os.fstat(number)
            continue
        os.open(os.devnull, os.O_RDONLY if number == 1 else os.O_RDWR)
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))
        else:
            stream.reconfigure(encoding="utf-8", errors="replace", newline="\n")


def _leave(code: int) -> NoReturn:
    """Exit at once, since all is written: a shutdown of numpy and all modules would take 30 ms."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # its reader is gone
            stream.flush()
    os._exit(code)


def _complete() -> int:
    from reservoir_cli.cli import completion_scripts

    is_asking = completion_scripts.is_asking()
    return completion_scripts.answer(typer.main.get_command(app)) if is_asking else _run()


def _run() -> int:
    try:
        outcome: Any = app(sys.argv[1:], prog_name="reservoir", standalone_mode=False)
        return outcome if isinstance(outcome, int) else 0
    except ReservoirError as failure:
        return _report(failure)
    except console.ClosedPipe:
        return 0
    except typer.Abort:
        return 130
    except Exception as failure:
        if hasattr(failure, "format_message"):  # the command line itself was wrong
            return _report(mistyped_commands.as_usage_error(failure, typer.main.get_command(app)))
        _SPARE.clear()
        _debug(failure)
        return _report(_to_error(failure))


def _to_error(failure: BaseException) -> ReservoirError:
    """Convert an exception to a ReservoirError without its text, which might quote a message."""
    hint = "RESERVOIR_DEBUG=1 shows where"
    if isinstance(failure, MemoryError):
        return ReservoirError("out of memory", hint="see ulimit -v; " + hint)
    if isinstance(failure, OSError) and failure.errno:
        return ReservoirError(f"operating system error: {os.strerror(failure.errno)}", hint=hint)
    return ReservoirError(f"unexpected {type(failure).__name__}", hint=hint)


def _report(failure: ReservoirError) -> int:
    words = sys.argv[1 : sys.argv.index("--") if "--" in sys.argv else None]
    if failure.__cause__:
        _debug(failure)
    # Split values off, so that --format json and --format=json are the same. Rows, as of --format
    # jsonl, stay rows.
    parts = [
        part for word in words for part in (word.split("=", 1) if word[:2] == "--" else [word])
    ]
    as_json = "--json" in words or ("--format", "json") in pairwise(parts)
    console.error(failure, as_json=as_json)
    unseen_errors.log(failure.message)
    return failure.exit_code


def _debug(failure: BaseException) -> None:
    """Print a traceback if ``RESERVOIR_DEBUG=1``; texts of foreign errors might quote messages."""
    if os.environ.get("RESERVOIR_DEBUG") != "1":
        return
    import traceback

    cause = failure.__cause__ or (None if failure.__suppress_context__ else failure.__context__)
    if cause is not None:
        _debug(cause)
    console.trace("Traceback (most recent call last):")
    for line in "".join(traceback.format_tb(failure.__traceback__)).splitlines():
        console.trace(line)
    text = str(failure) if isinstance(failure, ReservoirError) else "(its text is not shown)"
    console.trace(f"{type(failure).__name__}: {text}")


#: Terminating signals received. A SystemExit raised in a callback of the interpreter, such as those
#: of imports, is lost; commands that start slowly check this list.
terminated_by: list[int] = []


def _interrupted(_number: int, frame: FrameType | None) -> None:
    _end_if_importing(frame, 130, explain_now)
    raise KeyboardInterrupt


def _terminated(number: int, frame: FrameType | None) -> None:
    terminated_by.append(number)
    _end_if_importing(frame, 143, lambda: None)
    sys.exit(143)


def _end_if_importing(frame: FrameType | None, code: int, explain: Callable[[], None]) -> None:
    """Exit immediately during an import: numpy would turn the exception into one of its own."""
    while frame:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            if sys.stderr.isatty():
                os.write(sys.stderr.fileno(), b"\x1b[?25h")  # a progress bar hides the cursor
            with suppress(Exception):  # the module being imported may be needed to print
                explain()
            remove_temporary()
            os._exit(code)
        frame = frame.f_back


if __name__ == "__main__":
    main()
