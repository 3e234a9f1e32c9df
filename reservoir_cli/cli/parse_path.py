"""Read the path of a file from the command line."""

import os
from pathlib import Path

from reservoir_cli.errors import UsageError


def parse_path(typed: str) -> Path:
    """Return a path; the shell does not expand ``~`` within quotes or after an equals sign.

    :raises UsageError: the path is empty, as that of an unset variable.
    """
    if not typed:
        raise UsageError("the name of a file is empty", hint="name a file")
    return Path(os.path.expanduser(typed))
