"""The proxy's ledger of added blocks; entries are deleted with the messages that they quote."""

from datetime import timedelta

import pytest
from builders import NOW, Adding
from sqlite_steps import steps
from test_rows_of_tags_and_pins import rows

from reservoir_cli.messages import Key, Message
from reservoir_cli.storage.store import Store
from reservoir_cli.storage.tables.proxy_ledger import LIFETIME, Ledger, LedgerEntry
from reservoir_cli.tokens import load_counter

ENTRY = LedgerEntry(2, "hash", "a block of ünïcode\n", 7)


@pytest.fixture
def keys(store: Store, add: Adding) -> list[Key]:
    messages = [
        Message("user", text, source="s", source_id=text) for text in ("one", "two", "three")
    ]
    return [message.key for message in add(*messages) if message]


@pytest.fixture
def ledger(store: Store) -> Ledger:
    return Ledger(store)


def put(ledger: Ledger, *keys: Key, entry: LedgerEntry = ENTRY, conversation: str = "c") -> bool:
    numbers, version = [key.id for key in keys], ledger.version("p")
    return ledger.put("p", conversation, entry, numbers, version=version, now=NOW)


def stored_entries(
    ledger: Ledger, conversation: str = "c", **overrides: object
) -> list[LedgerEntry]:
    options = {"masked": True, "now": NOW, **overrides}
    return list(ledger.get("p", conversation, **options).values())


def test_an_entry_is_found_by_conversation_ordinal_and_question(ledger, keys):
    assert put(ledger, *keys)
    assert ledger.get("p", "c", masked=True, now=NOW) == {(2, "hash"): ENTRY}
    assert stored_entries(ledger, "other") == []
    assert ledger.get("q", "c", masked=True, now=NOW) == {}
    replacement = LedgerEntry(2, "hash", "another", 3)
    assert put(ledger, keys[0], entry=replacement)
    assert stored_entries(ledger) == [replacement]


@pytest.mark.parametrize("change", ["delete", "edit", "replace", "secrets"])
def test_an_entry_is_deleted_with_any_message_that_it_quotes(store, ledger, keys, change):
    put(ledger, *keys[:2])
    put(ledger, keys[2], conversation="d")
    version = ledger.version("p")
    counter = load_counter("approximate")
    if change == "delete":
        store.delete([keys[1]])
    elif change == "edit":
        store.edit(keys[1], Message("user", "new", source="s"), counter=counter, now=NOW)
    elif change == "replace":
        store.replace({keys[1]: Message("user", "new")}, counter=counter, now=NOW)
    else:
        store.mark_secrets({keys[1]: ["password"]})
    assert stored_entries(ledger) == []
    assert stored_entries(ledger, "d") == [ENTRY]
    assert (rows(store, "ledger"), rows(store, "ledger_messages")) == (1 + 1, 1)
    # A block that was read before the change is not stored after it.
    assert not ledger.put("p", "e", ENTRY, [keys[0].id], version=version, now=NOW)
    assert stored_entries(ledger, "e") == []


def test_an_entry_expires_after_thirty_days_and_when_secrets_are_masked(store, ledger, keys):
    unmasked = LedgerEntry(0, "other", "a secret", 3, masked=False)
    put(ledger, keys[0])
    put(ledger, keys[1], entry=unmasked)
    assert stored_entries(ledger) == [ENTRY]
    assert len(stored_entries(ledger, masked=False)) == 2
    later = NOW + LIFETIME + timedelta(seconds=1)
    assert stored_entries(ledger, now=later) == []
    ledger.expire("p", masked=True, now=NOW)
    assert stored_entries(ledger, masked=False) == [ENTRY]
    ledger.expire("p", masked=True, now=later)
    assert (rows(store, "ledger"), rows(store, "ledger_messages")) == (0, 0)


def test_a_ledger_does_not_move_with_its_partition(store, ledger, keys):
    put(ledger, *keys)
    store.move_partition("p", "q")
    assert (rows(store, "ledger"), rows(store, "ledger_messages")) == (0, 0)


@pytest.mark.sqlite("it counts the steps of SQLite")
def test_putting_an_entry_costs_the_same_in_a_partition_of_any_size(store, ledger, keys, add):
    cost = steps(store, lambda: put(ledger, *keys))
    add(*(Message("user", "x") for _ in range(2_000)))
    assert steps(store, lambda: put(ledger, *keys)) <= cost + 2
