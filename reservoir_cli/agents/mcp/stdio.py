"""Transport the protocol's messages between the client's pipes and the SDK's server.

The SDK's own transport waits for the next line of stdin even when stdout is closed, so it outlives
its client. Here a daemon thread reads stdin, and everything else can be cancelled.
"""

import asyncio
import json
import select
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from mcp.types import ErrorData
from mcp.types.jsonrpc import (
    INVALID_REQUEST,
    PARSE_ERROR,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from reservoir_cli.agents.mcp.reserve_pipes import Wire

_MAX_LINE = 4 << 20  #: The longest line in bytes; longer ones are skipped.
_GRACE = 5.0  #: Seconds to answer open requests after stdin has ended.


async def serve(server: Server, wire: Wire) -> None:
    """Serve one client until stdin ends or stdout is closed."""
    session = _WireSession(wire)
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    loop = asyncio.get_running_loop()
    async with anyio.create_task_group() as group:

        def end() -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(group.cancel_scope.cancel)

        threading.Thread(
            target=_await_closing, args=(wire.output.fileno(), end), daemon=True
        ).start()
        group.start_soon(session.read, to_server, to_client.clone())
        group.start_soon(session.write, from_server, group.cancel_scope)
        await server.run(from_client, to_client, server.create_initialization_options())
        group.cancel_scope.cancel()


def _await_closing(output: int, end: Callable[[], None]) -> None:
    """Call a function when the reader of a pipe has closed it; runs in a thread."""
    if sys.platform != "win32":
        poll = select.poll()
        poll.register(output, 0)  # errors and the end are always reported
        poll.poll()
        end()


class _WireSession:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._open: set[str] = set()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = threading.Semaphore(16)

    async def read(
        self,
        to_server: ObjectSendStream[SessionMessage | Exception],
        to_client: ObjectSendStream[SessionMessage],
    ) -> None:
        """Pass the client's messages to the server, and close the stream when all are answered."""
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._read_lines, args=(loop,), daemon=True).start()
        async with to_server, to_client:
            while (line := await self._lines.get()) is not None:
                self._room.release()
                message = _parse(line)
                if isinstance(message, ErrorData):
                    answer = JSONRPCError(jsonrpc="2.0", id=None, error=message)
                    await to_client.send(SessionMessage(answer))
                else:
                    self._note_request(message)
                    await to_server.send(SessionMessage(message))
            with anyio.move_on_after(_GRACE):
                while self._open:
                    await anyio.sleep(0.01)

    def _read_lines(self, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(RuntimeError, OSError):  # the loop has ended, or stdin cannot be read
            while line := self._wire.input.readline(_MAX_LINE):
                if len(line) == _MAX_LINE and not line.endswith(b"\n"):
                    while (rest := self._wire.input.readline(_MAX_LINE)) and rest[-1:] != b"\n":
                        pass
                    line = b""  # reported as an invalid message
                elif not line.strip():
                    continue
                self._room.acquire()
                loop.call_soon_threadsafe(self._lines.put_nowait, line)
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._lines.put_nowait, None)

    def _note_request(self, message: JSONRPCMessage) -> None:
        """Record an open request; drop one that the client cancels, which gets no answer."""
        match message:
            case JSONRPCRequest(id=number):
                self._open.add(str(number))
            case JSONRPCNotification(
                method="notifications/cancelled", params={"requestId": number}
            ):
                self._open.discard(str(number))

    async def write(
        self, from_server: ObjectReceiveStream[SessionMessage], scope: anyio.CancelScope
    ) -> None:
        """Write the server's messages; end the session when the client has closed its pipe."""
        async with from_server:
            async for message in from_server:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    # The write is abandoned if the session ends while the client does not read.
                    await anyio.to_thread.run_sync(
                        self._write, text.encode() + b"\n", abandon_on_cancel=True
                    )
                except OSError:
                    scope.cancel()
                    return
                if isinstance(message.message, JSONRPCResponse | JSONRPCError):
                    self._open.discard(str(message.message.id))

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            rest = rest[self._wire.output.write(rest) :]


def _replace_surrogates(line: bytes) -> bytes:
    """Replace halves of surrogate pairs, for which the SDK would reject the message unanswered."""
    if rb"\ud" not in line.lower():
        return line
    try:
        return json.dumps(json.loads(line), ensure_ascii=False).encode("utf-8", "replace")
    except (ValueError, RecursionError):
        return line


def _parse(line: bytes) -> JSONRPCMessage | ErrorData:
    try:
        return jsonrpc_message_adapter.validate_json(_replace_surrogates(line), by_name=False)
    except ValueError as error:
        if "Invalid JSON" in str(error):
            return ErrorData(code=PARSE_ERROR, message="not JSON, or longer than 4 MB")
        return ErrorData(code=INVALID_REQUEST, message="not a JSON-RPC message")
