"""Which partition a folder belongs to: the table ``[projects]`` of the settings.

    [projects]
    "~/code/app" = "work"

A folder belongs to the partition of the longest folder that holds it.
"""

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import check_name
from reservoir_cli.settings.paths import expand_user

TABLE = "projects"
#: The key of a folder on the command line.
_KEY = rf"""{TABLE}\.(?:"(?P<quoted>[^"]+)"|'(?P<literal>[^']+)'|(?P<bare>.+))"""


def folder_of_key(key: str) -> str | None:
    """Return the folder that a dotted key names, such as ``projects.~/code/app``, as written.

    :returns: ``None`` if the key is of another table.
    """
    match = re.fullmatch(_KEY, key)
    return match and next(filter(None, match.groups()))


def check_project(folder: str, partition: Any) -> str:
    """Return the partition of an entry if folder and partition are valid.

    :raises UsageError: the folder is not absolute, or there cannot be such a partition.
    """
    if not expand_user(folder).is_absolute():
        raise UsageError(
            f"{TABLE}: {folder!r} is not a whole path",
            hint=f'write [{TABLE}] "~/code/app" = "work"',
        )
    if not isinstance(partition, str):
        raise UsageError(
            f"{TABLE}.{folder} must be the name of a partition, not {partition!r}",
            hint='it must be a text, such as "work"',
        )
    return check_name(partition)


def partition_of(projects: Mapping[str, str], folder: str | Path) -> str | None:
    """Return the partition that a folder belongs to, if a project holds it.

    :param projects: partitions by folder.
    """
    there = _parts(folder)
    holding = {
        parts: partition
        for project, partition in projects.items()
        if there[: len(parts := _parts(project))] == parts
    }
    return holding[max(holding, key=len)] if holding else None


def written_as(projects: Collection[str], folder: str) -> str:
    """Return a folder as a table writes it: ``~/code/app`` and ``~/code/app/`` are the same."""
    if folder in projects:
        return folder
    same = _parts(folder)
    return next((project for project in projects if _parts(project) == same), folder)


def _parts(folder: str | Path) -> tuple[str, ...]:
    """Return the parts of a path by which it is compared: without links, ``..`` and ``~``."""
    path = expand_user(str(folder))
    try:
        path = Path(os.path.realpath(path))
    except (OSError, ValueError):  # no valid path
        path = Path(os.path.abspath(path)) if "\0" not in str(path) else path
    return Path(os.path.normcase(path)).parts
