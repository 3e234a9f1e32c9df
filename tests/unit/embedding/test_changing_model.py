"""``embed --model``: real processes switch a store from one real model to another."""

import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest
from command_line import Cli
from tiny_models import load_quietly

COUNT = 30
#: Batches of four, of which the fourth is slow, so that the process can be killed in it.
SLOWLY = """
import time
from reservoir_cli.retrieval import embed_messages
embed_messages.BATCH = 4
embed, pauses = embed_messages.embed_messages, iter((0, 0, 0, 600))
embed_messages.embed_messages = lambda *given: (time.sleep(next(pauses)), embed(*given))[1]
"""


@pytest.fixture
def cli(tmp_path: Path, models_folder: Path) -> Cli:
    cli = Cli(tmp_path / "home", model=True)
    cli.env["RESERVOIR_MODEL_CACHE"] = str(models_folder)
    return cli


def count_missing(store: Path) -> int | None:
    """Return how many messages the new model has not embedded; ``None`` without a new model."""
    with closing(sqlite3.connect(store)) as connection:
        cursor = connection.execute("SELECT 1 FROM properties WHERE key = 'next_model_id'")
        if cursor.fetchone() is None:
            return None
        return int(connection.execute("SELECT COUNT(*) FROM rebuilding").fetchone()[0])


def kill_in_the_middle(cli: Cli, *command: str) -> int:
    """Run a command and kill it in the middle; return how many messages are left."""
    slowly = cli.home.parent / "slowly"
    slowly.mkdir(exist_ok=True)
    (slowly / "sitecustomize.py").write_text(SLOWLY)
    cli.env["PYTHONPATH"], before = str(slowly), cli.env["PYTHONPATH"]
    process = cli.start(*command, stderr=subprocess.DEVNULL)
    cli.env["PYTHONPATH"] = before
    while process.poll() is None and (count_missing(cli.db) or COUNT) > COUNT - 8:
        time.sleep(0.02)
    process.kill()
    process.wait()
    remaining = count_missing(cli.db)
    assert remaining is not None
    assert 0 < remaining < COUNT
    return remaining


def test_a_model_switch_is_resumed_after_a_kill(tiny_model, cli):
    old = tiny_model()
    new = tiny_model(prompts={"query": "query: "})
    for model in (old, new):  # compile it here, where torch is loaded, not in processes
        load_quietly(model)
    cli("config", "--set", f"embedding_model={old}")
    cli.store(*({"content": f"cat {number}"} for number in range(COUNT)))
    assert cli("embed", "--json").document["embedded"] == COUNT
    before = cli("search", "--semantic", "cat 7").out
    assert before.count("\n") == 10

    remaining = kill_in_the_middle(cli, "embed", "--model", str(new))
    assert cli("search", "--semantic", "cat 7").out == before
    assert f"{remaining} messages to go: reservoir embed --model {new}" in cli("embed").err

    result = cli("embed", "--model", str(new), "--json")
    assert result.document["embedded"] == remaining
    assert result.document["model"] == str(new)
    assert f"setting embedding_model is {new} from now on" in result.err
    assert cli("config", "--get", "embedding_model").out == f"{new}\n"
    assert cli("search", "--semantic", "cat 7").out != before
    assert "another model" not in cli("doctor").out

    assert cli("embed", "--model", str(new), "--json").document["embedded"] == 0
    kill_in_the_middle(cli, "embed", "--rebuild")
    cli("embed", "--rebuild")
    assert count_missing(cli.db) is None
    cli("doctor")
