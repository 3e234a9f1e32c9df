"""Tags and pins move with their messages and are deleted with them."""

import sqlite3
from contextlib import closing
from datetime import datetime, timedelta

import psycopg
import pytest
from behind import behind
from builders import NOW, Adding

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import Filter, Key, Message, Scope
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.postgres import admin, row_security, schema, tables
from reservoir_cli.storage.store import Store
from reservoir_cli.storage.tables.tags_and_pins import TagsAndPins

EVERYWHERE = Scope(None)


@pytest.fixture
def keys(store: Store, add: Adding) -> list[Key]:
    messages = [
        Message("user", text, source="s", source_id=text) for text in ("one", "two", "three")
    ]
    return [message.key for message in add(*messages) if message]


def marks(store: Store) -> dict[str, tuple[tuple[str, ...], datetime | None]]:
    return {
        f"{message.partition} {message.content}": (message.tags, message.pinned_at)
        for message in store.last(EVERYWHERE, 0)
        if message.tags or message.pinned_at
    }


def rows(store: Store, table: str) -> int:
    if "://" in store.location:
        return int(behind(store.location, f"SELECT count(*) FROM {table}")[0][0])
    with closing(sqlite3.connect(store.location)) as file:
        return int(file.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_a_tag_is_stored_once_and_can_be_removed(store, keys):
    TagsAndPins(store).add_tags(keys[0], ["b", "a", "a"])
    TagsAndPins(store).add_tags(keys[0], ["a", "c d"])
    TagsAndPins(store).add_tags(keys[1], ["a"])
    assert marks(store) == {"p one": (("a", "b", "c d"), None), "p two": (("a",), None)}
    assert [key.id for key in store.find(Scope("p"), Filter(tag="a"))] == [keys[0].id, keys[1].id]
    TagsAndPins(store).remove_tags(keys[0], ["a", "nothing"])
    assert [key.id for key in store.find(EVERYWHERE, Filter(tag="a"))] == [keys[1].id]
    assert not store.find(Scope("other"), Filter(tag="a"))


@pytest.mark.parametrize("name", ["", " ", "a\nb", "\x1b[2J", "a\u202eb"])
def test_a_tag_has_no_control_characters(store, keys, name):
    with pytest.raises(UsageError):
        TagsAndPins(store).add_tags(keys[0], ["good", name])
    assert marks(store) == {}


def test_a_message_that_is_pinned_again_keeps_its_time(store, keys):
    TagsAndPins(store).pin(keys[1], NOW)
    TagsAndPins(store).pin(keys[1], NOW + timedelta(days=1))
    assert marks(store) == {"p two": ((), NOW)}
    assert [message.content for message in store.last(Scope("p"), 0, Filter(pinned=True))] == [
        "two"
    ]
    TagsAndPins(store).unpin(keys[1])
    assert marks(store) == {}


@pytest.mark.sqlite("a server plans by what it knows of its tables")
@pytest.mark.parametrize("where", [Filter(pinned=True), Filter(tag="a")], ids=["pin", "tag"])
@pytest.mark.parametrize("scope", [Scope("p"), Scope("p", "i")], ids=str)
def test_marked_messages_are_found_without_a_full_scan(store, keys, scope, where):
    TagsAndPins(store).pin(keys[0], NOW)
    TagsAndPins(store).add_tags(keys[0], ["a"])
    statements: list[str] = []
    store._connection.set_trace_callback(statements.append)
    assert [key.id for key in store.find(scope, where)] == [keys[0].id]
    store._connection.set_trace_callback(None)
    [statement] = [text for text in statements if text.startswith("SELECT t.id")]
    plan = [row[3] for row in store._connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
    assert any(step.startswith("SEARCH m USING INTEGER PRIMARY KEY") for step in plan)


def test_missing_messages_are_not_marked(store, keys):
    TagsAndPins(store).add_tags(Key("p", keys[-1].id + 77), ["a"])
    TagsAndPins(store).pin(Key("other", keys[-1].id + 77), NOW)
    assert rows(store, "tags") == rows(store, "pins") == 0
    assert store.problems() == []


def test_tags_and_pins_are_deleted_with_their_message(store, keys):
    for key in keys[:2]:
        TagsAndPins(store).add_tags(key, ["a"])
        TagsAndPins(store).pin(key, NOW)
    assert store.delete(keys[:1])
    assert marks(store) == {"p two": (("a",), NOW)}
    assert rows(store, "tags") == rows(store, "pins") == 1


def test_tags_and_pins_move_with_their_partition(store, keys):
    TagsAndPins(store).add_tags(keys[0], ["a"])
    TagsAndPins(store).pin(keys[1], NOW)
    store.move_partition("p", "new")
    assert marks(store) == {"new one": (("a",), None), "new two": ((), NOW)}
    assert rows(store, "tags") == rows(store, "pins") == 1


def test_merging_equal_messages_keeps_the_tags_of_both(store, add, keys):
    [equal_message] = add(Message("user", "one", source="s", source_id="one"), partition="q")
    assert equal_message
    TagsAndPins(store).add_tags(equal_message.key, ["b"])
    TagsAndPins(store).add_tags(keys[0], ["a"])
    TagsAndPins(store).pin(keys[0], NOW)
    assert store.move_partition("p", "q") == (2, 1)
    assert marks(store) == {"q one": (("a", "b"), NOW)}


def test_an_imported_message_brings_its_marks_only_once(store, add):
    message = Message("user", "x", source_id="x", tags=("b", "a", "b"), pinned_at=NOW)
    [stored] = add(message)
    assert stored
    assert (stored.tags, stored.pinned_at) == (("a", "b"), NOW)
    TagsAndPins(store).remove_tags(stored.key, ["a"])
    assert add(message) == [None]
    assert marks(store) == {"p x": (("b",), NOW)}


def test_marks_without_a_message_are_found_and_removed(store, location, keys):
    for statement in (
        "INSERT INTO tags VALUES ('p', 4242, 'a')",
        "INSERT INTO pins VALUES ('p', 4242, 1)",
    ):
        if "://" in location:
            behind(location, statement)
        else:
            with closing(sqlite3.connect(location, isolation_level=None)) as file:
                file.execute(statement)
    assert [problem.detail for problem in store.problems()] == [
        "2 tags and pins belong to no message"
    ]
    store.repair()
    assert store.problems() == []
    assert len(keys) == store.holdings()["messages"]


def test_new_tables_of_a_store_with_row_security_have_it_too(postgres, monkeypatch):
    url = postgres.store_database()
    member_url = postgres.url(url.rsplit("/", 1)[1], "niobe")
    try:
        with closing(open_store(url)) as store:
            admin.guard(store)
        behind(url, "CREATE ROLE niobe LOGIN")
        behind(url, "GRANT reservoir_member TO niobe")
        behind(url, "INSERT INTO members VALUES ('niobe', 'm')")
        later = ("pictures", "CREATE TABLE pictures (partition text NOT NULL, name text NOT NULL)")
        monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, later))
        monkeypatch.setattr(row_security, "SPREAD", (*tables.SPREAD, "pictures"))
        open_store(url).close()  # migrate it
        behind(url, "INSERT INTO pictures VALUES ('m', 'one'), ('other', 'two')")
        assert behind(member_url, "SELECT name FROM pictures") == [("one",)]
        behind(member_url, "INSERT INTO pictures VALUES ('m', 'three')")
        with pytest.raises(psycopg.Error):
            behind(member_url, "INSERT INTO pictures VALUES ('other', 'four')")
    finally:
        behind(url, "DROP OWNED BY niobe")
        behind(url, "DROP ROLE niobe")
        postgres.drop(url)
