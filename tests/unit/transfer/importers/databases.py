"""Create databases of other tools from their dumps."""

import sqlite3
from contextlib import closing
from pathlib import Path

DUMPS = Path(__file__).parent / "dumps"
NAMES = {
    "opencode": "opencode.db",
    "cursor": "state.vscdb",
    "goose": "sessions.db",
    "open-webui": "webui.db",
    "zed": "threads.db",
}


def create_database(folder: Path, tool: str) -> Path:
    """Write a tool's database into a folder, under the tool's name for it."""
    path = folder / NAMES[tool]
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript((DUMPS / f"{tool}.sql").read_text(encoding="utf-8"))
    return path
