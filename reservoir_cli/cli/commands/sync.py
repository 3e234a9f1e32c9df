"""``reservoir sync``: import new messages from the chat histories on this machine."""

import shlex
from collections.abc import Sequence
from datetime import datetime
from time import sleep
from typing import Annotated, Any

import typer

from reservoir_cli.agents.connect.connection import own_command
from reservoir_cli.cli import console, open_store, options, unseen_errors
from reservoir_cli.cli.global_options import globals_of
from reservoir_cli.cli.options import argument, complete_configured, flag
from reservoir_cli.errors import StoreLockedError, UsageError
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.settings import edit_settings_file
from reservoir_cli.settings.config import Config, load
from reservoir_cli.settings.paths import abbreviate_home
from reservoir_cli.transfer.sync import discover_histories
from reservoir_cli.transfer.sync.history_sources import (
    Source,
    check,
    choose_name,
    configured_sources,
    discover_sources,
    select_sources,
)
from reservoir_cli.transfer.sync.sync_reports import SourceReport, SyncReport
from reservoir_cli.util.progress import counted
from reservoir_cli.util.timeouts import SYNC_BY_TIMER, SYNC_WATCHING

EXCLUDED = "in excluded folders, and not imported"  #: What is said of messages left out.
_SYSTEMD = """\
# ~/.config/systemd/user/reservoir-sync.service
[Unit]
Description=Import new messages into Reservoir

[Service]
Type=oneshot
Nice=10
ExecStart={command}

# ~/.config/systemd/user/reservoir-sync.timer
# then: systemctl --user enable --now reservoir-sync.timer
[Unit]
Description=Import new messages into Reservoir

[Timer]
OnStartupSec=2min
OnUnitInactiveSec={minutes}min

[Install]
WantedBy=timers.target
"""
_LAUNCHD = """\
<?xml version="1.0" encoding="UTF-8"?>
<!-- ~/Library/LaunchAgents/reservoir-sync.plist
     then: launchctl load ~/Library/LaunchAgents/reservoir-sync.plist -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" \
"http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>reservoir-sync</string>
  <key>ProgramArguments</key>
  <array>
{arguments}
  </array>
  <key>StartInterval</key><integer>{seconds}</integer>
  <key>ProcessType</key><string>Background</string>
</dict>
</plist>
"""


def sync(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None,
        argument(
            "[SOURCE]...",
            "Sources by name or tool (default: all).",
            complete=complete_configured(lambda config: config.sources),
        ),
    ] = None,
    watch: Annotated[
        bool, flag("--watch", f"Keep running, and sync every {SYNC_WATCHING} seconds.")
    ] = False,
    timer: Annotated[
        bool, flag("--timer", "Print units for systemd and launchd; import nothing.")
    ] = False,
    no_embed: options.NoEmbed = False,
    as_json: options.Json = False,
) -> None:
    """Import new messages from the chat histories on this machine.

    Reads the sources that `init` wrote to the settings file; if there are none, the histories it
    finds. An unfinished last turn is left for the next run. With --quiet and without a terminal, as
    in hooks and timers, only sources from the settings are read, and no model is downloaded or
    compiled.
    """
    if timer:
        _print_units(ctx, as_json)
        return
    unattended = _is_unattended()
    # A disk that is not mounted would get a new store, without what was deleted in the old one.
    settings = load(globals_of(ctx).config)
    create = not (unattended and open_store.is_named_and_missing(ctx, settings))
    with open_store.open_reservoir(ctx, create=create, ready_only=unattended) as reservoir:
        wrong: dict[str, UsageError] = {}
        sources = _sources(reservoir, names or [], wrong)
        if watch:
            _watch(reservoir, sources, embed=not no_embed, as_json=as_json)
            return
        report = reservoir.sync(sources, embed=not no_embed)
    _print_report(report)
    if as_json:
        console.document(_fields(report))
    if any(source.failures for source in report.sources):
        raise typer.Exit(1)
    if wrong:
        raise typer.Exit(UsageError.exit_code)


def _is_unattended() -> bool:
    """Return whether a hook or a timer, rather than a person, runs the command."""
    return console.is_quiet() and not options.can_ask()


def _describe_nothing(left_out: Sequence[Source]) -> str:
    if not left_out:
        return "found no history on this machine, and the settings have no [sources]"
    names = ", ".join(source.name for source in left_out)
    return f"left out by exclude: {names}; found no other history on this machine"


def _sources(
    reservoir: Reservoir, names: Sequence[str], wrong: dict[str, UsageError]
) -> list[Source]:
    """Return the sources of the settings; if there are none, those found, after confirmation."""
    errors: dict[str, UsageError] = {}
    configured = configured_sources(reservoir.config, errors)
    wrong |= {name: error for name, error in errors.items() if not names or name in names}
    others = [name for name in names if name not in wrong]
    if wrong and (not configured or (names and not others)):
        raise next(iter(wrong.values()))
    for error in wrong.values():
        console.warn(f"{error.message}; {error.hint}")
        unseen_errors.log(error.message)
    left_out = [source for source in configured if source.is_left_out]
    if len(left_out) < len(configured) or errors:
        selected = select_sources(configured, others)
        missing = (check(reservoir.config, source.name) for source in selected)
        for detail, fix in filter(None, dict.fromkeys(missing)):
            console.warn(f"{detail}; {fix}")
        return selected
    if _is_unattended():
        return []
    partition = str(reservoir.config.lookup("partition")[0])
    discovered = discover_sources(partition, {source.path for source in left_out})
    sources = select_sources(discovered, names)
    if not sources:
        console.note(_describe_nothing(left_out))
    elif options.can_ask():
        for source in sources:
            console.aside(
                f"{source.name}: {abbreviate_home(source.path)}, to partition {source.partition}"
            )
        if not console.ask("Import new messages from these now, and on each sync?", usual=True):
            console.note("nothing was imported")
            raise typer.Exit(1)
        save_sources(reservoir.config, sources)
    return sources


def save_sources(config: Config, sources: list[Source]) -> None:
    """Write sources to the settings file, unless it has them."""
    tables: dict[str, dict[str, Any]] = {
        source.name: {
            "tool": source.tool,
            "path": abbreviate_home(source.path),
            "partition": source.partition,
        }
        for source in new_sources(config, sources)
    }
    if tables:
        edit_settings_file.add_sources(config.path, tables)
        console.note(
            f"added {', '.join(tables)} to [sources] of {config.path}: reservoir sync "
            "imports what is new there"
        )


def offer_source(config: Config, form: str, title: str, partition: str) -> bool:
    """Offer to add the history of a tool to the settings; return whether it was added."""
    sources = [
        Source(choose_name(form, config.sources), form, history.path, partition)
        for history in discover_histories.look(form)
        if history.files
    ]
    question = f"Let hooks and reservoir sync import the history of {title}?"
    if not sources or (options.can_ask() and not console.ask(question, usual=True)):
        return False
    save_sources(config, sources[:1])
    return True


def new_sources(config: Config, sources: list[Source]) -> list[Source]:
    """Return the sources that the settings do not have."""
    tables = config.sources
    paths = {str(table.get("path")) for table in tables.values()}
    return [
        source
        for source in sources
        if source.name not in tables
        and not {str(source.path), abbreviate_home(source.path)} & paths
    ]


def _watch(reservoir: Reservoir, sources: list[Source], *, embed: bool, as_json: bool) -> None:
    console.note(f"syncing every {SYNC_WATCHING} seconds; Ctrl-C stops it")
    failures: dict[Source, list[str]] = {}
    is_locked = False
    while True:
        try:
            report = reservoir.sync(sources, embed=embed)
        except StoreLockedError as error:
            if not is_locked:
                console.warn(f"{error.message}; trying again every {SYNC_WATCHING} seconds")
            is_locked = True
        else:
            is_locked = False
            changed = [
                source
                for source in report.sources
                if source.imports.imported
                or source.imports.renewed
                or source.imports.skipped
                or source.failures != failures.get(source.source, [])
            ]
            for source in changed:
                _print_source(source, f"{datetime.now():%H:%M:%S} ")
            if changed and as_json:
                console.lines([_fields(report)])
            failures |= {source.source: source.failures for source in report.sources}
        sleep(SYNC_WATCHING)


def _print_report(report: SyncReport) -> None:
    if report.busy:
        console.note("another sync of this store is running: nothing was done")
        return
    for source in report.sources:
        _print_source(source)


def _print_source(report: SourceReport, prefix: str = "") -> None:
    name, imports = report.source.name, report.imports
    files = f"{report.read:,} of {counted(report.files, 'file')} read"
    files = "left out by exclude" if report.source.is_left_out else files
    console.aside(f"{prefix}{name}: {imports.line()}; {files}")
    for line in imports.reason_lines():
        console.aside(line)
    for failure in report.failures:
        console.warn(failure)
        unseen_errors.log(failure)
    if report.held:
        console.note(f"{name}: an unfinished last turn in {counted(report.held, 'file')}")
    for note in imports.notes():
        console.note(f"{name}: {note}")
    print_left_out(report)
    if imports.marked:
        console.note(f"{name}: {options.describe_marked(imports.marked)}")


def print_left_out(report: SourceReport) -> None:
    """Print how much of a source was deliberately not imported, and why."""
    name, imports = report.source.name, report.imports
    if imports.forgotten:
        console.note(describe_forgotten(report.source, imports.forgotten))
    options.note_count(f"{name}: older than retention_days, and not imported", imports.expired)
    options.note_count(f"{name}: {EXCLUDED}", imports.excluded)


def describe_forgotten(source: Source, count: int) -> str:
    """Say how many messages were forgotten and, if no folder is excluded, how to import them."""
    note = (
        f"{source.name}: forgotten or edited earlier, and not imported: {counted(count, 'message')}"
    )
    if source.exclude:
        return note
    words = ["reservoir", "ingest", "--include-forgotten", "--format", source.tool]
    command = shlex.join([*words, "-p", source.partition, str(source.path)])
    return f"{note}; {command} imports {options.pronoun(count)}"


def _fields(report: SyncReport) -> dict[str, Any]:
    return {
        "busy": report.busy,
        "sources": [
            {
                "source": entry.source.name,
                "tool": entry.source.tool,
                "path": str(entry.source.path),
                "partition": entry.source.partition,
                "files": entry.files,
                "read": entry.read,
                "imported": entry.imports.imported,
                "already": entry.imports.already,
                "renewed": entry.imports.renewed,
                "skipped": entry.imports.skipped,
                "forgotten": entry.imports.forgotten,
                "expired": entry.imports.expired,
                "excluded": entry.imports.excluded,
                "marked": len(entry.imports.marked),
                "held": entry.held,
                "reasons": entry.imports.reasons,
                "notes": entry.imports.notes(all_names=True),
                "failures": entry.failures,
            }
            for entry in report.sources
        ],
    }


def _print_units(ctx: typer.Context, as_json: bool) -> None:
    flags = globals_of(ctx)
    command = [*own_command(flags.config, flags.db), "sync", "--quiet"]
    options.warn_of_unknown_variables()
    options.warn_of_variables(flags, "the timer", "sync --timer")
    systemd, launchd = systemd_units(command), launchd_units(command)
    if as_json:
        console.document({"command": command, "systemd": systemd, "launchd": launchd})
    else:
        console.write(f"{systemd}\n{launchd}")


def systemd_units(command: Sequence[str]) -> str:
    """Return a service of systemd and its timer, which run a command every few minutes."""
    return _SYSTEMD.format(command=_for_systemd(command), minutes=SYNC_BY_TIMER // 60)


def launchd_units(command: Sequence[str]) -> str:
    """Return a property list, by which launchd runs a command every few minutes."""
    from html import escape  # few need it

    arguments = "\n".join(f"    <string>{escape(word, quote=False)}</string>" for word in command)
    return _LAUNCHD.format(arguments=arguments, seconds=SYNC_BY_TIMER)


def _for_systemd(command: Sequence[str]) -> str:
    """Quote a command; unlike a shell, systemd also reads these characters within quotes."""
    line = shlex.join(command)
    return line.replace("\\", "\\\\").replace("%", "%%").replace("$", "$$")
