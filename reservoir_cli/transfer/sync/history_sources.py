"""The sources of a sync: histories of other tools, from the settings or found on this machine."""

import os
import shlex
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from reservoir_cli.errors import UsageError
from reservoir_cli.settings import paths
from reservoir_cli.settings.config import Config
from reservoir_cli.settings.setting_keys import suggest_names
from reservoir_cli.transfer.formats.registry import FORMATS, all_formats, importer_named
from reservoir_cli.transfer.leave_out import compile_exclusion
from reservoir_cli.transfer.sync import discover_histories


@dataclass(frozen=True, slots=True)
class Source:
    """The history of a tool that is kept in sync."""

    name: str  #: The name of its table in the settings.
    tool: str  #: The importer that reads it.
    path: Path
    partition: str
    exclude: tuple[str, ...] = ()  #: Folders of history files or of conversations' projects.

    @property
    def is_left_out(self) -> bool:
        """Whether ``exclude`` covers all files."""
        return compile_exclusion(list(self.exclude))(str(self.path))


def configured_sources(config: Config, wrong: dict[str, UsageError] | None = None) -> list[Source]:
    """Return the sources of the settings.

    :param wrong: receives the errors of wrong sources, by name; without it, the first is raised.
    """
    sources = []
    for name in config.sources:
        try:
            sources += _read_source(config, name)
        except UsageError as error:
            if wrong is None:
                raise
            wrong[name] = error
    return sources


def check(config: Config, name: str) -> tuple[str, str] | None:
    """Check the settings of a source: its tool, and its path if the tool has no usual places.

    :returns: what is wrong and how to fix it, if its path does not exist.
    """
    if name in config.wrong_sources:
        raise config.wrong_sources[name]
    table, key = config.sources[name], shlex.quote(f"sources.{name}")
    tool = str(table.get("tool", name))
    tools = FORMATS if tool in FORMATS else all_formats()  # plugins only for one that is not ours
    if tool not in tools:
        raise UsageError(
            f"[sources.{name}] in {config.path}: unknown tool {tool!r}",
            hint=f"{suggest_names(tool, tools)}tools are {', '.join(tools)}",
        )
    path = paths.expand_user(str(table.get("path") or ""))
    if not table.get("path"):
        if any(importer_named(tool).places()):
            return None
        raise UsageError(
            f"[sources.{name}] in {config.path} has no path",
            hint=f"reservoir config set {key}.path=FOLDER",
        )
    if os.path.exists(path):
        return None
    fix = f"reservoir config set {key}.path=FOLDER, or reservoir config unset {key}"
    return f"the source {name} does not exist: {path}", fix


def _read_source(config: Config, name: str) -> list[Source]:
    """Return a source; without a path, one for each place in which its tool has files."""
    check(config, name)
    table = config.sources[name]
    tool = str(table.get("tool", name))
    excluded = table.get("exclude")
    folders = tuple(excluded) if isinstance(excluded, list) else ()
    partition = str(table.get("partition") or config.lookup("partition")[0])
    if path := table.get("path"):
        locations = [paths.expand_user(str(path))]
    else:
        usual = [place.path for place in importer_named(tool).places()]
        others = {paths.expand_user(str(table.get("path"))) for table in config.sources.values()}
        locations = [path for path in usual if path.exists() and path not in others] or usual[:1]
    return [Source(name, tool, path, partition, folders) for path in locations]


def discover_sources(partition: str, left_out: Container[Path] = ()) -> list[Source]:
    """Return the histories found on this machine, without those of some paths."""
    sources: dict[str, Source] = {}
    for history in discover_histories.look():
        if history.files and history.path not in left_out:
            name = choose_name(history.form, sources)
            sources[name] = Source(name, history.form, history.path, partition)
    return list(sources.values())


def choose_name(tool: str, names: Container[str]) -> str:
    """Return a name for a new source: its tool's name, with a number if that is taken."""
    numbered = (f"{tool}-{number}" for number in count(2))
    return next(name for name in chain([tool], numbered) if name not in names)


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
