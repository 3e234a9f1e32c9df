"""Real libraries and agents through ``reservoir serve``, which changes each request only once.

``make clients`` installs them and runs this. What a client sends is compared with what the provider
gets, and the other way round, byte for byte.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from fake_provider import ANSWER, FakeProvider, running
from real_clients import KEYS, PROGRAMS, QUIET, Person, write_settings

from reservoir_cli.messages import Message, Scope, StoredMessage
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.util import timeouts

if all(map(find_spec, ("starlette", "uvicorn", "httpx2", "mcp_types"))):
    import proxied
    from proxied import Served
    from starlette.types import ASGIApp, Receive, Send


pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(PROGRAMS is None, reason="needs real clients: make clients"),
    pytest.mark.skipif(find_spec("uvicorn") is None, reason="the extra serve is not installed"),
    pytest.mark.skipif(os.name != "posix", reason="the clients are run in a POSIX environment"),
]

#: The Python that has the libraries; ``make clients`` sets it.
LIBRARIES = os.environ.get("RESERVOIR_TEST_LIBRARIES")
SCRIPTS = Path(__file__).with_name("sdks")
OLDER = "We drop Redis for the job queue because it lost jobs in March."
QUESTION, NEXT = "why did we drop Redis for the job queue?", "and what of the job queue then?"
_BLOCK = re.compile(rb"\\n\\n\[Reservoir context\].*?\[/Reservoir [a-z]{7}\]", re.DOTALL)
#: Clients with their arguments for a question and for a follow-up.
AGENTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "claude": (("-p", "--allowedTools", "Bash", "--"), ("--continue",)),
    "codex": (
        ("exec", "--skip-git-repo-check", "--sandbox", "danger-full-access"),
        ("resume", "--last"),
    ),
    "opencode": (("run",), ("-c",)),
}
#: Formats and paths of the clients' own histories, below the home.
HISTORIES = {
    "claude": ("claude-code", ".claude/projects"),
    "codex": ("codex", ".codex/sessions"),
    "opencode": ("opencode", ".local/share/opencode/opencode.db"),
}


@dataclass
class Tap:
    """Record what clients send to our server, and what they receive."""

    sent: list[bytes] = field(default_factory=list)
    received: list[bytes] = field(default_factory=list)

    def __call__(self, app: "ASGIApp") -> "ASGIApp":
        async def listening(scope: Any, receive: "Receive", send: "Send") -> None:
            if scope["type"] != "http" or scope["method"] != "POST":
                await app(scope, receive, send)
                return
            sent, received = bytearray(), bytearray()

            async def hear() -> Any:
                message = await receive()
                sent.extend(message.get("body", b""))
                return message

            async def say(message: Any) -> None:
                received.extend(message.get("body", b""))
                await send(message)

            await app(scope, hear, say)
            self.sent.append(bytes(sent))
            self.received.append(bytes(received))

        return listening


@dataclass
class Relay:
    """A server between a client and a provider."""

    served: "Served"
    provider: FakeProvider
    tap: Tap

    def stored(self) -> list[StoredMessage]:
        """Return the messages that the proxy stored."""
        self.served.settle(0)
        with Reservoir.open(self.served.store) as reservoir:
            rows = reservoir.view(Scope("default"), 0)
        return [row for row in rows if row.source == "proxy"]

    def check_bytes(self) -> None:
        """Compare the bytes of client and provider."""
        assert sorted(_BLOCK.sub(b"", raw) for raw in self.provider.raw) == sorted(self.tap.sent)
        assert sorted(self.provider.answers) == sorted(self.tap.received)

    def print_figures(self) -> None:
        """Print figures for ``pytest -rP``."""
        sizes = [len(raw) for raw in self.provider.raw]
        requests = f"{len(sizes)} requests of {sizes} bytes, blocks {self.blocks()}"
        roles = " ".join(str(row.role) for row in self.stored())
        sys.stdout.write(f"{requests}; stored: {roles}\n")

    def blocks(self) -> list[int]:
        """Return how many blocks the proxy added to each request."""
        counts = [len(_BLOCK.findall(raw)) for raw in self.provider.raw]
        return [count for count in counts if count]


@pytest.fixture
def relay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    monkeypatch.setenv("RESERVOIR_EMBEDDING_MODEL", "nobody/absent-model")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setattr(timeouts, "RECALL_OF_REQUEST", 60.0)  # generous for a loaded machine
    store, tap = tmp_path / "store.db", Tap()
    with Reservoir.open(store) as reservoir:
        spring = datetime(2026, 3, 5, 12, tzinfo=UTC)
        reservoir.ingest([Message("user", OLDER, created_at=spring)], embed=False)
    with running() as provider:
        urls = dict.fromkeys(("openai", "anthropic", "ollama"), provider.url)
        with proxied.serving(store, urls, tap) as served:
            yield Relay(served, provider, tap)


def run_program(*command: str | Path, cwd: Path, **env: str) -> list[str]:
    """Run a program to its end; return the lines that it printed."""
    plain = {"PATH": f"{PROGRAMS}:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(cwd)}
    result = subprocess.run(
        command,
        cwd=cwd,
        env=plain | KEYS | env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=180,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def library(name: str) -> str:
    """Return the Python that has a library."""
    if LIBRARIES is None:
        pytest.skip("RESERVOIR_TEST_LIBRARIES names no Python with the libraries")
    imported = subprocess.run([LIBRARIES, "-c", f"import {name}"], capture_output=True, check=False)
    if imported.returncode:
        pytest.skip(f"{name} is not installed for {LIBRARIES}")
    return LIBRARIES


def check(relay: Relay, printed: list[str], answers: int) -> list[StoredMessage]:
    """Check what a library printed, sent and stored."""
    assert printed == [ANSWER] * answers
    relay.check_bytes()
    assert set(relay.blocks()) == {1}
    assert len(relay.blocks()) == len(relay.provider.raw)
    rows = relay.stored()
    assert [row.content for row in rows if row.role == "user"] == [QUESTION]
    assert [row.content for row in rows if row.role == "tool"] == ["42"]
    assert ANSWER in [row.content for row in rows if row.role == "assistant"]
    assert [call.name for row in rows for call in row.tool_calls] == ["look"]
    relay.print_figures()
    return rows


@pytest.mark.parametrize(
    ("name", "answers"), [("openai", 4), ("anthropic", 2), ("ollama", 2), ("langchain", 4)]
)
def test_a_library_asks_streams_and_calls_tools_through_the_proxy(relay, tmp_path, name, answers):
    python = library({"langchain": "langchain_openai, langchain_anthropic"}.get(name, name))
    script = SCRIPTS / f"{name}_client.py"
    printed = run_program(python, script, relay.served.root, QUESTION, cwd=tmp_path)
    check(relay, printed, answers)


def test_the_ai_sdk_asks_streams_and_calls_tools(relay, tmp_path):
    node = shutil.which("node", path=PROGRAMS)
    modules = Path(str(PROGRAMS)).parent
    if node is None or not (modules / "ai").is_dir():
        pytest.skip(f"node and ai are not in {modules}")
    script = SCRIPTS / "ai_client.mjs"
    printed = run_program(node, script, relay.served.root, QUESTION, str(modules), cwd=tmp_path)
    check(relay, printed, 4)


def test_llm_asks_streams_and_calls_tools(relay, tmp_path):
    python = library("llm")
    model = {"model_id": "fake", "model_name": "m", "supports_tools": "true"}
    model |= {"api_base": f"{relay.served.root}/v1"}
    lines = "".join(f"  {key}: {value}\n" for key, value in model.items())
    (tmp_path / "extra-openai-models.yaml").write_text(f"-{lines[1:]}", encoding="utf-8")
    ask = (python, "-m", "llm", "prompt", "-m", "fake", QUESTION)
    function = "def look(question: str) -> str:\n    return '42'\n"
    env = {"LLM_USER_PATH": str(tmp_path)}
    printed = run_program(*ask, "--no-stream", cwd=tmp_path, **env)
    printed += run_program(*ask, "--functions", function, cwd=tmp_path, **env)
    check(relay, [line for line in printed if line], 2)


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_asks_calls_tools_and_asks_a_follow_up(relay, user, name):
    if shutil.which(name, path=PROGRAMS) is None:
        pytest.skip(f"{name} is not in {PROGRAMS}")
    person = agent_of(user, name, relay.served.root)
    first, going_on = AGENTS[name]
    options = [*first[:1], *going_on, *first[1:]] if name == "opencode" else [*going_on, *first]
    options = [*first, *going_on] if name == "codex" else options
    assert ANSWER in person.run(name, *first, QUESTION)
    assert ANSWER in person.run(name, *options, NEXT)
    relay.check_bytes()
    assert 1 in relay.blocks()
    rows = relay.stored()
    questions = [row.content.strip('"') for row in rows if row.role == "user"]
    assert questions == [QUESTION, NEXT]  # opencode quotes prompts
    results = [row.content for row in rows if row.role == "tool"]
    assert len(results) == 1
    assert "42" in results[0]
    assert len({row.conversation_id for row in rows}) == 1
    relay.print_figures()
    form, below = HISTORIES[name]
    with Reservoir.open(relay.served.store) as reservoir:
        report = reservoir.import_files(user / below, form=form)
        assert (report.imported, report.already) == (0, len(rows))
        # Importing the client's history does not restore forgotten messages.
        reservoir.forget([row.key for row in rows])
        report = reservoir.import_files(user / below, form=form)
        assert report.imported == 0
        assert report.forgotten >= len(rows)


def agent_of(user: Path, name: str, root: str) -> Person:
    """Return a user whose client asks our server."""
    (user / "project").mkdir()
    write_settings(name, root)
    env = {"HOME": str(user), "PATH": f"{PROGRAMS}:/usr/bin:/bin", "LANG": "C.UTF-8"}
    env |= QUIET | KEYS | {"TERM": "dumb", "ANTHROPIC_BASE_URL": root}
    return Person(user, name, env)
