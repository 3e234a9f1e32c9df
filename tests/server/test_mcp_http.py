"""MCP over HTTP, on the port of the proxy."""

import json
from typing import Any

import plain_http
import pytest
from proxied import Served

from reservoir_cli.messages import Message
from reservoir_cli.reservoir import Reservoir

HEADERS = {"Accept": "application/json, text/event-stream"}
QUESTION = "why did we drop Redis for the job queue?"


@pytest.fixture(autouse=True)
def older(store_path) -> None:
    with Reservoir.open(store_path) as reservoir:
        reservoir.ingest(
            [Message("user", "We drop Redis: it lost jobs of the queue.")], embed=False
        )


def call(served: Served, method: str, params: Any, version: str = "2025-06-18") -> Any:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {**HEADERS, "MCP-Protocol-Version": version}
    answer = plain_http.post(f"{served.root}/mcp", json=request, headers=headers, timeout=60)
    assert answer.status_code == 200, answer.text
    line = next(line for line in answer.text.splitlines() if line.startswith("data: {"))
    return json.loads(line.removeprefix("data: "))["result"]


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_a_client_opens_and_calls_the_tools(served, version):
    client = {"name": "test", "version": "1"}
    opening = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    assert call(served, "initialize", opening)["serverInfo"]["name"] == "reservoir"
    listed = call(served, "tools/list", {}, version)["tools"]
    assert [tool["name"] for tool in listed] == ["recall", "search", "read", "remember", "forget"]
    parameters = {"name": "recall", "arguments": {"question": QUESTION}}
    (content,) = call(served, "tools/call", parameters, version)["content"]
    assert "it lost jobs of the queue" in content["text"]


def test_a_client_of_the_newest_revision_needs_no_session(served):
    from mcp import Client
    from mcp.types import TextContent

    async def use() -> str:
        async with Client(f"{served.root}/mcp") as client:
            result = await client.call_tool("recall", {"question": QUESTION})
            (content,) = result.content
            assert isinstance(content, TextContent)
            return content.text

    import anyio

    assert "it lost jobs of the queue" in anyio.run(use)


def test_requests_without_token_or_with_a_foreign_host_are_refused(served):
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    origin = served.state.origin
    assert plain_http.post(f"{origin}/mcp", json=request, headers=HEADERS).status_code == 401
    for foreign in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        url = f"{served.root}/mcp"
        assert plain_http.post(url, json=request, headers=HEADERS | foreign).status_code == 403
