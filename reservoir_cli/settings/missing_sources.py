"""Find sources in the settings whose file or folder does not exist."""

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reservoir_cli.settings import paths
from reservoir_cli.settings.config import Config


@dataclass(frozen=True, slots=True)
class MissingSource:
    """A source from which nothing can be imported."""

    name: str
    path: Path

    @property
    def detail(self) -> str:
        """The problem, in a sentence."""
        return f"the source {self.name} does not exist: {self.path}"

    @property
    def fix(self) -> str:
        """The commands that correct or remove the source."""
        key = shlex.quote(f"sources.{self.name}")
        return f"reservoir config set {key}.path=FOLDER, or reservoir config unset {key}"


def find_missing(config: Config) -> Iterator[MissingSource]:
    """Yield the sources whose path does not exist; those without a path are left out.

    :raises UsageError: a path begins with the home folder of an unknown user.
    """
    for name, table in config.sources.items():
        if table.get("path"):
            path = paths.expand_user(str(table["path"]))
            if not os.path.exists(path):
                yield MissingSource(name, path)
