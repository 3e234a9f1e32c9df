"""Damage samples at random, and check what is read of them and what is stored."""

import json
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Message, Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.transfer.detect_format import find
from reservoir_cli.transfer.reading.decompressed_file import SQLITE
from reservoir_cli.transfer.reading.importer import Record, Skipped

#: Replacements of JSON values.
_ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1e308,
    10**30,
    float("nan"),
    "",
    " ",
    "text",
    "\ud800",
    "\0",
    [],
    {},
    [None],
    [[]],
    {"a": 1},
    "2026-13-01",
    "9999-12-31T23:59:59-12:00",
    253402300799.9,
)

Damage = Callable[[bytes, random.Random], bytes]


def flip_bytes(data: bytes, rng: random.Random) -> bytes:
    """Change some bytes."""
    damaged = bytearray(data)
    for _ in range(rng.choice((1, 1, 3, 30))):
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
    return bytes(damaged)


def cut_bytes(data: bytes, rng: random.Random) -> bytes:
    """Remove the end, the beginning, or a piece."""
    start, end = sorted((rng.randrange(len(data)), rng.randrange(len(data))))
    return rng.choice((data[:end], data[start:], data[:start] + data[end:]))


def swap_values(data: bytes, rng: random.Random) -> bytes:
    """Replace values by others of other types; the file stays valid JSON, or a database."""
    if data.startswith(SQLITE):
        return _swap_rows(data, rng)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return flip_bytes(data, rng)
    if (document := _swap_json(text, rng)) is not None:
        return document.encode()
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join(_swap_in_line(line, rng) for line in lines).encode()


DAMAGES: tuple[Damage, ...] = (flip_bytes, cut_bytes, swap_values)


def _swap_json(text: str, rng: random.Random) -> str | None:
    """Return a JSON text with other values; ``None`` if it is not JSON."""
    try:
        return json.dumps(_swap(json.loads(text), rng))
    except ValueError:
        return None


def _swap_in_line(line: str, rng: random.Random) -> str:
    return (_swap_json(line, rng) if rng.random() < 0.5 else None) or line


def _swap_rows(data: bytes, rng: random.Random) -> bytes:
    """Replace values in the rows of a database, and within those that are JSON."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(data)
        listed = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for _ in range(rng.choice((1, 1, 3, 10))):
            table = rng.choice(listed)[0]
            rows = database.execute(f'SELECT rowid, * FROM "{table}"')
            names = [column[0] for column in rows.description[1:]]
            if row := rng.choice([*rows.fetchall()] or [None]):
                column = rng.randrange(len(names))
                change = f'UPDATE "{table}" SET "{names[column]}" = ? WHERE rowid = ?'
                with suppress(sqlite3.IntegrityError):  # the column does not allow the value
                    database.execute(change, [_swap_column(row[1 + column], rng), row[0]])
        database.commit()
        return database.serialize()


def _swap_column(value: Any, rng: random.Random) -> Any:
    """Return another value of a column, mostly JSON with other values if it was JSON."""
    try:
        is_json = isinstance(json.loads(value), dict | list)
    except (TypeError, ValueError):
        is_json = False
    if is_json and rng.random() < 0.8:
        swapped = _swap_json(value if isinstance(value, str) else value.decode(), rng)
        return swapped.encode() if swapped and isinstance(value, bytes) else swapped
    if isinstance(value, bytes) and value and rng.random() < 0.8:
        return rng.choice((flip_bytes, cut_bytes))(value, rng)
    odd = rng.choice(_ODD)
    if isinstance(odd, list | dict):
        return json.dumps(odd)
    if odd == "\ud800":
        return b"\xed\xa0\x80"
    return 2**63 - 1 if odd == 10**30 else odd


def _swap(value: Any, rng: random.Random) -> Any:
    if rng.random() < 0.02:
        return rng.choice(_ODD)
    if isinstance(value, dict):
        return {key: _swap(item, rng) for key, item in value.items() if rng.random() > 0.01}
    if isinstance(value, list):
        return [_swap(item, rng) for item in value]
    return value


def _write_damaged(sample: bytes, name: str, seed: int, folder: Path) -> Path:
    """Write a damaged sample under its name into a folder."""
    rng = random.Random(f"{name} {seed}")
    file = folder / name
    file.write_bytes(rng.choice(DAMAGES)(sample, rng))
    return file


def read_damaged(sample: bytes, name: str, seed: int, folder: Path) -> str:
    """Damage a sample, read it without a store, and check what is read.

    One file in ten is read twice, which must give the same.

    :returns: ``imported``, or why nothing was.
    """
    file = _write_damaged(sample, name, seed, folder)
    try:
        entries = _read(file)
    except ReservoirError as error:
        refusal = error
    else:
        refusal = None
    if refusal:
        assert refusal.exit_code == 1
        return "refused"
    assert seed % 10 or _read(file) == entries
    records = [entry for entry in entries if isinstance(entry, Record)]
    for record in records:
        assert_complete(record.message, is_native=name == "reservoir.jsonl")
        values = [record.partition, record.instance, record.folder, record.parent]
        if about := record.conversation:
            assert about.id
            values += [getattr(about, field.name) for field in fields(about)]
        assert all(value is None or isinstance(value, str) for value in values)
    return "imported" if records else "nothing"


def _read(file: Path) -> list[Record | Skipped]:
    with ExitStack() as open_files:
        files = find(file, None, open_files).files
        return [entry for detected in files for entry in detected.records()]


def assert_complete(message: Message, *, is_native: bool) -> None:
    """Check that a message has a text or a call, a valid time, and an identity.

    :param is_native: whether it is from an export of a store, in which messages can be empty.
    """
    assert is_native or message.content.strip() or message.tool_calls or message.role == "tool"
    created_at = message.created_at
    assert created_at is None or datetime(1970, 1, 1, tzinfo=UTC) <= created_at
    assert message.source_id


def import_damaged(sample: bytes, name: str, seed: int, folder: Path) -> str:
    """Damage a sample, import it twice, and check the store.

    :returns: ``imported``, or why nothing was.
    """
    file = _write_damaged(sample, name, seed, folder)
    store = _new_store(folder)
    with Reservoir.open(store) as reservoir:
        try:
            first = reservoir.import_files(file)
        except ReservoirError as error:
            refusal = error
        else:
            refusal = None
        if refusal:
            assert refusal.exit_code == 1
            assert not reservoir.view(Scope(None), 0)
            return "refused"
        stored = reservoir.view(Scope(None), 0)
        second = reservoir.import_files(file)
        assert reservoir.view(Scope(None), 0) == stored
    assert first.imported == len(stored)
    assert (second.imported, second.already) == (0, first.imported + first.already)
    assert first.skipped == second.skipped >= len(first.reasons)
    for message in stored:
        assert_complete(message.as_new(), is_native=name == "reservoir.jsonl")
        assert message.trace_id
    assert_sound(store)
    return "imported" if stored else "nothing"


def _new_store(folder: Path) -> Path:
    """Return a copy of an empty store."""
    empty, store = folder / "empty.db", folder / "store.db"
    for path in folder.glob("store.db*"):
        path.unlink()
    if not empty.exists():
        Reservoir.open(empty).close()
    shutil.copy(empty, store)
    return store


def assert_sound(store: Path) -> None:
    """Check that the store is sound, and each message is complete and pending."""
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        [count] = connection.execute("SELECT count(*) FROM messages").fetchone()
        for table in ("pending", "messages_fts"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (count,)
