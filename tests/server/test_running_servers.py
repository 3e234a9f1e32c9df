"""The list of running servers after a kill or a power cut, and false servers at their ports."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import forked
import pytest

from reservoir_cli.server import running_servers
from reservoir_cli.server.handshake import ServerIdentity
from reservoir_cli.server.running_servers import RunningServer
from reservoir_cli.settings import paths
from reservoir_cli.util.programs import process_start_time

TOKEN = "a-token-that-never-leaves-the-home"
OPENED = b"this-answer-must-not-be-opened"
Answer = Callable[[socket.socket, bytes], None]


def say(text: bytes) -> Answer:
    """Return an answer of one piece."""
    return lambda connection, _: connection.sendall(text)


def proof_of(identity: Callable[[str], ServerIdentity]) -> Answer:
    """Return an answer with a proof by another server than the one that was asked."""

    def answer(connection: socket.socket, request: bytes) -> None:
        nonce = request.partition(b"nonce=")[2].split(b" ")[0].decode("ascii")
        origin = "http://" + request.partition(b"Host: ")[2].split(b"\r\n")[0].decode("ascii")
        proof = identity(origin).prove(nonce, 1) or ""
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + proof.encode("ascii"))

    return answer


def drip(connection: socket.socket, _: bytes) -> None:
    """Send a byte at a time for ever."""
    while connection.send(b"x"):
        pass


FALSE_ANSWERS: dict[str, Answer] = {
    "a code": say(b"HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n" + OPENED),
    "a proof in form": say(b"HTTP/1.1 200 OK\r\n\r\n1 " + b"0" * 64),
    "a redirection": say(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\n\r\n" + OPENED),
    "nothing": say(b""),
    "no HTTP": say(OPENED),
    "other bytes": say(b"HTTP/1.1 200 OK\r\n\r\n\xff\xfe\x1b[31m"),
    "without end": drip,
    "another token": proof_of(
        lambda origin: ServerIdentity("guessed-token-0123", origin, os.getpid(), own_start())
    ),
    "passed on from another port": proof_of(
        lambda _: ServerIdentity(TOKEN, "http://127.0.0.1:1", os.getpid(), own_start())
    ),
    "of another process": proof_of(lambda origin: ServerIdentity(TOKEN, origin, 2, own_start())),
}


def own_start() -> str:
    return process_start_time(os.getpid()) or ""


@contextmanager
def listening(answer: Answer) -> Iterator[tuple[int, list[bytes]]]:
    """Run a false server; yield its port, and what it is sent."""
    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, suppress(OSError):
                        received.append(connection.recv(65_536))
                        answer(connection, received[-1])

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield listener.getsockname()[1], received
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            thread.join(60)


def write_entries(*entries: dict[str, object]) -> None:
    paths.server_file().parent.mkdir(parents=True, exist_ok=True)
    paths.server_file().write_text(json.dumps(entries), encoding="utf-8")


@pytest.mark.skipif(os.name != "posix", reason="closing a socket ends accept() only there")
@pytest.mark.parametrize("name", FALSE_ANSWERS)
def test_a_false_server_gets_no_token_and_its_answer_is_not_used(name, home):
    with listening(FALSE_ANSWERS[name]) as (port, received):
        base_url = f"http://127.0.0.1:{port}/k/{TOKEN}/v1"
        server = RunningServer(base_url, os.getpid(), own_start())
        assert server.make_code() is None
        assert not running_servers.is_at(port)
    [request] = received
    assert request.startswith(b"GET /ui/proof?nonce=")
    assert TOKEN.encode() not in request


@pytest.mark.skipif(os.name != "posix", reason="closing a socket ends accept() only there")
def test_open_sends_nothing_to_the_port_of_a_killed_server(home, tmp_path):
    process = subprocess.Popen([sys.executable, "-c", ""])
    started = process_start_time(process.pid) or "?"
    process.wait(60)
    with listening(FALSE_ANSWERS["a code"]) as (port, received):
        base_url = f"http://127.0.0.1:{port}/k/{TOKEN}/v1"
        write_entries({"base_url": base_url, "pid": process.pid, "started": started})
        command = ("open", "--print", "--port", str(port))
        result = forked.run(*command, env=os.environ, folder=tmp_path)
    assert received == []
    assert result.code == 1
    assert result.out == b""
    assert "another program is using it" in result.err
    assert OPENED.decode() not in result.err


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("started", ["earlier", "", None])
def test_stop_ends_no_process_that_only_has_the_pid_of_a_server(started, home, tmp_path):
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with process, listening(FALSE_ANSWERS["a code"]) as (port, received):
        entry = {"base_url": f"http://127.0.0.1:{port}/k/{TOKEN}/v1", "pid": process.pid}
        write_entries({**entry, "page": "http://x/ui/"} | ({"started": started} if started else {}))
        result = forked.run("serve", "--stop", env=os.environ, folder=tmp_path)
        assert result.code == 0
        assert result.err == "note: no server is running\n"
        assert process.poll() is None
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert received == []
    assert running_servers.read_servers() == []
