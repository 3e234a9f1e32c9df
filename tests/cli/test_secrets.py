"""Secrets in messages are found at import and treated as the setting ``redact`` says."""

import json
import subprocess

PASSWORD = "Tr0ub4dor9"
KEY = "sk-ant-api03-" + "aB3" * 30
SAYS = f"The queue is redis://jobs:{PASSWORD}@cache:6379/0 in production."
CALL = {"id": "c1", "name": "Bash", "arguments": json.dumps({"command": f'KEY="{KEY}" ./run'})}


def store_secrets(cli, redact):
    """Store a question with a password, and a tool call and a title with a key."""
    env = {"RESERVOIR_REDACT": redact}
    typed = cli("ingest", "--no-embed", stdin=SAYS, env=env)
    rows = [
        {"role": "assistant", "content": "I look at the queue.", "tool_calls": [CALL]},
        {"role": "tool", "content": f"logged in with {KEY}", "tool_call_id": "c1"},
        {"role": "user", "content": "Is the queue empty?"},
    ]
    conversation = {"conversation": {"title": f"Queue with {KEY}", "source": "test", "model": None}}
    file = cli.home / "rows.jsonl"
    lines = [
        json.dumps(
            {"partition": "default", "instance": "default", "source": "t", "source_id": str(number)}
            | {"conversation_id": "c", "created_at": "2026-05-09T14:00:00Z"}
            | row
            | conversation
        )
        for number, row in enumerate(rows)
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    imported = cli("ingest", "--no-embed", "--json", str(file), env=env)
    return typed, imported


READS = [
    ("view", "0"),
    ("view", "0", "--json"),
    ("view", "0", "--jsonl"),
    ("view", "--id", "1"),
    ("search", "queue"),
    ("search", "queue", "--keyword", "--link", "--json"),
    ("search", "queue", "--explain"),
    ("context", "the queue"),
    ("context", "the queue", "--format", "json", "--explain"),
    ("context", "the queue", "--explain"),
    ("context", "the queue", "--format", "openai"),
    ("context", "the queue", "--format", "anthropic"),
    ("export",),
    ("export", "--json"),
    ("export", "--format", "openai"),
    ("export", "--format", "anthropic"),
    ("export", "--format", "sharegpt"),
    ("export", "--format", "markdown"),
    ("conversations",),
    ("conversations", "--json"),
    ("forget", "--scope", "--dry-run"),
    ("stats",),
    ("doctor",),
]


def test_by_default_secrets_are_stored_and_marked(cli):
    typed, imported = store_secrets(cli, "mark")
    assert "1 secret (password-in-url) marked" in typed.err
    assert "2 secrets (anthropic-key 2) marked" in imported.err
    assert imported.document["secrets"] == {"anthropic-key": 2}
    rows = cli.rows()
    assert rows[-1]["content"] == SAYS
    assert rows[-1]["secrets"] == ["password-in-url"]
    assert [row.get("secrets") for row in rows[:3]] == [["anthropic-key"]] * 2 + [None]
    assert len(cli.rows("--secrets")) == 3


def test_a_context_reports_how_many_messages_hold_secrets(cli):
    store_secrets(cli, "mark")
    result = cli("context", "the queue")
    assert "note: secrets in 3 messages printed as they are" in result.err
    assert PASSWORD in result.out
    masked = cli("context", "the queue", env={"RESERVOIR_REDACT": "mask"})
    assert "note: secrets in 3 messages masked" in masked.err


def test_masked_secrets_are_never_printed(cli):
    store_secrets(cli, "mark")
    cli.env["RESERVOIR_REDACT"] = "mask"
    for command in READS:
        shown = cli(*command)
        assert PASSWORD not in shown.out + shown.err, command
        assert KEY not in shown.out + shown.err, command
        if command[0] not in ("stats", "doctor"):
            assert "[redacted:" in shown.out, command


def store_secret_names(cli, redact):
    """Store a tool call and its result with a key in names, ids, and their conversation."""
    fields = {"conversation_id": f"c-{KEY}", "trace_id": f"t-{KEY}", "name": f"bot {KEY}"}
    fields |= {"conversation": {"title": f"Queue {KEY}", "source": KEY, "model": KEY}}
    fields |= {"partition": "default", "instance": "default", "source": f"s-{KEY}"}
    call = {"id": f"id_{KEY}", "name": f"run_{KEY}", "arguments": "{}"}
    rows = [
        {"role": "user", "content": "Is the queue empty?", "source_id": f"1-{KEY}"}
        | {"tags": [f"tag {KEY}"]},
        {"role": "assistant", "content": "I look.", "source_id": f"2-{KEY}", "tool_calls": [call]},
        {"role": "tool", "content": "yes", "source_id": f"3-{KEY}", "tool_call_id": call["id"]},
    ]
    cli.home.mkdir(exist_ok=True)
    file = cli.home / "names.jsonl"
    file.write_text("\n".join(json.dumps(row | fields) for row in rows), encoding="utf-8")
    return cli("ingest", "--no-embed", str(file), env={"RESERVOIR_REDACT": redact})


def test_masked_secrets_are_not_in_printed_names_ids_or_titles(cli):
    store_secret_names(cli, "mark")
    for mode in ("mask", "remove"):
        cli.env["RESERVOIR_REDACT"] = mode
        for command in READS:
            if command != ("view", "--id", "1"):
                shown = cli(*command)
                assert KEY not in shown.out + shown.err, command
    assert len({row["source_id"] for row in cli.rows()}) == 3
    [caller, result] = [row for row in cli.rows() if row["tool_calls"] or row["tool_call_id"]]
    assert caller["tool_calls"][0]["id"] == result["tool_call_id"]


def test_a_masked_id_of_a_conversation_works_as_its_id(cli):
    store_secret_names(cli, "mark")
    cli.env["RESERVOIR_REDACT"] = "mask"
    [row] = cli("conversations", "--json").document["conversations"]
    shown = row["id"]
    assert shown.startswith("redacted-")
    for typed in (shown, shown[:14], f"c-{KEY[:20]}"):
        assert len(cli.rows("--conversation", typed)) == 3
    exported = cli("export", "--conversation", shown)
    assert len(exported.out.splitlines()) == 3
    assert len(cli.rows("--trace-id", cli.rows()[0]["trace_id"])) == 3
    around = cli("view", "--around", "2", "--json").document["messages"]
    assert [message["id"] for message in around] == [1, 2, 3]
    deleted = cli("forget", "--conversation", f"c-{KEY[:20]}", "--yes")
    assert KEY not in deleted.out + deleted.err
    assert cli.rows() == []


def test_removed_secrets_are_not_in_stored_names_or_ids_and_stay_forgotten(cli):
    assert "imported 3" in store_secret_names(cli, "remove").err
    assert "already there 3" in store_secret_names(cli, "remove").err
    assert KEY not in cli("export", env={"RESERVOIR_REDACT": "off"}).out
    cli("forget", "--scope", "--yes")
    store_secret_names(cli, "remove")
    assert cli.rows() == []


def test_remove_masks_stored_secrets_and_reports_how_many(cli):
    store_secrets(cli, "mask")
    changed = cli("config", "--set", "redact=remove")
    assert "3 stored messages contain secrets" in changed.err
    for command in READS:
        shown = cli(*command)
        assert PASSWORD not in shown.out + shown.err, command
        assert KEY not in shown.out + shown.err, command
    assert "found in 3 messages" in cli("doctor").out


def test_masked_secrets_are_not_shown_on_a_terminal(cli):
    store_secrets(cli, "mark")
    for command in (("view", "0"), ("search", "queue"), ("context", "the queue", "--explain")):
        shown = cli.on_terminal(
            *command, streams=("stdout", "stderr"), env={"RESERVOIR_REDACT": "mask"}
        )
        assert "[redacted:" in shown.out, command
        assert PASSWORD not in shown.out, command
        assert KEY not in shown.out, command


def test_masking_does_not_need_marks(cli):
    store_secrets(cli, "off")
    assert cli.rows("--secrets") == []
    assert PASSWORD in cli("view", "0").out
    assert PASSWORD not in cli("view", "0", env={"RESERVOIR_REDACT": "mask"}).out


def test_masked_text_is_counted_as_printed(cli):
    long = "-----BEGIN RSA PRIVATE KEY-----\n" + "aB3d" * 800 + "\n-----END RSA PRIVATE KEY-----"
    cli.say(f"the key of the queue is {long}")
    tight = ("context", "the queue", "--budget", "120")
    assert "the key of the queue" not in cli(*tight).out
    masked = cli(*tight, env={"RESERVOIR_REDACT": "mask"})
    assert "the key of the queue is [redacted:private-key]" in masked.out


def test_an_export_says_that_it_is_masked(cli):
    store_secrets(cli, "mask")
    masked = cli("export", env={"RESERVOIR_REDACT": "mask"})
    assert "secrets in 3 messages are masked" in masked.err
    whole = cli("export", env={"RESERVOIR_REDACT": "mark"})
    assert KEY in whole.out
    assert "masked" not in whole.err


def test_removed_secrets_are_in_no_file_of_the_store(cli):
    typed, imported = store_secrets(cli, "remove")
    assert "1 secret (password-in-url) removed" in typed.err
    assert "2 secrets (anthropic-key 2) removed" in imported.err
    cli("search", "queue")
    (cli.home / "rows.jsonl").unlink()
    for secret in (PASSWORD, KEY):
        matches = subprocess.run(["grep", "-ral", secret, str(cli.home)], capture_output=True)
        assert matches.returncode == 1, matches.stdout
    rows = cli.rows()
    assert rows[-1]["content"] == SAYS.replace(PASSWORD, "[redacted:password-in-url]")
    assert json.loads(rows[0]["tool_calls"][0]["arguments"]) == {
        "command": 'KEY="[redacted:anthropic-key]" ./run'
    }
    assert not any("secrets" in row for row in rows)


def test_importing_a_message_with_a_removed_secret_again_adds_nothing(cli):
    store_secrets(cli, "remove")
    second = cli("ingest", "--no-embed", str(cli.home / "rows.jsonl"))
    assert "imported 0, already there 3" in second.err
    assert "secret" not in second.err


def test_a_dry_run_reports_secrets(cli):
    store_secrets(cli, "remove")
    file = cli.home / "note.txt"
    file.write_text(f"key {KEY}", encoding="utf-8")
    assert "1 secret (anthropic-key)" in cli("ingest", "--dry-run", str(file)).err


def test_a_partition_may_have_its_own_redact_setting(cli):
    cli("config", "--set", "partitions.work.redact=remove")
    cli.say(SAYS, "-p", "work")
    cli.say(SAYS, "-p", "home")
    assert PASSWORD not in cli("view", "-p", "work").out
    assert PASSWORD in cli("view", "-p", "home").out


def test_the_advice_matches_the_effective_setting(cli):
    cli("config", "--set", "partitions.work.redact=mark")
    typed = cli("ingest", "--no-embed", "-p", "work", stdin=SAYS)
    assert "config set partitions.work.redact=mask" in typed.err
    assert "config set partitions.work.redact=mask" in cli("context", "queue", "-p", "work").err
    assert "config set redact=mask" in cli("ingest", "--no-embed", stdin=SAYS).err


def test_a_saved_question_is_scanned_too(cli):
    result = cli("context", SAYS, "--save", env={"RESERVOIR_REDACT": "remove"})
    assert "1 secret (password-in-url) removed" in result.err
    assert PASSWORD not in cli("view").out


def test_doctor_counts_marked_messages_and_repair_marks_older_ones(cli):
    store_secrets(cli, "off")
    assert not [check for check in doctor(cli) if check["name"] == "secrets"]
    cli("doctor", "--repair")
    assert [check["detail"] for check in doctor(cli) if check["name"] == "secrets"] == [
        "found in 3 messages"
    ]
    assert len(cli.rows("--secrets")) == 3


def doctor(cli):
    return cli("doctor", "--json").document["checks"]


def test_a_note_names_the_command_that_shows_messages_with_secrets(cli):
    file = cli.home.parent / "note.txt"
    file.write_text(SAYS, encoding="utf-8")
    for options, scope in (
        (["-p", "my work"], "-p 'my work'"),
        ([str(file)], "--all-partitions"),
        ([str(file), "-p", "notes"], "-p notes"),
    ):
        notes = cli("ingest", "--no-embed", *options, stdin=SAYS).err
        command = f"reservoir view 0 --secrets {scope}"
        assert f"; see them with: {command}\n" in notes
        assert PASSWORD in cli.shell(command).out
    masked = cli("ingest", "--no-embed", stdin=SAYS, env={"RESERVOIR_REDACT": "mask"}).err
    assert " masked in output; see the messages with: reservoir view 0 --secrets" in masked
    assert "see them" not in cli("ingest", "--dry-run", str(file), "-p", "other").err
    removed = cli("ingest", "--no-embed", stdin=SAYS, env={"RESERVOIR_REDACT": "remove"})
    assert "see them" not in removed.err


def test_an_invalid_redact_setting_is_refused(cli):
    result = cli("config", "--set", "redact=hide", code=2)
    assert "must be one of off, mark, mask, remove" in result.err


def test_the_suggested_command_to_mask_a_partition_works(cli):
    cli("config", "--set", """partitions."it's a/b".redact=mark""")
    typed = cli("ingest", "--no-embed", "-p", "it's a/b", stdin=SAYS)
    command = typed.err.partition("marked; ")[2].partition(" hides them")[0]
    cli.shell(command)
    assert PASSWORD not in cli("view", "-p", "it's a/b").out


def test_removed_secrets_are_in_no_tag(cli):
    cli.say("What is in the queue?")
    tagged = cli("tag", "1", KEY, "jobs", env={"RESERVOIR_REDACT": "remove"})
    assert KEY not in tagged.out + tagged.err
    assert cli.rows()[0]["tags"] == ["[redacted:anthropic-key]", "jobs"]
    cli("untag", "1", "[redacted:anthropic-key]")
    assert cli.rows()[0]["tags"] == ["jobs"]


def test_notes_and_completion_name_no_tag_with_a_secret(cli):
    cli.say("hello")
    cli("tag", "1", KEY, "queue")
    note = cli("view", "--tag", "nothing").err
    assert "queue" in note
    completed = cli("view", "--tag", "", env={"_RESERVOIR_COMPLETE": "zsh"}).out
    assert completed.split() == ["queue"]
    assert KEY not in note + completed
