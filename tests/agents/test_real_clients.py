"""Real clients, set up by ``reservoir connect`` only, list and call our server.

``make clients`` installs them and runs this. Each has an empty home, no input, and our fake
provider only.
"""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from fake_provider import ANSWER, FakeProvider, running
from real_clients import KEYS, PROGRAMS, QUIET, Person, write_settings

from reservoir_cli.agents.connect import CLIENTS

RESERVOIR = Path(sys.executable).with_name("reservoir")
NAMES = ("claude", "codex", "gemini", "opencode")
HOOKED = NAMES[:3]
TEXT = "Redis lost 214 jobs in the failover, so the queue moved to PostgreSQL."
ASKING = {
    "claude": ("-p", "--allowedTools", "mcp__reservoir", "--"),
    "codex": (
        *("exec", "--skip-git-repo-check", "--sandbox", "read-only"),
        "--dangerously-bypass-hook-trust",
    ),
    "gemini": ("-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p"),
    "opencode": ("run",),
}
RESUMING = {
    "claude": ("--continue", *ASKING["claude"]),
    "codex": (*ASKING["codex"], "resume", "--last"),
    "gemini": ("-r", "latest", *ASKING["gemini"]),
    "opencode": ("run", "-c"),
}

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(PROGRAMS is None, reason="needs real clients: make clients"),
    pytest.mark.skipif(os.name != "posix", reason="the clients are run in a POSIX environment"),
]


@pytest.fixture(scope="module")
def provider() -> Any:
    with running() as server:
        yield server


@pytest.fixture
def person(user: Path, provider: FakeProvider) -> Callable[[str], Person]:
    """Return a user with a client, its settings (with comments if it reads them), and a store."""

    def with_client(name: str) -> Person:
        if shutil.which(name, path=PROGRAMS) is None:
            pytest.skip(f"{name} is not in {PROGRAMS}")
        if find_spec("mcp_types") is None:
            pytest.skip("the extra mcp is not installed")
        (user / "project").mkdir()
        write_settings(name, provider.url)
        env = {"HOME": str(user), "PATH": f"{PROGRAMS}:/usr/bin:/bin", "LANG": "C.UTF-8"}
        env |= QUIET | KEYS | {"TERM": "dumb", "ANTHROPIC_BASE_URL": provider.url}
        env |= {"GOOGLE_GEMINI_BASE_URL": provider.url, "HF_HUB_OFFLINE": "1"}
        person = Person(user, name, env)
        person.run(RESERVOIR, "ingest", "--no-embed", "-p", "work", stdin=TEXT)
        return person

    return with_client


def connected(person: Person, *options: str) -> dict[str, bytes]:
    """Connect a user's client; return its previous settings."""
    before = person.files()
    person.run(RESERVOIR, "connect", person.client, "-p", "work", *options)
    assert person.files() != before
    return before


@pytest.mark.parametrize("name", NAMES)
def test_settings_are_the_same_bytes_after_connect_and_disconnect(person, name):
    user = person(name)
    before = connected(user, *(["--hooks"] if name in HOOKED else []))
    second = user.run(RESERVOIR, "connect", name, "-p", "work")
    assert "is connected already" in second
    user.run(RESERVOIR, "disconnect", name)
    assert user.files() == before


@pytest.mark.parametrize("name", NAMES)
def test_the_client_lists_our_server(person, name):
    user = person(name)
    before = connected(user)
    listed = user.run(name, "mcp", "list")
    assert re.search(rf"reservoir.*{re.escape(str(RESERVOIR))}", listed, re.S), listed
    assert re.search(r"[Cc]onnected|enabled", listed), listed
    assert not re.search(r"[Ff]ailed|[Dd]isconnected", listed), listed
    user.run(RESERVOIR, "disconnect", name)
    after = user.files()
    assert "reservoir" not in str(after)
    if name != "claude":  # the client counts its starts in this file
        assert after == before


@pytest.mark.parametrize("name", NAMES)
def test_the_client_calls_our_tool(person, provider, name):
    user = person(name)
    connected(user)
    if name == "codex":  # it does not wait longer than a second for tools
        with CLIENTS["codex"].settings().open("a", encoding="utf-8") as file:
            file.write("required = true\n")
    del provider.bodies[:]
    assert ANSWER in user.run(name, *ASKING[name], "What happened?")
    results = [json.dumps(body, ensure_ascii=False) for body in provider.bodies]
    assert any("lost 214 jobs" in text for text in results), "recall was not called"
    user.run(RESERVOIR, "disconnect", name)
    assert b"reservoir" not in b"".join(user.files().values())


def call_of(person: Person, provider: FakeProvider, tool: str, **arguments: Any) -> list[Any]:
    """Let the client call a tool; return the notes that are stored then."""
    provider.call = (tool, arguments)
    try:
        person.run(person.client, *ASKING[person.client], "Keep that in mind.")
    finally:
        del provider.call
    printed = person.run(RESERVOIR, "view", "0", "-i", "mcp", "--quiet", "--jsonl")
    rows = [json.loads(line) for line in printed.splitlines()]
    return [(row["id"], row["content"]) for row in rows]


@pytest.mark.parametrize("name", NAMES)
def test_the_client_corrects_a_note_of_its_own(person, provider, name):
    user = person(name)
    user.run(RESERVOIR, "config", "--set", "partition=work")
    connected(user)
    if name == "codex":  # it asks before a tool deletes, and without a terminal refuses it
        with CLIENTS["codex"].settings().open("a", encoding="utf-8") as file:
            file.write("required = true\n\n[mcp_servers.reservoir.tools.forget]\n")
            file.write('approval_mode = "approve"\n')
    [(first, text)] = call_of(user, provider, "remember", text="The queue runs on Redis.")
    assert text == "The queue runs on Redis."
    better = "The queue runs on PostgreSQL."
    [(second, text)] = call_of(user, provider, "remember", text=better, replaces=first)
    assert (text, second > first) == (better, True)
    assert call_of(user, provider, "forget", id=second) == []


def ask_with_hook(person: Person, provider: FakeProvider, question: str) -> None:
    """Ask a question; again if the hook was ended at its time limit, as on a busy machine."""
    for _ in range(4):
        ended = count_failed_hooks(person)
        del provider.bodies[:]
        person.run(person.client, *ASKING[person.client], question)
        if count_failed_hooks(person) == ended:
            return
    pytest.skip("the machine is too busy for a hook to keep its time limit")


def count_failed_hooks(person: Person) -> int:
    printed = person.run(RESERVOIR, "recall", "--last", "--json")
    return len(json.loads(printed[printed.index("{") :])["failed_hooks"])


@pytest.mark.parametrize("name", HOOKED)
def test_a_hook_adds_recalled_text_after_the_question(person, provider, name):
    user = person(name)
    user.run(RESERVOIR, "config", "--set", "partition=work")
    connected(user, "--hooks")
    ask_with_hook(user, provider, "Why did the queue leave Redis?")
    first = next(
        text
        for text in (json.dumps(body, ensure_ascii=False) for body in provider.bodies)
        if "Why did the queue leave Redis?" in text and "lost 214 jobs" in text
    )
    assert first.index("Recalled Messages") > 0


@pytest.mark.parametrize("name", HOOKED)
def test_what_a_hook_added_is_listed_and_a_file_in_the_folder_stops_it(person, provider, name):
    user = person(name)
    user.run(RESERVOIR, "config", "--set", "partition=work")
    connected(user, "--hooks")
    ask_with_hook(user, provider, "Why did the queue leave Redis?")
    listed = user.run(RESERVOIR, "recall", "--last", "--client", name, "--json")
    rows = json.loads(listed[listed.index("{") :])["injections"]
    (added,) = [row for row in rows if row["door"] == "hook"]  # others are of the tool
    assert (added["client"], added["ids"]) == (name, [1])
    (user.home / "project" / ".reservoir-off").touch()
    del provider.bodies[:]
    user.run(name, *ASKING[name], "What was wrong with Redis and the queue?")
    sent = json.dumps(provider.bodies, ensure_ascii=False)
    assert "What was wrong with Redis" in sent
    assert "lost 214 jobs" not in sent


def synced(person: Person) -> int:
    """Sync; return how many messages are new."""
    printed = person.run(RESERVOIR, "sync", "--no-embed", "--json")
    report = json.loads(printed[printed.index("{") :])  # behind the summary
    return sum(source["imported"] for source in report["sources"])


@pytest.mark.parametrize("name", NAMES)
def test_sync_imports_a_session_once_and_adds_new_messages_when_it_is_resumed(person, name):
    user = person(name)
    connected(user)
    user.run(name, *ASKING[name], "What happened?")
    assert synced(user) > 0
    assert synced(user) == 0
    user.run(name, *RESUMING[name], "And then?")
    assert synced(user) > 0
    assert synced(user) == 0
    printed = user.run(RESERVOIR, "view", "0", "--quiet", "--jsonl")
    rows = [json.loads(line) for line in printed.splitlines()]
    messages = [(row["role"], row["content"].strip('"')) for row in rows]  # opencode quotes prompts
    for question in ("What happened?", "And then?"):
        assert messages.count(("user", question)) == 1
    assert ("assistant", ANSWER) in messages
