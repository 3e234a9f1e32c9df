"""The table ``[projects]`` of the settings, which assigns folders to partitions.

    [projects]
    "~/code/app" = "work"

A folder belongs to the partition of the innermost listed folder that contains it.
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
    """Return the folder in a dotted key such as ``projects.~/code/app``, as written."""
    match = re.fullmatch(_KEY, key)
    return match and next(filter(None, match.groups()))


def check_project(folder: str, partition: Any) -> str:
    """Return the partition of an entry."""
    if "\0" in folder:
        raise UsageError(
            f"{TABLE}: {folder!r} is not a path", hint=f'write [{TABLE}] "~/code/app" = "work"'
        )
    if not expand_user(folder).is_absolute():
        raise UsageError(
            f"{TABLE}: {folder!r} is not an absolute path",
            hint=f'write [{TABLE}] "~/code/app" = "work"',
        )
    if not isinstance(partition, str):
        raise UsageError(
            f"{TABLE}.{folder} must be the name of a partition, not {partition!r}",
            hint='it must be a string, such as "work"',
        )
    return check_name(partition, f"{TABLE}.{folder}")


def partition_of(projects: Mapping[str, str], folder: str | Path) -> str | None:
    """Return the partition of a folder; ``None`` if it is not in a project."""
    path = _resolved_parts(folder)
    containing = {
        parts: partition
        for project, partition in projects.items()
        if path[: len(parts := _resolved_parts(project))] == parts
    }
    return containing[max(containing, key=len)] if containing else None


def written_as(projects: Collection[str], folder: str) -> str:
    """Return a folder as a table writes it: ``~/code/app`` and ``~/code/app/`` are the same."""
    if folder in projects:
        return folder
    same = _resolved_parts(folder)
    return next((project for project in projects if _resolved_parts(project) == same), folder)


def _resolved_parts(folder: str | Path) -> tuple[str, ...]:
    """Return the parts of a path with links, ``..`` and ``~`` resolved, for comparison."""
    path = expand_user(str(folder))
    try:
        path = Path(os.path.realpath(path))
    except (OSError, ValueError):  # not a valid path
        path = Path(os.path.abspath(path)) if "\0" not in str(path) else path
    return Path(os.path.normcase(path)).parts
