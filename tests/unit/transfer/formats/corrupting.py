"""Damage samples at random, and check the store after importing them."""

import json
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Scope
from reservoir_cli.reservoir import Reservoir

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
    """Replace values by others of other types; the file stays valid JSON."""
    try:
        text = data.decode()
        if data.lstrip().startswith(b"["):
            return json.dumps(_swap(json.loads(text), rng)).encode()
        lines = [line for line in text.splitlines() if line.strip()]
        return "\n".join(_swap_in_line(line, rng) for line in lines).encode()
    except ValueError:
        return flip_bytes(data, rng)


DAMAGES: tuple[Damage, ...] = (flip_bytes, cut_bytes, swap_values)


def _swap_in_line(line: str, rng: random.Random) -> str:
    try:
        value = json.loads(line)
    except ValueError:
        return line
    return json.dumps(_swap(value, rng)) if rng.random() < 0.5 else line


def _swap(value: Any, rng: random.Random) -> Any:
    if rng.random() < 0.02:
        return rng.choice(_ODD)
    if isinstance(value, dict):
        return {key: _swap(item, rng) for key, item in value.items() if rng.random() > 0.01}
    if isinstance(value, list):
        return [_swap(item, rng) for item in value]
    return value


def import_damaged(sample: bytes, name: str, seed: int, folder: Path) -> str:
    """Damage a sample, import it twice, and check the store.

    :returns: ``imported``, or why nothing was.
    """
    rng = random.Random(f"{name} {seed}")
    file = folder / name
    file.write_bytes(rng.choice(DAMAGES)(sample, rng))
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
        # An export of the store can be imported, even with empty messages.
        is_native = name == "reservoir.jsonl"
        assert is_native or message.content.strip() or message.tool_calls or message.role == "tool"
        assert datetime(1970, 1, 1, tzinfo=UTC) <= message.created_at
        assert message.source_id
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
