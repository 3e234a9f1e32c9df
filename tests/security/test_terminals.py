"""No stored or typed text controls a terminal; a pipe gets every byte unchanged."""

import json
import re
import sqlite3
from contextlib import closing

import forked
import pytest
import world as worlds
from hostile_values import ESCAPES

ESC = ESCAPES[0]
#: Our own escape sequences: bold and dim, and those of the progress bar.
OWN = re.compile(r"\x1b\[(0|1|2|2;3)m")
BAR = re.compile(r"\x1b\[(2K|1A|\?25[lh])|\r")
PRINTING = [
    ["view", "0"],
    ["view", "0", "--oneline", "--timestamps"],
    ["view", "0", "--json"],
    ["view", "0", "--jsonl"],
    ["search", "--keyword", "queue", "-n", "100"],
    ["search", "queue", "-n", "100", "--explain"],
    ["search", "queue", "-n", "100", "--link"],
    ["search", "queue", "--json"],
    ["context", "queue?"],
    ["context", "queue?", "--explain"],
    ["context", "queue?", "--format", "markdown"],
    ["context", "queue?", "--format", "json", "--explain"],
    ["context", "queue?", "--format", "anthropic"],
    ["context", f"queue {ESC}?", "--format", "openai", "--model", "gpt-4o"],
    ["conversations", "--all-partitions"],
    ["conversations", "--all-partitions", "--json"],
    ["partitions"],
    ["partitions", "--json"],
    ["stats"],
    ["models"],
    ["doctor"],
    ["config", "--list"],
    ["config", "--get", "partition"],
    ["config", "--path"],
    ["export", "--all-partitions"],
    ["export", "--all-partitions", "--format", "markdown"],
    ["export", "--all-partitions", "--format", "sharegpt"],
    ["trim", "list.json", "--iteration", "1"],
    ["recall", "queue?"],
    ["recall", "queue?", "--json"],
    ["forget", "--match", "queue", "--dry-run"],
    ["tag", "1", "travel", "-p", "default"],
    ["pin", "1", "-p", "default"],
    ["edit", "1", f"queue {''.join(ESCAPES)}", "-p", "default"],
    ["ingest", "rows.jsonl", "--no-embed"],
    ["budget", "--model", "gpt-4o"],
    ["db", "status"],
]
FAILING = [
    ["view", "--id", "1"],
    ["summarize", "--with", "head -c 300"],
    ["view", "-p", f"evil{ESC}", "-i", "absent"],
    ["view", "--role", ESC],
    ["view", "--since", ESC],
    ["view", ESC],
    [ESC],
    ["search", "--threshold", ESC, "x"],
    ["config", "--get", ESC],
    ["config", "--set", f"partitions.{ESC}.nonsense=1"],
    ["context", "x", "--model", ESC],
    ["context", "x", "--system", f"@{ESC}"],
    ["ingest", f"{ESC}\nerror: forged"],
    ["export", "-o", f"{ESC}/x"],
    ["--db", f"{ESC}/../note.md", "view"],
    ["--config", ESC, "view"],
    ["partitions", "--rename", ESC, "x"],
    ["embed", "--model", f"{ESC}"],
]


def named(arguments: list[str]) -> str:
    return " ".join(arguments).encode("ascii", "backslashreplace").decode()


@pytest.mark.parametrize("arguments", [*PRINTING, *FAILING], ids=named)
def test_no_escape_sequence_reaches_a_terminal(world, arguments):
    env = {**worlds.environment(world), "NO_COLOR": "1", "TERM": "xterm-256color"}
    for name in (f"evil{ESC}", "default"):
        code, shown = forked.on_terminal(
            *arguments, env={**env, "RESERVOIR_PARTITION": name}, folder=world
        )
        assert shown or arguments == ["stats"]
        text = OWN.sub("", BAR.sub("", shown) if arguments[0] in ("doctor", "ingest") else shown)
        controls = forked.control_characters(text)
        assert not controls, controls
        assert arguments in FAILING or code == 0
        assert "\nerror: forged" not in shown


def test_a_question_on_a_terminal_names_nothing_raw(world):
    env = {**worlds.environment(world), "NO_COLOR": "1", "TERM": "xterm"}
    command = ["partitions", "delete", f"evil{ESC}"]
    code, shown = forked.on_terminal(*command, env=env, folder=world, typed=b"n\n")
    assert code == 1
    assert "forget all of evil\\x1b[31m" in shown
    assert not forked.control_characters(shown)
    assert len(worlds.held(world)) == len(worlds.held(world.parent / "world"))


@pytest.mark.parametrize("arguments", [["view", "0", "--json"], ["export", "--format", "json"]])
def test_json_on_a_terminal_has_the_same_content(world, arguments):
    env = {**worlds.environment(world), "TERM": "xterm"}
    _, shown = forked.on_terminal(*arguments, env=env, folder=world)
    piped = forked.run(*arguments, env=env, folder=world)
    assert json.loads(shown) == json.loads(piped.out)


def test_a_pipe_gets_every_byte(world):
    env = worlds.environment(world)
    piped = forked.run("view", "0", env=env, folder=world).out.decode()
    for escape in ESCAPES:
        assert f"user: queue {escape} question?\n" in piped


def test_a_table_in_a_pipe_has_a_line_for_each_row(world):
    env = worlds.environment(world)
    forked.run("ingest", "--no-embed", "-p", "named so", stdin=b"x", env=env, folder=world)
    with closing(sqlite3.connect(world / "home" / "reservoir.db")) as raw, raw:
        # Earlier versions stored such names, which are refused now.
        raw.execute(
            "UPDATE messages SET partition = ? WHERE partition = 'named so'", [f"a\tb\nc{ESC}"]
        )
    rows = forked.run("partitions", env=env, folder=world).out.decode().splitlines()
    assert all(len(row.split("\t")) == 6 for row in rows)
    assert any(row.startswith(rf"a\tb\nc{ESC}") for row in rows)


def test_a_log_has_a_line_for_each_run(world):
    env = worlds.environment(world)
    forged = {**env, "RESERVOIR_PARTITION": f"x\nforged{ESC}"}
    for environment in (env, forged):
        forked.run("ingest", "--no-embed", stdin=b"word " * 500, env=environment, folder=world)
        forked.run("context", "word?", "--budget", "50", env=environment, folder=world)
    (line,) = (world / "home" / "reservoir.log").read_text(encoding="utf-8").splitlines()
    assert re.match(r"\d{4}-.* WARNING context truncated: ", line)
    assert not forked.control_characters(line)
