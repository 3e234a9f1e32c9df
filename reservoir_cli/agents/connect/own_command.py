"""Build the command line by which other programs start this one."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from reservoir_cli.errors import UsageError
from reservoir_cli.settings.paths import is_on_a_server, mask_password
from reservoir_cli.settings.read_settings_file import missing_file_error
from reservoir_cli.util import installation

_NAME = "reservoir.exe" if sys.platform == "win32" else "reservoir"


def program() -> list[str]:
    """Return the absolute path of ``reservoir``.

    A symbolic link is not resolved, since it outlives the environment that it points to. If there
    is no such file, return a command that runs our package in Python.
    """
    scripts = Path(sysconfig.get_path("scripts")) / _NAME
    started_as = Path(sys.argv[0]).with_suffix(Path(_NAME).suffix)
    candidates = [started_as] if started_as.is_absolute() or os.sep in sys.argv[0] else []
    for path in (*candidates, scripts, Path(shutil.which("reservoir") or "")):
        if path.name.lower() == _NAME and path.is_file():
            return [os.path.abspath(path)]
    return [*installation.IN_PYTHON]


def with_options(config: Path | None, db: str | None) -> list[str]:
    """Return the program with the options that were typed before the command.

    :raises UsageError: there is no such settings file, or the store's URL has a password, which
        another program's settings would reveal.
    """
    options = []
    if config is not None:
        if not config.is_file():
            raise missing_file_error(config)
        options += ["--config", os.path.abspath(config)]
    if db is not None:
        if is_on_a_server(db) and mask_password(db) != db:
            raise UsageError(
                "--db has a password, which would be written to another program's settings",
                hint="write the URL to our settings: reservoir config set database=URL",
            )
        options += ["--db", db if is_on_a_server(db) else os.path.abspath(db)]
    return [*program(), *options]
