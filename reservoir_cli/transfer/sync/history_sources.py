"""The sources of a sync: histories of other tools, from the settings or found on this machine."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from reservoir_cli.errors import UsageError
from reservoir_cli.settings import paths
from reservoir_cli.settings.check_history_sources import check_source
from reservoir_cli.settings.config import Config
from reservoir_cli.settings.setting_keys import suggest_names
from reservoir_cli.transfer.formats.registry import FORMATS, all_formats
from reservoir_cli.transfer.sync import discover_histories


@dataclass(frozen=True, slots=True)
class Source:
    """The history of a tool that is kept in sync."""

    name: str  #: The name of its table in the settings.
    tool: str  #: The importer that reads it.
    path: Path
    partition: str
    exclude: tuple[str, ...] = ()  #: Folders of history files or of conversations' projects.


def configured_sources(config: Config, wrong: dict[str, UsageError] | None = None) -> list[Source]:
    """Return the sources of the settings.

    :param wrong: receives the errors of wrong sources, by name; without it, the first is raised.
    """
    sources = []
    for name in config.sources:
        try:
            sources.append(_read_source(config, name))
        except UsageError as error:
            if wrong is None:
                raise
            wrong[name] = error
    return sources


def _read_source(config: Config, name: str) -> Source:
    check_source(config, name, formats_for(config, name))
    table = config.sources[name]
    excluded = table.get("exclude")
    folders = tuple(excluded) if isinstance(excluded, list) else ()
    partition = str(table.get("partition") or config.lookup("partition")[0])
    path = paths.expand_user(str(table["path"]))
    return Source(name, str(table.get("tool", name)), path, partition, folders)


def formats_for(config: Config, name: str) -> Sequence[str]:
    """Return the formats that a source may have: those of plugins only if it has none of ours."""
    tool = config.sources[name].get("tool", name)
    return FORMATS if tool in FORMATS else all_formats()


def discover_sources(partition: str) -> list[Source]:
    """Return the histories found on this machine."""
    sources: dict[str, Source] = {}
    for history in discover_histories.look():
        if history.files:
            name = choose_name(history.form, sources)
            sources[name] = Source(name, history.form, history.path, partition)
    return list(sources.values())


def choose_name(tool: str, taken: Container[str]) -> str:
    """Return a name for a new source: its tool's name, with a number if that is taken."""
    numbered = (f"{tool}-{number}" for number in count(2))
    return next(name for name in chain([tool], numbered) if name not in taken)


def select_sources(sources: Sequence[Source], names: Sequence[str]) -> list[Source]:
    """Return the sources with one of the names or tools, all without names, or raise UsageError."""
    for name in names:
        names_of_sources = [source.name for source in sources]
        tools = [source.tool for source in sources]
        if name not in (*names_of_sources, *tools):
            hint = "reservoir init finds the histories here"
            if sources:
                near = suggest_names(name, [*dict.fromkeys([*names_of_sources, *tools])])
                hint = f"{near}sources are {', '.join(names_of_sources)}"
            raise UsageError(f"there is no source {name!r}", hint=hint)
    return [source for source in sources if not names or {source.name, source.tool} & set(names)]
