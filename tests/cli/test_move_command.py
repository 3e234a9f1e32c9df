"""``reservoir move``: selection, what goes along, and moving back."""

import shlex

import pytest

ROWS = (
    {"content": "own one", "source": "s", "source_id": "1", "conversation_id": "c1"},
    {"content": "own secret", "source": "s", "source_id": "2", "conversation_id": "c1"},
    {"content": "other secret", "instance": "chatgpt", "source": "s", "source_id": "3"},
    {"content": "work secret", "partition": "work", "instance": "work"},
)


@pytest.fixture
def spread(cli):
    """Return a home with four messages in two partitions and three instances."""
    cli.store(*ROWS)
    return cli


def places(cli):
    return {each.content: f"{each.partition}/{each.instance}" for each in cli.messages()}


BEFORE = {
    "own one": "default/default",
    "own secret": "default/default",
    "other secret": "default/chatgpt",
    "work secret": "work/work",
}


def test_the_chosen_messages_are_moved_and_back(spread):
    cases = [
        (["--id", "1"], "work", {"own one": "work/work"}),
        (["--id", "1", "--id", "3"], "new", {"own one": "new/new", "other secret": "new/chatgpt"}),
        (["--conversation", "c1"], "work", {"own one": "work/work", "own secret": "work/work"}),
        (["--match", "SECRET"], "a/b", {"own secret": "a/b", "other secret": "a/b"}),
        (["--match", "secret", "-i", "chatgpt"], "work", {"other secret": "work/chatgpt"}),
        (["--until", "2026-05-09T14:00:00"], "work", {"own one": "work/work"}),
    ]
    wrong = []
    for options, to, moved in cases:
        words = ["move", *options, "--to", to]
        dry = spread(*words, "--dry-run", "--json").document
        before = places(spread)
        result = spread(*words, "--yes", "--json").document
        after = places(spread)
        rows = {row["id"]: row for row in spread.rows("--all-partitions")}
        for number in result["ids"]:
            row = rows[number]
            back = "default/chatgpt" if row["content"] == "other secret" else "default/default"
            spread("move", "--id", str(number), "-p", row["partition"], "--to", back, "--yes")
        seen = (before, after, dry["ids"] == result["ids"], result["moved"], places(spread))
        if seen != (BEFORE, {**BEFORE, **moved}, True, len(moved), BEFORE):
            wrong.append((options, seen))
    assert not wrong


def test_times_tags_pins_and_titles_go_along(spread):
    spread("tag", "1", "japan")
    spread("pin", "1")
    before = {row["id"]: row for row in spread.rows("--all-partitions")}[1]
    spread("move", "--id", "1", "--to", "work", "--yes")
    after = {row["id"]: row for row in spread.rows("--all-partitions")}[1]
    assert after == {**before, "partition": "work", "instance": "work"}


def test_a_message_that_is_there_already_is_not_stored_twice(spread):
    spread.store({**ROWS[0], "partition": "work", "instance": "work"})
    result = spread("move", "--id", "1", "--to", "work", "--yes")
    assert "1 message was in work already" in result.err
    assert list(places(spread)) == list(BEFORE)


def test_wrong_usage_and_nothing_found(spread):
    cases = [
        ([], 2, "error: choose the messages to move"),
        (["--id", "1", "--match", "own"], 2, "error: choose the messages to move"),
        (["--id", "99"], 1, "error: no message 99"),
        (["--match", "absent"], 0, "note: nothing to move in default"),
        (["--match", "work"], 1, "error: nothing in default; 1 message in work/work"),
    ]
    wrong = []
    for options, code, line in cases:
        result = spread("move", *options, "--to", "elsewhere", "--yes", code=code)
        if not result.err.startswith(line):
            wrong.append((options, result.err))
    assert not wrong
    assert "hint: add --yes" in spread("move", "--id", "1", "--to", "x", code=2).err
    assert "error: --to needs a partition" in spread("move", "--id", "1", "--to", "/x", code=2).err
    assert places(spread) == BEFORE


@pytest.mark.parametrize(
    ("partition", "instance"),
    [("a/b", "a/b"), ("a/", "b"), ("a", "/b"), ("a\\", "b/"), ("\\/", "\\\\")],
)
def test_names_with_slashes_are_moved_back_to_their_place(cli, partition, instance):
    cli.store({"content": "hello", "partition": partition, "instance": instance})
    result = cli("move", "--id", "1", "-p", partition, "--to", "home/x", "--yes", "--no-embed")
    undo = shlex.split(result.err.partition("to undo: ")[2])
    cli(*undo[1:], "--yes", "--no-embed")
    [row] = cli("partitions", "--json").document["partitions"]
    assert (row["partition"], row["instance"]) == (partition, instance)


@pytest.mark.parametrize("to", ["/x", "a/", "a/b/", "a//", ""])
def test_a_place_without_a_name_is_refused(spread, to):
    spread("move", "--id", "1", "--to", to, "--yes", code=2)
