"""``reservoir init``: find chat histories on this machine and import those the user chooses."""

import re
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Annotated

import typer
from rich.filesize import decimal

from reservoir_cli.agents.connect import CLIENTS, status
from reservoir_cli.cli import console, open_store, options
from reservoir_cli.cli.commands.sync import (
    EXCLUDED,
    describe_forgotten,
    new_sources,
    print_left_out,
    save_sources,
)
from reservoir_cli.cli.example_question import choose_question
from reservoir_cli.cli.global_options import complete, globals_of
from reservoir_cli.cli.options import flag
from reservoir_cli.errors import ReservoirError
from reservoir_cli.maintenance.model_language import find_wrong_language
from reservoir_cli.messages import Filter, Scope, check_name, clean_name
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.settings import edit_settings_file
from reservoir_cli.settings.config import load
from reservoir_cli.settings.paths import abbreviate_home
from reservoir_cli.transfer.formats.registry import importers
from reservoir_cli.transfer.leave_out import compile_exclusion
from reservoir_cli.transfer.reading.importer import Importer
from reservoir_cli.transfer.reports import ImportReport, describe_links
from reservoir_cli.transfer.sync import discover_histories, watched_files
from reservoir_cli.transfer.sync.discover_histories import History
from reservoir_cli.transfer.sync.history_sources import Source, choose_name, configured_sources
from reservoir_cli.util.progress import counted, duration_in_words, explain_interrupt
from reservoir_cli.util.unicode_text import plain_digits

_NONE = ("n", "no", "none")  # answers that import nothing
#: A number of a history, or a range of them.
_NUMBERS = re.compile(r"([0-9]{1,9})(?:[-\u2013]([0-9]{1,9}))?")
_UNREAD, _SYNCED = "not read yet", "kept up to date by reservoir sync"
_LEFT_OUT = "left out, because exclude in the settings covers it"
_NOTHING_IMPORTED = "nothing was imported"
_READ = "Read them to see what they contain?"
_SHORT = 1_000  # budget of the example, in tokens: short enough to read
_FIRST_BATCH = 64  # messages embedded first, to estimate how long the rest takes


@dataclass(frozen=True, slots=True)
class _Read:
    """A history after a dry run, and with the number of messages imported since."""

    history: History
    source: Source
    report: ImportReport
    failure: ReservoirError | None = None
    imported: int = 0

    @property
    def messages(self) -> int:
        return self.report.imported + self.already

    @property
    def already(self) -> int:
        return self.report.already - self.report.repeated


def init(
    ctx: typer.Context,
    partition: options.Partition = None,
    yes: Annotated[
        bool, typer.Option("-y", "--yes", help="Do not ask; import everything that is found.")
    ] = False,
    dry_run: Annotated[bool, flag("--dry-run", "Show what is found; import nothing.")] = False,
    no_embed: options.NoEmbed = False,
    as_json: options.Json = False,
) -> None:
    """Find chat histories on this machine and import them.

    Looks for histories of {programs}. On a terminal, asks before it reads anything, shows what it
    found, and imports what you choose. Run it again to add only new messages.
    """
    if partition is not None:
        check_name(partition)
    histories = discover_histories.look()
    groups = _group(histories, configured_sources(load(globals_of(ctx).config), {}))
    _print_histories(histories, groups)
    present = [history for history in histories if history in groups[_UNREAD] + groups[_SYNCED]]
    if present and not dry_run:
        options.require_answer(_READ, yes)
    can_ask = not yes and options.can_ask()
    with explain_interrupt(console.note, _NOTHING_IMPORTED):
        if present and can_ask and not console.ask(_READ, usual=True):
            console.note("nothing was read")
            raise typer.Exit(1)
        with open_store.open_reservoir(ctx) as reservoir:
            default = str(reservoir.config.lookup("partition")[0])
            sources = _sources(reservoir, histories, partition)
            read = [_examine(reservoir, entry, sources[entry], partition) for entry in present]
        if present:
            _print_contents(read)
        chosen = [entry for entry in read if entry.report.imported]
        if chosen and not dry_run and not yes:
            chosen, partition = _choose(read, partition)
    if chosen and not dry_run:
        read = _import(ctx, read, chosen, partition, embed=not no_embed)
    elif present and not chosen:
        _add_sources(ctx, read, partition, can_ask=can_ask, dry_run=dry_run)
    _name_agents(read)
    home = partition or next((entry.source.partition for entry in read if entry.messages), default)
    command = None if dry_run else _suggest_question(ctx, read, home, ask=can_ask and not as_json)
    if as_json:
        known_rows = {entry.history: entry for entry in read}
        unread = {
            history: _Read(history, sources[history], ImportReport()) for history in histories
        }
        console.document(
            {
                "partition": home,
                "histories": [_row(entry) for entry in (unread | known_rows).values()],
                "try": command,
                "dry_run": dry_run,
            }
        )
    if any(entry.failure for entry in read):
        raise typer.Exit(1)


#: The programs whose histories are found.
_PROGRAMS = [each.title for each in importers().values() if type(each).places != Importer.places]
init.__doc__ = (init.__doc__ or "").format(
    programs=f"{', '.join(_PROGRAMS[:-1])} and {_PROGRAMS[-1]}"
)


def _group(histories: Sequence[History], configured: Sequence[Source]) -> dict[str, list[History]]:
    """Return the histories that have files, by what is done with them."""
    sources = {(source.tool, source.path): source for source in configured}
    groups: dict[str, list[History]] = {_UNREAD: [], _SYNCED: [], _LEFT_OUT: []}
    for history in filter(attrgetter("files"), histories):
        source = sources.get((history.form, history.path))
        what = _UNREAD if source is None else _LEFT_OUT if source.is_left_out else _SYNCED
        groups[what].append(history)
    return groups


def _print_histories(histories: Sequence[History], groups: Mapping[str, Sequence[History]]) -> None:
    for history in histories:
        if history.links and not history.files:  # otherwise after it was read
            console.note(f"{history.tool}: {describe_links(history.links)}")
    if not any(groups.values()):
        console.aside("found no history on this machine; looked in")
        for history in histories:
            nearby = ", also in the current folder and those above" if history.nearby else ""
            console.aside(f"  {abbreviate_home(history.path)} ({history.tool}){nearby}")
        console.note("ChatGPT and Claude send an export: reservoir ingest export.zip")
        return
    for what, group in groups.items():
        if group:
            console.aside(f"found on this machine, and {what}:")
        for history in group:
            count, path = counted(history.files, "file"), abbreviate_home(history.path)
            console.aside(f"  {history.tool}: {count}, {decimal(history.size)}, {path}")


def _sources(
    reservoir: Reservoir, histories: Sequence[History], partition: str | None
) -> dict[History, Source]:
    default = partition or str(reservoir.config.lookup("partition")[0])
    by_path = {
        (source.tool, source.path): source for source in configured_sources(reservoir.config)
    }
    names, sources = set(reservoir.config.sources), {}
    for history in histories:
        source = by_path.get((history.form, history.path))
        if source is None:
            name = choose_name(history.form, names)
            source = Source(name, history.form, history.path, default)
            names.add(name)
        sources[history] = replace(source, partition=partition or source.partition)
    return sources


def _examine(
    reservoir: Reservoir, history: History, source: Source, partition: str | None
) -> _Read:
    """Do a dry run; with a ``partition``, messages that are stored elsewhere count, too."""
    try:
        report = reservoir.import_files(
            history.path,
            form=history.form,
            partition=source.partition,
            dry_run=True,
            copies=partition is not None,
            exclude=source.exclude,
        )
    except ReservoirError as failure:
        return _Read(history, source, ImportReport(), failure)
    return _Read(history, source, report)


def _partitions(read: Sequence[_Read]) -> str:
    return ", ".join(dict.fromkeys(entry.source.partition for entry in read))


def _print_contents(read: Sequence[_Read]) -> None:
    columns = ("", "history", "conversations", "messages", "new", "where")
    rows = [
        (
            str(number),
            entry.history.tool,
            f"{len(entry.report.conversations):,}",
            f"{entry.messages:,}",
            f"{entry.report.imported:,}",
            abbreviate_home(entry.history.path),
        )
        for number, entry in enumerate(read, 1)
    ]
    console.side_table(columns, rows, numeric=("", "conversations", "messages", "new"))
    for entry in read:
        if entry.failure:
            console.warn(entry.failure.message)
        for note in entry.report.notes():
            console.note(f"{entry.source.name}: {note}")
        if entry.report.skipped and not entry.report.imported:  # otherwise after the import
            records = counted(entry.report.skipped, "record")
            console.note(f"{entry.source.name}: {records} skipped, and none read")
            _say_why(entry.history)
        if not entry.report.imported:  # otherwise after the import
            options.note_count(f"{entry.source.name}: {EXCLUDED}", entry.report.excluded)
        if marked := entry.report.marked:
            console.note(f"{entry.source.name}: {options.describe_marked(marked)}")
        if entry.report.forgotten and not entry.report.imported:  # otherwise after the import
            console.note(describe_forgotten(entry.source, entry.report.forgotten))


def _say_why(history: History) -> None:
    words = ["reservoir", "ingest", "--dry-run", "--format", history.form, str(history.path)]
    console.note(f"why some were skipped: {shlex.join(words)}")


def _choose(read: Sequence[_Read], partition: str | None) -> tuple[list[_Read], str | None]:
    """Return the histories and the partition; ``None`` if each keeps that of its source."""
    chosen = _pick(read)
    name = partition or _ask_partition(chosen)
    if name:
        chosen = [replace(entry, source=replace(entry.source, partition=name)) for entry in chosen]
    return chosen, name


def _ask_partition(chosen: Sequence[_Read]) -> str | None:
    """Ask for a partition, or none; return ``None`` if each history keeps that of its source."""
    default, stored = _partitions(chosen), sum(entry.already for entry in chosen)
    while True:
        name = _answer(f"Partition to keep them in [{default}]:")
        if name in ("", default):
            return None
        if name.lower() in _NONE:
            _stop()
        if name != clean_name(name):
            continue
        if not stored:
            return name
        noun = "message is" if stored == 1 else "messages are"
        console.note(f"{stored:,} {noun} already stored")
        if console.ask(f"Keep them in {name} a second time?"):
            return name


def _pick(read: Sequence[_Read]) -> list[_Read]:
    new = [number for number, entry in enumerate(read, 1) if entry.report.imported]
    default = ",".join(map(str, new))
    while True:
        answer = plain_digits(_answer(f"Import which, by number, or none? [{default}]"))
        if answer.lower() in (*_NONE, "0"):
            _stop()
        is_default = answer.lower() in ("", "y", "yes", "all")
        if numbers := set(new) if is_default else _parse_numbers(answer, len(read)):
            return [read[number - 1] for number in sorted(numbers)]
        console.note(f"type numbers from 1 to {len(read)}, such as {default}, or none")


def _parse_numbers(answer: str, most: int) -> set[int]:
    """Return the numbers of a list such as ``1, 3-4``; none if it has another form."""
    numbers: set[int] = set()
    for part in re.split(r"[,\s]+", answer):
        match = _NUMBERS.fullmatch(part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last <= most:
            return set()
        numbers |= set(range(first, last + 1))
    return numbers


def _answer(question: str) -> str:
    answer = console.read_answer(question)
    return _stop() if answer is None else answer


def _stop() -> str:
    console.note(_NOTHING_IMPORTED)
    raise typer.Exit(1)


def _import(
    ctx: typer.Context,
    read: Sequence[_Read],
    chosen: Sequence[_Read],
    partition: str | None,
    *,
    embed: bool,
) -> list[_Read]:
    results = []
    with open_store.open_reservoir(ctx, create=True) as reservoir:
        # Do this first: if the import is interrupted, the next one uses the same partition.
        _make_default(reservoir, partition)
        chosen_by_history = {entry.history: entry for entry in chosen}
        for entry in [chosen_by_history.get(entry.history, entry) for entry in read]:
            if entry.history not in chosen_by_history:
                results.append(entry)
                continue
            report = _sync(reservoir, entry.source, copies=partition is not None)
            console.aside(f"{entry.history.tool}: {report.line()}")
            if report.skipped:
                _say_why(entry.history)
            results.append(replace(entry, imported=report.imported))
        sources = [entry.source for entry in chosen]
        save_sources(reservoir.config, sources)
        _move_sources(reservoir, sources)
        model = reservoir.config.settings().embedding_model
        if wrong := find_wrong_language(reservoir.store, model):
            console.note(f"{wrong.detail}; for other languages: {wrong.fix}")
        if embed and (new := [entry for entry in results if entry.imported]):
            homes = {entry.source.partition for entry in new}
            is_one = len(homes) == 1 and not reservoir.config.projects
            _embed(reservoir, Scope(homes.pop() if is_one else None))
    return results


def _make_default(reservoir: Reservoir, partition: str | None) -> None:
    config = reservoir.config
    if partition and partition != config.lookup("partition")[0]:
        edit_settings_file.edit(config.path, {"partition": partition})
        console.note(f"{partition} is now the default partition: reservoir config get partition")


def _move_sources(reservoir: Reservoir, sources: list[Source]) -> None:
    configured = configured_sources(reservoir.config)
    before = {(source.name, source.path): source.partition for source in configured}
    for source in sources:
        former = before.get((source.name, source.path), source.partition)
        if former != source.partition:
            table = {source.name: {"partition": source.partition}}
            edit_settings_file.add_sources(reservoir.config.path, table)
            has_some = reservoir.view(Scope(former), 1, where=Filter(source=source.tool))
            stay = f"; its messages in {former} stay there" if has_some else ""
            console.note(f"{source.name} goes to {source.partition} from now on{stay}")


def _embed(reservoir: Reservoir, scope: Scope) -> None:
    """Embed the imported messages; measure a first batch to estimate the time for the rest."""
    console.note(
        "making them searchable by meaning, the newest first; "
        "after Ctrl-C, reservoir embed does the rest"
    )
    if reservoir.indexer.pending(scope) > _FIRST_BATCH and reservoir.indexer.load_engine():
        start = time.monotonic()
        reservoir.indexer.embed_if_possible(scope, most=_FIRST_BATCH)
        count = reservoir.indexer.pending(scope)
        seconds = (time.monotonic() - start) * count / _FIRST_BATCH
        console.note(f"{counted(count, 'message')} to go, about {duration_in_words(seconds)}")
    reservoir.indexer.embed_if_possible(scope)


def _add_sources(
    ctx: typer.Context,
    read: Sequence[_Read],
    partition: str | None,
    *,
    can_ask: bool,
    dry_run: bool,
) -> None:
    """Say that nothing is new, and let ``reservoir sync`` read the histories in future."""
    for source in [entry.source for entry in read]:
        excluded = compile_exclusion(list(source.exclude))
        for reason in watched_files.unreadable_folders(source.path, excluded):
            console.warn(reason)
    console.note(f"nothing new for {_partitions(read)}")
    if not partition and any(entry.messages for entry in read):
        console.note("to store them in another partition as well: reservoir init -p NAME")
    if dry_run:
        return
    with open_store.open_reservoir(ctx) as reservoir:
        sources = [entry.source for entry in read if entry.messages]
        if sources:
            _make_default(reservoir, partition)
        new = new_sources(reservoir.config, sources)
        question = f"Let reservoir sync read {', '.join(source.name for source in new)}?"
        if new and (not can_ask or console.ask(question, usual=True)):
            save_sources(reservoir.config, new)
        _move_sources(reservoir, sources)


def _sync(reservoir: Reservoir, source: Source, *, copies: bool) -> ImportReport:
    """Import a history, and record the position, so that ``reservoir sync`` continues there."""
    report = reservoir.sync([source], embed=False, whole=True, copies=copies)
    if report.busy:
        raise ReservoirError(
            "another program is syncing this store", hint="run reservoir init again"
        )
    [result] = report.sources
    for failure in result.failures:
        console.warn(failure)
    print_left_out(result)
    return result.imports


def _name_agents(read: "Sequence[_Read]") -> None:
    forms = {entry.history.form for entry in read}
    agents = [status(client) for client in CLIENTS.values() if client.history in forms]
    names = [agent.client.name for agent in agents if agent.is_installed and not agent.command]
    if names:
        commands = ", ".join(f"reservoir connect {name}" for name in names)
        console.note(f"let these agents search the store: {commands}")


def _suggest_question(
    ctx: typer.Context, read: Sequence[_Read], home: str, *, ask: bool
) -> str | None:
    """Print a command with a question from the histories to try first.

    :param ask: offer to run it now.
    :returns: the command.
    """
    with open_store.open_reservoir(ctx) as reservoir:
        question = choose_question(reservoir, home, [entry.history.form for entry in read])
        if question is None:
            return None
        is_default = reservoir.config.lookup("partition")[0] == home
        scope = "" if is_default else f" -p {shlex.quote(home)}"
        command = f'{complete("reservoir context")} "{question}"{scope} --budget {_SHORT}'
        console.aside(f"now try: {command}")
        if ask and console.ask("Run it?", usual=True):
            window = reservoir.context(question, partition=home, budget=_SHORT)
            console.window_text(str(window.to("text")))
            console.summary(window.summary())
            reservoir.runs.record(window)
    return command


def _row(read: _Read) -> dict[str, object]:
    history, report = read.history, read.report
    return {
        "tool": history.tool,
        "format": history.form,
        "path": str(history.path),
        "partition": read.source.partition,
        "files": history.files,
        "bytes": history.size,
        "conversations": len(report.conversations),
        "messages": read.messages,
        "already_there": read.already,
        "new": report.imported,
        "imported": read.imported,
        "skipped": report.skipped,
        "marked": len(report.marked),
        "notes": report.notes(all_names=True),
        "error": read.failure.message if read.failure else None,
    }
