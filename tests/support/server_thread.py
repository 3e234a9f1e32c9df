"""Run a server of this process in a thread, and end it at once."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import plain_http
import short_sleeps  # noqa: F401 - the servers of this process end at once
import uvicorn

PATIENCE = 300.0


@contextmanager
def running(
    server: uvicorn.Server, listener: socket.socket, ready: threading.Event
) -> Iterator[None]:
    """Serve until the block ends.

    :param ready: set by the server once it accepts requests.
    """
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    try:
        with plain_http.without_certificates():
            thread.start()
            assert ready.wait(PATIENCE), "the server does not answer"
        yield
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
