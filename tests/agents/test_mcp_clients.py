"""The MCP server with common clients: both versions of the SDK, and the inspector.

``make clients`` installs those that the ``dev`` extra lacks, and runs these tests with them.
"""

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import forked
import pytest
from mcp_client import LEGACY, MODERN, PATIENCE, RESERVOIR

from reservoir_cli.agents.mcp.server import INSTRUCTIONS
from reservoir_cli.messages import Message
from reservoir_cli.reservoir import Reservoir

#: Read before the temporary home of the tests hides all variables.
OTHERS = {
    "mcp 1.30": os.environ.get("RESERVOIR_TEST_MCP_1"),
    "inspector": os.environ.get("RESERVOIR_TEST_INSPECTOR"),
}
NEEDED = ("HOME", "PATH", "RESERVOIR_HOME", "RESERVOIR_EMBEDDING_MODEL")

#: Tool, arguments, whether it fails, and a part of the answer.
CALLS: list[tuple[str, dict[str, Any], bool, str]] = [
    ("recall", {"question": "why did we drop Redis?", "budget": 500}, False, "214 jobs"),
    ("recall", {"quest": "why did we drop Redis?"}, True, "no parameter 'quest'"),
    ("search", {"query": "failover"}, False, "[#1]"),
    ("search", {"query": "failover", "limit": 5_000}, True, "as limit"),
    ("read", {"id": 1, "around": 0}, False, ", user: "),
    ("read", {"id": 99}, True, "no message #99"),
    ("remember", {"text": "We use PostgreSQL now."}, False, "Stored as [#2]."),
    ("remember", {}, True, "needs text"),
]
Session = dict[str, Any]


@pytest.fixture(autouse=True)
def stored_message(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create a store with one message, and configure no model."""
    monkeypatch.setenv("RESERVOIR_EMBEDDING_MODEL", "nobody/absent-model")
    with Reservoir.open() as reservoir:
        text = "Redis lost 214 jobs in the failover, so why did we not drop it?"
        reservoir.ingest([Message("user", text)], embed=False)


def environment() -> dict[str, str]:
    return {name: os.environ[name] for name in NEEDED}


def with_sdk_2(mode: str) -> Session:
    mcp = pytest.importorskip("mcp", reason="mcp 2.3 is not installed: pip install -e '.[dev]'")
    if not hasattr(mcp, "Client"):
        pytest.skip("mcp 2.3 is not installed, but an older one: pip install -e '.[dev]'")
    program = forked.program_folder(os.getpid()) / "reservoir"
    server = mcp.StdioServerParameters(command=str(program), args=["mcp"], env=environment())

    async def session() -> Session:
        async with mcp.Client(server, mode=mode, read_timeout_seconds=PATIENCE) as client:
            answers = []
            for tool, arguments, _, _ in CALLS:
                result = await client.call_tool(tool, arguments)
                (content,) = result.content
                answers.append([content.text, result.is_error, result.structured_content])
            return {
                "protocol": client.protocol_version,
                "instructions": client.instructions,
                "tools": [tool.name for tool in (await client.list_tools()).tools],
                "answers": answers,
            }

    return asyncio.run(session())


def with_sdk_1(_mode: str) -> Session:
    calls = json.dumps([[tool, arguments] for tool, arguments, _, _ in CALLS])
    script = Path(__file__).with_name("mcp_1_client.py")
    result = subprocess.run(
        [installed("mcp 1.30"), script, calls, RESERVOIR, "mcp"],
        env=environment(),
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    return json.loads(result.stdout)


def with_inspector(_mode: str) -> Session:
    def inspect(method: str, *options: str) -> Any:
        variables = [word for name in NEEDED for word in ("-e", f"{name}={os.environ[name]}")]
        command = [installed("inspector"), "--cli", *variables, RESERVOIR, "mcp"]
        completed = subprocess.run(
            [*command, "--method", method, *options], capture_output=True, timeout=PATIENCE
        )
        return json.loads(completed.stdout)

    answers = []
    for tool, arguments, _, _ in CALLS:
        pairs = [f"{name}={value}" for name, value in arguments.items()]
        tool_options = ["--tool-arg", *pairs] if pairs else []
        result = inspect("tools/call", "--tool-name", tool, *tool_options)
        (content,) = result["content"]
        failed = bool(result.get("isError"))
        answers.append([content["text"], failed, result.get("structuredContent")])
    tools = [tool["name"] for tool in inspect("tools/list")["tools"]]
    return {"tools": tools, "answers": answers}


def installed(client: str) -> str:
    path = OTHERS[client]
    if not path:
        pytest.skip(f"{client} is not installed: make clients")
    return path


CLIENTS = [
    ("mcp 2.3, probing", with_sdk_2, "auto", MODERN),
    ("mcp 2.3, modern", with_sdk_2, MODERN, MODERN),
    ("mcp 2.3, handshake", with_sdk_2, "legacy", LEGACY),
    pytest.param("mcp 1.30", with_sdk_1, "", LEGACY, marks=pytest.mark.clients),
    pytest.param("inspector", with_inspector, "", None, marks=pytest.mark.clients),
]


@pytest.mark.parametrize(("name", "run", "mode", "protocol"), CLIENTS)
def test_a_client_lists_and_calls_the_tools(name, run, mode, protocol):
    session = run(mode)
    assert session["tools"] == ["recall", "search", "read", "remember", "forget"]
    # Clients that name the revision themselves do not ask for instructions.
    assert session.get("instructions") in (INSTRUCTIONS, None)
    assert session.get("protocol") in (protocol, None)
    for (tool, arguments, fails, part), (text, failed, structured) in zip(
        CALLS, session["answers"], strict=True
    ):
        assert (failed, structured) == (fails, None), (tool, arguments, text)
        assert part in text


def test_a_client_of_the_sdk_cancels_a_call():
    mcp = pytest.importorskip("mcp", reason="mcp 2.3 is not installed: pip install -e '.[dev]'")
    import sqlite3

    server = mcp.StdioServerParameters(command=str(RESERVOIR), args=["mcp"], env=environment())

    async def session() -> str:
        async with mcp.Client(server, read_timeout_seconds=PATIENCE) as client:
            await client.list_tools()
            other = sqlite3.connect(Path(os.environ["RESERVOIR_HOME"]) / "reservoir.db")
            other.execute("BEGIN IMMEDIATE")
            try:
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(client.call_tool("remember", {"text": "late"}), 0.5)
            finally:
                other.rollback()
                other.close()
            return (await client.call_tool("read", {"id": 1})).content[0].text

    assert "[#1]" in asyncio.run(session())
