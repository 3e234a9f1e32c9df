"""Closed and endless streams, an impossible home, and a deleted working directory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import forked
import pytest
import world as worlds

RESERVOIR = Path(sys.executable).with_name("reservoir")


def shell(world: Path, line: str, **variables: str) -> "subprocess.CompletedProcess[bytes]":
    """Run a line of bash with our ``reservoir`` on PATH."""
    env = {**worlds.environment(world), "PATH": f"{RESERVOIR.parent}:/usr/bin:/bin", **variables}
    return subprocess.run(
        ["bash", "-c", line], env=env, cwd=world, capture_output=True, timeout=300, check=False
    )


@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", ">&- 2>&-", "<&-"])
def test_a_file_never_replaces_a_closed_stream(world, closed):
    before = worlds.held(world)
    line = f"(reservoir export -o out.jsonl && reservoir context 'queue?' --budget 90) {closed}"
    # A context that cannot be printed is an error; the export wrote its file.
    assert shell(world, line).returncode == (1 if ">&-" in closed.split() else 0)
    rows = [json.loads(row) for row in (world / "out.jsonl").read_text("utf-8").strip().split("\n")]
    assert len(rows) == sum(row[3] == "default" for row in before)
    assert worlds.held(world) == before
    assert "WARNING" in (world / "home" / "reservoir.log").read_text("utf-8")


def test_no_file_gets_the_number_of_a_closed_stream(world):
    script = (
        "import os; from reservoir_cli.cli.app import _take_streams; _take_streams(); "
        "os._exit(os.open('x', os.O_CREAT | os.O_WRONLY))"
    )
    assert shell(world, f'"{sys.executable}" -c "{script}" <&- >&- 2>&-').returncode > 2


@pytest.mark.parametrize("command", ["ingest --no-embed", "context", "search -"])
def test_an_endless_stream_is_refused(world, command):
    result = shell(world, f"ulimit -v 2000000; reservoir {command} </dev/zero")
    assert result.returncode == 1
    error, hint = result.stderr.splitlines()
    assert error == b"error: cannot read stdin: larger than 64 MB"
    assert hint == b"hint: pipe in a text or a file of at most 64 MB"
    assert result.stdout == b""


@pytest.mark.parametrize(
    "command", ["--db x.db ingest --no-embed", "export -o x", "backup x -y", "ingest x"]
)
def test_a_deleted_current_folder_is_a_one_line_error(world, command):
    result = shell(world, f'mkdir gone && cd gone && rmdir "$PWD" && echo a | reservoir {command}')
    assert result.returncode in (1, 3)
    assert result.stderr.startswith(b"error: ")
    assert b"unexpected" not in result.stderr
    assert b"\nhint: " in result.stderr


@pytest.mark.parametrize("home", ["/dev/null", "/proc/nothing", "~nobody-is-called-so", None])
@pytest.mark.parametrize("whole", [True, False], ids=["RESERVOIR_HOME", "HOME"])
def test_an_impossible_home_is_a_one_line_error(world, home, whole):
    env = worlds.environment(world)
    del env["RESERVOIR_HOME"], env["HOME"]
    if home is not None:
        env["RESERVOIR_HOME" if whole else "HOME"] = home
    if home is None or not (whole or home.startswith("/")):
        # The system knows the real home: nothing may be written there.
        answer = forked.run("view", env=env, folder=world)
        assert answer.code == 0
        return
    answer = forked.run("ingest", "--no-embed", stdin=b"x", env=env, folder=world)
    forked.hold(answer)
    assert answer.code in (2, 3)


def test_a_traceback_is_shown_by_debugging_and_names_no_text(world):
    env = {**worlds.environment(world), "RESERVOIR_DEBUG": "1"}
    answer = forked.run("--db", "note.md", "view", env=env, folder=world)
    assert answer.code == 3
    assert "DatabaseError: (its text is not shown)" in answer.err
    assert os.linesep + "error: note.md is not a database" in answer.err
