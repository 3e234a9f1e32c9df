"""``reservoir sync`` as users, hooks and timers run it."""

import json
import os
import plistlib
import re
import shutil
import signal
import sqlite3
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import pytest

from reservoir_cli.cli.commands import sync
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.transfer.sync.history_sources import Source
from reservoir_cli.transfer.sync.sync_reports import SourceReport

SAMPLES = Path(__file__).parents[1] / "unit" / "transfer" / "formats" / "samples"


@pytest.fixture
def machine(cli, tmp_path):
    """Return a home with a session of Claude Code and one of Codex."""
    home = tmp_path / "person"
    claude, codex = home / ".claude/projects/-src", home / ".codex/sessions/2026/05/09"
    for folder in (claude, codex):
        folder.mkdir(parents=True)
    shutil.copy(SAMPLES / "claude-code.jsonl", claude / "5e55.jsonl")
    shutil.copy(SAMPLES / "codex.jsonl", codex / "rollout-1.jsonl")
    cli.env["HOME"] = str(home)
    return cli


def session(machine):
    return Path(machine.env["HOME"], ".claude/projects/-src/new.jsonl")


def say(machine, number, *, kind="user", **fields):
    """Append a line to a session."""
    line = {
        "type": kind,
        "uuid": f"n{number}",
        "sessionId": "new",
        "timestamp": f"2026-06-02T10:00:{number:02}.000Z",
        "message": {"role": kind, "content": f"message {number}", **fields},
    }
    with session(machine).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def turn(machine, number):
    say(machine, number)
    say(machine, number + 1, kind="assistant", id=f"m{number}", stop_reason="end_turn")


def test_a_sync_needs_no_folder_for_its_lock(machine, tmp_path):
    machine.home.mkdir()
    (machine.home / "cache").symlink_to(tmp_path / "missing" / "folder")
    assert "claude-code: imported" in machine("sync", "claude-code", "--no-embed").err


def test_without_a_terminal_sources_and_a_summary_are_printed(machine):
    first = machine("sync", "--no-embed")
    assert first.out == ""
    assert re.search(
        r"codex: imported \d+, already there 0, skipped \d+; 1 of 1 file read", first.err
    )
    assert not (machine.home / "reservoir.toml").exists()
    turn(machine, 1)
    document = machine("sync", "claude-code", "--no-embed", "--json").document
    [source] = document["sources"]
    assert document["schema_version"] == 1
    assert (source["source"], source["files"], source["read"]) == ("claude-code", 2, 1)
    assert (source["imported"], source["already"], source["skipped"]) == (2, 0, 0)


def test_skipped_entries_are_named_once_with_their_reasons(machine):
    turn(machine, 1)
    with session(machine).open("a", encoding="utf-8") as file:
        file.write("a secret thought\n")
    turn(machine, 3)
    shown = machine("sync", "--no-embed").err
    assert f"  {session(machine)}, line 3: not valid JSON\n" in shown
    assert "secret" not in shown
    turn(machine, 5)
    assert "line 3" not in machine("sync", "--no-embed").err
    with session(machine).open("a", encoding="utf-8") as file:
        file.write("another\n")
    turn(machine, 7)
    assert machine("sync", "--no-embed", "--quiet").err == ""


def test_on_a_terminal_it_asks_and_remembers_the_answer(machine):
    refused = machine.talk("sync", "--no-embed", answers=[("Import new messages", "n\n")])
    assert refused.code == 1
    assert not machine.db.exists() or machine.rows() == []
    result = machine.talk("sync", "--no-embed", answers=[("Import new messages", "\n")])
    assert result.code == 0
    assert "codex: ~/.codex/sessions, to partition default" in result.out
    assert machine("config", "--get", "sources.codex.path").out == "~/.codex/sessions\n"
    second = machine.talk("sync", "--no-embed", answers=[])
    assert "imported 0" in second.out


@pytest.mark.model
def test_a_hook_compiles_no_model(new_cli, tmp_path):
    home = new_cli(tmp_path / "home", model=True)
    home.env["HOME"] = str(tmp_path)
    folder = tmp_path / ".claude/projects/-src"
    folder.mkdir(parents=True)
    shutil.copy(SAMPLES / "claude-code.jsonl", folder / "5e55.jsonl")
    home("config", "set", f"sources.claude-code.path={folder}")
    result = home("sync", "--quiet")
    assert "stored, but not embedded: the embedding model" in result.err
    assert "is not compiled" in result.err
    assert home.rows()
    assert not (home.home / "cache" / "models").exists()


def test_a_hook_creates_no_store_on_a_disk_that_is_not_there(machine, tmp_path):
    machine("config", "set", f"sources.codex.path={machine.env['HOME']}/.codex/sessions")
    store = tmp_path / "disk" / "r.db"
    elsewhere = {"RESERVOIR_DB": str(store)}
    refused = machine("sync", "--quiet", "--no-embed", env=elsewhere, code=3).err
    assert f"error: there is no store at {store}\n" in refused
    assert f"warning: there is no store at {store}\n" in machine("view", "1", env=elsewhere).err
    assert not store.parent.exists()
    assert "imported 6" in machine("sync", "--no-embed", env=elsewhere).err
    assert store.exists()


def test_a_hook_reads_only_sources_of_the_settings(machine):
    assert machine("sync", "--quiet", "--no-embed").err == ""
    assert machine.rows() == []
    folder = machine.env["HOME"] + "/.codex/sessions"
    machine("config", "--set", f"sources.codex.path={folder}")
    machine("config", "--set", "sources.codex.exclude=~/diary, /tmp/x")
    assert machine("sync", "--quiet", "--no-embed").err == ""
    assert {row["source"] for row in machine.rows()} == {"codex"}
    assert machine("config", "--get", "sources.codex.exclude").out == "~/diary, /tmp/x\n"
    assert '"~/diary"' in (machine.home / "reservoir.toml").read_text()


@pytest.mark.parametrize("exclude", [[], ["sources.codex.exclude=~/diary"]])
def test_forgotten_messages_stay_out_and_the_way_back_is_named(machine, exclude):
    folder = machine.env["HOME"] + "/.codex/sessions"
    machine("config", "set", f"sources.codex.path={folder}", *exclude)
    (log,) = Path(folder).rglob("rollout-1.jsonl")
    os.utime(log, (1, 1))
    machine("sync", "--no-embed")
    machine("forget", "--scope", "-i", "codex", "--yes")
    os.utime(log, (2, 2))
    shown = machine("sync", "--no-embed").err
    note = "note: codex: forgotten or edited earlier, and not imported: 7 messages"
    # An import of the folder would not leave out what the source excludes.
    command = f"reservoir ingest --include-forgotten --format codex -p default {folder}"
    assert (f"{note}\n" if exclude else f"{note}; {command} imports them\n") in shown
    assert machine.rows() == []


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ('[sources.x]\ntool = "nothing"\npath = "/a"\n', "unknown tool 'nothing'"),
        (
            '[sources.codex]\npath = "~nobody-is-called-so/a"\n',
            "there is no home folder for ~nobody",
        ),
        ('[sources.mine]\ntool = "chatgpt"\n', "has no path"),
        ('[sources.codex]\npath = "/a"\nfolder = "b"\n', "unknown setting 'folder'"),
        ('[sources.codex]\npath = "/a"\nexclude = 3\n', "must be a list of strings"),
        ('[sources.codex]\npartition = "a\\u001b"\n', "sources.codex.partition cannot contain"),
    ],
)
def test_wrong_sources_are_named(cli, settings, complaint):
    cli.home.mkdir(parents=True, exist_ok=True)
    (cli.home / "reservoir.toml").write_text(settings, encoding="utf-8")
    assert complaint in cli("sync", "--no-embed", code=2).err


def test_the_command_for_a_source_without_a_path_is_quoted(cli):
    cli.home.mkdir(parents=True, exist_ok=True)
    settings = '[sources."$(touch x)"]\ntool = "chatgpt"\n'
    (cli.home / "reservoir.toml").write_text(settings, encoding="utf-8")
    hint = "reservoir config set 'sources.$(touch x)'.path=FOLDER\n"
    assert hint in cli("sync", "--no-embed", code=2).err


def test_a_wrong_source_does_not_keep_the_others_from_being_read(machine):
    folder = machine.env["HOME"] + "/.codex/sessions"
    machine("config", "set", "sources.foo.path=/nosuch", f"sources.codex.path={folder}")
    result = machine("sync", "--no-embed", code=2)
    assert "warning: [sources.foo] in " in result.err
    assert "unknown tool 'foo'; tools are " in result.err
    assert {row["source"] for row in machine.rows()} == {"codex"}
    assert "foo" not in machine("sync", "codex", "--no-embed").err
    assert "error: [sources.foo]" in machine("sync", "foo", "--no-embed", code=2).err


@pytest.mark.parametrize("wrong", ["path = 5", 'path = ""', 'path = "/a"\nexlude = ["/b"]'])
def test_a_wrong_source_stops_no_other_command(machine, wrong):
    machine("config", "set", f"sources.codex.path={machine.env['HOME']}/.codex/sessions")
    settings = machine.home / "reservoir.toml"
    settings.write_text(f"{settings.read_text()}\n[sources.claude-code]\n{wrong}\n")
    assert "warning: " in machine("sync", "--no-embed", code=2).err
    assert {row["source"] for row in machine.rows()} == {"codex"}
    machine("config", "set", "sources.codex.partition=work")
    assert wrong in settings.read_text()
    machine("config", "unset", "sources.claude-code")
    assert machine("sync", "--no-embed").err.startswith("codex: ")


def test_tools_may_be_left_out_by_name_before_the_first_init(machine):
    home = Path(machine.env["HOME"])
    log = home / ".config/io.datasette.llm/logs.db"
    log.parent.mkdir(parents=True)
    for unread in (*home.rglob("5e55.jsonl"), log):
        unread.write_text("a diary that nobody reads", encoding="utf-8")
    machine("config", "set", "sources.claude-code.exclude=*", "sources.llm.exclude=*")
    for _ in range(2):
        shown = machine("init", "--yes", "--no-embed").err
        left_out = shown.split("left out, because exclude in the settings covers it:\n")[1]
        assert re.findall(r"(?m)^  (.*?): ", left_out) == ["Claude Code", "llm"]
        (partition,) = machine("partitions", "--json").document["partitions"]
        assert partition["instance"] == "codex"
    again = machine("sync", "--no-embed").err
    assert again.count("left out by exclude\n") == 2
    assert "no path" not in machine("doctor", code=None).out


def test_a_source_without_a_path_is_read_where_its_tool_writes(machine):
    machine("config", "set", "sources.codex.partition=work")
    assert "codex: imported 6" in machine("sync", "--no-embed").err
    assert {row["source"] for row in machine.rows("-p", "work")} == {"codex"}
    (machine.home / "reservoir.toml").unlink()
    machine("config", "set", "sources.codex.exclude=*", "sources.llm.exclude=*")
    assert "codex: " not in machine("sync", "--no-embed").err
    assert {row["source"] for row in machine.rows()} == {"claude-code"}


def test_an_unknown_source_is_refused(machine):
    result = machine("sync", "chatgpt", code=2)
    assert "there is no source 'chatgpt'" in result.err
    assert "claude-code, codex" in result.err
    assert "hint: did you mean claude-code? " in machine("sync", "claude", code=2).err


def test_a_file_that_cannot_be_read_is_named(cli, tmp_path):
    log = tmp_path / "logs.db"
    log.write_bytes(b"SQLite format 3\0" + b"damaged" * 100)
    cli("config", "--set", f"sources.llm.path={log}")
    result = cli("sync", "--no-embed", code=1)
    assert "damaged" in result.err


def test_a_source_that_does_not_exist_is_a_warning(machine):
    missing, claude = Path(machine.env["HOME"], "gone"), session(machine).parents[1]
    machine("config", "set", f"sources.codex.path={missing}", f"sources.claude-code.path={claude}")
    fix = "reservoir config set sources.codex.path=FOLDER, or reservoir config unset sources.codex"
    warning = f"warning: the source codex does not exist: {missing}; {fix}\n"
    for words in (["sync"], ["sync", "codex", "--quiet"]):
        assert machine(*words, "--no-embed").err.count(warning) == 1
    assert "warning" not in machine("sync", "claude-code", "--no-embed").err
    machine("config", "unset", "sources.codex")
    assert "warning" not in machine("sync", "--no-embed").err


def test_a_concurrent_sync_ends_immediately_with_a_note(machine):
    fcntl = pytest.importorskip("fcntl")
    machine("sync", "--no-embed")
    [lock] = (machine.home / "cache").glob("sync-*.lock")
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        result = machine("sync", "--no-embed", "--json")
    assert "another sync of this store is running" in result.err
    assert result.document["busy"] is True


def test_watch_shows_new_messages_and_ends_on_an_interrupt(machine):
    process = machine.start(
        "sync", "--watch", "--no-embed", stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    watchdog = threading.Timer(300, process.kill)
    watchdog.start()
    try:
        lines = []
        while not lines or "codex: imported" not in lines[-1]:
            lines.append(process.stderr.readline().decode())
            assert lines[-1], lines
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=120)[1].decode()
        assert process.returncode == 130
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        process.stderr.close()
    assert re.match(r"\d\d:\d\d:\d\d codex: imported", lines[-1])
    assert "Traceback" not in rest


def test_watch_goes_on_after_a_lock_and_reports_each_failure_once(tmp_path, monkeypatch, capsys):
    path, log = tmp_path / "store.db", tmp_path / "log"
    log.mkdir()
    shutil.copy(SAMPLES / "claude-code.jsonl", log / "a.jsonl")
    sources = [
        Source("claude", "claude-code", log, "p"),
        Source("codex", "codex", tmp_path / "absent", "p"),
    ]
    rounds = []
    with (
        Reservoir.open(path, patience=0.01) as reservoir,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        real = reservoir.sync

        def sync_with_a_failure(*arguments, **options):
            report = real(*arguments, **options)
            if len(rounds) > 2:
                report.sources[1].failures.append("cannot read b.jsonl: denied")
            return report

        def end_round(_):
            rounds.append(capsys.readouterr().err)
            if len(rounds) == 2:
                other.execute("ROLLBACK")
            if len(rounds) == 5:
                raise KeyboardInterrupt

        monkeypatch.setattr(reservoir, "sync", sync_with_a_failure)
        monkeypatch.setattr(sync, "sleep", end_round)
        with pytest.raises(KeyboardInterrupt):
            sync._watch(reservoir, sources, embed=False, as_json=False)
    assert "locked by another process; trying again every 30 seconds" in rounds[0]
    assert "claude: imported" in rounds[2]
    assert "codex" not in rounds[2]
    assert "cannot read b.jsonl: denied" in rounds[3]
    assert rounds[1] == rounds[4] == ""


def test_files_that_cannot_be_read_are_logged_if_nobody_sees_the_warning(tmp_path, monkeypatch):
    monkeypatch.setenv("RESERVOIR_HOME", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["reservoir", "sync", "--quiet"])
    report = SourceReport(Source("codex", "codex", tmp_path, "p"), failures=["cannot read b.jsonl"])
    stderr, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        sync._print_source(report)
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(null)
    log = (tmp_path / "reservoir.log").read_text(encoding="utf-8")
    assert log.endswith('WARNING sync: "cannot read b.jsonl"\n')


def test_timers_are_printed_with_absolute_paths(machine):
    result = machine("--db", "my store.db", "sync", "--timer")
    assert "OnUnitInactiveSec=10min" in result.out
    [command] = re.findall(r"(?m)^ExecStart=(.*)$", result.out)
    assert command.startswith("/")
    assert command.endswith("my store.db' sync --quiet")
    plist = plistlib.loads(result.out[result.out.index("<?xml") :].encode())
    assert plist["ProgramArguments"][-2:] == ["sync", "--quiet"]
    assert Path(plist["ProgramArguments"][0]).is_absolute()
    printed = machine("sync", "--timer", "--json").document["launchd"]
    assert printed.startswith("<?xml")  # nothing may stand before it
    assert not machine.home.exists() or not machine.db.exists()


def test_systemd_substitutes_nothing_in_the_paths_of_a_timer(machine):
    done = machine("--db", r"a\tb $HOME ${HOME} %h.db", "sync", "--timer")
    assert r"/a\\tb $$HOME $${HOME} %%h.db' sync --quiet" in done.out


def test_a_timer_that_may_use_another_store_is_warned_about(machine):
    warned = machine("sync", "--timer").err
    assert "warning: RESERVOIR_HOME may not be set where the timer starts reservoir" in warned
    assert "warning" not in machine("--db", str(machine.db), "sync", "--timer").err


def test_sources_in_the_settings_follow_a_renamed_partition(machine):
    machine("init", "--yes", "--no-embed", "-p", "work")
    result = machine("partitions", "rename", "work", "job", "--yes")
    assert "reservoir sync imports claude-code, codex into job from now on" in result.err
    turn(machine, 1)
    machine("sync", "--no-embed")
    places = machine("partitions", "--json").document["partitions"]
    assert {place["partition"] for place in places} == {"job"}
