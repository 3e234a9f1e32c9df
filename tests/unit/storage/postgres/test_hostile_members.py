"""Users of a shared server who try to disrupt others."""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from behind import behind
from builders import embed
from on_server import EVERYWHERE, say
from postgres_server import PostgresServer

from reservoir_cli.messages import Key, Scope
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.postgres import admin


@pytest.fixture
def member(postgres: PostgresServer, url: str) -> Iterator[str]:
    with closing(open_store(url)) as store:
        admin.guard(store)
    behind(url, "CREATE ROLE mallory LOGIN")
    behind(url, "GRANT reservoir_member TO mallory")
    behind(url, "INSERT INTO members VALUES ('mallory', 'm'), ('mallory', 'all')")
    yield postgres.url(url.rsplit("/", 1)[1], "mallory")
    behind(url, "DROP OWNED BY mallory")
    behind(url, "DROP ROLE mallory")


MESSAGE = (
    "INSERT INTO messages SELECT 'all', {id}, 't', NULL, 'all', 'assistant', 'x', NULL, {calls}, "
    "NULL, {at}, 's', 'x', 1, 'c', NULL, 1, 0, NULL, 1"
)
HOSTILE = [
    MESSAGE.format(id=2**63 - 1, calls="NULL", at=1),
    MESSAGE.format(id=2**53, calls="NULL", at=1),
    MESSAGE.format(id=0, calls="NULL", at=1),
    MESSAGE.format(id=5, calls="NULL", at=9 * 10**18),
    MESSAGE.format(id=5, calls="NULL", at=-(10**17)),
    MESSAGE.format(id=5, calls="'[3]'", at=1),
    MESSAGE.format(id=5, calls="'[{}]'", at=1),
    MESSAGE.format(id=5, calls="'{}'", at=1),
    MESSAGE.format(id=5, calls="'not json'", at=1),
    "UPDATE messages SET created_at = 9000000000000000000",
    "UPDATE embeddings SET vector = '[1, 2, 3]'",
    "UPDATE embeddings SET model_id = 'another'",
    "INSERT INTO properties VALUES ('last_forgotten_id:m', '9999999999999999')",
    "INSERT INTO tombstones VALUES ('\\x00')",
]


@pytest.mark.parametrize("statement", HOSTILE)
def test_a_member_cannot_write_rows_that_block_others(url, member, fake_embedder, statement):
    scope = Scope("all", "all")
    with closing(open_store(member)) as mallory:
        say(mallory, "said of the queue", "said again of the queue", scope=scope)
        embed(mallory, fake_embedder, scope, threshold=0)
    with pytest.raises(psycopg.Error):
        behind(member, statement)
    with closing(open_store(url)) as owner:
        say(owner, "and more", scope=scope)
        embed(owner, fake_embedder)
        assert len(owner.last(EVERYWHERE, 0)) == 3
        question = fake_embedder.encode_query("queue")
        assert len(owner.candidates(scope, "all", "queue", question).ids) == 3


def test_the_first_member_cannot_choose_an_invalid_key(url, member):
    for key, value in (("forgotten_key", "no hex"), ("embedding_dimensions", "three")):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            behind(member, "INSERT INTO properties VALUES (?, ?)", [key, value])


def test_ids_of_a_hostile_member_do_not_affect_those_of_others(url, member):
    behind(member, MESSAGE.format(id=2**53 - 1, calls="NULL", at=1))
    with closing(open_store(url)) as owner:
        first, second = say(owner, "a", "b", scope=Scope("all", "all"))
        assert first < second < 2**52


@pytest.mark.parametrize("function", ["unnest(bytea[])", "concat_ws(text, text, text, text)"])
def test_functions_of_a_member_are_not_called_by_others(url, member, function):
    behind(url, "GRANT CREATE ON SCHEMA public TO mallory")  # as in databases of PostgreSQL 14
    behind(
        member,
        f"CREATE FUNCTION public.{function} RETURNS SETOF bytea "
        "LANGUAGE plpgsql AS 'BEGIN RAISE ''hijacked''; END'",
    )
    with closing(open_store(url)) as owner:
        (message_id,) = say(owner, "said of the queue", scope=Scope("all", "all"))
        assert owner.delete([Key("all", message_id)])
        assert not owner.last(EVERYWHERE, 0)


def test_rows_outside_a_range_are_counted(url):
    with closing(open_store(url)) as store:
        say(store, "of before")
        behind(url, "ALTER TABLE messages DROP CONSTRAINT messages_in_range")
        behind(url, "UPDATE messages SET created_at = 9000000000000000000")
        assert admin.facts(store)["outside_ranges"] == 1
        say(store, "after")
        assert store.holdings()["messages"] == 2
