"""``reservoir init``: find chat histories on this machine and import those the user chooses."""

import re
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from reservoir_cli.cli import command_list, console, open_store, options
from reservoir_cli.cli.commands.sync import keep, unknown
from reservoir_cli.cli.progress import in_words
from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Scope, clean_name
from reservoir_cli.redaction import find
from reservoir_cli.reservoir import Filter, Reservoir
from reservoir_cli.settings import edit_file
from reservoir_cli.settings.paths import abbreviate_home
from reservoir_cli.transfer.importers import discover
from reservoir_cli.transfer.importers.discover import History
from reservoir_cli.transfer.reports import ImportReport
from reservoir_cli.transfer.sync import Source, configured, unused_name

_READ = "Read them, to see what they hold?"
#: So many conversations are looked through for a question to try.
_MOST_LOOKED_AT = 100
#: A question that fits a prompt: one line, and neither a command nor markup.
_FITTING = re.compile(r"[^\x00-\x1f\x7f-\x9f`\"$\\!/<][^\x00-\x1f\x7f-\x9f`\"$\\!]{10,88}")
#: Tokens that can be read at a glance.
_SHORT = 1_000
#: Agents that can be connected, by the format of their histories.
_AGENTS = {
    "claude-code": "claude",
    "codex": "codex",
    "gemini-cli": "gemini",
    "opencode": "opencode",
    "cursor": "cursor",
}
#: So many messages are embedded to measure how long the rest takes.
_FIRST_BATCH = 64
_UNITS = ("bytes", "KB", "MB", "GB")


@dataclass(frozen=True, slots=True)
class _Read:
    """A history after it was read.

    :param source: where an import of it goes.
    :param report: what an import would do, and how many conversations it met.
    :param failure: why it cannot be read.
    :param imported: messages that were added.
    """

    history: History
    source: Source
    report: ImportReport
    failure: ReservoirError | None = None
    imported: int = 0

    @property
    def messages(self) -> int:
        return self.report.imported + self.report.already


def init(
    ctx: typer.Context,
    partition: options.Partition = None,
    yes: Annotated[
        bool, typer.Option("-y", "--yes", help="Do not ask; import everything that is found.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what is found; import nothing.")
    ] = False,
    no_embed: options.NoEmbed = False,
    as_json: options.Json = False,
) -> None:
    """Find chat histories on this machine and import them.

    Looks for histories of Claude Code, Codex, Gemini CLI, opencode, Copilot, Cursor, Cline, Goose,
    LM Studio, aider, Zed, Open WebUI and llm. Asks before it reads anything, shows what it found,
    and imports what you choose. Run it again to add only new messages.
    """
    places = discover.look()
    there = [each for each in places if each.files]
    _show_places(places, there)
    if there and not dry_run:
        options.require_answer(_READ, yes)
    asked = not yes and options.can_ask()  # without a terminal, only to say what would be done
    if there and asked and not console.ask(_READ, usual=True):
        console.note("nothing was read")
        raise typer.Exit(1)
    with open_store.open_reservoir(ctx) as reservoir:
        usual = str(reservoir.config.lookup("partition")[0])
        sources = _sources(reservoir, places, partition)
        read = [_examine(reservoir, each, sources[each], partition) for each in there]
    if there:
        _show_contents(read)
    chosen = [each for each in read if each.report.imported]
    if chosen and not dry_run:
        if not yes:
            chosen, partition = _choose(read, partition)
        read = _import(ctx, read, chosen, partition, embed=not no_embed)
    elif there and not chosen:
        _keep_current(ctx, read, partition, asked=asked, dry_run=dry_run)
    _name_agents(read)
    home = partition or next((each.source.partition for each in read if each.messages), usual)
    question = None if dry_run else _try(ctx, read, home, offer=asked and not as_json)
    if as_json:
        known = {each.history: each for each in read}
        unread = {each: _Read(each, sources[each], ImportReport()) for each in places}
        _print([*(unread | known).values()], home, question, dry_run)
    if any(each.failure for each in read):
        raise typer.Exit(1)


# What there is


def _show_places(places: Sequence[History], there: Sequence[History]) -> None:
    if not there:
        console.aside("found no history on this machine; looked in")
        for each in places:
            console.aside(f"  {abbreviate_home(each.path)} ({each.tool})")
        console.note("ChatGPT and Claude send an export: reservoir ingest export.zip")
        return
    console.aside("found on this machine, and not read yet:")
    for each in there:
        count = options.counted(each.files, "file")
        console.aside(f"  {each.tool}: {count}, {_size(each.size)}, {abbreviate_home(each.path)}")


def _size(size: float) -> str:
    unit = 0
    while size >= 1_000 and unit < len(_UNITS) - 1:
        size, unit = size / 1_000, unit + 1
    return f"{size:.0f} {_UNITS[unit]}" if size >= 10 or not unit else f"{size:.1f} {_UNITS[unit]}"


def _sources(
    reservoir: Reservoir, histories: Sequence[History], partition: str | None
) -> dict[History, Source]:
    """Return where histories go: where they are said to, else as set up, else as usual.

    :param partition: the one that a person names.
    """
    usual = partition or str(reservoir.config.lookup("partition")[0])
    known = {(source.tool, source.path): source for source in configured(reservoir.config)}
    taken, sources = set(reservoir.config.sources), {}
    for history in histories:
        source = known.get((history.form, history.path))
        if source is None:
            name = unused_name(history.form, taken)
            source = Source(name, history.form, history.path, usual)
            taken.add(name)
        sources[history] = replace(source, partition=partition or source.partition)
    return sources


def _examine(
    reservoir: Reservoir, history: History, source: Source, partition: str | None
) -> _Read:
    """Find out what importing a history would do.

    :param partition: the one that a person names, which gets what others have already, too.
    """
    try:
        report = reservoir.import_files(
            history.path,
            form=history.form,
            partition=source.partition,
            dry_run=True,
            copies=partition is not None,
        )
    except ReservoirError as failure:
        return _Read(history, source, ImportReport(), failure)
    return _Read(history, source, report)


def _partitions(read: Sequence[_Read]) -> str:
    return ", ".join(dict.fromkeys(each.source.partition for each in read))


def _show_contents(read: Sequence[_Read]) -> None:
    columns = ("", "history", "conversations", "messages", "new", "where")
    rows = [
        (
            *(str(number), each.history.tool, f"{len(each.report.conversations):,}"),
            *(
                f"{each.messages:,}",
                f"{each.report.imported:,}",
                abbreviate_home(each.history.path),
            ),
        )
        for number, each in enumerate(read, 1)
    ]
    console.side_table(columns, rows, numeric=("", "conversations", "messages", "new"))
    for each in read:
        if each.failure:
            console.warn(each.failure.message)


# What is wanted


def _choose(read: Sequence[_Read], partition: str | None) -> tuple[list[_Read], str | None]:
    """Let a person pick histories, and where they go.

    :param partition: the one that was named beforehand; without it a person is asked.
    :returns: the histories and the partition; ``None`` if each stays where it goes.
    """
    chosen = _pick(read)
    name = partition or _ask_partition(chosen)
    if name:
        chosen = [replace(each, source=replace(each.source, partition=name)) for each in chosen]
    return chosen, name


def _ask_partition(chosen: Sequence[_Read]) -> str | None:
    """Return the partition that a person names; ``None`` if each history stays where it goes."""
    usual, stored = _partitions(chosen), sum(each.report.already for each in chosen)
    while True:
        name = _answer(f"Partition to keep them in [{usual}]:")
        if name in ("", usual):
            return None
        if name != clean_name(name):
            continue
        if not stored:
            return name
        console.note(f"{options.counted(stored, 'message')} of them are stored already")
        if console.ask(f"Keep them in {name} a second time?"):
            return name


def _pick(read: Sequence[_Read]) -> list[_Read]:
    """Return histories that a person names by number; Enter takes all that have something new."""
    new = [number for number, each in enumerate(read, 1) if each.report.imported]
    usual = ",".join(map(str, new))
    while True:
        answer = _answer(f"Import which, by number, or none? [{usual}]")
        if answer.lower() in ("n", "no", "none", "0"):
            _stop()
        if answer.lower() in ("", "y", "yes", "all"):
            numbers = new
        else:
            numbers = [int(each) for each in re.findall(r"\d+", answer)]
        if numbers and set(numbers) <= set(range(1, len(read) + 1)):
            return [read[each - 1] for each in sorted(set(numbers))]
        console.note(f"type numbers from 1 to {len(read)}, such as {usual}, or none")


def _answer(question: str) -> str:
    answer = console.read_answer(question)
    return _stop() if answer is None else answer


def _stop() -> str:
    console.note("nothing was imported")
    raise typer.Exit(1)


# Doing it


def _import(
    ctx: typer.Context,
    read: Sequence[_Read],
    chosen: Sequence[_Read],
    partition: str | None,
    *,
    embed: bool,
) -> list[_Read]:
    """Import what was chosen.

    :param partition: the one that a person names.
    :returns: everything that was read, with what was done of it.
    """
    done = []
    with open_store.open_reservoir(ctx, create=True) as reservoir:
        config = reservoir.config
        if partition and partition != config.lookup("partition")[0]:
            # First: if the import is broken off, the next one goes on in the same place.
            edit_file.edit(config.path, {"partition": partition})
            console.note(
                f"{partition} is the partition from now on: reservoir config get partition"
            )
        wanted = {each.history: each for each in chosen}
        for each in [wanted.get(each.history, each) for each in read]:
            if each.history not in wanted:
                done.append(each)
                continue
            report = _sync(reservoir, each.source, copies=partition is not None)
            console.aside(f"{each.history.tool}: {report.line()}")
            if report.skipped:
                place = shlex.quote(str(each.history.path))
                console.note(f"why some were skipped: reservoir ingest --dry-run {place}")
            done.append(replace(each, imported=report.imported))
        _remember(reservoir, [each.source for each in chosen])
        if embed and (new := [each for each in done if each.imported]):
            homes = {each.source.partition for each in new}
            _embed(reservoir, Scope(homes.pop() if len(homes) == 1 else None))
    return done


def _remember(reservoir: Reservoir, sources: list[Source]) -> None:
    """Write sources to the settings; those that are there go where they went now."""
    before = {(each.name, each.path): each.partition for each in configured(reservoir.config)}
    keep(reservoir, sources)
    for source in sources:
        former = before.get((source.name, source.path), source.partition)
        if former != source.partition:
            table = {source.name: {"partition": source.partition}}
            edit_file.add_sources(reservoir.config.path, table)
            console.note(
                f"{source.name} goes to {source.partition} from now on; "
                f"what {former} has of it stays there"
            )


def _embed(reservoir: Reservoir, scope: Scope) -> None:
    """Embed what was imported; measure a first batch to say how long the rest takes."""
    console.note(
        "making them searchable by meaning, the newest first; "
        "Ctrl-C keeps what is done, and reservoir embed goes on"
    )
    if reservoir.indexer.pending(scope) > _FIRST_BATCH and reservoir.indexer.load_engine():
        begun = time.monotonic()
        reservoir.indexer.embed_if_possible(scope, most=_FIRST_BATCH)
        left = reservoir.indexer.pending(scope)
        seconds = (time.monotonic() - begun) * left / _FIRST_BATCH
        console.note(f"{options.counted(left, 'message')} to go, about {in_words(seconds)}")
    reservoir.indexer.embed_if_possible(scope)


def _keep_current(
    ctx: typer.Context,
    read: Sequence[_Read],
    partition: str | None,
    *,
    asked: bool,
    dry_run: bool,
) -> None:
    """Say that nothing is new, and let reservoir sync go on from here."""
    console.note(f"nothing new for {_partitions(read)}")
    if not partition and any(each.messages for each in read):
        console.note("to store them in another partition as well: reservoir init -p NAME")
    if dry_run:
        return
    with open_store.open_reservoir(ctx) as reservoir:
        sources = unknown(reservoir, [each.source for each in read if each.messages])
        names = ", ".join(source.name for source in sources)
        if sources and (not asked or console.ask(f"Let reservoir sync read {names}?", usual=True)):
            keep(reservoir, sources)


def _sync(reservoir: Reservoir, source: Source, *, copies: bool) -> ImportReport:
    """Import a history, and remember how far: reservoir sync goes on from there."""
    report = reservoir.sync([source], embed=False, whole=True, copies=copies)
    if report.busy:
        raise ReservoirError(
            "another program syncs this store just now", hint="run reservoir init again"
        )
    [done] = report.sources
    for failure in done.failures:
        console.warn(failure)
    if done.excluded:
        count = options.counted(done.excluded, "message")
        console.note(f"{source.name}: of excluded folders, and left out: {count}")
    return done.imports


def _name_agents(read: "Sequence[_Read]") -> None:
    """Name the agents that can ask the store themselves."""
    agents = [_AGENTS[each.history.form] for each in read if each.history.form in _AGENTS]
    if agents and "connect" in command_list.EXAMPLES:
        commands = ", ".join(f"reservoir connect {agent}" for agent in agents)
        console.note(f"these agents can ask the store themselves: {commands}")


def _try(ctx: typer.Context, read: Sequence[_Read], home: str, *, offer: bool) -> str | None:
    """Name a question to begin with, one that was asked in these histories.

    :param offer: ask whether it should be asked now.
    :returns: the command.
    """
    with open_store.open_reservoir(ctx) as reservoir:
        question = _question(reservoir, home, [each.history.form for each in read])
        if question is None:
            return None
        place = (
            "" if reservoir.config.lookup("partition")[0] == home else f" -p {shlex.quote(home)}"
        )
        command = f'reservoir context "{question}"{place} --budget {_SHORT}'
        console.aside(f"now try: {command}")
        if offer and console.ask("Run it?", usual=True):
            window = reservoir.context(question, partition=home, budget=_SHORT)
            console.window_text(str(window.to("text")))
            console.aside(window.summary())
            reservoir.runs.record(window)
    return command


def _question(reservoir: Reservoir, home: str, forms: Sequence[str]) -> str | None:
    """Return a question of an early conversation without secrets, else a title that fits a line."""
    second_best = None
    known = reservoir.conversations(Scope(home))
    for each in [each for each in known if each.conversation.source in forms][:_MOST_LOOKED_AT]:
        where = Filter(role="user", conversation_id=each.conversation.id)
        asked = reservoir.view(Scope(home, each.instance), 0, where)
        for text in [*(message.content.strip() for message in asked), each.conversation.title]:
            if text and _FITTING.fullmatch(text) and "[redacted:" not in text and not find(text):
                if text.endswith("?"):
                    return text
                second_best = second_best or text
    return second_best


def _print(
    read: Sequence[_Read],
    home: str,
    command: str | None,
    dry_run: bool,
) -> None:
    console.document(
        {
            "partition": home,
            "histories": [_row(each) for each in read],
            "try": command,
            "dry_run": dry_run,
        }
    )


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
        "already_there": report.already,
        "new": report.imported,
        "imported": read.imported,
        "skipped": report.skipped,
        "error": read.failure.message if read.failure else None,
    }
