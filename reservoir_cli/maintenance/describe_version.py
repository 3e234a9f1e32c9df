"""Describe the installed program for ``reservoir --version`` and for reports of faults."""

import platform
from contextlib import suppress

from reservoir_cli.errors import ReservoirError
from reservoir_cli.settings import config


def describe_version(version: str) -> str:
    """Return Reservoir's version, those of Python and SQLite, and the model, on one line."""
    import sqlite3

    parts = [
        f"reservoir {version}",
        f"Python {platform.python_version()}",
        f"SQLite {sqlite3.sqlite_version}",
    ]
    with suppress(ReservoirError):  # invalid settings do not hide the versions
        parts.append(f"model {config.load().lookup('embedding_model')[0]}")
    return ", ".join(parts)
