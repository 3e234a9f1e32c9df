"""A word that only messages contain never appears in errors, logs, records or files."""

import json
import os
import sqlite3
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import pytest
from running import RESERVOIR, Home

from reservoir_cli.messages import Conversation, Message, Scope, ToolCall
from reservoir_cli.reservoir import Reservoir

CANARY = "zqxcanaryzqx"
#: Text that may appear in errors: the user's own input.
TYPED = "zqxtypedzqx"


@pytest.fixture
def stored(home: Home) -> Home:
    """Return a home whose store has the canary in every text field."""
    with Reservoir.open(home.home / "reservoir.db") as reservoir:
        call = ToolCall("call1", CANARY, json.dumps({CANARY: CANARY}))
        conversation = Conversation("thread", title=CANARY)
        reservoir.store.add_conversations(Scope("default", "default"), [conversation])
        thread = {"conversation_id": "thread", "source": "test"}
        reservoir.ingest(
            [
                Message("user", f"why {CANARY}? " * 40, name=CANARY, **thread),
                Message("assistant", CANARY, tool_calls=(call,), **thread),
                Message("tool", f"{CANARY} {{]", tool_call_id="call1", name=CANARY, **thread),
                Message("system", CANARY, **thread),
            ],
            embed=False,
        )
    for name, text in (
        (
            "bad.json",
            f'[{{"role": "user", "content": "{CANARY}"}}, {{"role": "{CANARY}"}}, {CANARY}',
        ),
        ("bad.jsonl", f'{{"role": "user", "content": {CANARY}}}\n{{"{CANARY}": 1}}\n'),
        ("deep.jsonl", '{"role": "user", "x": ' + "[" * 9000 + f'"{CANARY}"\n'),
        ("rows.jsonl", f'{{"role": "user", "content": "{CANARY}", "created_at": "{CANARY}"}}\n'),
        ("bad.toml", f'system_prompt = "{CANARY}"\nrecent_context_size = "many"\n'),
        ("list.json", f'[{{"role": "user", "content": ["{CANARY}", 5]}}, "{CANARY}"]'),
    ):
        (home.folder / name).write_text(text)
    (home.folder / "log.db").write_bytes(b"SQLite format 3\0" + CANARY.encode() * 500)
    return home


SUCCEEDING = [
    ["view", "0"],
    ["search", TYPED],
    ["search", "--keyword", f'"{TYPED}" {TYPED}*'],
    ["context", TYPED, "--budget", "60"],
    ["context", TYPED, "--budget", "300", "--save"],
    ["context", TYPED, "--format", "anthropic", "--explain", "--knowledge", f"a={TYPED}"],
    ["conversations"],
    ["partitions"],
    ["stats", "--json"],
    ["export", "-o", "out.jsonl"],
    ["forget", "--match", TYPED, "--all-partitions", "-y", "--dry-run"],
    ["ingest", "--no-embed"],
    ["ingest", "--no-embed", "rows.jsonl"],
    ["doctor"],
    ["backup", "copy.db", "-y"],
]
FAILING = [
    ["ingest", "--no-embed", "bad.json", "deep.jsonl"],
    ["ingest", "--no-embed", "log.db"],
    ["ingest", "--no-embed", "rows.jsonl", "bad.jsonl"],
    ["ingest", "--format", "llm", "log.db"],
    ["ingest", "--format", "chatgpt", "rows.jsonl"],
    ["--config", "bad.toml", "view"],
    ["trim", "bad.json", "--iteration", "2"],
    ["trim", "list.json", "--iteration", "2"],
    ["search", "x", "--semantic"],
    ["view", "--id", "999"],
    ["context", "x", "--budget", "0"],
    ["export", "-o", "absent/out.jsonl"],
]
DEBUG = {"RESERVOIR_DEBUG": "1"}


def quiet(home: Home, output: str) -> None:
    """Check that stderr, logs, records and temporary files contain neither canary nor question."""
    assert CANARY not in output, output[-2000:]
    for file in [*home.home.glob("*.log*"), *home.temporary.rglob("*")]:
        if file.is_file():
            text = file.read_bytes().decode("utf-8", "replace")
            assert CANARY not in text, file
            assert TYPED not in text, file
    with closing(sqlite3.connect(home.home / "reservoir.db")) as connection:
        runs = connection.execute("SELECT * FROM context_runs").fetchall()
        properties = connection.execute("SELECT * FROM properties").fetchall()
    assert CANARY not in repr((runs, properties))
    assert TYPED not in repr((runs, properties))


def test_successful_commands_print_it_on_stdout_only(stored):
    shown = 0
    for command in SUCCEEDING:
        result = stored(*command, stdin=f"said {CANARY}", env=DEBUG)
        assert result.code == 0, result
        shown += CANARY in result.out
        quiet(stored, result.err)
    assert shown >= 4  # so that the test can fail
    assert (stored.home / "reservoir.log").stat().st_size


def test_failing_commands_do_not_reveal_it(stored):
    for command in FAILING:
        result = stored(*command, stdin=CANARY, env=DEBUG)
        assert result.code, result
        quiet(stored, result.err + result.out)


def test_a_damaged_store_does_not_reveal_it(stored):
    whole = (stored.home / "reservoir.db").read_bytes()
    damaged = bytearray(whole)
    for place in range(4096 + 100, len(damaged), 4096):
        damaged[place : place + 8] = b"\xff" * 8
    (stored.folder / "torn.db").write_bytes(bytes(damaged))
    for command in (["view", "0"], ["search", "why"], ["context", "why?"], ["doctor"], ["export"]):
        result = stored("--db", "torn.db", *command, env=DEBUG)
        quiet(stored, result.err)
        assert result.code in (0, 1, 3)


def test_a_locked_store_does_not_reveal_it(stored):
    with closing(sqlite3.connect(stored.home / "reservoir.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for command in (["view", "0"], ["context", TYPED, "--budget", "60"]):
            result = stored(*command, env=DEBUG)
            assert result.code == 0
            assert CANARY not in result.err
    quiet(stored, "")


@pytest.mark.skipif(not os.path.exists("/bin/bash"), reason="needs a shell that sets limits")
@pytest.mark.parametrize("command", ["ingest --no-embed", "export -o out.jsonl", "backup c.db -y"])
def test_a_full_disk_does_not_reveal_it(stored, command):
    # Python would keep the 8 kB that it can write of a module's bytecode: no process could load it.
    limit = ("bash", "-c", 'ulimit -f 8; PYTHONDONTWRITEBYTECODE=1 exec "$0" "$@"')
    result = stored(*command.split(), stdin=CANARY * 9_000, env=DEBUG, before=limit)
    assert result.code in (1, 3), result
    assert result.err.splitlines()[-1].startswith(("error: ", "hint: "))
    quiet(stored, result.err + result.out)
    assert {file.name for file in stored.folder.glob(".*")} == set()


def test_an_unexpected_error_does_not_reveal_it(stored):
    """A value that no version writes raises an error that only the top level catches."""
    with closing(sqlite3.connect(stored.home / "reservoir.db")) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("UPDATE messages SET role = ?", (CANARY,))
    for env in ({}, DEBUG):
        result = stored("view", "0", env=env)
        assert result.code in (1, 3)
        assert CANARY not in result.err
        assert ("Traceback" in result.err) == bool(env)


def test_process_names_contain_only_the_typed_arguments(stored):
    """Watch the command and its children from start to end."""
    if not Path("/proc/self/cmdline").exists():
        pytest.skip("there is no /proc")
    seen: set[str] = set()
    ended = threading.Event()

    def watch() -> None:
        while not ended.is_set():
            for place in Path("/proc").glob("[0-9]*"):
                try:
                    name = (place / "comm").read_text() + (place / "cmdline").read_text("latin-1")
                    is_ours = str(stored.home) in (place / "environ").read_text("latin-1")
                except OSError:
                    continue
                if is_ours:
                    seen.add(name)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for command in (["context", "-"], ["view", "0"], ["ingest", "--no-embed"]):
            # A new process: a forked one would have the name of its parent.
            stored(*command, stdin=f"{CANARY} {TYPED}", before=("env",))
    finally:
        ended.set()
        watcher.join()
    assert any("reservoir" in name for name in seen)
    assert CANARY not in repr(seen)
    assert TYPED not in repr(seen)


def test_nothing_is_written_to_a_temporary_file(stored):
    """Commands work without a folder for temporary files."""
    env = {"TMPDIR": "/nonexistent", "SQLITE_TMPDIR": "/nonexistent"}
    assert stored("search", "--keyword", "why*", env=env).code == 0
    with Reservoir.open(stored.home / "reservoir.db") as reservoir:
        connection = reservoir.store._connection  # type: ignore[attr-defined]
        assert connection.execute("PRAGMA temp_store").fetchone() == (2,)


def test_a_broken_pipe_does_not_reveal_it(stored):
    line = f"'{RESERVOIR}' view 0 | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}"
    result = subprocess.run(
        ["bash", "-c", line], env={**stored.env, **DEBUG}, capture_output=True, check=False
    )
    assert result.stdout == b"0\n"
    assert result.stderr == b""
