"""Rows that cannot be decoded are reported as a damaged store, but our own bugs are not."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from builders import NOW, FakeEmbedder, embed

from reservoir_cli.errors import StoreCorruptError
from reservoir_cli.messages import Filter, Message, Scope, ToolCall
from reservoir_cli.storage.sqlite.store import SqliteStore
from reservoir_cli.tokens import load_counter

HERE = Scope("p", "i")
Read = Callable[[SqliteStore], Any]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a store with embedded messages and one without an embedding."""
    path = tmp_path / "store.db"
    calls = (ToolCall("c", "look", "{}"),)
    messages = [
        Message("user", "first", NOW, conversation_id="c"),
        Message("assistant", "second", NOW, tool_calls=calls, conversation_id="c"),
        Message("user", "third", NOW, conversation_id="c"),
    ]
    with closing(SqliteStore(str(path), create=True, patience=1)) as store:
        counter = load_counter("approximate")
        store.add(HERE, messages, counter=counter, now=NOW)
        embed(store, FakeEmbedder())
        store.add(HERE, [Message("user", "pending", NOW)], counter=counter, now=NOW)
    return path


def rank(store: SqliteStore) -> object:
    return store.candidates(HERE, "i", "first", FakeEmbedder().encode_query("first"))


DAMAGE: list[tuple[str, Read]] = [
    ("UPDATE blocks SET ids = x'0011'", rank),
    ("UPDATE blocks SET tokens = x'00000000'", rank),
    ("UPDATE blocks SET scales = 'none'", rank),
    ("UPDATE blocks SET n = 400", rank),
    ("UPDATE blocks SET n = 'many'", rank),
    ("UPDATE blocks SET flags = NULL", rank),
    ("UPDATE blocks SET word_counts = NULL", lambda store: store.keyword("first", HERE, 5)),
    ("UPDATE blocks SET word_counts = x'00'", lambda store: store.keyword("first", HERE, 5)),
    ("UPDATE blocks SET ids = x'00'", lambda store: store.keyword("first", HERE, 5)),
    ("UPDATE blocks SET ids = x'0011'", lambda store: store.delete(store.find(HERE)[:1])),
    ("UPDATE blocks SET codes = x'00'", lambda store: store.passages(store.find(HERE))),
    ("UPDATE blocks SET starts = x'00'", lambda store: store.passages(store.find(HERE))),
    ("UPDATE blocks SET ends = NULL", lambda store: store.linked([1], 1, HERE, 0.7)),
    ("UPDATE messages SET tokens = NULL WHERE id = 4", rank),
    ("UPDATE messages SET created_at = 'then' WHERE id = 2", lambda store: store.last(HERE, 0)),
    ("UPDATE messages SET created_at = 'then'", lambda store: store.conversations(HERE)),
    ("UPDATE messages SET created_at = 1e300", lambda store: store.channel_summaries(HERE)),
    ("UPDATE messages SET content = x'00ff'", lambda store: store.find(HERE, Filter(text="a"))),
    ("UPDATE messages SET tool_calls = '{'", lambda store: store.find(HERE, Filter(text="a"))),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "read"), DAMAGE, ids=[row[0] for row in DAMAGE])
def test_a_row_that_cannot_be_decoded_is_reported_as_damage(path, damage, read):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        schema = "UPDATE sqlite_schema SET sql = replace(sql, ' NOT NULL', '')"
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(f"{schema} WHERE type = 'table' AND name IN ('messages', 'blocks')")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(damage)
    with closing(SqliteStore(str(path), create=False, patience=1)) as store:
        with pytest.raises(StoreCorruptError, match="the store is corrupt") as caught:
            read(store)
        assert "reservoir doctor" in str(caught.value.hint)
        assert not store._connection.in_transaction


#: Calls that only a bug in our code would make.
FAULTS: dict[str, Read] = {
    "by_id": lambda store: store.by_id(None, HERE),  # type: ignore[arg-type]
    "with_partners": lambda store: store.with_partners(None, HERE),  # type: ignore[arg-type]
    "linked": lambda store: store.linked(None, 1, HERE),  # type: ignore[arg-type]
    "passages": lambda store: store.passages(None),  # type: ignore[arg-type]
    "keyword": lambda store: store.keyword(None, HERE, 5),  # type: ignore[arg-type]
    "add_passages": lambda store: store.add_passages("fake-8", {("p", 4): [None]}),  # type: ignore[dict-item,list-item]
    "delete": lambda store: store.delete(None),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("read", FAULTS.values(), ids=FAULTS)
def test_a_bug_is_not_reported_as_damage(path, read):
    with (
        closing(SqliteStore(str(path), create=False, patience=1)) as store,
        pytest.raises((TypeError, AttributeError, LookupError)),
    ):
        read(store)
