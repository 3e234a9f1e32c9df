"""A fake model provider on 127.0.0.1 that sends exactly the bytes that a test sets."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

#: A piece of an answer that closes the connection in the middle.
CUT = "cut"
#: A piece of an answer that waits for the test.
HOLD = "hold"
Piece = bytes | str


@dataclass
class ReceivedRequest:
    """A request as it was received."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)


@dataclass
class Reply:
    """An answer that is sent piece by piece.

    :param framing: ``chunked``, ``length``, or ``close`` for a body that ends with the connection.
    """

    pieces: Sequence[Piece]
    kind: str = "text/event-stream"
    status: int = 200
    framing: str = "chunked"
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def whole(self) -> bytes:
        return b"".join(piece for piece in self.pieces if isinstance(piece, bytes))


class Upstream(ThreadingHTTPServer):
    """A server that answers with ``reply``, or with the result of ``answer``."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[ReceivedRequest] = []
        self.reply = Reply([b"{}"], "application/json", framing="length")
        self.answer: Callable[[ReceivedRequest], Reply] = lambda _: self.reply
        self.going_on = threading.Event()
        self.gone = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def running() -> Iterator[Upstream]:
    """Serve until the block ends."""
    with Upstream() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.going_on.set()
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: Upstream
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else a body waits 40 ms for the receipt of its head

    def log_message(self, *_: object) -> None:
        pass

    def handle(self) -> None:
        with suppress(ConnectionError):
            super().handle()

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = ReceivedRequest(self.command, self.path, list(self.headers.items()), body)
        self.server.requests.append(request)
        reply = self.server.answer(request)
        self.send_response_only(reply.status)
        self.send_header("Content-Type", reply.kind)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.framing == "length":
            self.send_header("Content-Length", str(len(reply.whole)))
        elif reply.framing == "chunked":
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        self._send(reply)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _any

    def _send(self, reply: Reply) -> None:
        chunked = reply.framing == "chunked"
        try:
            for piece in reply.pieces:
                if piece == HOLD:
                    self._wait()
                elif isinstance(piece, str):  # CUT
                    self.close_connection = True
                    return
                elif piece:
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            if chunked:
                self.wfile.write(b"0\r\n\r\n")
        except ConnectionError:
            self.server.gone.set()
            self.close_connection = True

    def _wait(self) -> None:
        """Wait for the test, or until the client closes the connection."""
        self.connection.setblocking(False)
        try:
            while not self.server.going_on.is_set():
                with suppress(BlockingIOError):
                    if self.connection.recv(1) == b"":
                        raise ConnectionResetError
                time.sleep(0.01)
        finally:
            self.connection.setblocking(True)
