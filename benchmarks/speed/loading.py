"""How fast messages are stored, beside bare inserts.

    python benchmarks/speed/loading.py [--messages 100000] [--json FILE]

Nothing is embedded. The bare inserts take rows that are ready, a thousand a transaction: once into
a table of one column and a full-text index, once into the store's own tables with their indexes.
"""

import argparse
import json
import sqlite3
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import synthetic

from reservoir_cli import Message, Reservoir
from reservoir_cli.messages import Scope
from reservoir_cli.storage.factory import open_store
from reservoir_cli.tokens import load_counter

_BATCH = 1_000


def bare(folder: Path, messages: list[Message]) -> float:
    """Messages a second into a text column and a full-text index."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, content TEXT)")
    connection.execute(
        "CREATE VIRTUAL TABLE words USING fts5 (text, content='', "
        "tokenize='porter unicode61 remove_diacritics 2')"
    )
    started = time.perf_counter()
    for start in range(0, len(messages), _BATCH):
        rows = [(start + at, each.content) for at, each in enumerate(messages[start:][:_BATCH])]
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO messages VALUES (?, ?)", rows)
        connection.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", rows)
        connection.execute("COMMIT")
    rate = len(messages) / (time.perf_counter() - started)
    connection.close()
    return rate


def bare_same_tables(folder: Path, messages: list[Message]) -> float:
    """Messages a second into the store's own tables, without counting or checking anything."""
    open_store(str(folder / "tables.db")).close()
    connection = sqlite3.connect(folder / "tables.db", isolation_level=None)
    names = "id, trace_id, conversation_id, partition, instance, role, content, created_at, source"
    rows = [
        (at, each.trace_id, each.conversation_id, "p", "i", each.role, each.content, at, "s", at)
        for at, each in enumerate(messages, 1)
    ]
    started = time.perf_counter()
    for start in range(0, len(rows), _BATCH):
        some = rows[start : start + _BATCH]
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            f"INSERT INTO messages ({names}, source_id, tokens, counter, terms, asks) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, 'c', 1, 0)",
            some,
        )
        texts = [(row[0], row[6]) for row in some]
        connection.executemany("INSERT INTO messages_fts (rowid, text) VALUES (?, ?)", texts)
        connection.executemany("INSERT INTO pending VALUES (?)", [(row[0],) for row in some])
        connection.execute("COMMIT")
    rate = len(messages) / (time.perf_counter() - started)
    connection.close()
    return rate


def stored(folder: Path, messages: list[Message]) -> float:
    """Messages a second through the store."""
    store, counter = open_store(str(folder / "store.db")), load_counter("approximate")
    started = time.perf_counter()
    for start in range(0, len(messages), _BATCH):
        some = messages[start : start + _BATCH]
        store.add(Scope("p", "i"), some, counter=counter, now=datetime.now(UTC))
    rate = len(messages) / (time.perf_counter() - started)
    store.close()
    return rate


def imported(folder: Path, messages: list[Message]) -> float:
    """Messages a second from a file of JSON Lines, as ``ingest FILE --no-embed`` brings them in."""
    file = folder / "messages.jsonl"
    with file.open("w", encoding="utf-8") as lines:
        for each in messages:
            fields = ("role", "content", "trace_id", "conversation_id", "source", "source_id")
            row = {name: getattr(each, name) for name in fields}
            row["created_at"] = each.created_at.isoformat() if each.created_at else None
            lines.write(json.dumps(row) + "\n")
    with Reservoir.open(folder / "imported.db") as reservoir:
        started = time.perf_counter()
        totals = reservoir.import_files(file)
        rate = totals.imported / (time.perf_counter() - started)
    return rate


def main() -> None:
    """Measure the three in turn and print."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--messages", type=int, default=100_000)
    options.add_argument("--json", type=Path, help="write the figures to this file too")
    given = options.parse_args()
    messages = list(synthetic.Writer().messages(given.messages))
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for measure in (bare, bare_same_tables, stored, imported):
            found[measure.__name__] = measure(Path(folder), messages)
    print(f"{given.messages:,} messages, nothing embedded")
    print(f"{'':<18}{'a second':>10}{'x of the bare':>16}")
    for name, rate in found.items():
        times = f"{rate / found['bare']:6.2f} {rate / found['bare_same_tables']:6.2f}"
        print(f"{name:<18}{rate:>10,.0f}{times:>16}")
    if given.json:
        given.json.write_text(json.dumps(found, indent=2), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
