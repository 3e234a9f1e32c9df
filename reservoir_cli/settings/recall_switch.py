"""Find what switches recall off for agents: the setting ``recall``, or a file in a folder."""

import os
from contextlib import suppress
from pathlib import Path

from reservoir_cli.settings import paths
from reservoir_cli.settings.config import Config

#: A file of this name switches recall off in its folder and those below it.
FILE = ".reservoir-off"
WORD = "--no-recall"  #: A prompt with this first word gets no recalled messages.
_ROOTS = (".git", ".hg", ".jj", ".svn")  #: What the root of a project contains.


def begins_with_word(prompt: str) -> bool:
    """Return whether a prompt asks for no recalled messages."""
    return prompt.split(maxsplit=1)[:1] == [WORD]


def find_switch(config: Config, partition: str | None, *folders: str | Path | None) -> str | None:
    """Return the name of what switches recall off; ``None`` if it is on."""
    value, origin = config.lookup("recall", partition)
    if not value:
        return "RESERVOIR_RECALL" if origin == "environment" else "the setting recall"
    files = (_find_file(folder, config) for folder in folders if folder)
    file = next(filter(None, files), None)
    return paths.abbreviate_home(file) if file else None


def _find_file(folder: str | Path, config: Config) -> Path | None:
    """Return the file of a folder, or of one above it, up to the root of its project."""
    with suppress(OSError, ValueError):  # a folder that is missing, or no valid path
        path = Path(os.path.realpath(folder))
        ends = {Path(os.path.realpath(paths.expand_user(name))) for name in config.projects}
        ends.add(Path(os.path.realpath(os.path.expanduser("~"))))
        for parent in (path, *path.parents):
            if os.path.lexists(parent / FILE):
                return parent / FILE
            if parent in ends or any(os.path.lexists(parent / name) for name in _ROOTS):
                return None
    return None
