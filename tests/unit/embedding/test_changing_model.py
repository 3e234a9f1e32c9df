"""``embed --model``: real processes switch a store from one real model to another."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tiny_models import load_quietly

RESERVOIR = Path(sys.executable).with_name("reservoir")
COUNT = 30
#: Batches of four, of which the fourth is slow, so that the process can be killed in it.
SLOWLY = """
import time
from reservoir_cli.retrieval import embed_messages
embed_messages.BATCH = 4
embed, pauses = embed_messages.embed_messages, iter((0, 0, 0, 600))
embed_messages.embed_messages = lambda *given: (time.sleep(next(pauses)), embed(*given))[1]
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "slowly").mkdir()
    (tmp_path / "slowly" / "sitecustomize.py").write_text(SLOWLY)
    return {**os.environ, "RESERVOIR_HOME": str(tmp_path / "home"), "PYTHONWARNINGS": "ignore"}


@pytest.fixture
def run(environment: dict[str, str]) -> Run:
    def run_command(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [RESERVOIR, *arguments],
            input=stdin,
            env=environment,
            capture_output=True,
            check=True,
            text=True,
            timeout=600,
        )

    return run_command


def count_missing(store: Path) -> int | None:
    """Return how many messages the new model has not embedded; ``None`` without a new model."""
    with closing(sqlite3.connect(store)) as connection:
        cursor = connection.execute("SELECT 1 FROM properties WHERE key = 'next_model_id'")
        if cursor.fetchone() is None:
            return None
        return int(connection.execute("SELECT COUNT(*) FROM rebuilding").fetchone()[0])


def kill_in_the_middle(command: list[str], environment: dict[str, str], store: Path) -> int:
    """Run a command and kill it in the middle; return how many messages are left."""
    slowly = {**environment, "PYTHONPATH": str(store.parent.parent / "slowly")}
    process = subprocess.Popen([RESERVOIR, *command], env=slowly, stderr=subprocess.DEVNULL)
    while process.poll() is None and (count_missing(store) or COUNT) > COUNT - 8:
        time.sleep(0.02)
    process.kill()
    process.wait()
    remaining = count_missing(store)
    assert remaining is not None
    assert 0 < remaining < COUNT
    return remaining


def test_a_model_switch_is_resumed_after_a_kill(tiny_model, environment, run, tmp_path):
    old = tiny_model()
    new = tiny_model(prompts={"query": "query: "})
    for model in (old, new):  # compile it here, where torch is loaded, not in processes
        load_quietly(model)
    store = tmp_path / "home" / "reservoir.db"
    run("config", "--set", f"embedding_model={old}")
    rows = [
        {"partition": "default", "instance": "default", "role": "user", "content": f"cat {number}"}
        for number in range(COUNT)
    ]
    run("ingest", "-", "--format", "reservoir", stdin="\n".join(map(json.dumps, rows)))
    before = run("search", "--semantic", "cat 7").stdout
    assert before.count("\n") == 10

    remaining = kill_in_the_middle(["embed", "--model", str(new)], environment, store)
    assert run("search", "--semantic", "cat 7").stdout == before
    assert f"{remaining} messages to go: reservoir embed --model {new}" in run("embed").stderr

    result = run("embed", "--model", str(new), "--json")
    assert json.loads(result.stdout)["embedded"] == remaining
    assert json.loads(result.stdout)["model"] == str(new)
    assert f"setting embedding_model is {new} from now on" in result.stderr
    assert run("config", "--get", "embedding_model").stdout == f"{new}\n"
    assert run("search", "--semantic", "cat 7").stdout != before
    assert "another model" not in run("doctor").stdout

    assert json.loads(run("embed", "--model", str(new), "--json").stdout)["embedded"] == 0
    kill_in_the_middle(["embed", "--rebuild"], environment, store)
    run("embed", "--rebuild")
    assert count_missing(store) is None
    run("doctor")
