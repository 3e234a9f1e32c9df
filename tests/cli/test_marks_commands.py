"""``tag``, ``untag``, ``pin`` and ``unpin``, and commands that show marks."""

import json

import pytest


@pytest.fixture
def said(cli):
    cli.store(
        {"content": "why did we drop Redis?", "conversation_id": "c1"},
        {"content": "it lost jobs", "role": "assistant", "conversation_id": "c1"},
        {"content": "book the train", "conversation_id": "c2"},
        {"content": "at work", "partition": "work", "instance": "work"},
    )
    return cli


def contents(done):
    return [row["content"] for row in done.document["messages"]]


def test_a_tag_finds_its_messages_everywhere(said):
    done = said("tag", "1", "decision", "a b")
    assert (done.out, done.err) == ("", "#1 user: why did we drop Redis?\ntags: a b, decision\n")
    said("tag", "#3", "travel")
    assert contents(said("view", "--tag", "decision", "--json")) == ["why did we drop Redis?"]
    assert said("search", "--keyword", "Redis train", "--tag", "travel").out.endswith("train\n")
    assert "book" not in said("context", "what?", "--tag", "decision", "--budget", "500").out
    rows = said("export", "--tag", "decision").out.splitlines()
    assert [json.loads(row)["tags"] for row in rows] == [["a b", "decision"]]
    found = said("conversations", "--tag", "travel", "--json").document["conversations"]
    assert [each["id"] for each in found] == ["c2"]
    nothing = said("view", "--tag", "nothing")
    assert (nothing.out, nothing.err) == ("", "note: no message in default has the tag nothing\n")
    done = said("untag", "1", "a b", "c")
    assert done.err.splitlines()[1:] == ["tags: decision", "note: it had no tag c"]


@pytest.mark.parametrize("command", [("tag", "4", "x"), ("untag", "4", "x"), ("pin", "4")])
def test_the_partition_of_a_message_elsewhere_is_named(said, command):
    done = said(*command, code=1)
    assert done.out == ""
    assert done.err == ("error: no message 4 in default\nhint: it is in partition work: -p work\n")
    assert said(*command, "-p", "work").err.startswith("#4 user: at work\n")
    assert said(command[0], "99", *command[2:], code=1).err.startswith(
        "error: no message 99 in default\nhint: on a"
    )


@pytest.mark.parametrize(
    "arguments",
    [("tag", "1", "a\nb"), ("tag", "1", " "), ("tag", "one", "a"), ("pin", "0"), ("tag", "1")],
)
def test_wrong_usage_is_refused_and_changes_nothing(said, arguments):
    assert said(*arguments, code=2).out == ""
    assert not [row for row in said.rows() if "tags" in row or "pinned" in row]


def test_pins_are_listed_and_removed(said):
    assert said("pin", "3").err == "#3 user: book the train\n"
    said("pin", "1")
    assert "pinned already" in said("pin", "1").err
    assert contents(said("view", "--pinned", "--json")) == [
        "why did we drop Redis?",
        "book the train",
    ]
    assert said("unpin", "3").err == "#3 user: book the train\n"
    assert "not pinned" in said("unpin", "3").err
    [row] = said("view", "--pinned", "--json").document["messages"]
    assert row["pinned"] is True
    assert row["pinned_at"]


def test_a_pin_that_does_not_fit_is_named(said):
    number = said.say("an invoice " + "with many lines " * 40)
    said("pin", str(number))
    note = f"note: pinned #{number} is left out, larger than the room: pins take at most a quarter"
    assert note in said("context", "the train?", "--budget", "60").err
    assert "is left out" not in said("context", "the train?", "--budget", "9000").err


def test_an_imported_export_restores_tags_and_pins(said, tmp_path):
    said("tag", "1", "decision", "京都")
    said("pin", "1")
    file = tmp_path / "out.jsonl"
    said("export", "-o", str(file))
    before = said.rows()
    said("forget", "--scope", "--all-instances", "--yes")
    elsewhere = tmp_path / "fresh.db"
    said("--db", str(elsewhere), "ingest", "--no-embed", str(file))
    after = said("--db", str(elsewhere), "view", "0", "--json").document["messages"]
    assert [{**row, "id": 0} for row in after] == [{**row, "id": 0} for row in before]
    assert after[0]["tags"] == ["decision", "京都"]


def test_an_empty_tag_is_an_error_with_a_hint(cli):
    number = cli.say("hello")
    done = cli("tag", str(number), "", code=2)
    assert done.err.startswith("error: a name cannot be empty\nhint: use letters")
