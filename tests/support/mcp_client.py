"""An MCP client without an SDK, to send invalid messages and to end sessions abruptly."""

import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Self

if os.name == "posix":
    from forked_session import ForkedProcess

RESERVOIR = Path(sys.executable).with_name("reservoir")
#: Long enough for a slow machine; a server that hangs is still ended.
PATIENCE = 300
MODERN, LEGACY, OLDER = "2026-07-28", "2025-11-25", "2025-06-18"
ERAS = (MODERN, LEGACY, OLDER)
_META = "io.modelcontextprotocol/"


def start_server(
    *options: str, env: dict[str, str] | None = None, cwd: Path | None = None
) -> "subprocess.Popen[bytes] | ForkedProcess":
    """Start a server; to fork it takes a twentieth of the time, as it need not load the SDK.

    :param env: variables for Python itself: with them, the server is not forked.
    """
    if env is None and os.name == "posix":
        return ForkedProcess("mcp", *options, env=os.environ, folder=cwd or Path.cwd())
    return subprocess.Popen(
        [RESERVOIR, "mcp", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **(env or {})},
        cwd=cwd,
    )


class RawClient:
    """A client of one server process.

    :param era: the protocol revision that it speaks.
    :param env: variables for Python itself, as of `start_server`.
    """

    def __init__(
        self,
        *options: str,
        era: str = LEGACY,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        roots: list[Path] | None = None,
    ) -> None:
        self.era, self.roots = era, roots
        self.process = start_server(*options, env=env, cwd=cwd)
        self.lines: queue.Queue[bytes] = queue.Queue()
        self.server_requests: list[str] = []
        self._number = 0
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                try:
                    stream.close()
                except OSError:
                    pass
        self.process.wait(PATIENCE)

    def _read(self) -> None:
        assert self.process.stdout
        try:
            for line in self.process.stdout:
                self.lines.put(line)
        except ValueError:  # the test closed it
            pass
        self.lines.put(b"")

    def send(self, message: dict[str, Any] | bytes) -> None:
        """Write a message, or a raw line."""
        assert self.process.stdin
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """Return the server's next response; answer its own requests first."""
        while True:
            line = self.lines.get(timeout=PATIENCE)
            assert line, f"the server has ended: {self.end()}"
            message = json.loads(line)
            if "method" not in message:
                return message
            self.server_requests.append(message["method"])
            roots = [{"uri": root.as_uri()} for root in self.roots or ()]
            self.send({"jsonrpc": "2.0", "id": message["id"], "result": {"roots": roots}})

    def ask(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request; return its id."""
        self._number += 1
        params = dict(params or {})
        if self.era == MODERN:
            params["_meta"] = {
                f"{_META}protocolVersion": MODERN,
                f"{_META}clientInfo": {"name": "raw", "version": "1"},
                f"{_META}clientCapabilities": {},
            }
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._number

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request; return its response."""
        number = self.ask(method, params)
        answer = self.receive()
        assert answer["id"] == number
        return answer

    def open(self) -> dict[str, Any]:
        """Open a session as the era requires; return the result with the instructions."""
        if self.era == MODERN:
            return self.request("server/discover")["result"]
        capabilities = {} if self.roots is None else {"roots": {}}
        params = {
            "protocolVersion": self.era,
            "capabilities": capabilities,
            "clientInfo": {"name": "raw", "version": "1"},
        }
        opened = self.request("initialize", params)["result"]
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return opened

    def call(self, tool: str, **arguments: Any) -> tuple[str, bool]:
        """Call a tool; return its text, and whether it failed."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})["result"]
        assert "structuredContent" not in result
        (content,) = result["content"]
        assert content["type"] == "text"
        return content["text"], bool(result.get("isError"))

    def end(self) -> tuple[int, str]:
        """Close stdin and wait; return the exit code and stderr."""
        assert self.process.stdin
        assert self.process.stderr
        try:
            self.process.stdin.close()
        except OSError:
            pass
        errors = self.process.stderr.read().decode()
        return self.process.wait(PATIENCE), errors
