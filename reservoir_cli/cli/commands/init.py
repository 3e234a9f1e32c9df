"""``reservoir init``: find the histories that are on this machine, ask, and import them."""

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
from reservoir_cli.transfer.sync import Source

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

    :param report: what an import would do, and how many conversations it met.
    :param failure: why it cannot be read.
    :param imported: messages that were added.
    """

    history: History
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
        bool, typer.Option("-y", "--yes", help="Do not ask; take everything that is found.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what is found; import nothing.")
    ] = False,
    no_embed: Annotated[bool, typer.Option("--no-embed", help="Store now, embed later.")] = False,
    as_json: options.Json = False,
) -> None:
    """Find histories on this machine, and import them.

    Looks for those of Claude Code, Codex, Gemini CLI, opencode, Copilot, Cursor, Cline, Goose,
    LM Studio, aider, Zed, Open WebUI and llm. Asks before anything is read, shows what was found,
    and imports what you choose; again, it adds only what is new.
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
        home = partition or str(reservoir.config.lookup("partition")[0])
        read = [_examine(reservoir, each, home) for each in there]
    if there:
        _show_contents(read)
    chosen = [each for each in read if each.report.imported]
    if chosen and not dry_run:
        if not yes:
            chosen, home = _choose(read, home, asked=partition is None)
        read = _import(ctx, read, chosen, home, embed=not no_embed)
    elif there and not chosen:
        _keep_current(ctx, read, home, asked=asked, dry_run=dry_run)
    _name_agents(read)
    question = None if dry_run else _try(ctx, read, home, offer=asked and not as_json)
    if as_json:
        _print(places, read, home, question, dry_run)
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


def _examine(reservoir: Reservoir, history: History, partition: str) -> _Read:
    """Find out what importing a history would do."""
    try:
        report = reservoir.import_files(
            history.path, form=history.form, partition=partition, dry_run=True
        )
    except ReservoirError as failure:
        return _Read(history, ImportReport(), failure)
    return _Read(history, report)


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


def _choose(read: Sequence[_Read], home: str, *, asked: bool) -> tuple[list[_Read], str]:
    """Let a person pick histories, and where they go.

    :param asked: ask for the partition, too.
    :returns: the histories and the partition.
    """
    chosen = _pick(read)
    there = sum(each.report.already for each in chosen)
    while asked:
        name = _answer(f"Partition to keep them in [{home}]:") or home
        if name != clean_name(name):
            continue
        if name == home or not there:
            return chosen, name
        console.note(f"{options.counted(there, 'message')} of them are in {home} already")
        if console.ask(f"Keep them in {name} a second time?"):
            return chosen, name
    return chosen, home


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
    ctx: typer.Context, read: Sequence[_Read], chosen: Sequence[_Read], home: str, *, embed: bool
) -> list[_Read]:
    """Import what was chosen.

    :returns: everything that was read, with what was done of it.
    """
    done = []
    with open_store.open_reservoir(ctx, create=True) as reservoir:
        config = reservoir.config
        if home != config.lookup("partition")[0]:
            # First: if the import is broken off, the next one goes on in the same place.
            edit_file.edit(config.path, {"partition": home})
            console.note(f"{home} is the partition from now on: reservoir config get partition")
        for each in read:
            if each not in chosen:
                done.append(each)
                continue
            report = _sync(reservoir, each.history, home)
            console.aside(f"{each.history.tool}: {report.line()}")
            if report.skipped:
                place = shlex.quote(str(each.history.path))
                console.note(f"why some were skipped: reservoir ingest --dry-run {place}")
            done.append(replace(each, imported=report.imported))
        keep(reservoir, [_source(each.history, home) for each in chosen])
        if embed and any(each.imported for each in done):
            _embed(reservoir, Scope(home))
    return done


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
    ctx: typer.Context, read: Sequence[_Read], home: str, *, asked: bool, dry_run: bool
) -> None:
    """Say that nothing is new, and let reservoir sync go on from here."""
    console.note(f"nothing new for {home}")
    if dry_run:
        return
    with open_store.open_reservoir(ctx) as reservoir:
        there = [_source(each.history, home) for each in read if each.messages]
        sources = unknown(reservoir, there)
        names = ", ".join(source.name for source in sources)
        if sources and (not asked or console.ask(f"Let reservoir sync read {names}?", usual=True)):
            keep(reservoir, sources)


def _sync(reservoir: Reservoir, history: History, home: str) -> ImportReport:
    """Import a history, and remember how far: reservoir sync goes on from there."""
    report = reservoir.sync([_source(history, home)], embed=False, whole=True)
    if report.busy:
        raise ReservoirError(
            "another program syncs this store just now", hint="run reservoir init again"
        )
    [source] = report.sources
    for failure in source.failures:
        console.warn(failure)
    return source.imports


def _source(history: History, home: str) -> Source:
    return Source(history.form, history.form, history.path, home)


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
    places: Sequence[History],
    read: Sequence[_Read],
    home: str,
    command: str | None,
    dry_run: bool,
) -> None:
    known = {each.history: each for each in read}
    console.document(
        {
            "partition": home,
            "histories": [_row(known.get(each, _Read(each, ImportReport()))) for each in places],
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
