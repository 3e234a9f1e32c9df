"""Databases of opencode and Cursor, made from their dumps."""

import sqlite3
from contextlib import closing
from pathlib import Path

DUMPS = Path(__file__).parent / "dumps"


def made_database(folder: Path, tool: str) -> Path:
    """Write a tool's database into a folder, under the name the tool gives it."""
    path = folder / {"opencode": "opencode.db", "cursor": "state.vscdb"}[tool]
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript((DUMPS / f"{tool}.sql").read_text(encoding="utf-8"))
    return path
