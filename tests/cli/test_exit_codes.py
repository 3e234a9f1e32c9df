import fcntl
import json
import re
import signal
import sqlite3
import subprocess
import sys
import termios
import time
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest
from each import each
from forked_session import ForkedProcess

from reservoir_cli import __version__

WRONG_USAGE = [
    (["nonsense"], "nonsense"),
    (["view", "--nonsense"], "--nonsense"),
    (["view", "many"], "COUNT: 'many' is not a whole number"),
    (["view", "-1"], "-1"),
    (["context", "x", "--recent", "-1"], "-1 is less than 0"),
    (["view", "--id", "0"], "0 is not between 1 and"),
    (["search", "x", "--threshold", "high"], "'high' is not a number"),
    (["view", "--db", "x.db"], "--db goes before the command"),
    (["--db"], "--db needs a value: PATH"),
    (["--config"], "--config needs a value: FILE"),
    (["view", "--no-color"], "--no-color goes before the command"),
    (["view", "--role", "bot"], "bot"),
    (["view", "--since", "someday"], "someday"),
    (["view", "--all-instances"], "--all-instances"),
    (["forget", "--scope", "--all-instances", "-i", "x"], "--all-instances"),
    (["view", "--all-partitions", "-p", "x"], "--all-partitions"),
    (["search"], "TERM"),
    (["search", "   "], "empty"),
    (["search", "x", "--limit", "0"], "limit"),
    (["search", "x", "--semantic", "--keyword"], "--keyword"),
    (["search", "x", "--threshold", "2"], "threshold"),
    (["context", "x", "--budget", "0"], "budget"),
    (["context", "x", "--format", "yaml"], "yaml"),
    (["config", "--get", "nonsense"], "nonsense"),
    (["config", "--set", "nonsense"], "nonsense"),
    (["--config", "/nowhere/reservoir.toml", "view"], "/nowhere/reservoir.toml"),
]


@each(("arguments", "named"), WRONG_USAGE)
def test_wrong_usage_is_exit_2_with_a_one_line_error(cli, arguments, named):
    result = cli(*arguments, code=2)
    assert result.out == ""
    first, *rest = result.err.splitlines()
    assert first.startswith("error: ")
    assert named.lower() in first.lower()  # Typer's versions write an argument differently
    assert len(rest) <= 1
    assert all(line.startswith("hint: ") for line in rest)


@each(
    ("arguments", "kind", "code"),
    [
        (["view", "--role", "bot", "--json"], "usage", 2),
        (["view", "--id", "7", "--json"], "failed", 1),
        (["--db", "/", "view", "--json"], "store", 3),
        (["ingest", "--role", "bot", "--json"], "usage", 2),
        (["search", "x", "--json", "--threshold", "2"], "usage", 2),
        (["config", "--get", "nonsense", "--json"], "usage", 2),
    ],
)
def test_with_json_an_error_is_a_document_too(cli, arguments, kind, code):
    result = cli(*arguments, code=code)
    assert list(result.document) == ["schema_version", "error"]
    error = result.document["error"]
    assert list(error) == ["kind", "message", "hint", "exit_code"]
    assert (result.document["schema_version"], error["kind"], error["exit_code"]) == (1, kind, code)
    assert result.err.startswith(f"error: {error['message']}\n")


HINTS = [
    # typed words, exit code, part of the error, part of the hint
    (["ingest", "hello world"], 1, "cannot read hello world: no such", "| reservoir ingest"),
    (["ingest", "x" * 300], 1, "x" * 200 + "…: no such", "| reservoir ingest"),
    (["ingest", ".", "--role", "user"], 2, "for a message from stdin", "< FILE"),
    (["ingest", "--dry-run"], 2, "is for files", "--dry-run FILE"),
    (["context", "x", "--budget", "abc"], 2, "not 'abc'", "--budget 4000"),
    (["context", "x", "--budget", "0"], 2, "not '0'", "--budget recommended"),
    (["context", "x", "--order", "a"], 2, "--order cannot be 'a'", "one of score, tiers"),
    (["context", "x", "--profile", "a"], 2, "--profile cannot be 'a'", "one of small, large"),
    (["context", "x", "--recall-scope", "a"], 2, "--recall-scope cannot be", "one of auto, inst"),
    (["context", "x", "--recent", "100001"], 2, "--recent cannot be 100001", "0 to 100,000"),
    (["context", "x", "--reserve", "999999999"], 2, "--reserve cannot", "100,000,000"),
    (["search", ""], 2, "empty", "reservoir view"),
    (["view", "--since", ""], 2, "'' is not a time", "use 2026-05-09"),
    (["recall", "x", "--since", ""], 2, "'' is not a time", "use 2026-05-09"),
    (["stats", "--since", ""], 2, "'' is not a time", "use 2026-05-09"),
    (["search", "x", "--semantic", "--keyword"], 2, "choose one", "leave both out"),
    (["view", "--json", "--jsonl"], 2, "choose one", "leave --jsonl out"),
    (["forget", "--scope", "--all-instances", "-i", "x"], 2, "contradicts -i", "leave -i out"),
    (["view", "--all-partitions", "-p", "x"], 2, "contradicts -p", "leave -p and -i out"),
    (["view", "--id", "1", "--role", "user"], 2, "--id contradicts", "leave them out"),
    (["view", "--id", "1", "2"], 2, "COUNT contradicts --id", "repeat --id for each message"),
    (["view", "-p", ""], 2, "cannot be empty", "leave the option out"),
    (["context", "x", "--model", ""], 2, "--model cannot be empty", "leave the option out"),
    (["export", "--source", ""], 2, "--source cannot be empty", "leave the option out"),
    (["context", "x", "--project", ""], 2, "cannot be empty", "leave the option out"),
    (["search", "x", "--role", ""], 2, "unknown role ''", "user, assistant"),
    (["ingest", "--role", ""], 2, "unknown role ''", "user, assistant"),
    (["--db", "", "view"], 2, "--db needs a path", "leave the option out"),
    (["--config", "nosuch.toml", "view"], 2, "no settings file", "omit --config"),
    (["config", "--set", "redact=foo"], 2, "redact cannot be 'foo'", "one of off, mark, mask"),
    (["backup", "nosuch/x"], 1, "cannot write nosuch/x", "no folder nosuch: create it"),
    (["backup", "."], 1, "is a folder", "name a file in it"),
    (["export", "-o", "nosuch/x"], 1, "cannot write nosuch/x", "no folder nosuch: create it"),
    (["export", "-o", "."], 1, "cannot write .", "name a file in it"),
    (["export", "--match", ""], 2, "--match needs a text", "some words"),
    (["trim", "nosuch", "--iteration", "1"], 1, "cannot read nosuch", "has no file of that name"),
    (["trim", ".", "--iteration", "1"], 1, "cannot read .", "name a file in it"),
    (["trim", "--iteration", "0"], 2, "0 is less than 1", "trim --help"),
    (["partitions", "rename", "a", "a", "-y"], 2, "the same", "the old and the new name"),
]


@each(("arguments", "code", "message", "hint"), HINTS)
def test_an_error_is_one_line_with_a_hint(cli, arguments, code, message, hint):
    if arguments[0] == "backup":  # otherwise there is nothing to copy
        cli.say("hello")
    result = cli(*arguments, code=code)
    first, second = result.err.splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert second.startswith("hint: ")
    assert hint in second


def test_the_hint_for_a_misplaced_global_option_shows_its_place(cli):
    result = cli("view", "3", "--db", "x.db", code=2)
    assert result.err.splitlines()[1] == "hint: reservoir --db PATH view"


@pytest.mark.parametrize(
    "arguments",
    [
        ["config", "set", "partitions.caf\udce9.redact=mask"],
        ["config", "get", "models.caf\udce9.context_window"],
        ["config", "set", "projects./caf\udce9=work"],
        ["--db", "postgresql://caf\udce9/memory", "view"],
    ],
    ids=["set", "get", "folder", "URL"],
)
def test_a_name_that_is_not_text_is_wrong_usage(cli, arguments):
    result = cli(*arguments, code=2)
    assert "is not valid text" in result.err
    assert "hint: " in result.err


def test_an_error_without_json_prints_nothing_on_stdout(cli):
    assert cli("view", "--id", "7", code=1).out == ""


def test_json_as_a_search_term_is_not_the_option(cli):
    cli.say("hello")
    assert cli("--db", "/", "search", "--", "--json", code=3).out == ""


def test_a_traceback_is_shown_only_when_debugging(cli, tmp_path):
    folder = {"RESERVOIR_DB": str(tmp_path)}
    assert "Traceback" not in cli("view", code=3, env=folder).err
    absent = str(tmp_path / "absent.txt")
    assert "Traceback" not in cli("ingest", absent, code=1).err


def test_without_a_command_the_help_is_readable(cli):
    result = subprocess.run(
        [Path(sys.executable).with_name("reservoir")],
        capture_output=True,
        text=True,
        env=cli.env,
        check=False,
    )
    shown = result.stdout + result.stderr
    assert re.search(r"(?m)^  Find +search, view", shown)
    assert len(shown.splitlines()) > 10


def test_python_m_runs_the_command(cli):
    result = cli("--version", command=(sys.executable, "-m", "reservoir_cli"))
    assert result.out == cli("--version").out
    assert result.out.startswith(f"reservoir {__version__}, Python 3.")


def test_the_version_names_python_sqlite_and_the_model_whatever_the_settings_are(cli):
    parts = cli("--version").out.strip().split(", ")
    assert [part.split()[0] for part in parts] == ["reservoir", "Python", "SQLite", "model"]
    cli.home.mkdir(exist_ok=True)
    (cli.home / "reservoir.toml").write_text("nonsense = 1\n", encoding="utf-8")
    assert cli("--version").out.strip().split(", ") == parts[:-1]


# 3: the store cannot be opened


def test_a_file_that_is_not_a_database_is_exit_3(cli, tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("these are notes, and long enough to be looked at" * 40)
    for command in (["view"], ["search", "--keyword", "x"], ["ingest", "--no-embed"]):
        result = cli("--db", str(file), *command, stdin="x", code=3)
        assert str(file) in result.err.splitlines()[0]
    assert file.read_text().startswith("these are notes")


def test_a_store_of_a_newer_program_is_exit_3_and_names_both_versions(cli):
    cli.say("hello")
    with closing(sqlite3.connect(cli.db)) as connection, connection:
        known = connection.execute("PRAGMA user_version").fetchone()[0]
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    for result in (cli("view", code=3), cli("ingest", "--no-embed", stdin="x", code=3)):
        assert "999" in result.err
        assert str(known) in result.err.replace("999", "")


def test_a_folder_as_a_store_is_exit_3(cli, tmp_path):
    assert str(tmp_path) in cli("--db", str(tmp_path), "view", code=3).err
    cli("--db", str(tmp_path), "ingest", "--no-embed", stdin="x", code=3)


def test_the_database_of_another_program_is_exit_3_and_untouched(cli, tmp_path):
    file = tmp_path / "other.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE things (name TEXT)")
    connection.close()
    before = file.read_bytes()
    cli("--db", str(file), "ingest", "--no-embed", stdin="x", code=3)
    assert file.read_bytes() == before


def test_a_truncated_store_is_exit_3(cli):
    cli.store(*({"content": f"message {number} " * 50} for number in range(200)))
    data = cli.db.read_bytes()
    cli.db.write_bytes(data[: len(data) // 3 // 4096 * 4096])
    result = cli("view", code=3)
    assert result.out == ""
    assert "message" not in result.err


def test_a_read_only_store_can_be_read_but_not_written(cli, as_owner, tmp_path):
    cli.say("hello there")
    cli.db.chmod(0o400)
    cli.home.chmod(0o500)
    command = (*as_owner, str(Path(sys.executable).with_name("reservoir")))
    try:
        assert cli("view", command=command).out == "user: hello there\n"
        assert cli("search", "--keyword", "hello", command=command).out.endswith(
            " user: hello there\n"
        )
        result = cli("ingest", "--no-embed", stdin="more", code=3, command=command)
        assert result.out == ""
        assert cli("context", "hello?", command=command).out.endswith("user: hello?\n")
    finally:
        cli.home.chmod(0o700)
    assert len(cli.rows()) == 1


def test_a_store_in_a_read_only_folder_is_exit_3(cli, as_owner, tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    command = (*as_owner, str(Path(sys.executable).with_name("reservoir")))
    location = str(folder / "new.db")
    result = cli("--db", location, "ingest", "--no-embed", stdin="x", code=3, command=command)
    assert location in result.err


def test_a_home_folder_that_the_user_may_not_enter_is_no_place_for_models(cli, as_owner, tmp_path):
    locked, home = tmp_path / "locked", tmp_path / "home"
    locked.mkdir(mode=0)
    printed = subprocess.run(
        [
            *(*as_owner, sys.executable, "-c"),
            "from reservoir_cli.settings import paths; print(paths.models_dir())",
        ],
        env={**cli.env, "HOME": str(locked), "RESERVOIR_HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert printed.stdout == f"{home / 'cache' / 'models'}\n"


def test_db_and_environment_move_the_store(cli, tmp_path):
    by_option, by_variable = tmp_path / "option.db", tmp_path / "variable.db"
    cli("--db", str(by_option), "ingest", "--no-embed", stdin="by option")
    cli("ingest", "--no-embed", stdin="by variable", env={"RESERVOIR_DB": str(by_variable)})
    assert not cli.db.exists()
    assert cli("--db", str(by_option), "view").out == "user: by option\n"
    both = {"RESERVOIR_DB": str(by_option)}
    assert cli("--db", str(by_variable), "view", env=both).out == "user: by variable\n"


def test_a_store_is_readable_by_its_owner_alone(cli):
    cli("ingest", "--no-embed", stdin="secret")
    assert cli.db.stat().st_mode & 0o777 == 0o600
    assert cli.home.stat().st_mode & 0o777 == 0o700


# 4: the store stayed locked


def test_a_locked_store_is_exit_4_and_nothing_is_stored(locked, impatient):
    result = locked("ingest", "--no-embed", stdin="x", code=4, env=impatient)
    assert result.out == ""
    assert result.err.startswith("error: the store is locked")
    assert len(locked.rows()) == 1


def test_reads_do_not_wait_for_a_writer(locked, impatient):
    assert locked("view", env=impatient).out == "user: said before\n"
    hits = locked("search", "--keyword", "before", env=impatient)
    assert hits.out.endswith(" user: said before\n")
    assert locked("context", "said what?", env=impatient).out.endswith("user: said what?\n")


def test_a_context_is_printed_while_the_store_is_locked(locked, impatient):
    result = locked("context", "said what?", "--save", code=4, env=impatient)
    assert result.out.endswith("user: said what?\n")


# 5: the model is not there


@pytest.mark.skipif(find_spec("torch") is None, reason="without torch no model is downloaded")
@pytest.mark.parametrize("command", [["embed"], ["search", "before", "--semantic"]])
def test_commands_that_need_the_model_are_exit_5_without_it(cli, command):
    cli.say("said before")
    result = cli("--offline", *command, code=5, env={"HF_HUB_OFFLINE": "0"})
    assert result.out == ""
    assert "nobody/absent-model" in result.err
    hint = result.err.splitlines()[1]
    assert "without --offline" in hint
    assert "embedding_model" in hint


def test_without_a_model_search_and_context_rank_by_words_with_a_note(cli):
    cli.say("the queue lost jobs")
    cli.say("something else entirely")
    hits = cli("search", "queue")
    assert hits.out.splitlines()[0].endswith(" user: the queue lost jobs")
    assert hits.err.startswith("warning: ")
    context = cli("context", "which jobs?", "--budget", "300")
    assert "user: the queue lost jobs\n" in context.out
    assert "warning: " in context.err


# 130 and 143


def _reading(cli, *arguments):
    """Start a command that reads stdin; return it when it waits for more."""
    process = ForkedProcess(*arguments, env=cli.env, folder=cli.home.parent)
    process.stdin.write(b"half a mess")
    process.stdin.flush()
    unread = b"\1\0\0\0"
    for _ in range(6000):
        # Once the pipe is empty, the process is reading.
        unread = fcntl.ioctl(process.stdin.fileno(), termios.FIONREAD, b"\0\0\0\0")
        if not any(unread):
            break
        time.sleep(0.01)
    assert not any(unread), "it never read stdin"
    return process


@pytest.mark.parametrize("command", [["ingest", "--no-embed"], ["context"]])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_reading_stdin_ends_the_command_without_a_traceback(
    cli, command, number, code
):
    process = _reading(cli, *command)
    process.send_signal(number)
    out, err = process.communicate(timeout=300)
    assert process.returncode == code
    assert out == b""
    assert b"Traceback" not in err
    assert b"error" not in err
    assert not cli.rows()


# Streams that are closed or full


def test_a_full_disk_behind_stdout_is_a_one_line_error(cli):
    cli.say("hello")
    result = cli.shell("reservoir view > /dev/full; echo $?")
    assert result.out == "1\n"
    assert result.err.startswith("error: ")
    assert "No space left" in result.err
    assert "Traceback" not in result.err


@each(
    ("line", "codes"),
    [
        ("reservoir view >&-", "1"),
        ("reservoir --help >&-", "1"),
        ("reservoir view --help >&-", "1"),
        ("reservoir --version >&-", "1"),
        ("reservoir forget --id 1 --dry-run >&-", "1"),
        ("reservoir view 2>&-", "0"),
        ("reservoir view -i nowhere 2>&-", "0"),
        ("reservoir view <&-", "0"),
        ("reservoir ingest --no-embed <&-", "02"),
        ("reservoir context hello <&-", "0"),
    ],
)
def test_a_closed_stream_causes_no_traceback(cli, line, codes):
    cli.say("hello")
    result = cli.shell(f"({line}); echo $?", forked=False)
    assert "Traceback" not in result.err
    assert "unexpected" not in result.err
    assert result.out.splitlines()[-1] in codes


@each(
    "arguments",
    [
        ("search", "--keyword", "caf\udce9"),
        ("context", "caf\udce9"),
        ("view", "-p", "caf\udce9"),
        ("view", "--id", "99999999999999999999"),
        ("view", "99999999999999999999"),
        ("context", "x", "--budget", "99999999999999999999"),
        ("ingest", "--no-embed", "-p", "caf\udce9"),
        ("context", "caf\udce9", "--save"),
    ],
)
def test_odd_arguments_cause_no_unexpected_error(cli, arguments):
    cli.say("café au lait")
    result = cli(*arguments, stdin="x", code=None)
    assert "unexpected" not in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize("stdout", [">/dev/full", ">&-"])
def test_an_error_that_cannot_be_printed_as_json_keeps_its_exit_code(cli, stdout):
    result = cli.shell(f"reservoir view --role nobody --json {stdout}; echo $?", forked=False)
    assert result.out == "2\n"
    assert result.err.count("error: ") == 1
    assert result.err.startswith("error: unknown role 'nobody'\n")


def test_an_error_on_a_closed_pipe_is_still_one_document(cli):
    result = cli.shell("reservoir view --id 7 --json | head -c 1; echo ${PIPESTATUS[0]}")
    assert result.out.startswith("{")
    assert result.err.startswith("error: no message 7 in default\n")
    assert json.loads(result.out[1:].strip()) in (0, 1)
