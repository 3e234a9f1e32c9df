"""``reservoir export``: print messages, or write them to a file atomically."""

import json
import os
import subprocess
import sys

import pytest
from each import each

MODE = 0o777


def contents(text):
    return [json.loads(line)["content"] for line in text.splitlines()]


@pytest.fixture
def spread(cli):
    """Return a home with messages in two partitions and three instances."""
    cli.store(
        {"content": "own"},
        {"content": "other instance", "instance": "chatgpt"},
        {"content": "other partition", "partition": "work", "instance": "work"},
    )
    return cli


SCOPES = [
    ([], ["own", "other instance"]),
    (["-i", "default"], ["own"]),
    (["-i", "chatgpt"], ["other instance"]),
    (["-p", "work"], ["other partition"]),
    (["--all-partitions"], ["own", "other instance", "other partition"]),
    (["--all-partitions", "--match", "OTHER"], ["other instance", "other partition"]),
    (["--all-partitions", "--since", "2026-05-09T14:00:02"], ["other partition"]),
    (["--all-partitions", "--until", "2026-05-09T14:00:00"], ["own"]),
]


@pytest.mark.parametrize(("options", "expected"), SCOPES, ids=lambda value: " ".join(value))
def test_scope_and_filters_select_messages_as_in_view(spread, options, expected):
    assert contents(spread("export", *options).out) == expected


def test_replies_that_are_quoted_as_the_users_are_noted(cli):
    cli.store({"content": "The rent is due.", "role": "assistant"}, {"content": "When?"})
    result = cli("export", "--format", "openai")
    assert "assistant: The rent is due." in result.out
    assert "note: 1 message quoted as the user's" in result.err
    assert "quoted" not in cli("export", "--format", "markdown").err


@pytest.mark.parametrize("form", ["jsonl", "markdown"])
def test_messages_that_are_moved_while_others_are_printed_are_counted(cli, form):
    cli.store(
        *({"content": f"{n} {'long ' * 40}", "conversation_id": f"c{n}"} for n in range(1100))
    )
    command = cli.start("export", "--format", form, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.read(command.stdout.fileno(), 1)  # it waits, because the pipe is full
    cli("partitions", "rename", "default", "work", "--yes")
    out, err = command.communicate(timeout=60)
    left_out = 1100 - out.count(b"long ") // 40
    assert left_out > 0
    assert f"warning: {left_out:,} messages left out" in err.decode()


def test_one_role_is_exported(cli):
    cli.store({"content": "question"}, {"content": "answer", "role": "assistant"})
    assert contents(cli("export", "--role", "user").out) == ["question"]
    cli("export", "--role", "robot", code=2)


@pytest.mark.parametrize("form", ["jsonl", "json", "markdown"])
def test_a_conversation_is_exported_by_the_beginning_of_its_id(cli, form):
    cli.store(
        {"content": "one", "conversation_id": "bad-1"},
        {"content": "two", "conversation_id": "bad-1", "role": "assistant"},
        {"content": "three", "conversation_id": "c0ffee-2"},
        {"content": "four", "conversation_id": "c0ffee-3"},
        {"content": "five"},
    )
    result = cli("export", "--conversation", "bad", "--format", form)
    assert "one" in result.out
    assert "two" in result.out
    assert not [word for word in ("three", "four", "five") if word in result.out]
    result = cli("export", "--conversation", "c0ffee-2", "--match", "thr")
    assert contents(result.out) == ["three"]
    result = cli("export", "--conversation", "c0f", code=2)
    assert result.out == ""
    assert "is not unique: c0ffee-2, c0ffee-3" in result.err
    assert cli("export", "--conversation", "none").err == (
        "note: no conversation in default has the id none; "
        "reservoir conversations -p default lists them\n"
    )


def test_an_empty_scope_prints_nothing_and_says_where_messages_are(spread):
    result = spread("export", "-p", "nowhere")
    assert result.out == ""
    assert result.err.startswith("note: nothing in nowhere; 2 messages in default (-p default)")


def test_filters_that_match_nothing_are_named(spread):
    for command in ("export", "view"):
        result = spread(command, "--since", "2030-01-01", "--until", "2031-01-01")
        assert result.out == ""
        assert result.err == "note: no message in default matches --since and --until\n"
    result = spread("view", "--role", "tool", "-i", "chatgpt", "--json")
    assert result.document["messages"] == []
    assert result.err == "note: no message in default/chatgpt matches --role\n"


def test_an_export_that_fails_prints_no_error_among_rows(cli, tmp_path):
    file = tmp_path / "no-store.db"
    file.write_text("not a database", encoding="utf-8")
    for form in (
        ["--format", "jsonl"],
        ["--format=jsonl"],
        ["--jsonl"],
        [],
        ["--format", "openai"],
    ):
        assert cli("--db", str(file), "export", *form, code=3).out == ""
    for form in (["--format", "json"], ["--format=json"], ["--json"]):
        document = cli("--db", str(file), "export", *form, code=3).document
        assert document["error"]["exit_code"] == 3


def test_json_is_a_document_and_jsonl_is_a_row_per_line(spread):
    assert spread("export", "--json").document["schema_version"] == 1
    assert contents(spread("export", "--jsonl").out) == ["own", "other instance"]
    assert spread("export", "--format", "json").document[0]["content"] == "own"


@each(
    "options",
    [
        ["--format", "csv"],
        ["--format", "document"],
        ["--format", "jsonl", "--json"],
        ["--format", "markdown", "--with-embeddings"],
        ["--match", ""],
        ["--since", "someday"],
        ["--all-partitions", "-p", "work"],
    ],
)
def test_wrong_usage_is_exit_2(spread, options):
    assert spread("export", *options, code=2).out.count("content") == 0


def test_a_file_is_private_and_complete_without_temporary_files(spread, tmp_path):
    target = tmp_path / "out" / "x.jsonl"
    target.parent.mkdir()
    target.write_text("before")
    result = spread("export", "--all-partitions", "-o", str(target))
    assert (result.out, result.err) == ("", f"exported 3 messages to {target}\n")
    assert len(contents(target.read_text())) == 3
    assert target.stat().st_mode & MODE == 0o600
    assert [path.name for path in target.parent.iterdir()] == ["x.jsonl"]


def test_a_failed_export_leaves_the_file_unchanged(spread, tmp_path):
    target = tmp_path / "x.jsonl"
    target.write_text("before")
    spread("export", "-o", str(target), "--format", "csv", code=2)
    spread.db.write_bytes(spread.db.read_bytes()[:8192] + b"\xff" * 20_000)
    spread("export", "-o", str(target), code=3)
    assert target.read_text() == "before"
    assert {path.name for path in tmp_path.iterdir()} == {"x.jsonl", "home"}


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (["-p", "nowhere"], "hint: nothing in nowhere; 2 messages in default (-p default)"),
        (["--match", "never said"], "hint: no message in default matches --match\n"),
        (["-p", "nowhere", "--format", "json"], "hint: nothing in nowhere; "),
        (["-p", "nowhere", "--format", "openai"], "hint: nothing in nowhere; "),
    ],
    ids=["scope", "filter", "array", "conversations"],
)
def test_an_export_without_messages_does_not_replace_a_file(spread, tmp_path, options, hint):
    target = tmp_path / "x.jsonl"
    spread("export", "--all-partitions", "-o", str(target))
    before = target.read_bytes()
    result = spread("export", *options, "-o", str(target), code=1)
    assert result.err.startswith(f"error: nothing to export: {target} is left unchanged\n{hint}")
    assert target.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"x.jsonl", "home"}


def test_an_emptied_store_does_not_empty_its_export(spread, tmp_path):
    target = tmp_path / "x.jsonl"
    spread("export", "--all-partitions", "-o", str(target))
    spread("forget", "--scope", "--all-partitions", "--yes")
    spread("export", "--all-partitions", "-o", str(target), code=1)
    assert len(contents(target.read_text())) == 3


def test_filters_without_matches_write_an_empty_file_as_they_print_nothing(spread, tmp_path):
    target = tmp_path / "x.jsonl"
    for _ in range(2):
        result = spread("export", "--match", "never said", "-o", str(target))
        assert "note: no message in default matches --match\n" in result.err
        assert target.read_bytes() == b""


def test_a_conversation_of_another_partition_is_named_and_not_exported_empty(cli, tmp_path):
    cli.store({"content": "here"}, {"content": "x", "partition": "work", "conversation_id": "c7"})
    target = tmp_path / "c7.jsonl"
    for partition in ("default", "absent"):
        one = ("--conversation", "c7", "-p", partition)
        hint = cli("export", *one, "-o", str(target), code=1).err
        assert "error: nothing to export" in hint
        for shown in (hint, cli("export", *one).err, cli("view", *one).err):
            assert "1 message in work (-p work)" in shown
    assert not target.exists()
    # Nothing of a day is no mistake: a script may export each.
    cli("export", "-p", "default", "--match", "x", "-o", str(target))
    assert target.read_bytes() == b""


@pytest.mark.parametrize("scope", [["-p", "nowhere"], ["-i", "nowhere"]], ids=" ".join)
def test_an_empty_scope_is_not_exported_to_a_file(spread, tmp_path, scope):
    target = tmp_path / "x.jsonl"
    result = spread("export", *scope, "-o", str(target), code=1)
    assert result.err.startswith(f"error: nothing to export: {target} is not written\nhint: ")
    assert "messages in default" in result.err or "message in default/" in result.err
    assert not target.exists()


def test_an_empty_store_is_exported_to_an_empty_file(cli, tmp_path):
    cli("export", "--all-partitions", "-o", str(tmp_path / "x.jsonl"))
    assert (tmp_path / "x.jsonl").read_bytes() == b""


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("reservoir.toml", "settings file"),
        ("reservoir.log", "log"),
        ("reservoir.log.1", "log"),
        ("serve.token", "own file"),
        ("connections.json", "own file"),
    ],
)
def test_files_of_reservoir_are_never_overwritten(spread, name, kind):
    file = spread.home / name
    file.write_text("", encoding="utf-8")
    result = spread("export", "-o", str(file), code=2)
    assert f"error: {file} is Reservoir's {kind}\nhint: name another file\n" in result.err
    assert file.read_bytes() == b""


@pytest.mark.parametrize("ending", ["", "-wal"])
def test_the_store_is_never_overwritten(spread, ending):
    before = spread.db.read_bytes()
    result = spread("export", "-o", f"{spread.db}{ending}", code=2)
    assert "is the store itself" in result.err
    assert spread.db.read_bytes() == before


@pytest.mark.parametrize("target", ["none/x", "."])
def test_a_path_that_cannot_be_written_is_exit_1(spread, target):
    assert "error: cannot write" in spread("export", "-o", target, code=1).err


def test_a_dash_and_a_device_are_written_to_directly(spread):
    assert contents(spread("export", "-o", "-").out) == ["own", "other instance"]
    spread("export", "-o", os.devnull)
    assert os.path.exists(os.devnull)
    assert not os.path.isfile(os.devnull)


def test_a_closed_pipe_ends_quietly(cli):
    cli.store(*({"content": "x" * 2000} for _ in range(500)))
    result = cli.shell("reservoir export | head -1; echo ${PIPESTATUS[0]}")
    assert result.out.endswith("\n0\n")
    assert result.err == ""


def test_a_read_only_store_is_exported(spread, as_owner):
    spread.db.chmod(0o400)
    spread.db.parent.chmod(0o500)
    try:
        result = spread("export", command=(*as_owner, "reservoir"))
    finally:
        spread.db.parent.chmod(0o700)
    assert contents(result.out) == ["own", "other instance"]


def test_an_export_on_a_terminal_shows_progress_on_stderr_only(cli, tmp_path):
    cli.store(*({"content": "hello"} for _ in range(3)))
    target = tmp_path / "x.jsonl"
    result = cli.on_terminal("export", "-o", str(target), streams=("stderr",))
    assert result.out == ""
    assert "exported 3 messages" in result.err


@pytest.mark.model
def test_exported_samples_are_imported_with_their_embeddings(samples, tmp_path):
    file = tmp_path / "all.jsonl"
    samples("export", "--all-partitions", "--with-embeddings", "-o", str(file))
    other = ("--db", str(tmp_path / "other.db"))
    samples(*other, "ingest", "--no-embed", str(file))

    def rows(*before):
        printed = samples(*before, "export", "--all-partitions", "--with-embeddings").out
        return [
            {key: value for key, value in json.loads(line).items() if key != "id"}
            for line in printed.splitlines()
        ]

    assert rows(*other) == rows()
    assert "not embedded" not in samples(*other, "doctor").out


def test_exporting_needs_memory_for_one_batch_only(cli):
    cli.env["RESERVOIR_REDACT"] = "off"
    text = "a word or " * 400
    cli.store(*({"content": text, "partition": f"{number // 2000}"} for number in range(4_000)))

    def peak(*options):
        measured = (
            "import resource, subprocess;"
            f"subprocess.run(['reservoir', 'export', *{options}], stdout=-3, check=True);"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        )
        return int(cli("-c", measured, command=(sys.executable,)).out)

    assert peak("--all-partitions") - peak("-p", "0") < 4_000  # KB; two more batches have 8,000
