"""A store that is closed, or that does not exist, says so."""

from threading import Thread

import pytest

from reservoir_cli import Message, Reservoir, Scope, StoreError

EVERYTHING = Scope(None)


@pytest.mark.parametrize(
    "use",
    [
        lambda store: store.last(EVERYTHING, 1),
        lambda store: store.set_property("key", "value"),
        lambda store: store.problems(),
    ],
    ids=["read", "write", "check"],
)
def test_a_closed_store_is_an_error(store, use):
    store.close()
    store.close()
    with pytest.raises(StoreError, match=r"the store .+ is closed$"):
        use(store)


@pytest.mark.sqlite
def test_a_store_is_closed_after_the_transaction_of_another_thread(store):
    close = Thread(target=store.close)
    with store.snapshot():
        close.start()
        close.join(0.2)  # enough to close a store that does not wait
        assert store.last(EVERYTHING, 1) == []
    close.join()
    with pytest.raises(StoreError, match="is closed"):
        store.last(EVERYTHING, 1)


@pytest.mark.parametrize(
    "change",
    [
        lambda reservoir: reservoir.ingest([Message("user", "lost?")]),
        lambda reservoir: reservoir.context("why?", save=True),
    ],
)
def test_a_missing_store_is_not_written_to(tmp_path, fake_embedder, change):
    place, file = tmp_path / "none.db", tmp_path / "note.md"
    file.write_text("We dropped Redis.")
    with Reservoir.open(place, create=False, embedder=fake_embedder) as reservoir:
        assert reservoir.view(EVERYTHING) == []
        reservoir.recall("why did we drop Redis?")
        assert reservoir.import_files(file, dry_run=True).imported == 1
        with pytest.raises(StoreError, match=f"there is no store at {place}"):
            change(reservoir)
    assert not place.exists()
