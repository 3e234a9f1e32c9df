"""Users of a server and their rights to read, write and change."""

import json
from collections.abc import Iterator
from contextlib import closing, suppress

import psycopg
import pytest
from behind import behind
from builders import indexer, ingestor
from on_server import EVERYWHERE, contents, embed, say
from postgres_server import PostgresServer

from reservoir_cli.errors import StoreError
from reservoir_cli.messages import Key, Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.postgres import admin, schema
from reservoir_cli.storage.store import Store
from reservoir_cli.storage.tables.sources import SourceFile, Sources
from reservoir_cli.transfer.import_files import import_files


@pytest.fixture
def users(postgres: PostgresServer, url: str) -> Iterator[dict[str, str]]:
    """Create two users with a partition each and a shared one, a reader, and a stranger."""
    with closing(open_store(url)) as store:
        admin.guard(store)
        admin.guard(store)  # repeating it does no harm
    for name in ("anna", "ben", "reader", "stranger"):
        behind(url, f"CREATE ROLE {name} LOGIN")
    for name, partitions in (("anna", ["a", "all"]), ("ben", ["b", "all"])):
        behind(url, f"GRANT reservoir_member TO {name}")
        for partition in partitions:
            behind(url, "INSERT INTO members VALUES (?, ?)", [name, partition])
    behind(url, "GRANT USAGE ON SCHEMA reservoir TO reader")
    behind(url, "GRANT SELECT ON ALL TABLES IN SCHEMA reservoir TO reader")
    database = url.rsplit("/", 1)[1]
    yield {name: postgres.url(database, name) for name in ("anna", "ben", "reader", "stranger")}
    for name in ("anna", "ben", "reader", "stranger"):
        behind(url, f"DROP OWNED BY {name}")
        behind(url, f"DROP ROLE {name}")


def test_a_user_sees_and_writes_their_partitions_only(url, users, fake_embedder):
    with closing(open_store(url)) as owner:
        say(owner, "of b", scope=Scope("b", "b"))
        embed(owner, fake_embedder)
    with closing(open_store(users["anna"])) as anna, closing(open_store(users["ben"])) as ben:
        say(anna, "of a", scope=Scope("a", "a"))
        [shared] = say(anna, "for all", scope=Scope("all", "all"))
        embed(anna, fake_embedder)
        assert contents(anna.last(EVERYWHERE, 0)) == ["of a", "for all"]
        assert contents(ben.last(EVERYWHERE, 0)) == ["of b", "for all"]
        assert anna.keyword("of b", EVERYWHERE, 9)[0] == anna.keyword("of", EVERYWHERE, 9)[0]
        candidates = anna.candidates(EVERYWHERE, None, "of b", fake_embedder.encode_query("of b"))
        assert len(candidates.ids) == 2
        with pytest.raises(StoreError) as caught:
            say(anna, "intruding", scope=Scope("b", "b"))
        assert caught.value.exit_code == 3
        ben.delete([Key("all", shared)])
        assert list(anna.find(EVERYWHERE)) == [anna.last(EVERYWHERE, 0)[0].key]
        with pytest.raises(StoreError, match="may not do this"):
            anna.move_partition("b", "a")
    with closing(open_store(url)) as owner:
        assert sorted(contents(owner.last(EVERYWHERE, 0))) == ["of a", "of b"]
        assert owner.problems() == []


def test_a_member_of_an_older_store_is_told_to_have_it_migrated(users, monkeypatch):
    newer = (*schema.MIGRATIONS, ("later", "CREATE TABLE later (partition text)"))
    monkeypatch.setattr(schema, "MIGRATIONS", newer)
    with pytest.raises(StoreError, match="has an older schema") as caught:
        open_store(users["anna"])
    assert "its owner" in (caught.value.hint or "")
    assert "reservoir db" not in (caught.value.hint or "")  # or the member's --db would follow


def test_a_user_without_a_partition_gets_an_error_with_a_hint(url, users):
    behind(url, "DELETE FROM members WHERE member = 'ben'")
    with pytest.raises(StoreError, match="has no partition") as caught:
        open_store(users["ben"])
    assert "reservoir.members" in (caught.value.hint or "")
    open_store(users["anna"]).close()
    open_store(url).close()


def test_a_user_without_write_access_can_read(url, users):
    behind(url, "ALTER TABLE messages DISABLE ROW LEVEL SECURITY")
    with closing(open_store(url)) as owner:
        say(owner, "kept")
    with closing(open_store(users["reader"])) as reader:
        assert reader.read_only
        assert contents(reader.last(EVERYWHERE, 0)) == ["kept"]
        with pytest.raises(StoreError, match="cannot be written to"):
            say(reader, "more")


def test_a_member_cannot_change_the_model_and_the_owner_can(url, users, fake_embedder):
    other = type(fake_embedder)("other", "other-8")
    with closing(open_store(users["anna"])) as anna:
        say(anna, "of a", scope=Scope("a", "a"))
        embed(anna, fake_embedder)  # the first user chooses the model
        assert anna.active_model() == (fake_embedder.model_id, fake_embedder.name)
        for embedder in (fake_embedder, other):
            with pytest.raises(StoreError, match="only the owner can change") as caught:
                rebuild(anna, embedder)
            assert "the owner runs" in str(caught.value.hint)
        with closing(open_store(url)) as owner:
            model_id = owner.begin_model(other.model_id, other.name)
            with pytest.raises(StoreError, match="only the owner can change"):
                anna.give_up_model()
            say(anna, "meanwhile", scope=Scope("a", "a"))
            embed(anna, fake_embedder)
            rebuild(owner, other)
            assert owner.next_model() is None
            assert model_id == owner.active_model()[0] == other.model_id
        assert not anna.clear_former_model()
        assert anna.count_unembedded(EVERYWHERE) == 0
        anna.give_up_model()  # there is no other model


def rebuild(store: Store, embedder) -> int:
    return indexer(store, embedder, 0.5).rebuild()


@pytest.mark.parametrize("begun", [False, True], ids=["switched", "begun"])
def test_the_owner_switches_all_messages_to_one_model(store, fake_embedder, begun):
    """This works even after a member who sees only some messages changed the model."""
    other = type(fake_embedder)("other", "other-8")
    for partition in "ab":
        say(store, *"12345", scope=Scope(partition, partition))
    embed(store, fake_embedder)
    behind(
        store.location, "INSERT INTO rebuilding SELECT 'b', id FROM messages WHERE partition = 'b'"
    )
    if begun:
        behind(store.location, "DELETE FROM rebuilding WHERE mod(message_id, 2) = 0")
        for key, value in (("id", other.model_id), ("name", other.name)):
            behind(
                store.location, "INSERT INTO properties VALUES (?, ?)", [f"next_model_{key}", value]
            )
    else:
        behind(
            store.location,
            "INSERT INTO embeddings SELECT partition, message_id, ?, passage, instance, start, "
            "\"end\", vector FROM embeddings WHERE partition = 'b'",
            [other.model_id],
        )
    for embedder in (other, fake_embedder, fake_embedder):
        assert rebuild(store, embedder) == 10
        assert behind(
            store.location, "SELECT model_id, count(*)::int FROM embeddings GROUP BY 1"
        ) == [(embedder.model_id, 10)]
        assert store.count_unembedded(EVERYWHERE) == 0
        assert store.problems() == []


#: Changes of shared data that a member might try.
TRIED = (
    "UPDATE properties SET value = 'x' WHERE key = 'forgotten_key'",
    "DELETE FROM properties WHERE key = 'forgotten_key'",
    "INSERT INTO properties VALUES ('forgotten_key', 'x') "
    "ON CONFLICT (key) DO UPDATE SET value = 'x'",
    "UPDATE properties SET value = 'x' WHERE key = 'embedding_model_id'",
    "UPDATE properties SET value = '3' WHERE key = 'embedding_dimensions'",
    "INSERT INTO properties VALUES ('unfinished_copy', '{}')",
    "INSERT INTO properties VALUES ('last_forgotten_id:a', '9999999999999999')",
    "INSERT INTO properties VALUES ('index:a', '{}')",
    "TRUNCATE properties",
    "DELETE FROM tombstones",
    "UPDATE members SET partition = 'b' WHERE partition = 'a'",
)


def test_a_member_cannot_change_shared_data(url, users, fake_embedder):
    with closing(open_store(url)) as owner:
        admin.guard(owner)
    for name, partition in (("anna", "a"), ("ben", "b")):
        with closing(open_store(users[name])) as member:
            [deleted, _] = say(member, "gone", "kept", scope=Scope(partition, partition))
            embed(member, fake_embedder)
            member.delete([Key(partition, deleted)])
    queries = (
        "SELECT t.* FROM properties t ORDER BY 1",
        "SELECT * FROM tombstones, members ORDER BY 1, 2, 3",
    )
    before = [behind(url, query) for query in queries]
    assert {"forgotten_key", "embedding_dimensions"} < dict(before[0]).keys()
    for statement in TRIED:
        with suppress(psycopg.errors.InsufficientPrivilege):
            behind(users["anna"], statement)
        assert [behind(url, query) for query in queries] == before, statement
    behind(url, "INSERT INTO properties VALUES ('index:b', '{}')")
    assert "index:b" not in dict(behind(users["anna"], queries[0]))


def test_only_users_who_may_remove_tombstones_import_forgotten_messages(url, users, tmp_path):
    rows = [
        {"role": "user", "content": "x", "source": "s", "source_id": str(number)}
        for number in range(2)
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows[:1]), encoding="utf-8")
    with closing(open_store(users["anna"])) as anna:
        import_files(ingestor(anna), [file], partition="a")
        anna.delete(anna.find(EVERYWHERE))
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        for dry_run in (True, False):
            with pytest.raises(StoreError, match="only the owner can import forgotten") as caught:
                import_files(
                    ingestor(anna), [file], partition="a", include_forgotten=True, dry_run=dry_run
                )
            assert caught.value.exit_code == 3
            assert "GRANT DELETE ON reservoir.tombstones" in str(caught.value.hint)
        assert not anna.find(EVERYWHERE)
        behind(url, "GRANT DELETE ON tombstones TO anna")
        report = import_files(ingestor(anna), [file], partition="a", include_forgotten=True)
        assert (report.imported, report.restored) == (2, 1)
    assert behind(url, "SELECT * FROM tombstones") == []


def test_a_member_sees_and_writes_the_sources_of_their_partitions_only(url, users):
    def file(partition: str, size: int = 1) -> SourceFile:
        return SourceFile(partition, "desk", "/s.jsonl", "codex", 1, size, 1, state="{}")

    with closing(open_store(url)) as owner:
        Sources(owner).put(file("b"))
    with closing(open_store(users["anna"])) as anna:
        sources = Sources(anna)
        sources.put(file("a"))
        assert sources.get("a", "desk", "/s.jsonl") == file("a")
        assert sources.get("b", "desk", "/s.jsonl") is None
        assert sources.file_states("b", "desk") == {}
        sources.drop("b", "desk", ["/s.jsonl"])
        with pytest.raises(StoreError):
            sources.put(file("b", 2))
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        behind(users["anna"], "UPDATE sources SET partition = 'b'")
    query = "SELECT partition, size FROM sources ORDER BY 1"
    assert behind(users["anna"], query) == [("a", 1)]
    assert behind(users["ben"], query) == [("b", 1)]
    assert behind(url, query) == [("a", 1), ("b", 1)]


def test_a_reader_of_a_store_with_row_security_reads_their_partitions(url, users, fake_embedder):
    behind(url, "GRANT reservoir_reader TO reader")
    behind(url, "INSERT INTO members VALUES ('reader', 'b')")
    with closing(open_store(url)) as owner:
        for partition in "ab":
            say(owner, f"of {partition}", scope=Scope(partition, partition))
        embed(owner, fake_embedder)
    with closing(open_store(users["reader"])) as reader:
        assert reader.read_only
        assert contents(reader.last(EVERYWHERE, 0)) == ["of b"]
        candidates = reader.candidates(EVERYWHERE, None, "of", fake_embedder.encode_query("of b"))
        assert candidates.cosine.tolist() == pytest.approx([1], abs=1e-4)
        with pytest.raises(StoreError, match="cannot be written to"):
            say(reader, "more", scope=Scope("b", "b"))
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        behind(users["reader"], "DELETE FROM messages")


def test_a_user_without_any_right_gets_a_clear_error(users):
    with pytest.raises(StoreError, match="may not do this") as caught:
        open_store(users["stranger"])
    assert caught.value.exit_code == 3


def test_a_run_that_a_user_may_not_record_has_a_note(users):
    notes: list[str] = []
    with Reservoir.open(users["anna"], create=False, notify=notes.append) as anna:
        anna.runs.record(anna.context("hello", partition="b", budget=400))
        assert notes == [
            f"this run is not recorded: the user may not do this in the store {users['anna']}"
        ]


def test_the_error_for_a_user_who_may_not_add_pgvector_says_who_may(postgres, empty, store):
    admin.guard(store)  # creates the roles, which such a user may not
    database = empty.rsplit("/", 1)[1]
    behind(empty, "CREATE ROLE carl LOGIN")
    behind(empty, f"GRANT CREATE ON DATABASE {database} TO carl")
    try:
        with pytest.raises(StoreError, match="no pgvector yet") as caught:
            open_store(postgres.url(database, "carl"))
        assert caught.value.hint == "let a superuser run CREATE EXTENSION vector in it"
        behind(empty, "CREATE EXTENSION vector SCHEMA public")
        with closing(open_store(postgres.url(database, "carl"))) as own_store:
            say(own_store, "mine")
            admin.guard(own_store)
            assert admin.facts(own_store)["guarded"]
    finally:
        behind(empty, "DROP OWNED BY carl")
        behind(empty, "DROP ROLE carl")
