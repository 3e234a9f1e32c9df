"""Measure how fast messages are stored, compared with bare inserts.

    python benchmarks/speed/loading.py [--messages 100000] [--json FILE]

Nothing is embedded. The bare inserts write prepared rows, a thousand per transaction: once into a
table of one column and a full-text index, once into the store's own tables with their indexes.
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
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.tokens import load_counter

_BATCH = 1_000


def bare(folder: Path, messages: list[Message]) -> float:
    """Return the messages per second inserted into a text column and a full-text index."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, content TEXT)")
    connection.execute(
        "CREATE VIRTUAL TABLE words USING fts5 (text, content='', "
        "tokenize='porter unicode61 remove_diacritics 2')"
    )
    started = time.perf_counter()
    for start in range(0, len(messages), _BATCH):
        batch = enumerate(messages[start:][:_BATCH], start)
        rows = [(number, message.content) for number, message in batch]
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO messages VALUES (?, ?)", rows)
        connection.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", rows)
        connection.execute("COMMIT")
    rate = len(messages) / (time.perf_counter() - started)
    connection.close()
    return rate


def bare_same_tables(folder: Path, messages: list[Message]) -> float:
    """Return the messages per second inserted into the store's tables, without any checks."""
    open_store(str(folder / "tables.db")).close()
    connection = sqlite3.connect(folder / "tables.db", isolation_level=None)
    names = "id, trace_id, conversation_id, partition, instance, role, content, created_at, source"
    rows = [
        (n, row.trace_id, row.conversation_id, "p", "i", row.role, row.content, n, "s", n)
        for n, row in enumerate(messages, 1)
    ]
    started = time.perf_counter()
    for start in range(0, len(rows), _BATCH):
        batch = rows[start : start + _BATCH]
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            f"INSERT INTO messages ({names}, source_id, tokens, counter, "
            "word_count, has_question_mark) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, 'c', 1, 0)",
            batch,
        )
        texts = [(row[0], row[6]) for row in batch]
        connection.executemany("INSERT INTO messages_fts (rowid, text) VALUES (?, ?)", texts)
        connection.executemany(
            "INSERT INTO pending VALUES (?, ?)", [("p", row[0]) for row in batch]
        )
        connection.execute("COMMIT")
    rate = len(messages) / (time.perf_counter() - started)
    connection.close()
    return rate


def stored(folder: Path, messages: list[Message]) -> float:
    """Return the messages per second added through the store."""
    store, counter = open_store(str(folder / "store.db")), load_counter("approximate")
    started = time.perf_counter()
    for start in range(0, len(messages), _BATCH):
        batch = messages[start : start + _BATCH]
        store.add(Scope("p", "i"), batch, counter=counter, now=datetime.now(UTC))
    rate = len(messages) / (time.perf_counter() - started)
    store.close()
    return rate


def imported(folder: Path, messages: list[Message]) -> float:
    """Return the messages per second imported from JSON Lines, as by ``ingest FILE --no-embed``."""
    file = folder / "messages.jsonl"
    with file.open("w", encoding="utf-8") as lines:
        for message in messages:
            fields = ("role", "content", "trace_id", "conversation_id", "source", "source_id")
            row = {name: getattr(message, name) for name in fields}
            row["created_at"] = message.created_at.isoformat() if message.created_at else None
            lines.write(json.dumps(row) + "\n")
    with Reservoir.open(folder / "imported.db") as reservoir:
        started = time.perf_counter()
        totals = reservoir.import_files(file)
        rate = totals.imported / (time.perf_counter() - started)
    return rate


def main() -> None:
    """Measure each way to store messages, and print the rates."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    options = parser.parse_args()
    messages = list(synthetic.Writer().messages(options.messages))
    rates = {}
    with tempfile.TemporaryDirectory() as folder:
        for measure in (bare, bare_same_tables, stored, imported):
            rates[measure.__name__] = measure(Path(folder), messages)
    print(f"{options.messages:,} messages, nothing embedded")
    print(f"{'':<18}{'a second':>10}{'x of the bare':>16}")
    for name, rate in rates.items():
        times = f"{rate / rates['bare']:6.2f} {rate / rates['bare_same_tables']:6.2f}"
        print(f"{name:<18}{rate:>10,.0f}{times:>16}")
    if options.json:
        options.json.write_text(json.dumps(rates, indent=2), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
