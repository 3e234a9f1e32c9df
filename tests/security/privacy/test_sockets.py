"""No command opens a socket unless asked to, even with network access and a cached model."""

import json
import sys
from pathlib import Path

import pytest
from running import Home

SUPPORT = str(Path(__file__).parents[2] / "support")
#: Runs before every command, and ends it when it opens a socket.
WATCHMAN = """
import sys

def watch(event, arguments):
    if event.startswith("socket."):
        with open({log!r}, "a") as file:
            file.write(event + "\\n")
        raise PermissionError("a socket")

sys.addaudithook(watch)
"""
#: Runs commands in processes forked from one that has imported everything, under the same watch.
RUN_ALL = """
import json, os, sys

sys.path.insert(0, sys.argv[1])
from fork_server import load_all
from reservoir_cli.__main__ import main

load_all("onnxruntime", "tokenizers")
for arguments in json.loads(sys.argv[2]):
    reading, writing = os.pipe()
    os.write(writing, b"Redis lost the jobs of the queue")
    os.close(writing)
    child = os.fork()
    if not child:
        os.dup2(reading, 0)
        sys.argv = ["reservoir", *arguments]
        try:
            main()
        finally:
            os._exit(99)
    os.close(reading)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status or os.path.exists("sockets"):
        sys.exit(f"{arguments} ended with {status}")
"""
COMMANDS = [
    ["ingest"],
    ["ingest", "list.json"],
    ["embed"],
    ["view"],
    ["search", "queue"],
    ["search", "queue", "--semantic"],
    ["search", "queue", "--keyword"],
    ["context", "why?", "--save"],
    ["context", "why?", "--model", "gpt-4o", "--format", "openai"],
    ["context", "why?", "--model", "claude-sonnet-4", "--format", "anthropic"],
    ["config", "--list"],
    ["config", "--set", "recent_context_size=9"],
    ["budget", "--model", "gpt-4o"],
    ["models"],
    ["stats"],
    ["trim", "list.json", "--iteration", "2"],
    ["conversations"],
    ["partitions"],
    ["export", "--with-embeddings"],
    ["backup", "copy.db", "-y"],
    ["forget", "--match", "nothing like it", "-y"],
    ["doctor", "--repair"],
    ["connect"],
    ["connect", "zed", "--dry-run"],
    ["disconnect", "zed"],
    ["--help"],
    ["--version"],
]


@pytest.fixture
def watched(home_with_model: Home) -> Home:
    """Return a home whose processes report a socket and end."""
    home = home_with_model
    (home.folder / "site").mkdir()
    script = WATCHMAN.format(log=str(home.folder / "sockets"))
    (home.folder / "site" / "sitecustomize.py").write_text(script)
    (home.folder / "list.json").write_text(json.dumps([{"role": "user", "content": "a queue"}]))
    home.env["PYTHONPATH"] = str(home.folder / "site")
    return home


def test_the_guard_detects_a_socket(watched):
    before = (sys.executable, "-c", "import socket; socket.getaddrinfo('localhost', 80)")
    assert watched(before=before).code == 1
    assert "socket.getaddrinfo" in (watched.folder / "sockets").read_text()


def test_no_command_opens_a_socket(watched):
    before = (sys.executable, "-c", RUN_ALL, SUPPORT, json.dumps(COMMANDS))
    result = watched(before=before)
    assert result.code == 0, result
    assert not (watched.folder / "sockets").exists()
    assert "Redis lost the jobs" in result.out
    assert json.loads(watched("doctor", "--json").out)["checks"]
    # No library writes files of its own to the user's home.
    names = {"home", "tmp", "site", "sockets", "list.json", "copy.db"}
    assert {path.name for path in watched.folder.iterdir()} <= names


def test_a_missing_model_is_downloaded_unless_offline(watched):
    """Only the download uses the network, and the options prevent it."""
    watched("ingest", "--no-embed", stdin="Redis lost the jobs of the queue")
    absent = {"RESERVOIR_EMBEDDING_MODEL": "nobody/absent-model"}
    sockets = watched.folder / "sockets"
    for options, env in ((["--offline"], {}), ([], {"HF_HUB_OFFLINE": "1"})):
        for command in (["search", "queue", "--semantic"], ["embed"]):
            result = watched(*options, *command, env={**absent, **env})
            assert result.code == 5
            assert not sockets.exists(), (options, command)
    assert watched("embed", env=absent).code == 5
    assert sockets.exists()


def test_a_counter_that_needs_the_network_is_refused_offline(watched):
    asks = {"RESERVOIR_TOKEN_COUNTER": "anthropic:claude-sonnet-4", "ANTHROPIC_API_KEY": "none"}
    assert watched("--offline", "context", "why?", env=asks).code == 5
    assert not (watched.folder / "sockets").exists()
