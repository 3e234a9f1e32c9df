"""Find sources in the settings that are wrong, or whose file or folder does not exist."""

import os
import shlex
from collections.abc import Callable, Container, Iterator, Sequence
from typing import NamedTuple

from reservoir_cli.errors import UsageError
from reservoir_cli.settings import paths
from reservoir_cli.settings.config import Config
from reservoir_cli.settings.setting_keys import suggest_names


class MissingSource(NamedTuple):
    """A source from which nothing can be imported."""

    name: str
    detail: str
    fix: str


def check_source(
    config: Config, name: str, tools: Sequence[str], has_places: Callable[[str], bool]
) -> None:
    """Check the settings of a source.

    :param has_places: tells whether it is known where a tool keeps its history.
    """
    if name in config.wrong_sources:
        raise config.wrong_sources[name]
    table = config.sources[name]
    tool = str(table.get("tool", name))
    if tool not in tools:
        raise UsageError(
            f"[sources.{name}] in {config.path}: unknown tool {tool!r}",
            hint=f"{suggest_names(tool, tools)}tools are {', '.join(tools)}",
        )
    path = table.get("path")
    if not path and not has_places(tool):
        raise UsageError(
            f"[sources.{name}] in {config.path} has no path",
            hint=f"reservoir config set {_quote(name)}.path=FOLDER",
        )
    paths.expand_user(str(path or ""))


def find_missing(config: Config, names: Container[str]) -> Iterator[MissingSource]:
    """Yield the sources whose path is set and does not exist."""
    for name, table in config.sources.items():
        if name in names and table.get("path"):
            path = paths.expand_user(str(table["path"]))
            if not os.path.exists(path):
                key = _quote(name)
                yield MissingSource(
                    name,
                    f"the source {name} does not exist: {path}",
                    f"reservoir config set {key}.path=FOLDER, or reservoir config unset {key}",
                )


def _quote(name: str) -> str:
    return shlex.quote(f"sources.{name}")
