"""``partitions`` and ``conversations``: listing, renaming, merging and deleting."""

import json
import os
import shutil
import tomllib
from collections import Counter

import pytest
from command_line import RESERVOIR
from each import each


@pytest.fixture
def spread(cli):
    cli.store(
        {"content": "own"},
        {"content": "größer", "instance": "chatgpt", "conversation_id": "c"},
        {"content": "answer", "instance": "chatgpt", "conversation_id": "c", "role": "assistant"},
        {
            "content": "work",
            "partition": "work",
            "instance": "work",
            "conversation_id": "d",
            "conversation": {
                "title": "Jobs\n in Redis",
                "source": "claude",
                "model": "opus",
                "project": "taskboard",
                "branch": "main",
            },
        },
    )
    return cli


def places(cli):
    return dict(Counter((message.partition, message.instance) for message in cli.messages()))


BEFORE = {("default", "chatgpt"): 2, ("default", "default"): 1, ("work", "work"): 1}


def test_partitions_are_listed_with_what_they_hold(spread):
    document = spread("partitions", "--json").document
    assert document["schema_version"] == 1
    assert document["partitions"][0] == {
        "partition": "default",
        "instance": "chatgpt",
        "messages": 2,
        "bytes": 14,
        "first": "2026-05-09T14:00:01+00:00",
        "last": "2026-05-09T14:00:02+00:00",
    }
    lines = spread("partitions").out.splitlines()
    assert lines[2].split("\t")[:4] == ["work", "work", "1", "4"]
    rows = {(row["partition"], row["instance"]): row for row in document["partitions"]}
    assert {place: row["messages"] for place, row in rows.items()} == places(spread) == BEFORE


def test_a_renamed_partition_is_found_by_its_new_name(spread):
    result = spread("partitions", "rename", "work", "acme", "--yes")
    assert (result.out, result.err) == ("", "renamed work to acme: 1 message\n")
    assert [row["content"] for row in spread.rows("-p", "acme")] == ["work"]
    assert spread("search", "--keyword", "work", "-p", "acme").out.endswith(" user: work\n")
    assert "contents" not in spread("doctor").out


def test_the_settings_of_a_renamed_partition_are_renamed_too(spread):
    file = spread.home / "reservoir.toml"
    file.write_text('# mine\n[partitions.default]\nredact = "mask"\nrecent_context_size = 5\n')
    spread("ingest", "--no-embed", stdin="AKIAIOSFODNN7EXAMPLX is the key")
    assert "AKIA" not in spread("view", "1").out
    result = spread("partitions", "rename", "default", "home.2", "--yes")
    assert "reservoir config set partition=home.2" in result.err
    assert f"[partitions.default] in {file} is now [partitions.home.2]" in result.err
    assert "AKIA" not in spread("view", "1", "-p", "home.2").out
    assert tomllib.loads(file.read_text()) == {
        "partitions": {"home.2": {"redact": "mask", "recent_context_size": 5}}
    }
    assert file.read_text().startswith("# mine\n")


@pytest.mark.parametrize("option", ["rename", "merge"])
def test_settings_that_are_not_renamed_are_named(spread, option):
    spread("config", "--set", "partitions.default.recent_context_size=5")
    target = "work" if option == "merge" else "other"
    if option == "rename":  # the new name has settings already
        spread("config", "--set", "partitions.other.recent_context_size=7")
    before = (spread.home / "reservoir.toml").read_text()
    result = spread("partitions", option, "default", target, "--yes")
    assert "[partitions.default] stays in " in result.err
    assert ", but does not apply to the moved messages" in result.err
    assert (spread.home / "reservoir.toml").read_text() == before


@pytest.mark.parametrize("option", ["rename", "merge"])
def test_settings_that_will_be_lost_are_named_before_confirmation(spread, option):
    new = "work" if option == "merge" else "other"
    spread(
        *("config", "--set", "partitions.default.redact=mask"),
        *("--set", "partitions.default.retention_days=30", "--set", "partitions.default.fill=true"),
        *("--set", f"partitions.{new}.fill=true", "--set", f"partitions.{new}.redact=remove"),
    )
    refused = spread.talk("partitions", option, "default", new, answers=[("[y/N] ", "\n")])
    assert refused.out.splitlines()[0] == (
        "note: settings of default that will no longer apply: "
        f"redact=mask (remove in {new}), retention_days=30 (unset in {new})"
    )
    assert (refused.code, places(spread)) == (1, BEFORE)


def test_settings_that_move_or_are_equal_are_not_lost(spread):
    spread("config", "--set", "partitions.default.redact=mask", "--set", "redact=mask")
    for options in (("rename", "default", "home"), ("merge", "home", "work")):
        assert "no longer apply" not in spread("partitions", *options, "--yes").err


@pytest.mark.parametrize(
    "text",
    [
        'partitions = { default = { redact = "mark" }, x = { redact = "off" } }\n',
        '[partitions]\ndefault.redact = "mark" # keys\nx.redact = "off"\n',
        'partitions.default.redact = "mark"\npartitions.x.redact = "off"\n',
        '[partitions.default]\n# keys\nredact = "mark"\n[partitions.x]\nredact = "off"\n',
    ],
    ids=["inline", "dotted", "dotted at the top", "table"],
)
def test_settings_are_renamed_in_any_notation(spread, text):
    file = spread.home / "reservoir.toml"
    file.write_text(text)
    result = spread("partitions", "rename", "default", "home", "--yes")
    assert "is now [partitions.home]" in result.err
    settings = tomllib.loads(file.read_text())["partitions"]
    assert settings.pop("default", {}) == {}
    assert settings == {"home": {"redact": "mark"}, "x": {"redact": "off"}}


def test_messages_move_even_if_the_settings_cannot_be_edited(spread, tmp_path):
    folder = tmp_path / "settings"
    folder.mkdir()
    file = folder / "reservoir.toml"
    file.write_text('[partitions.a]\nb.redact = "mark"\n')  # of the partition a.b
    before = file.read_text()
    spread.say("hello", "-p", "a.b")
    folder.chmod(0o500)
    command = [str(RESERVOIR)]
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("root is stopped by no file mode, and setpriv is not here")
        command[:0] = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    words = ("--config", str(file), "partitions", "rename", "a.b", "home", "--yes")
    result = spread(*words, command=tuple(command))
    folder.chmod(0o700)
    assert "renamed a.b to home: 1 message" in result.err
    assert f"warning: cannot write {file}" in result.err
    assert "[partitions.a.b] stays in " in result.err
    assert file.read_text() == before


@pytest.mark.parametrize("verb", ["rename", "merge"])
def test_the_default_partition_of_the_settings_follows(spread, verb):
    new = {"rename": "acme", "merge": "default"}[verb]
    spread("config", "set", "partition=work")
    result = spread("partitions", verb, "work", new, "--yes")
    assert f"is now {new}\n" in result.err
    assert "still the default" not in result.err
    assert spread("config", "get", "partition").out == f"{new}\n"


def test_a_default_partition_that_the_settings_do_not_name_is_reported(spread):
    variables = {"RESERVOIR_PARTITION": "work"}
    result = spread("partitions", "rename", "work", "acme", "--yes", env=variables)
    assert "note: work is still the default partition: reservoir config set" in result.err
    assert spread("config", "get", "partition").out == "default\n"


def test_two_partitions_are_merged(spread):
    result = spread("partitions", "merge", "work", "default", "--yes", "--json")
    assert {row["partition"] for row in result.document["partitions"]} == {"default"}
    assert places(spread) == {("default", "chatgpt"): 2, ("default", "default"): 2}


@each(
    ("options", "code", "message"),
    [
        (
            ["rename", "work", "default", "--yes"],
            1,
            "hint: reservoir partitions merge work default",
        ),
        (
            ["merge", "work", "nowhere", "--yes"],
            1,
            "hint: reservoir partitions rename work nowhere",
        ),
        (["rename", "nowhere", "x", "--yes"], 1, "hint: partitions are default, work"),
        (["delete", "nowhere", "--yes"], 1, "hint: partitions are default, work"),
        (["rename", "work", "work", "--yes"], 2, "the two names are the same"),
        (["rename", "work", " ", "--yes"], 2, "a name cannot be empty"),
        (["rename", "work"], 2, "missing argument B\nhint: reservoir partitions rename work B\n"),
        (["delete"], 2, "missing argument P\nhint: reservoir partitions delete P\n"),
        (["--rename", "work", "x"], 2, "hint: reservoir partitions rename work x\n"),
        (["delete", "work"], 2, "a terminal: forget all of work, 1 message, for good?"),
        (["rename", "work", "x"], 2, "a terminal: rename work to x, with 1 message in 1 instance?"),
        (["delete", "wrok"], 1, "there is no partition wrok"),
        (["rename", "wrok", "x"], 1, "there is no partition wrok"),
        (["merge", "work", "default"], 2, "add --yes"),
        (["merge", "work", "default", "--json"], 2, "add --yes"),
    ],
)
def test_a_refused_change_changes_nothing(spread, options, code, message):
    assert message in spread("partitions", *options, code=code).err
    assert places(spread) == BEFORE


MOVES = {
    "rename work to acme, with 1 message in 1 instance?": ["rename", "work", "acme"],
    "merge default, 3 messages in 2 instances, into work, 1 message in 1 instance, for good?": [
        *("merge", "default", "work")
    ],
    "forget all of default, 3 messages, for good?": ["delete", "default"],
}


@pytest.mark.parametrize(("question", "option"), MOVES.items(), ids=["rename", "merge", "delete"])
def test_on_a_terminal_the_effect_is_shown_and_confirmation_asked(spread, question, option):
    refused = spread.talk("partitions", *option, answers=[("[y/N] ", "\n")])
    *notes, asked = refused.out.partition(" [y/N] ")[0].splitlines()
    assert (asked, len(notes)) == (question, int(option[0] == "delete"))
    assert (refused.code, places(spread)) == (1, BEFORE)
    assert spread.talk("partitions", *option, answers=[("[y/N] ", "\x03")]).code == 130
    assert places(spread) == BEFORE
    assert spread.talk("partitions", *option, answers=[("[y/N] ", "y\n")]).code == 0
    assert places(spread) != BEFORE


def test_the_way_to_move_messages_is_named_before_a_partition_is_deleted(spread):
    spread.store({"content": "lost", "partition": "a b", "source": "s", "source_id": "1"})
    answers = [("[y/N] ", "n\n")]
    shown = spread.talk("partitions", "delete", "a b", answers=answers).out
    note = "note: later imports, into any partition, will leave these messages out; to move them "
    assert shown.startswith(note)
    command = "reservoir partitions merge 'a b' RIGHT"
    assert f" to the partition RIGHT instead: {command}\n" in f" {shown}".replace("\r", "")
    spread.shell(f"{command} --yes".replace("RIGHT", "work"))
    assert ("a b", "a b") not in places(spread)
    # Nobody can answer now: only the way back is named.
    deleted = spread("partitions", "delete", "work", "--yes")
    assert deleted.out == ""
    forgot, *notes = deleted.err.splitlines()
    assert forgot.startswith("forgot ")
    assert notes == [
        "note: backups and exports made earlier still have them",
        "note: later imports leave them out, unless you add --include-forgotten",
    ]


def test_a_deleted_partition_is_forgotten(spread):
    result = spread("partitions", "delete", "default", "--yes")
    assert result.err.startswith("forgot 3 messages\n")
    assert places(spread) == {("work", "work"): 1}
    (spread.home / "rows.jsonl").rename(spread.home / "kept")
    assert not any("größer".encode() in file.read_bytes() for file in spread.home.glob("*.db*"))
    (spread.home / "kept").rename(spread.home / "rows.jsonl")
    spread("ingest", "--no-embed", str(spread.home / "rows.jsonl"))
    assert places(spread) == {("work", "work"): 1}


def test_a_partition_whose_name_begins_with_a_hyphen_can_be_moved_and_deleted(cli):
    cli.store({"content": "a", "partition": "-p"}, {"content": "b", "partition": "--x"})
    refused = cli("partitions", "merge", "--yes", "--", "-p", "q", code=1).err
    assert "hint: reservoir partitions rename -- -p q\n" in refused
    refused = cli("partitions", "rename", "--", "-p", "--yes", code=2).err
    assert (
        "the new name --yes begins with a hyphen\nhint: reservoir partitions rename -- -p B\n"
        in refused
    )
    cli("partitions", "rename", "--yes", "--", "-p", "q")
    cli("partitions", "delete", "--yes", "--", "--x")
    assert set(places(cli)) == {("q", "default")}


def test_folders_and_sources_of_a_deleted_partition_are_named(spread):
    file = spread.home / "reservoir.toml"
    file.write_text(
        '[projects]\n"~/my app" = "default"\n"/src/b" = "default"\n"/src/c" = "work"\n'
        '[sources.codex]\npartition = "default"\n'
    )
    notes = spread("partitions", "delete", "default", "--yes").err
    command = """reservoir config unset 'projects."~/my app"' 'projects."/src/b"'"""
    assert f"note: sessions in ~/my app, /src/b still go to default: {command}\n" in notes
    assert "note: reservoir sync still brings codex to default: [sources] in " in notes
    spread.shell(command)
    assert '[projects]\n"/src/c" = "work"\n' in file.read_text()


def test_conversations_are_listed_with_their_details(spread):
    document = spread("conversations", "-p", "work", "--json").document
    assert document["conversations"] == [
        {
            "id": "d",
            "title": "Jobs\n in Redis",
            "source": "claude",
            "model": "opus",
            "project": "taskboard",
            "branch": "main",
            "partition": "work",
            "instance": "work",
            "messages": 1,
            "first": "2026-05-09T14:00:03+00:00",
            "last": "2026-05-09T14:00:03+00:00",
        }
    ]
    [line] = spread("conversations", "-p", "work").out.splitlines()
    first, *_, last = line.split("\t")
    assert line.split("\t")[:4] == [first, "Jobs in Redis", "claude", "1"]
    assert (first, last) == ("d", "taskboard")


def test_a_conversation_without_a_title_shows_its_first_question(cli):
    secret = "ghp_" + "a8Kd03Lq92Xz" * 3
    rows = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": f"{secret} is"}]
    cli("ingest", "--no-embed", "--format", "openai", stdin=json.dumps({"messages": rows}))
    masked = {"RESERVOIR_REDACT": "mask"}
    [shown] = cli("conversations", "--json", env=masked).document["conversations"]
    assert shown["title"].endswith(" is")
    assert secret not in shown["title"]


SCOPES = [
    ([], ["c"]),
    (["-i", "chatgpt"], ["c"]),
    (["-i", "default"], []),
    (["--all-partitions"], ["c", "d"]),
]


@pytest.mark.parametrize(("options", "expected"), SCOPES, ids=lambda value: " ".join(value))
def test_only_conversations_of_the_scope_are_listed(spread, options, expected):
    conversations = spread("conversations", *options, "--json").document["conversations"]
    assert [row["id"] for row in conversations] == expected


def test_an_empty_list_of_conversations_has_a_reason(spread):
    result = spread("conversations", "-i", "default")
    assert result.err == "note: no message in default/default belongs to a conversation\n"
    assert spread("conversations", "-p", "x").err.startswith("note: nothing in x; ")


def test_an_empty_store_says_so(cli):
    for command in ("partitions", "conversations"):
        assert (
            cli(command).err
            == "note: nothing is stored yet: reservoir init, or reservoir ingest FILE\n"
        )


@pytest.mark.parametrize("option", [["rename", "work", "x"], ["delete", "work"]])
def test_a_read_only_store_can_be_listed_and_not_changed(spread, as_owner, option):
    spread.db.chmod(0o400)
    as_reader = {"command": (*as_owner, "reservoir")}
    assert "cannot be written to" in spread("partitions", *option, "--yes", **as_reader, code=3).err
    assert len(spread("partitions", **as_reader).out.splitlines()) == 3


@pytest.mark.parametrize("words", [["rename", "work", "acme"], ["merge", "work", "default"]])
def test_projects_of_a_renamed_partition_are_renamed_too(spread, words):
    spread("config", "set", "projects./src/app=work", "mcp.partitions=work,home")
    result = spread("partitions", *words, "--yes")
    done = {"rename": "renamed work to acme: ", "merge": "merged work into default: "}
    assert result.err.startswith(done[words[0]])
    assert f"now name {words[2]}" in result.err
    assert spread("config", "get", "projects./src/app").out == f"{words[2]}\n"
    assert spread("config", "get", "mcp.partitions").out == f"{words[2]}, home\n"


def test_conversations_are_ordered_by_their_newest_message(cli):
    cli.store(
        *({"content": "x", "conversation_id": name} for name in ("a", "b", "c")),
        {"content": "y", "conversation_id": "a"},
    )

    def ids(*options):
        conversations = cli("conversations", *options, "--json").document["conversations"]
        return [row["id"] for row in conversations]

    assert ids() == ids("-n", "9") == ["a", "b", "c"]
    assert ids("-n", "2") == ["a", "c"]
    assert ids("-n", "1", "--match", "x") == ["a"]
    assert cli("conversations", "-n", "1").out.split("\t")[0] == "a"
    assert "--limit" in cli("conversations", "-n", "0", code=2).err
