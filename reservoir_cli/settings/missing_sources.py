"""Find sources in the settings whose file or folder does not exist."""

import os
import shlex
from collections.abc import Container, Iterator
from typing import NamedTuple

from reservoir_cli.settings import paths
from reservoir_cli.settings.config import Config


class MissingSource(NamedTuple):
    """A source from which nothing can be imported.

    :param detail: the problem, in a sentence.
    :param fix: the commands that correct or remove the source.
    """

    name: str
    detail: str
    fix: str


def find_missing(config: Config, names: Container[str] | None = None) -> Iterator[MissingSource]:
    """Yield the sources whose path does not exist; those without a path are left out.

    :param names: of the sources to check; ``None`` for all.
    :raises UsageError: a path begins with the home folder of an unknown user.
    """
    for name, table in config.sources.items():
        if table.get("path") and (names is None or name in names):
            path = paths.expand_user(str(table["path"]))
            if not os.path.exists(path):
                key = shlex.quote(f"sources.{name}")
                yield MissingSource(
                    name,
                    f"the source {name} does not exist: {path}",
                    f"reservoir config set {key}.path=FOLDER, or reservoir config unset {key}",
                )
