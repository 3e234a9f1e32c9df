"""The MCP server as a real process, byte for byte."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import forked
import pytest
from mcp_client import ERAS, LEGACY, MODERN, PATIENCE, RESERVOIR, RawClient, start_server

from reservoir_cli.agents.mcp.server import INSTRUCTIONS
from reservoir_cli.messages import Message
from reservoir_cli.reservoir import Reservoir

pytest.importorskip("mcp_types", reason="mcp 2.3 is not installed: pip install -e '.[dev]'")

NOON = datetime(2026, 2, 13, 12, tzinfo=UTC)


@pytest.fixture
def client_env(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home without a model for servers to start in; its store has one exchange."""
    monkeypatch.setenv("RESERVOIR_EMBEDDING_MODEL", "nobody/absent-model")
    monkeypatch.setenv("TZ", "UTC")
    with Reservoir.open() as reservoir:
        for partition in ("default", "work"):
            messages = [
                Message("user", "Why did we drop Redis?", created_at=NOON),
                Message(
                    "assistant",
                    f"It lost 214 jobs in the failover of {partition}.",
                    created_at=NOON + timedelta(minutes=1),
                ),
            ]
            reservoir.ingest(messages, partition=partition, embed=False)
    return home


#: Tool, arguments, whether it fails, and a part of the answer.
CALLS = [
    ("recall", {"question": "why did we drop Redis?"}, False, "214 jobs"),
    ("recall", {"question": "why did we drop Redis?", "budget": "many"}, True, "as budget"),
    ("recall", {"question": "why did we drop Redis?", "partition": "work"}, True, "'partition'"),
    ("recall", {}, True, "needs question"),
    ("search", {"query": "failover", "limit": 3}, False, "[#2] 2026-02-13"),
    ("search", {"query": "failover", "since": "soonish"}, True, "is not a time"),
    ("search", {"query": "failover", "mode": "semantic"}, True, "absent-model"),
    ("read", {"id": 2}, False, "[#1] quoted 2026-02-13, user: Why did we drop Redis?"),
    ("read", {"id": 77}, True, "no message #77 in partition default"),
    ("remember", {"text": "We use PostgreSQL now."}, False, "Stored as [#5]."),
    ("remember", {"content": "We use PostgreSQL now."}, True, "'content'"),
]


@pytest.mark.parametrize("era", ERAS)
def test_a_session_of_each_protocol_revision(client_env, era):
    with RawClient(era=era) as client:
        opened = client.open()
        assert opened["instructions"] == INSTRUCTIONS
        assert opened.get("protocolVersion", era) == era
        listed = client.request("tools/list")["result"]["tools"]
        assert {
            tool["name"]: tool["annotations"].get("readOnlyHint", False) for tool in listed
        } == {"recall": True, "search": True, "read": True, "remember": False, "forget": False}
        hints = {tool["name"]: tool["annotations"] for tool in listed}
        # Codex asks before it calls a tool that may delete, or change something elsewhere.
        assert hints["remember"] == {"destructiveHint": False, "openWorldHint": False}
        assert hints["forget"] == {"destructiveHint": True}
        assert not any("outputSchema" in tool for tool in listed)
        for tool, arguments, fails, part in CALLS:
            text, failed = client.call(tool, **arguments)
            assert (failed, part in text) == (fails, True), text
            assert text.startswith("error: ") == fails
        unknown = client.request("tools/call", {"name": "erase", "arguments": {}})
        assert unknown["error"]["code"] == -32602
        assert client.request("resources/list")["error"]["code"] == -32601
        assert client.end() == (0, "")


def test_a_new_store_in_a_synced_folder_is_reported(client_env, monkeypatch, tmp_path):
    folder = tmp_path / "Dropbox"
    folder.mkdir()
    monkeypatch.setenv("RESERVOIR_DB", str(folder / "r.db"))
    monkeypatch.setenv("RESERVOIR_PARTITON", "work")
    with RawClient() as client:
        client.open()
        assert client.call("recall", question="why did we drop Redis?")[0].startswith("Nothing")
        text, _ = client.call("remember", text="We use PostgreSQL now.")
        assert "note: the store is in a folder that Dropbox syncs" in text
        assert "RESERVOIR_PARTITON" not in text
        assert "Dropbox" not in client.call("search", query="PostgreSQL")[0]
        _, log = client.end()
    warnings = [line.partition(",")[0] for line in log.splitlines()]
    assert warnings == [
        "warning: RESERVOIR_PARTITON is not a setting; did you mean RESERVOIR_PARTITION?",
        "warning: the store is in a folder that Dropbox syncs",
    ]


def test_a_read_only_server_has_no_tool_that_writes(client_env):
    with RawClient("--read-only", "-p", "work") as client:
        client.open()
        listed = client.request("tools/list")["result"]["tools"]
        assert [tool["name"] for tool in listed] == ["recall", "search", "read"]
        params = {"name": "remember", "arguments": {"text": "x"}}
        assert client.request("tools/call", params)["error"]["code"] == -32602
        assert "failover of work" in client.call("recall", question="why did we drop Redis?")[0]
        assert client.call("read", id=1) == ("error: no message #1 in partition work", True)


@pytest.fixture
def code(client_env: Path, tmp_path: Path) -> Path:
    """Return a project folder with the partition ``work``; agents may use both partitions."""
    folder = tmp_path / "code"
    (folder / "app").mkdir(parents=True)
    settings = (
        f'[mcp]\npartitions = ["work", "default"]\n[projects]\n{json.dumps(str(folder))} = "work"'
    )
    (client_env / "reservoir.toml").write_text(settings, encoding="utf-8")
    return folder


QUESTION = "what was lost in the failover?"


@pytest.mark.parametrize("era", [MODERN, LEGACY])
def test_the_working_directory_of_a_client_selects_the_scope(code, era):
    with RawClient(era=era, cwd=code / "app") as client:
        client.open()
        assert "failover of work" in client.call("recall", question=QUESTION)[0]
        assert "failover of work" in client.call("search", query="failover")[0]
        other, _ = client.call("recall", question=QUESTION, partition="default")
        assert "failover of default" in other
        text, failed = client.call("recall", question=QUESTION, partition="secret")
        assert (text.splitlines()[0], failed) == (
            "error: recall needs one of work, default as partition",
            True,
        )
        assert client.call("read", id=1)[1]
        client.call("remember", text="noted at work")
        assert "noted at work" in client.call("search", query="noted")[0]


def test_a_client_may_name_its_roots(code, tmp_path):
    with RawClient(cwd=tmp_path, roots=[tmp_path / "elsewhere", code / "app"]) as client:
        client.open()
        for _ in range(2):
            assert "failover of work" in client.call("recall", question=QUESTION)[0]
        assert client.server_requests == ["roots/list"]


def test_folders_are_ignored_outside_of_projects_and_with_a_partition(code, tmp_path):
    with RawClient(cwd=tmp_path) as client:
        client.open()
        assert "failover of default" in client.call("recall", question=QUESTION)[0]
    with RawClient("-p", "default", cwd=code, roots=[code]) as client:
        client.open()
        assert "failover of default" in client.call("recall", question=QUESTION)[0]
        assert "'partition'" in client.call("recall", question="x", partition="work")[0]
        assert client.server_requests == []


def test_all_requests_are_answered_when_stdin_ends(client_env):
    with RawClient() as client:
        client.open()
        ids = [
            client.ask("tools/call", {"name": "recall", "arguments": {"question": "why Redis?"}})
            for _ in range(3)
        ]
        assert client.end()[0] == 0
        answers = [json.loads(client.lines.get(timeout=PATIENCE)) for _ in ids]
        assert sorted(answer["id"] for answer in answers) == ids
        assert client.lines.get(timeout=PATIENCE) == b""


def test_invalid_lines_are_refused_and_the_session_continues(client_env):
    with RawClient() as client:
        client.open()
        for line, code in (
            (b"not JSON", -32700),
            (b"\xff\xfe{}", -32700),
            (b"[]", -32600),
            (b'{"jsonrpc": "1.0"}', -32600),
            (b"[" * 100_000, -32700),
            (b'{"jsonrpc": "2.0", "id": 1, "method": "' + b"x" * (5 << 20) + b'"}', -32700),
        ):
            client.send(line)
            answer = client.receive()
            assert (answer["id"], answer["error"]["code"]) == (None, code)
        client.send(b"")
        assert client.request("ping")["result"] == {}


def test_a_text_cut_within_a_character_is_answered(client_env):
    with RawClient() as client:
        client.open()
        text, failed = client.call("recall", question="why did we drop Redis? \ud83d")
        assert "214 jobs" in text
        assert not failed


def test_a_cancelled_call_gets_no_answer_and_delays_no_other_call(client_env):
    with (
        RawClient() as client,
        closing(sqlite3.connect(client_env / "reservoir.db")) as other,
        other,
    ):
        client.open()
        assert "Stored" in client.call("remember", text="the first note")[0]
        other.execute("BEGIN IMMEDIATE")
        waiting = client.ask("tools/call", {"name": "remember", "arguments": {"text": "late"}})
        behind = client.ask("tools/call", {"name": "remember", "arguments": {"text": "never"}})
        assert "tools" in client.request("tools/list")["result"]
        for number in (behind, waiting):
            params = {"requestId": number, "reason": "changed my mind"}
            message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            client.send(message)
        assert client.request("ping")["result"] == {}
        other.rollback()
        assert "214 jobs" in client.call("recall", question="why did we drop Redis?")[0]
        text, _ = client.call("search", query="note late never", mode="keyword")
        assert "never" not in text  # cancelled before its turn
        assert client.end()[0] == 0


STRAY = """
import sys

class Printing:
    def find_spec(self, name, path=None, target=None):
        if name == "pydantic":
            import os, subprocess
            print("stray line", flush=True)
            os.write(1, b"stray bytes\\n")
            subprocess.run([sys.executable, "-S", "-c", "print('stray child')"])

sys.meta_path.insert(0, Printing())
"""


WITHOUT_SDK = """
import importlib.util

real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "mcp_types" else real(name, *more)
"""


def test_without_the_extra_an_error_names_it(home, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_SDK, encoding="utf-8")
    result = subprocess.run(
        [RESERVOIR, "mcp"],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        timeout=PATIENCE,
        text=True,
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert "reservoir-cli[mcp]" in result.stderr
    assert result.stderr.startswith("error: ")


def test_wrong_settings_keep_a_server_from_starting(home):
    home.mkdir()
    (home / "reservoir.toml").write_text("[mcp]\npartitions = 3", encoding="utf-8")
    result = subprocess.run(
        [RESERVOIR, "mcp"], stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE
    )
    assert (result.returncode, result.stdout) == (2, b"")
    assert b"mcp.partitions must be a list of strings" in result.stderr


def test_no_message_text_is_in_errors_or_on_stderr(client_env):
    with RawClient("-p", "canary-partition") as client:
        client.open()
        client.call("remember", text="canaryword and AKIAQ7XN2VD4KLP3ZWTM")
        for arguments in ({"question": "canaryword", "budget": "canaryword"}, {"since": "x"}):
            text, failed = client.call("recall", **arguments)
            assert failed
            assert "canaryword" not in text
        params = {"name": "recall", "arguments": ["canaryword"]}
        assert "canaryword" not in json.dumps(client.request("tools/call", params))
        with closing(sqlite3.connect(client_env / "reservoir.db")) as store, store:
            store.execute("UPDATE messages SET tool_calls = 'canaryword'")
        for tool, arguments in (
            ("recall", {"question": "canaryword"}),
            ("search", {"query": "canaryword"}),
            ("read", {"id": 5}),
        ):
            text, failed = client.call(tool, **arguments)
            assert failed, text
            assert "canaryword" not in text
        assert client.end() == (0, "")


def test_nothing_but_the_protocol_reaches_stdout(client_env, tmp_path):
    (tmp_path / "stray").mkdir()
    (tmp_path / "stray" / "usercustomize.py").write_text(STRAY, encoding="utf-8")
    (tmp_path / "stray" / "sitecustomize.py").write_text(STRAY, encoding="utf-8")
    with RawClient(env={"PYTHONPATH": str(tmp_path / "stray")}) as client:
        client.open()  # the first line on stdout is the answer
        stderr = client.end()[1]
    assert all(f"stray {kind}" in stderr for kind in ("line", "bytes", "child"))


@pytest.mark.parametrize("era", [MODERN, LEGACY])
@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 143), ("SIGINT", 130)])
def test_a_signal_ends_a_server_that_waits_for_a_lock(client_env, era, name, code):
    with (
        RawClient(era=era) as client,
        closing(sqlite3.connect(client_env / "reservoir.db")) as other,
        other,
    ):
        client.open()
        other.execute("BEGIN IMMEDIATE")
        client.ask("tools/call", {"name": "remember", "arguments": {"text": "late"}})
        client.request("tools/list")
        client.process.send_signal(getattr(signal, name))
        assert client.process.wait(PATIENCE) == code


def test_a_signal_ends_an_idle_server(client_env):
    with RawClient() as client:
        client.open()
        client.process.send_signal(signal.SIGHUP)
        assert client.process.wait(PATIENCE) == 143


def test_a_server_ends_with_stdin_whatever_came_before(client_env):
    with start_server() as unread:  # it stops writing after 5 seconds
        line = b'{"jsonrpc": "2.0", "id": "%s", "method": "nothing", "params": {}}\n'
        unread.stdin.write(line % (b"x" * 1_000) * 200)  # more answers than a pipe holds
        unread.stdin.close()
        for opening in (b"", b'{"jsonrpc": "2.0", "method": "x"}\n', b"{"):
            with start_server() as process:
                process.stdin.write(opening)
                assert process.communicate(timeout=PATIENCE)[1] == b"", opening
                assert process.wait(PATIENCE) == 0
        assert unread.wait(PATIENCE) == 0


def test_a_server_ends_when_nobody_reads_its_answers(client_env):
    with start_server() as process:
        process.stdout.close()
        process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        code = process.wait(PATIENCE)  # stdin stays open
        assert (code, process.stderr.read()) == (0, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows tells only the next writer")
def test_an_idle_server_ends_when_nobody_can_read_its_answers(client_env):
    with start_server() as process:
        process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "nothing", "params": {}}\n')
        process.stdin.flush()
        assert process.stdout.readline()
        process.stdout.close()
        assert (process.wait(PATIENCE), process.stderr.read()) == (0, b"")  # stdin stays open


CLIENT = """
import json, subprocess, sys, time
opening = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "x", "version": "1"},
}
servers = []
for number in range(4):
    server = subprocess.Popen(
        [sys.argv[1], "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    servers.append(server)
    if number:
        line = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening}
        server.stdin.write(json.dumps(line).encode() + b"\\n")
        server.stdin.flush()
        server.stdout.readline()
    if number > 1:
        call = {"name": "recall", "arguments": {"question": "why did we drop Redis?"}}
        line = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
        server.stdin.write(json.dumps(line).encode() + b"\\n")
        server.stdin.flush()
print(*(server.pid for server in servers), flush=True)
time.sleep(600)
"""


def test_no_server_outlives_a_client_that_is_killed(client_env):
    psutil = pytest.importorskip(
        "psutil", reason="psutil is not installed: pip install -e '.[dev]'"
    )
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT, forked.program_folder(os.getpid()) / "reservoir"],
        stdout=subprocess.PIPE,
    ) as process:
        servers = [psutil.Process(int(pid)) for pid in process.stdout.readline().split()]
        process.kill()
    assert len(servers) == 4
    deadline = time.monotonic() + PATIENCE
    while alive := [pid for pid in servers if _is_running(psutil, pid)]:
        assert time.monotonic() < deadline, alive
        time.sleep(0.05)


def _is_running(psutil, process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
