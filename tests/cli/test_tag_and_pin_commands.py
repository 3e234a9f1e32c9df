"""``tag``, ``untag``, ``pin`` and ``unpin``, and commands that show marks."""

import json

import pytest


@pytest.fixture
def filled_cli(cli):
    cli.store(
        {"content": "why did we drop Redis?", "conversation_id": "c1"},
        {"content": "it lost jobs", "role": "assistant", "conversation_id": "c1"},
        {"content": "book the train", "conversation_id": "c2"},
        {"content": "at work", "partition": "work", "instance": "work"},
    )
    return cli


def contents(result):
    return [row["content"] for row in result.document["messages"]]


def test_a_tag_finds_its_messages_everywhere(filled_cli):
    result = filled_cli("tag", "1", "decision", "a b")
    assert (result.out, result.err) == (
        "",
        "#1 user: why did we drop Redis?\ntags: a b, decision\n",
    )
    filled_cli("tag", "#3", "travel")
    assert contents(filled_cli("view", "--tag", "decision", "--json")) == ["why did we drop Redis?"]
    assert filled_cli("search", "--keyword", "Redis train", "--tag", "travel").out.endswith(
        "train\n"
    )
    assert "book" not in filled_cli("context", "what?", "--tag", "decision", "--budget", "500").out
    rows = filled_cli("export", "--tag", "decision").out.splitlines()
    assert [json.loads(row)["tags"] for row in rows] == [["a b", "decision"]]
    conversations = filled_cli("conversations", "--tag", "travel", "--json").document[
        "conversations"
    ]
    assert [row["id"] for row in conversations] == ["c2"]
    nothing = filled_cli("view", "--tag", "nothing")
    assert (nothing.out, nothing.err) == (
        "",
        "note: no message in default has the tag nothing; tags: a b, decision, travel\n",
    )
    result = filled_cli("untag", "1", "a b", "c")
    assert result.err.splitlines()[1:] == ["tags: decision", "note: it had no tag c"]


@pytest.mark.parametrize("command", [("tag", "4", "x"), ("untag", "4", "x"), ("pin", "4")])
def test_the_partition_of_a_message_elsewhere_is_named(filled_cli, command):
    result = filled_cli(*command, code=1)
    assert result.out == ""
    assert result.err == (
        "error: no message 4 in default\nhint: it is in partition work: -p work\n"
    )
    assert filled_cli(*command, "-p", "work").err.startswith("#4 user: at work\n")
    assert filled_cli(command[0], "99", *command[2:], code=1).err.startswith(
        "error: no message 99 in default\nhint: on a"
    )


@pytest.mark.parametrize(
    "arguments",
    [("tag", "1", "a\nb"), ("tag", "1", " "), ("tag", "one", "a"), ("pin", "0"), ("tag", "1")],
)
def test_wrong_usage_is_refused_and_changes_nothing(filled_cli, arguments):
    assert filled_cli(*arguments, code=2).out == ""
    assert not [row for row in filled_cli.rows() if "tags" in row or "pinned" in row]


def test_pins_are_listed_and_removed(filled_cli):
    assert filled_cli("pin", "3").err == "#3 user: book the train\n"
    filled_cli("pin", "1")
    assert "pinned already" in filled_cli("pin", "1").err
    assert contents(filled_cli("view", "--pinned", "--json")) == [
        "why did we drop Redis?",
        "book the train",
    ]
    assert filled_cli("unpin", "3").err == "#3 user: book the train\n"
    assert "not pinned" in filled_cli("unpin", "3").err
    [row] = filled_cli("view", "--pinned", "--json").document["messages"]
    assert row["pinned"] is True
    assert row["pinned_at"]


def test_a_pin_that_does_not_fit_is_named(filled_cli):
    number = filled_cli.say("an invoice " + "with many lines " * 40)
    filled_cli("pin", str(number))
    note = (
        f"note: pinned #{number} is left out, larger than the room: "
        "with the newest two messages, pins take at most a quarter"
    )
    assert note in filled_cli("context", "the train?", "--budget", "60").err
    assert "is left out" not in filled_cli("context", "the train?", "--budget", "9000").err


def test_an_imported_export_restores_tags_and_pins(filled_cli, tmp_path):
    filled_cli("tag", "1", "decision", "京都")
    filled_cli("pin", "1")
    file = tmp_path / "out.jsonl"
    filled_cli("export", "-o", str(file))
    before = filled_cli.rows()
    filled_cli("forget", "--scope", "--all-instances", "--yes")
    elsewhere = tmp_path / "fresh.db"
    filled_cli("--db", str(elsewhere), "ingest", "--no-embed", str(file))
    after = filled_cli("--db", str(elsewhere), "view", "0", "--json").document["messages"]
    assert [{**row, "id": 0} for row in after] == [{**row, "id": 0} for row in before]
    assert after[0]["tags"] == ["decision", "京都"]


def test_an_empty_tag_is_an_error_with_a_hint(cli):
    number = cli.say("hello")
    result = cli("tag", str(number), "", code=2)
    assert result.err.startswith("error: a name cannot be empty\nhint: use letters")


def test_a_tag_of_single_messages_is_in_no_conversation(cli):
    cli.say("hello")
    cli.store({"content": "hi", "conversation_id": "c"})
    cli("tag", "1", "ok")
    note = cli("conversations", "--tag", "ok").err
    assert note.endswith("has the tag ok; the messages that have it are in no conversation\n")
