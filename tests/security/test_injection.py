"""Input is data: it is never executed as SQL or query syntax, or read as another scope."""

import sqlite3
from contextlib import closing
from pathlib import Path

import forked
import pytest
import world as worlds
from hostile_values import INJECTIONS, STATEMENTS

#: Options whose text is searched, and so might be read as the syntax of a query.
SEARCHED = [
    ["search", "--keyword", "{}"],
    ["search", "{}", "--link", "--deduplicate"],
    ["context", "{}"],
    ["export", "--match", "{}"],
    ["forget", "--match", "{}", "--dry-run"],
]
#: Every other option whose text is sent to the store.
WAYS = [
    ["view", "0", "-p", "{}"],
    ["view", "0", "-i", "{}"],
    ["view", "0", "--trace-id", "{}"],
    ["view", "0", "--conversation", "{}"],
    ["search", "x", "-p", "{}"],
    ["context", "x", "--trace-id", "{}", "-p", "{}", "-i", "{}"],
    ["conversations", "-p", "{}"],
    ["export", "-p", "{}", "-i", "{}"],
    ["forget", "--trace-id", "{}", "--dry-run"],
    ["forget", "--conversation", "{}", "--dry-run"],
    ["partitions", "--rename", "{}", "{}2"],
]


def schema(folder: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / "home" / "reservoir.db")) as connection:
        return connection.execute("SELECT * FROM sqlite_master ORDER BY name").fetchall()


@pytest.mark.parametrize("command", [*SEARCHED, *WAYS], ids=" ".join)
def test_no_word_is_read_as_a_query(world, command):
    env = worlds.environment(world)
    before, plan = worlds.held(world), schema(world)
    for word in INJECTIONS if command in SEARCHED else STATEMENTS:
        answer = forked.run(*(part.format(word) for part in command), env=env, folder=world)
        forked.hold(answer)
        assert answer.code in (0, 1, 2)
    after = worlds.held(world)
    assert "--rename" in command or after == before
    assert len(after) == len(before)
    assert schema(world) == plan
    assert not (world / "stolen.db").exists()


def test_a_match_is_the_text_itself(world):
    env = worlds.environment(world)
    rows = [str(row[6]) for row in worlds.held(world) if row[3] == "default"]
    assert any("queue %" in row for row in rows)
    for word in ("%", "_", "' OR 1=1 --", '"unclosed', "\\", "*"):
        answer = forked.run(
            "export", "--match", f"queue {word} q", "--format", "jsonl", env=env, folder=world
        )
        assert answer.out.decode().count("\n") == sum(f"queue {word} q" in row for row in rows) == 1


def test_no_name_leads_into_another_partition(world):
    env = worlds.environment(world)
    for word in STATEMENTS[1:]:
        for command in (["view", "0"], ["search", "--keyword", "queue"], ["export"]):
            answer = forked.run(*command, "-p", word, env=env, folder=world)
            assert (answer.code, answer.out) == (0, b""), (command, word)
