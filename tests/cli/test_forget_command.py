"""``reservoir forget``: selection, confirmation and output."""

import sqlite3
import sys

import pytest
from each import each


@pytest.fixture
def spread(cli):
    """Return a home with six messages in two partitions and three instances."""
    cli.store(
        {"content": "own one", "trace_id": "t1"},
        {"content": "own secret", "trace_id": "t1", "conversation_id": "c1"},
        {"content": "other secret", "instance": "chatgpt", "trace_id": "t2"},
        {
            "content": "other two",
            "instance": "chatgpt",
            "conversation_id": "c2",
            "source": "chatgpt",
            "conversation": {"project": "app"},
        },
        {"content": "work secret", "partition": "work", "instance": "work"},
        {"content": "work three", "partition": "work", "instance": "work"},
    )
    return cli


def remaining_texts(cli):
    return {message.content for message in cli.messages()}


ALL = {"own one", "own secret", "other secret", "other two", "work secret", "work three"}

WHICH = [
    (["--id", "1"], {"own one"}),
    (["--id", "1", "--id", "3"], {"own one", "other secret"}),
    (["--trace-id", "t1"], {"own one", "own secret"}),
    (["--trace-id", "t2"], {"other secret"}),
    (["--conversation", "c2"], {"other two"}),
    (["--match", "SECRET"], {"own secret", "other secret"}),
    (["--match", "secret", "-i", "default"], {"own secret"}),
    (["--match", "secret", "-i", "chatgpt"], {"other secret"}),
    (["--source", "chatgpt"], {"other two"}),
    (["--project", "app"], {"other two"}),
    (["--match", "secret", "--all-instances"], {"own secret", "other secret"}),
    (["--match", "secret", "--all-partitions"], {"own secret", "other secret", "work secret"}),
    (["--match", "secret", "-p", "work"], {"work secret"}),
    (["--before", "2026-05-09T14:00:01"], {"own one"}),
    (["--before", "2026-05-09T14:00:05", "-p", "work"], {"work secret"}),
    (["--scope"], {"own one", "own secret"}),
    (["--scope", "-p", "work"], {"work secret", "work three"}),
    (["--scope", "--all-partitions"], ALL),
]


@pytest.mark.parametrize(
    ("options", "forgotten"),
    WHICH,
    ids=lambda value: " ".join(sorted(value) if isinstance(value, set) else value),
)
def test_exactly_the_selected_messages_are_forgotten(spread, options, forgotten):
    shown = spread("forget", *options, "--dry-run")
    assert {
        line.split("\t")[3].removeprefix("user: ") for line in shown.out.splitlines()
    } == forgotten
    assert remaining_texts(spread) == ALL
    result = spread("forget", *options, "--yes")
    assert result.out == ""
    noun, pronoun = ("message", "it") if len(forgotten) == 1 else ("messages", "them")
    lines = result.err.splitlines(keepends=True)
    named = [line for line in lines if line.startswith("#")]
    assert len(named) == (len(forgotten) if options[0] == "--id" else 0)
    forgot, backups, *notes = lines[len(named) :]
    assert all(note.startswith("note: matching and not forgotten: ") for note in notes)
    assert forgot + backups == (
        f"forgot {len(forgotten)} {noun}\n"
        f"note: backups and exports made earlier still have {pronoun}\n"
    )
    assert remaining_texts(spread) == ALL - forgotten


@pytest.mark.parametrize(
    ("options", "others"),
    [
        (["--match", "secret", "-i", "default"], "1 message in default/chatgpt (-i chatgpt)"),
        (["--match", "secret"], "1 message in work/work (-p work -i work, or"),
        (["--match", "secret", "--all-partitions"], None),
        (["--before", "2026-05-09T14:00:05"], "1 message in work/work (-p work -i work, or"),
        (["--match", "own"], None),
        (["--scope"], None),
        (["--id", "1"], None),
    ],
)
def test_matches_outside_of_the_scope_are_named(spread, options, others):
    for last in ("--dry-run", "--yes"):
        notes = [
            line for line in spread("forget", *options, last).err.splitlines() if "and not" in line
        ]
        assert len(notes) == (others is not None)
        if others:
            assert f"note: matching and not forgotten: {others}" in notes[0]


def test_matches_of_other_partitions_are_counted_without_those_of_the_scope(cli):
    for partition in "abc":
        cli.say("the same words", "-p", partition)
    others = "1 message in b/b (-p b -i b), 2 in other partitions (--all-partitions)"
    assert others in cli("forget", "--match", "same", "-p", "a", "--dry-run").err


@each(
    "options",
    [
        [],
        ["--id", "1", "--scope"],
        ["--match", "x", "--before", "7d"],
        ["--match", ""],
        ["--before", "someday"],
        ["--id", "0"],
        ["--scope", "--all-partitions", "-p", "work"],
    ],
)
def test_wrong_usage_is_exit_2_and_changes_nothing(spread, options):
    spread("forget", *options, "--yes", code=2)
    assert remaining_texts(spread) == ALL


@pytest.mark.parametrize("options", [["--scope"], ["--match", "not there"]], ids=" ".join)
def test_a_pipe_without_yes_is_exit_2(spread, options):
    result = spread("forget", *options, stdin="y\n", code=2)
    count = "0 messages" if "--match" in options else "2 messages"
    place = "default" if "--match" in options else "default/default"
    question = f"forget {count} in {place} for good?"
    assert result.err == f"error: cannot ask without a terminal: {question}\nhint: add --yes\n"
    assert remaining_texts(spread) == ALL


WRONG = [
    (["--match", ""], 2, "error: --match needs a text\n"),
    (["--before", "someday"], 2, "error: 'someday' is not a time"),
    (["--before", "", "--yes"], 2, "error: '' is not a time"),
    (["--trace-id", "", "-p", "home", "--yes"], 2, "error: --trace-id needs an id\n"),
    (["--conversation", " ", "-p", "home", "--yes"], 2, "error: --conversation needs an id\n"),
    (["--expired"], 0, "note: messages never expire: the setting retention_days is unset\n"),
]


@pytest.mark.parametrize(("options", "code", "message"), WRONG, ids=lambda value: str(value))
def test_errors_are_reported_before_confirmation(spread, options, code, message):
    spread.store({"content": "alone", "partition": "home", "conversation_id": "only"})
    assert spread("forget", *options, code=code).err.startswith(message)
    assert remaining_texts(spread) == ALL | {"alone"}


def test_the_question_counts_the_messages_of_each_instance(spread):
    spread.store({"content": "third secret", "instance": "chatgpt"})
    cases = {
        (): "forget 3 messages in default (chatgpt 2, default 1) for good?",
        ("-i", "chatgpt"): "forget 2 messages in default/chatgpt for good?",
        ("--all-partitions",): "forget 4 messages in the store (default/chatgpt 2,",
    }
    for scope, question in cases.items():
        assert question in spread("forget", "--match", "secret", *scope, code=2).err


def test_expired_messages_are_not_forgotten_in_a_pipe_without_yes(spread):
    spread("config", "--set", "retention_days=1")
    assert "hint: add --yes" in spread("forget", "--expired", code=2).err
    assert remaining_texts(spread) == ALL


@pytest.mark.parametrize("command", [["forget", "--yes"], ["view"]], ids=lambda command: command[0])
def test_the_hint_names_the_partition_of_a_message_elsewhere(spread, command):
    row = spread.rows("-p", "work")[0]
    result = spread(*command, "--id", str(row["id"]), code=1)
    assert result.err.startswith(f"error: no message {row['id']} in default\nhint: ")
    assert result.err.endswith("in partition work: -p work\n")
    assert remaining_texts(spread) == ALL


def test_an_unknown_id_is_exit_1_and_nothing_is_forgotten(spread):
    for options in (["--id", "1", "--id", "99"], ["--id", "5"]):
        assert "error: no message" in spread("forget", *options, "--yes", code=1).err
    assert remaining_texts(spread) == ALL


NOTES = [
    (
        ["--match", "secret", "-i", "empty"],
        "error: nothing in default/empty; 1 message in default/",
    ),
    (["--match", "three"], "error: nothing in default; 1 message in work/work (-p work -i work"),
    (["--match", "absent"], "note: nothing to forget in default\n"),
    (["--conversation", "absent"], "note: nothing to forget in default"),
    (
        ["--scope", "-p", "nowhere"],
        "error: there is no partition nowhere; 4 messages in default, 2 messages in work\n",
    ),
    (["--scope", "-p", "wrok"], "error: there is no partition wrok; did you mean work?\n"),
    (["--scope", "-i", "empty"], "error: nothing in default/empty; 2 messages in default/"),
    (["--before", "2020-01-01", "-i", "empty"], "note: nothing to forget in default/empty\n"),
    (
        ["--before", "2026-05-09T14:00:04", "-i", "empty"],
        "error: nothing in default/empty; 2 messages in default/default (-i default), "
        "4 in default (without -i)\n",
    ),
    (
        ["--match", "work", "-p", "nowhere"],
        "error: there is no partition nowhere; 4 messages in default, 2 messages in work\n"
        "hint: matching elsewhere: 2 messages in work\n",
    ),
    (["--expired"], "note: messages never expire: the setting retention_days is unset"),
]


@each(("options", "note"), NOTES)
def test_an_empty_selection_says_where_messages_are(spread, options, note):
    result = spread("forget", *options, "--yes", code=int(note.startswith("error")))
    assert result.out == ""
    assert result.err.startswith(note)
    # Without --yes nothing has failed, but the user probably meant another scope.
    warning = note.replace("error: ", "warning: ").replace("hint: ", "note: ")
    assert spread("forget", *options, "--dry-run").err.startswith(warning)
    assert remaining_texts(spread) == ALL


@pytest.mark.parametrize(
    "scope", [["-p", "nowhere"], ["-p", "wrok"], ["-i", "empty"]], ids=" ".join
)
def test_no_wider_deletion_is_suggested_for_a_whole_scope(spread, scope):
    assert "--all" not in spread("forget", "--scope", *scope, "--yes", code=1).err
    assert remaining_texts(spread) == ALL


def test_the_whole_partition_is_counted_but_not_suggested_for_a_whole_scope(spread):
    spread.store({"content": "in a third", "instance": "third"})
    assert spread("forget", "--scope", "--yes", "-i", "nosuch", code=1).err == (
        "error: nothing in default/nosuch; 2 messages in default/chatgpt (-i chatgpt), "
        "5 in default\n"
    )


def test_json_reports_what_was_forgotten(spread):
    dry = spread("forget", "--match", "own", "--dry-run", "--json").document
    assert dry == {"schema_version": 1, "forgotten": 2, "ids": [1, 2], "dry_run": True}
    result = spread("forget", "--match", "own", "--yes", "--json").document
    assert result == {**dry, "dry_run": False}
    document = spread("forget", "--match", "own", "--yes", "--json").document
    assert (document["forgotten"], document["ids"]) == (0, [])
    failed = spread("forget", "--match", "work", "--yes", "--json", code=1).document["error"]
    assert failed["message"].startswith("nothing in default; ")
    refused = spread("forget", "--scope", "--json", code=2).document
    assert refused["error"]["exit_code"] == 2


@pytest.mark.parametrize(
    ("answer", "code", "forgotten"),
    [
        ("y\n", 0, {"own secret", "other secret"}),
        ("YES\n", 0, {"own secret", "other secret"}),
        ("\n", 1, set()),
        ("n\n", 1, set()),
        ("\x04", 1, set()),
        ("\x03", 130, set()),
    ],
)
def test_on_a_terminal_the_count_is_shown_and_confirmation_asked(spread, answer, code, forgotten):
    result = spread.talk("forget", "--match", "secret", answers=[("[y/N] ", answer)])
    question = "forget 2 messages in default (default 1, chatgpt 1) for good? [y/N] "
    assert result.out.startswith(f"#2 user: own secret\n#3 user: other secret\n{question}")
    assert result.code == code
    assert remaining_texts(spread) == ALL - forgotten


def test_three_messages_are_shown_before_confirmation(cli):
    for number in range(5):
        cli.say(f"word {number}" + " x" * 200 * (number == 1))
    result = cli.talk("forget", "--scope", answers=[("[y/N] ", "n\n")])
    shown = result.out.splitlines()
    assert shown[0] == "#1 user: word 0"
    assert shown[1] == f"#2 user: word 1{' x' * 42}…"
    assert shown[2:4] == ["#3 user: word 2", "and 2 messages more"]
    later = "note: later imports, into any partition, will leave these messages out; to move them "
    move = "to the partition RIGHT instead: reservoir partitions rename default RIGHT"
    assert shown[4] == later + move
    assert shown[5].startswith("forget 5 messages in default/default for good?")


@pytest.mark.parametrize(
    ("options", "command"),
    [
        (["-p", "work"], "reservoir partitions merge work RIGHT"),
        (["-p", "work", "--all-instances"], "reservoir partitions merge work RIGHT"),
        (["-i", "chatgpt"], None),
        (["--all-partitions"], None),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_later_imports_are_mentioned_before_a_whole_scope_is_forgotten(spread, options, command):
    shown = spread.talk("forget", "--scope", *options, answers=[("[y/N] ", "n\n")]).out
    note = "note: later imports, into any partition, will leave these messages out"
    assert f"{note}; to move " * bool(command) in shown
    assert (command or f"{note}\n") in shown.replace("\r", "")
    assert ("partitions merge" in shown) == bool(command)


def test_an_id_may_have_a_hash_or_be_the_beginning_of_one(cli):
    cli.store(
        {"content": "one", "trace_id": "abc1", "conversation_id": "talk-1"},
        {"content": "two", "trace_id": "abd1", "conversation_id": "talk-2"},
        {"content": "three", "trace_id": "x", "conversation_id": "other"},
        {"content": "four"},
    )
    assert (
        "--trace-id ab is not unique: abc1, abd1"
        in cli("forget", "--trace-id", "ab", "--yes", code=2).err
    )
    result = cli("forget", "--trace-id", "abc", "--yes")
    assert "note: abc is abc1" in result.err
    assert "note: ot is other" in cli("forget", "--conversation", "ot", "--yes").err
    cli("forget", "--id", "#4", "--yes")
    assert "--id: 'four' is not a message number" in cli("forget", "--id", "four", code=2).err
    assert [row["content"] for row in cli.rows()] == ["two"]


def test_expired_uses_the_setting_of_each_partition(spread):
    spread("config", "--set", "partitions.work.retention_days=1")
    spread.say("new", "-p", "work")
    spread("forget", "--expired", "--all-partitions", "--yes")
    assert remaining_texts(spread) == {text for text in ALL if "work" not in text} | {"new"}
    spread("config", "--set", "retention_days=0", code=2)


def test_importing_the_file_again_skips_forgotten_messages_with_a_note(spread):
    spread("forget", "--match", "secret", "--all-partitions", "--yes")
    result = spread("ingest", "--no-embed", "--json", str(spread.home / "rows.jsonl"))
    note = (
        "note: forgotten or edited earlier, and not imported: 3 messages; "
        "--include-forgotten imports them\n"
    )
    assert note in result.err
    assert (result.document["already_there"], result.document["forgotten"]) == (3, 3)
    spread.say("own secret")
    assert "own secret" in remaining_texts(spread)


def test_forgotten_messages_are_imported_if_that_is_asked_for(spread):
    spread("forget", "--match", "secret", "--all-partitions", "--yes")
    command = ("ingest", "--no-embed", str(spread.home / "rows.jsonl"), "--include-forgotten")
    rehearsed = spread(*command, "--dry-run")
    assert "would import 3, already there 3, skipped 0\n" in rehearsed.err
    result = spread(*command, "--json")
    for err in (rehearsed.err, result.err):
        assert "note: forgotten earlier, and included: 3 messages\n" in err
    document = result.document
    assert [document[key] for key in ("imported", "restored", "forgotten")] == [3, 3, 0]
    assert remaining_texts(spread) == ALL
    piped = spread(
        *("ingest", "--no-embed", "--format", "reservoir", "--include-forgotten"),
        stdin=(spread.home / "rows.jsonl").read_text(encoding="utf-8"),
    )
    assert piped.err == "imported 0, already there 6, skipped 0\n"
    failed = spread("ingest", "--include-forgotten", stdin="a message", code=2)
    assert failed.err.startswith("error: --include-forgotten is for files\n")


def test_what_an_import_leaves_out_although_forgotten_messages_are_included_is_named(spread):
    file = str(spread.home / "rows.jsonl")
    row = next(row for row in spread.rows("--all-partitions") if row["content"] == "own secret")
    spread("edit", str(row["id"]), "harmless")
    spread("forget", "--match", "work", "--all-partitions", "--yes")
    spread("config", "set", "partitions.work.retention_days=1")
    command = ("ingest", "--no-embed", "--include-forgotten", file)
    kept = spread(*command)
    assert "note: older than retention_days, and not imported: 2 messages\n" in kept.err
    copied = spread(*command, "-p", "third")
    assert "note: replaced by an edit, and not imported: 1 message\n" in copied.err


def test_a_store_that_is_read_only_is_exit_3(spread, as_owner):
    spread.db.chmod(0o400)
    result = spread("forget", "--scope", "--yes", command=(*as_owner, "reservoir"), code=3)
    assert "cannot be written to" in result.err
    assert remaining_texts(spread) == ALL


def test_a_locked_store_is_exit_4(locked, impatient):
    locked("forget", "--scope", "--yes", env=impatient, code=4)


IMPATIENT = """
from reservoir_cli.util import timeouts
timeouts.CHECKPOINT = 0.1
from reservoir_cli.__main__ import main
main()
"""


def test_a_long_reader_is_exit_1_and_the_next_command_finishes(spread):
    reader = sqlite3.connect(spread.db, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT COUNT(*) FROM messages").fetchone()
    words = ("forget", "--match", "three", "-p", "work", "--yes", "--json")
    result = spread("-c", IMPATIENT, *words, command=(sys.executable,), code=1)
    assert "another program is reading the store" in result.document["error"]["message"]
    assert remaining_texts(spread) == ALL - {"work three"}
    assert any(b"work three" in file.read_bytes() for file in spread.home.glob("reservoir.db*"))
    reader.close()
    (spread.home / "rows.jsonl").unlink()
    spread("view")
    assert not any(b"work three" in file.read_bytes() for file in spread.home.glob("reservoir.db*"))


def test_an_empty_home_has_nothing_to_forget(cli):
    result = cli("forget", "--scope", "--yes")
    assert result.err == "note: nothing is stored yet: reservoir init, or reservoir ingest FILE\n"
    assert not cli.db.exists()


def test_all_matches_outside_of_the_scope_are_counted(cli):
    for place in ("a/one", "a/two", *(f"{partition}/own" for partition in "bcdef")):
        partition, instance = place.split("/")
        cli.say("card number", "-p", partition, "-i", instance)
    note = cli("forget", "--match", "card", "-p", "a", "-i", "one", "--yes").err
    assert "1 message in a/two (-i two); 1 message in " in note
    assert note.endswith(", 2 in 2 other partitions\n")
    note = cli("forget", "--match", "card", "-p", "zz", "--yes", code=1).err
    assert note.endswith(", 3 in 3 other partitions\n")


def test_a_number_in_another_instance_is_named_with_its_instance(cli):
    cli.say("hello", "-p", "work", "-i", "backend")
    for command in (("forget", "--yes"), ("view",)):
        refused = cli(*command, "--id", "1", "-p", "work", "-i", "other", code=1)
        assert "hint: it is in work/backend: leave -i out\n" in refused.err


def test_a_message_forgotten_by_number_is_shown(cli):
    cli.say("one too many")
    assert cli("forget", "--id", "1", "--yes").err.startswith("#1 user: one too many\nforgot 1 ")
