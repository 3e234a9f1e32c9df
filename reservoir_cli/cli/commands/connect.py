"""``reservoir connect`` and ``disconnect``: let agents and editors use the store, or no longer."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from reservoir_cli.agents import connect as agents
from reservoir_cli.agents.connect import CLIENTS, Client, ClientStatus, ConnectReport, client_named
from reservoir_cli.agents.connect.connection import own_command
from reservoir_cli.agents.connect.edit_file import Change, RefusedFileError
from reservoir_cli.cli import console, options
from reservoir_cli.cli.global_options import globals_of
from reservoir_cli.cli.options import argument, flag
from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.settings.paths import abbreviate_home
from reservoir_cli.util.installation import install_hint


def _client_argument(metavar: str) -> Any:
    *names, last = CLIENTS
    return argument(metavar, f"{', '.join(names)} or {last}.", choices=tuple(CLIENTS))


_DryRun = Annotated[bool, flag("--dry-run", "Show the change; write nothing.")]


def connect(
    ctx: typer.Context,
    client: Annotated[str | None, _client_argument("[CLIENT]")] = None,
    partition: options.Partition = None,
    hooks: Annotated[
        bool,
        flag(
            "--hooks",
            "Recall before each question, and import sessions when they end "
            "(--hooks=mcp removes them).",
        ),
    ] = False,
    hooks_mcp: Annotated[bool, typer.Option("--hooks-mcp", hidden=True)] = False,
    read_only: Annotated[
        bool, flag("--read-only", "Offer only tools that read; stays until disconnect.")
    ] = False,
    dry_run: _DryRun = False,
    as_json: options.Json = False,
) -> None:
    """Let an agent or editor search and recall your conversations.

    Adds the MCP server "reservoir mcp" to the client's settings, and keeps a backup beside the
    file. Without CLIENT it lists the clients on this machine and shows which are connected.
    reservoir disconnect CLIENT undoes it.
    """
    flags = globals_of(ctx)
    program = own_command(flags.config, flags.db)
    hook_options = _hooks_option(hooks, hooks_mcp)
    if not hooks and partition is None:  # otherwise the settings are read below
        options.warn_of_unknown_variables()
    if client is None:
        if hook_options or dry_run or partition or read_only:
            raise UsageError("name a client", hint="reservoir connect claude")
        _list([agents.status(entry) for entry in CLIENTS.values()], program, as_json)
        return
    with _showing_snippet(as_json):
        report = agents.connect(
            client_named(client),
            program,
            partition=partition,
            read_only=read_only,
            hooks=hooks if hook_options else None,
            dry_run=dry_run,
        )
    if report.is_changed:
        limits = ["--read-only"] if read_only else []
        chosen = [*(["-p", partition] if partition else []), *hook_options, *limits]
        options.warn_of_variables(flags, "the client", shlex.join(["connect", client, *chosen]))
    if find_spec("mcp_types") is None:
        console.warn(f"reservoir mcp needs the extra mcp: {install_hint('mcp')}")
    _show(report, as_json, dry_run, done="connected", already="is connected already")
    if partition is not None:
        from reservoir_cli.cli import change_settings  # imports the store's modules

        change_settings.note_empty_partition(ctx, partition)
    if not as_json and not dry_run:
        _print_next_step(report, hooks)
        if hooks:
            _add_source(ctx, report.client, partition)
            _note_partition_of_hooks(ctx, partition)


def disconnect(
    ctx: typer.Context,
    client: Annotated[str, _client_argument("CLIENT")],
    dry_run: _DryRun = False,
    as_json: options.Json = False,
) -> None:
    """Remove reservoir from the settings of an agent or an editor.

    If no other program has changed a settings file since connect, the file is restored byte for
    byte. Otherwise only reservoir's entries are removed from it.
    """
    with _showing_snippet(as_json):
        report = agents.disconnect(client_named(client), dry_run=dry_run)
    _show(report, as_json, dry_run, done="disconnected", already="is not connected")


def _hooks_option(hooks: bool, mcp: bool) -> list[str]:
    """Return the option as it was typed, if it was."""
    if hooks and mcp:
        raise UsageError("--hooks contradicts --hooks=mcp", hint="leave one of them out")
    return ["--hooks=mcp"] if mcp else ["--hooks"] if hooks else []


def _note_partition_of_hooks(ctx: typer.Context, partition: str | None) -> None:
    own = str(options.load_config(ctx).lookup("partition")[0])
    if partition not in (None, own):
        console.note(
            f"hooks read the partition of the folder, else {own}: "
            f"{shlex.join(['reservoir', 'config', 'set', f'partition={partition}'])}"
        )


def _print_next_step(report: ConnectReport, hooks: bool) -> None:
    if report.is_changed:
        for step in (report.client.next_step, report.client.hooks_step if hooks else ""):
            if step:
                console.note(step)
    if not report.client.events:
        console.note(f"{report.client.title} has no hooks; it calls the server's tools itself")


def _add_source(ctx: typer.Context, client: Client, partition: str | None) -> None:
    with suppress(ReservoirError):
        config = options.load_config(ctx)
        tools = {table.get("tool", name) for name, table in config.sources.items()}
        if client.history is None or client.history in tools:
            return
        from reservoir_cli.cli.commands import sync  # imports the store's modules

        home = partition or str(config.lookup("partition")[0])
        if not sync.offer_source(config, client.history, client.title, home):
            console.note(f"hooks import nothing until reservoir init has found {client.title}")


@contextmanager
def _showing_snippet(as_json: bool) -> Iterator[None]:
    try:
        yield
    except RefusedFileError as refusal:
        if refusal.snippet and as_json:
            refusal.hint = f"{refusal.hint or 'fix it'}, or add this by hand: {refusal.snippet}"
        elif refusal.snippet:
            refusal.hint = f"{refusal.hint or 'fix it'}, or add the text on stdout by hand"
            console.write(refusal.snippet)
        raise


def _show(report: ConnectReport, as_json: bool, dry_run: bool, *, done: str, already: str) -> None:
    if as_json:
        console.document(
            {
                "client": report.client.name,
                "dry_run": dry_run,
                "changed": report.is_changed,
                "via": report.via,
                "files": [_file_row(change, dry_run) for change in report.changes],
            }
        )
        return
    if dry_run:
        console.write("".join(change.diff for change in report.changes))
    if not report.is_changed:
        console.aside(f"{report.client.title} {already}")
    elif not dry_run:
        console.aside(f"{done} {report.client.title}")
        for change in report.changes:
            if change.kind != "unchanged":
                backup = f"; before: {abbreviate_home(change.backup)}" if change.backup else ""
                console.aside(f"{change.kind} {abbreviate_home(change.file)}{backup}")


def _file_row(change: Change, dry_run: bool) -> dict[str, Any]:
    row = {
        "file": str(change.file),
        "change": change.kind,
        "backup": str(change.backup) if change.backup else None,
    }
    return {**row, "diff": change.diff} if dry_run else row


def _list(statuses: list[ClientStatus], program: list[str], as_json: bool) -> None:
    if as_json:
        console.document({"clients": [_row(status, program) for status in statuses]})
        return
    present = [status for status in statuses if status.is_installed]
    if not present:
        names = ", ".join(status.client.name for status in statuses)
        console.note(f"found none of these clients on this machine: {names}")
        return
    rows = [
        (
            status.client.name,
            _connection(status, program),
            {True: "yes", False: "no", None: "" if status.error else "-"}[status.hooks],
            abbreviate_home(status.client.settings()),
        )
        for status in present
    ]
    console.table(("client", "connected", "hooks", "settings"), rows)


def _connection(status: ClientStatus, program: list[str]) -> str:
    if status.error:
        return "settings are invalid"
    if status.command is None:
        return "not connected"
    return "connected" if status.is_up_to_date(program) else "another program"


def _row(status: ClientStatus, program: list[str]) -> dict[str, Any]:
    return {
        "name": status.client.name,
        "title": status.client.title,
        "installed": status.is_installed,
        "connected": status.command is not None,
        "command": status.command,
        "up_to_date": status.is_up_to_date(program),
        "hooks": status.hooks,
        "settings": str(status.client.settings()),
        "error": status.error,
    }
