"""Import histories of other tools by ``ingest``, and resume killed imports."""

import json
import shutil
import sqlite3
import subprocess
import time
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from reservoir_cli.transfer.formats.registry import importers

#: How many messages a killed import has.
MANY = 5_000
HISTORIES = Path(__file__).parents[1] / "unit" / "transfer" / "formats" / "samples"


def zipped(path, *names):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.write(HISTORIES / name, "export/conversations.json")
        archive.writestr("export/user.json", "{}")
    return path


def test_an_export_is_stored_in_the_instance_of_its_tool(cli, tmp_path):
    result = cli("ingest", "--no-embed", str(zipped(tmp_path / "export.zip", "chatgpt.json")))
    first, *notes = result.err.splitlines()
    assert result.out == ""
    assert first == "imported 10, already there 0, skipped 4"
    assert (
        len([name for name in notes if "export.zip/export/conversations.json, entry" in name]) == 4
    )
    assert "note: 1 other file ignored: user.json" in notes
    assert any(note.startswith("note: 1 time could not be read") for note in notes)
    assert not cli.rows("-i", "default")
    rows = cli.rows("-i", "chatgpt")
    assert len(rows) == 10
    assert rows[0]["content"].startswith("[file schedule.pdf]")
    assert {row["source"] for row in rows} == {"chatgpt"}


def test_a_partition_and_an_instance_can_be_given(cli):
    sample = str(HISTORIES / "claude.json")
    cli("ingest", "--no-embed", "-p", "work", sample)
    assert len(cli.rows("-p", "work", "-i", "claude")) == 10
    cli("ingest", "--no-embed", "-p", "work", "-i", "old", sample)
    assert len(cli.rows("-p", "work", "-i", "old")) == 10


@pytest.mark.parametrize("form", ["text", "openai", "anthropic"])
def test_thinking_is_kept_and_never_sent(cli, form):
    cli("ingest", "--no-embed", str(HISTORIES / "claude.json"))
    thought = "They want FOR UPDATE SKIP LOCKED."
    rows = cli.rows("-i", "claude")
    assert [row["content"] for row in rows if row["name"] == "thinking"] == [thought]
    options = ("-i", "claude", "--format", form, "--budget", "4000", "--model", "gpt-4o")
    context = cli("context", "What do they want with skip locked?", *options).out
    assert "Let me look." in context
    assert "web_search" in context
    assert "They want" not in context


def test_a_continued_conversation_is_extended(cli, tmp_path):
    lines = (HISTORIES / "claude-code.jsonl").read_text(encoding="utf-8").splitlines(True)
    file = tmp_path / "5e55.jsonl"
    file.write_text("".join(lines[:4]), encoding="utf-8")
    assert "imported 1," in cli("ingest", "--no-embed", str(file)).err
    file.write_text("".join(lines), encoding="utf-8")
    assert "imported 10, already there 1," in cli("ingest", "--no-embed", str(file)).err
    question, reply, *_ = cli.rows("-i", "claude-code")
    assert (question["role"], reply["role"]) == ("user", "assistant")
    assert question["trace_id"] == reply["trace_id"]
    assert question["conversation_id"] == reply["conversation_id"] == "5e55"


def test_a_dry_run_reports_the_import_and_creates_no_store(cli):
    sample = str(HISTORIES / "codex.jsonl")
    result = cli("ingest", "--dry-run", sample)
    assert result.out == ""
    assert result.err.startswith("would import 7, already there 0, skipped 5\n")
    assert not cli.db.exists()
    cli("ingest", "--no-embed", sample)
    before = cli.rows()
    document = cli("ingest", "--dry-run", "--json", sample, str(HISTORIES / "note.md")).document
    assert document["dry_run"] is True
    assert (document["imported"], document["already_there"], document["skipped"]) == (1, 7, 5)
    assert cli.rows() == before


def test_a_dry_run_is_for_files(cli):
    cli("ingest", "--dry-run", stdin="x", code=2)


def test_an_unreadable_file_fails_and_the_others_are_imported(cli, tmp_path):
    torn = tmp_path / "torn.json"
    torn.write_text('[{"mapping": {', encoding="utf-8")
    note = str(HISTORIES / "note.txt")
    result = cli("ingest", "--no-embed", str(torn), note, code=1)
    assert result.err.startswith("imported 1, already there 0, skipped 1\n")
    problem = f"no message could be read from {torn}"
    hint = "the lines above give the reasons; export it again, or repair the file"
    assert result.err.endswith(f"error: {problem}\nhint: {hint}\n")
    assert len(cli.rows()) == 1
    document = cli("ingest", "--no-embed", "--json", str(torn), note, code=1).document
    assert document["unreadable"] == [str(torn)]
    assert (document["error"]["message"], document["error"]["exit_code"]) == (problem, 1)


@pytest.mark.parametrize("text", ["", "\n", "[]"])
def test_an_empty_file_is_not_an_error(cli, tmp_path, text):
    file = tmp_path / "empty.json"
    file.write_text(text, encoding="utf-8")
    result = cli("ingest", "--no-embed", str(file))
    assert "nothing to ingest" in result.err


def test_reasons_and_errors_quote_no_message_text(cli, tmp_path):
    secret = "sup3rsecret"
    document = [
        {"mapping": {secret: {"message": {"author": {"role": secret}, "content": secret}}}},
        {"mapping": secret, "title": secret},
        secret,
    ]
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps(document) + secret, encoding="utf-8")
    result = cli("ingest", "--no-embed", str(file), code=1, env={"RESERVOIR_DEBUG": "1"})
    assert "skipped 4" in result.err
    assert secret not in result.err


def test_a_zip_can_come_from_stdin_if_its_format_is_named(cli, tmp_path):
    data = zipped(tmp_path / "export.zip", "claude.json").read_bytes()
    result = cli("ingest", "--no-embed", "--format", "claude", stdin=data)
    assert result.err.startswith("imported 10, already there 0, skipped 4\n")


def test_the_help_names_every_format(cli):
    help_text = " ".join(cli("ingest", "--help").out.split())
    assert all(name in help_text for name in importers())


def many(path, count):
    """Return an export with this many messages, which takes several batches."""
    path.write_text(
        "".join(
            json.dumps({"role": "user", "content": f"message {number}"}) + "\n"
            for number in range(count)
        ),
        encoding="utf-8",
    )
    return str(path)


def chats(path, count):
    talk = [
        {
            "uuid": f"c{number}",
            "name": f"title {number}",
            "created_at": "2026-05-01T10:00:00Z",
            "chat_messages": [
                {
                    "uuid": f"m{number}-{index}",
                    "sender": sender,
                    "text": f"{number} {index}",
                    "content": [],
                }
                for index, sender in enumerate(("human", "assistant"))
            ],
        }
        for number in range(count // 2)
    ]
    path.write_text(json.dumps(talk), encoding="utf-8")
    return str(path)


def killed_at(count, cli, file):
    """Kill an import when it has stored this many messages; return how many are then stored."""
    running = cli.start("ingest", "--no-embed", file, stderr=subprocess.DEVNULL)
    while running.poll() is None and stored(cli.db) < count:
        time.sleep(0.005)
    running.kill()
    running.wait()
    return stored(cli.db)


def comparable(cli):
    """Return rows without ids: ids may have gaps where messages existed already."""
    return [{**row, "id": 0} for row in cli.rows("-i", "claude")]


def test_an_import_that_is_killed_twice_and_run_again_equals_an_uninterrupted_one(
    cli, new_cli, tmp_path
):
    file = chats(tmp_path / "conversations.json", MANY)
    whole = new_cli(tmp_path / "uninterrupted" / "home")
    whole.home.parent.mkdir()
    whole("ingest", "--no-embed", file)
    for _ in range(20):  # on a loaded machine the import may finish before the kill
        kills = [killed_at(count, cli, file) for count in (1_000, 3_000)]
        if kills[-1] < MANY:
            break
        shutil.rmtree(cli.home)
    assert 1_000 <= kills[0] < MANY
    assert 3_000 <= kills[1] < MANY
    assert [imported % 1_000 for imported in kills] == [0, 0]
    result = cli("ingest", "--no-embed", file)
    assert f"imported {MANY - kills[1]:,}, already there {kills[1]:,}," in result.err
    assert comparable(cli) == comparable(whole)
    assert titles(cli.db) == titles(whole.db)


def stored(db):
    try:
        with closing(sqlite3.connect(f"{db.as_uri()}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT count(*) FROM messages").fetchone()[0]
    except sqlite3.Error:
        return 0


def titles(db):
    with closing(sqlite3.connect(db)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return sorted(connection.execute("SELECT id, title FROM conversations"))


def test_on_a_terminal_progress_is_shown(cli, tmp_path):
    file = many(tmp_path / "chat.jsonl", 1_500)
    shown = cli.on_terminal("ingest", "--no-embed", file, streams=("stderr",))
    assert shown.code == 0
    assert "reading" in shown.err
    assert "imported 1,500" in shown.err


def test_a_write_ahead_log_in_a_read_only_folder_is_reported(cli, as_owner, tmp_path):
    folder = tmp_path / "backup"
    folder.mkdir()
    original, path = tmp_path / "opencode.db", folder / "opencode.db"
    with closing(sqlite3.connect(original)) as database:
        database.executescript(
            (HISTORIES.parent / "dumps/opencode.sql").read_text(encoding="utf-8")
        )
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("UPDATE session SET title = 'Another'")
        database.commit()
        for suffix in ("", "-wal"):
            shutil.copy(f"{original}{suffix}", f"{path}{suffix}")
    folder.chmod(0o500)
    try:
        command = (*as_owner, "reservoir")
        result = cli("ingest", "--no-embed", str(path), command=command)
    finally:
        folder.chmod(0o700)
    assert "its write-ahead log: SQLite reads it only in a writable folder" in result.err
    assert cli.rows()
