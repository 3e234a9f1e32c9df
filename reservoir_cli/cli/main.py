"""The door: the app, its global options, and the only place that catches errors and exits."""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from reservoir_cli import __version__
from reservoir_cli.cli import output
from reservoir_cli.cli.commands import EXAMPLES, CommandGroup
from reservoir_cli.cli.options import Globals
from reservoir_cli.errors import ReservoirError, UsageError

app = typer.Typer(
    name="reservoir",
    cls=CommandGroup,
    help="Your conversations with every model in one private file, "
    "and the best context for the next question.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    # In a pipe the help has no borders, as all output.
    rich_markup_mode="rich" if sys.stdout is not None and sys.stdout.isatty() else None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        output.write(f"reservoir {__version__}\n")
        raise typer.Exit


@app.callback()
def globals_(
    ctx: typer.Context,
    config_file: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="Use this settings file.")
    ] = None,
    db: Annotated[
        str | None, typer.Option("--db", metavar="PATH|URL", help="Use this store.")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Never touch the network.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colour.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options that stand before the command."""
    output.configure(color=not no_color)
    ctx.obj = Globals(config_file, db, offline)
    if ctx.invoked_subcommand is None:
        output.write(ctx.get_help() + "\n")


def main() -> None:
    """Run the command line and exit with its code."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # it was closed before we began
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
        else:
            stream.reconfigure(encoding="utf-8", errors="replace", newline="\n")
    signal.signal(signal.SIGTERM, _terminated)
    try:
        code: Any = _run()
    except SystemExit as leaving:
        code = leaving.code
    _leave(code if isinstance(code, int) else 0 if code is None else 1)


def _leave(code: int) -> NoReturn:
    """End at once: everything is written and closed.

    Taking numpy, the model's runtime and all modules down in good order takes 30 ms.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads it any more
            stream.flush()
    os._exit(code)


def _run() -> int:
    try:
        outcome: Any = app(standalone_mode=False)
        return outcome if isinstance(outcome, int) else 0
    except ReservoirError as failure:
        return _failed(failure)
    except output.ClosedPipe:
        return 0
    except SystemExit as leaving:
        # Typer leaves with 1 when its help meets a closed pipe.
        if isinstance(leaving.__context__, BrokenPipeError):
            return 0
        raise
    except typer.Abort:
        return 130
    except Exception as failure:
        if os.environ.get("RESERVOIR_DEBUG") == "1":
            raise
        if hasattr(failure, "format_message"):  # the command line itself was wrong
            return _failed(_as_usage(failure))
        # Only its type is shown: its text might quote a message.
        return _failed(
            ReservoirError(
                f"unexpected {type(failure).__name__}", hint="RESERVOIR_DEBUG=1 shows where"
            )
        )


def _as_usage(failure: Any) -> UsageError:
    """A complaint of the option parser as an error of ours."""
    context = getattr(failure, "ctx", None)
    name = context.command_path if context else "reservoir"
    message = " ".join(failure.format_message().split()).rstrip(".")
    hint = None if context else _as_written(getattr(failure, "option_name", None))
    return UsageError(message[:1].lower() + message[1:], hint=hint or f"{name} --help")


def _as_written(option: str | None) -> str | None:
    """How an option is written with its values, such as ``reservoir view --since T``."""
    name = next((word for word in sys.argv[1:] if word in EXAMPLES), None)
    if name is None:
        return None
    group: Any = typer.main.get_command(app)
    command = group.commands[name]
    with typer.Context(command) as context:
        for each in command.params:
            if option in each.opts:
                return f"reservoir {name} {option} {each.make_metavar(context)}"
    return None


def _failed(failure: ReservoirError) -> int:
    words = sys.argv[1 : sys.argv.index("--") if "--" in sys.argv else None]
    output.error(failure, as_json="--json" in words)
    if failure.__cause__ and os.environ.get("RESERVOIR_DEBUG") == "1":
        raise failure
    return failure.exit_code


def _terminated(_signal: int, _frame: FrameType | None) -> None:
    sys.exit(143)


if __name__ == "__main__":
    main()
