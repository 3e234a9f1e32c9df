"""Create databases of other tools from their dumps."""

import sqlite3
from contextlib import closing
from pathlib import Path

DUMPS = Path(__file__).parent / "dumps"
NAMES = {
    "opencode": "opencode.db",
    "cursor": "state.vscdb",
    "goose": "sessions.db",
    "hermes": "state.db",
    "open-webui": "webui.db",
    "zed": "threads.db",
}


def create_database(folder: Path, tool: str) -> Path:
    """Write a tool's database into a folder, under the tool's name for it."""
    path = folder / NAMES[tool]
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript((DUMPS / f"{tool}.sql").read_text(encoding="utf-8"))
    return path


#: What is imported of the sample database of Cursor; see ``reading.row_of``.
CURSOR = [
    ("user", "[image]\nHow long is a brown pelican?", "09:00:01", "c1"),
    ("assistant", "I will look.", "09:00:03", "c1"),
    ("system", "They mean the bird.", "09:00:02", "c1"),
    ("tool", '{"contents":"1.2 m"}', "09:00:03", "c1"),
    ("assistant", "It is 1.2 m long.", "09:00:04", "c1"),
    ("user", "How heavy is it?", "09:00:04", "c1"),
    ("user", "What do pelicans eat?", "10:00:00", "c2"),
    ("assistant", "Fish.", "10:00:00", "c2"),
]
