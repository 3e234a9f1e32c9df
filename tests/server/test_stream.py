"""Answers are passed on byte for byte, whatever the provider sends."""

import asyncio
import gzip
import json
import socket
import threading
from contextlib import ExitStack, suppress
from typing import Any
from urllib.parse import urlsplit

import httpx2
import plain_http
import proxied
import pytest
from each import each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from proxied import Served, serving
from upstream import CUT, HOLD, Reply

from reservoir_cli.messages import Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.server import limits
from reservoir_cli.server.proxy.split_stream import Reader
from reservoir_cli.server.proxy.tee_answer import Listener

CHAT = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "why Redis?"}]}


def chunk(text: str, **more: object) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None, **more}
    return b"data: " + json.dumps({"id": "c1", "choices": [choice]}, ensure_ascii=False).encode()


GREETING = chunk("Grüße, 世界 😀")
END = chunk("", finish_reason="stop")
#: Streams of every form: their pieces, and the text that is stored.
STREAMS = {
    "plain": ([GREETING + b"\n\n", END + b"\n\n", b"data: [DONE]\n\n"], "Grüße, 世界 😀"),
    "no done": ([GREETING + b"\n\n", END + b"\n\n"], "Grüße, 世界 😀"),
    "no blank line at the end": ([GREETING + b"\n\n", END], "Grüße, 世界 😀"),
    "CRLF": ([GREETING + b"\r\n\r\n", END + b"\r\n\r\n"], "Grüße, 世界 😀"),
    "CR": ([GREETING + b"\r\r", END + b"\r\r"], "Grüße, 世界 😀"),
    "CRLF torn apart": ([GREETING + b"\r", b"\n\r", b"\n" + END + b"\r\n\r\n"], "Grüße, 世界 😀"),
    "comments and events": (
        [b": ping\n\nevent: x\nid: 7\nretry: 10\n" + GREETING + b"\n\n:\n\n", END + b"\n\n"],
        "Grüße, 世界 😀",
    ),
    "a byte at a time": (
        [bytes([byte]) for byte in GREETING + b"\n\n" + END + b"\n\n"],
        "Grüße, 世界 😀",
    ),
    "no space behind data": (
        [GREETING.replace(b"data: ", b"data:") + b"\n\n", END + b"\n\n"],
        "Grüße, 世界 😀",
    ),
    "an error in the middle": (
        [GREETING + b"\n\n", b'data: {"error": {"message": "overloaded"}}\n\n'],
        "Grüße, 世界 😀",
    ),
    "no JSON between": ([b"data: oops\n\n" + GREETING + b"\n\n", END + b"\n\n"], "Grüße, 世界 😀"),
    "no UTF-8": ([b"data: \xff\xfe\x00\n\n", GREETING + b"\n\n", END + b"\n\n"], "Grüße, 世界 😀"),
}


EARLY_HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"


def stored(served: Served, scope: Scope = Scope(None), requests: int = 1) -> list[str]:  # noqa: B008
    served.settle(requests)
    with Reservoir.open(served.store) as reservoir:
        return [f"{message.role}: {message.content}" for message in reservoir.view(scope, 0)]


def raw(served: Served, path: str, body: bytes, *, root: str | None = None) -> bytes:
    """Send a request through a socket; return all bytes of the answer."""
    parts = urlsplit((root or served.root) + path)
    assert parts.hostname
    with socket.create_connection((parts.hostname, parts.port or 80), timeout=60) as connection:
        head = f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        answer = b""
        while piece := connection.recv(65_536):
            answer += piece
        return answer


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_a_stream_is_passed_unchanged_and_stored(served, provider, framing):
    with plain_http.client(timeout=60) as client:
        for name, (pieces, _) in STREAMS.items():
            provider.reply = Reply(pieces, framing=framing)
            answer = client.post(f"{served.root}/{name}/i/v1/chat/completions", json=CHAT)
            assert answer.status_code == 200, name
            assert answer.content == provider.reply.whole, name
            assert answer.headers["content-type"] == "text/event-stream"
    for name, (_, text) in STREAMS.items():
        expected = ["user: why Redis?", f"assistant: {text}"]
        assert stored(served, Scope(name, "i"), len(STREAMS)) == expected, name


def test_the_first_piece_arrives_before_the_answer_is_complete(served, provider):
    provider.reply = Reply([GREETING + b"\n\n", HOLD, END + b"\n\n"])
    with httpx2.stream(
        "POST", f"{served.root}/v1/chat/completions", json=CHAT, timeout=60
    ) as answer:
        pieces = answer.iter_raw()
        assert next(pieces) == GREETING + b"\n\n"
        assert not provider.going_on.is_set()
        provider.going_on.set()
        assert b"".join(pieces) == END + b"\n\n"


@pytest.mark.parametrize("framing", ["chunked", "length"])
def test_a_stream_that_breaks_off_does_so_for_the_client_and_is_marked(served, provider, framing):
    pieces = [GREETING + b"\n\n", CUT, b"" if framing == "chunked" else b"never sent"]
    provider.reply = Reply(pieces, framing=framing)
    with pytest.raises(httpx2.RemoteProtocolError):
        plain_http.post(f"{served.root}/v1/chat/completions", json=CHAT)
    assert stored(served) == ["user: why Redis?", "assistant: Grüße, 世界 😀"]
    with Reservoir.open(served.store) as reservoir:
        assert reservoir.view(Scope(None), 0)[-1].tags == ("partial",)


@pytest.mark.parametrize(
    ("pieces", "is_whole"),
    [
        ([GREETING + b"\n\n", b"data: [DONE]\n\n"], True),
        ([GREETING + b"\n\n"], False),
        ([GREETING + b"\n\n", b'data: {"error": {}}\n\n', b"data: [DONE]\n\n"], False),
    ],
)
def test_a_stream_that_ends_with_its_mark_is_whole(served, provider, pieces, is_whole):
    provider.reply = Reply(pieces)
    plain_http.post(f"{served.root}/v1/chat/completions", json=CHAT)
    assert stored(served) == ["user: why Redis?", "assistant: Grüße, 世界 😀"]
    with Reservoir.open(served.store) as reservoir:
        assert reservoir.view(Scope(None), 0)[-1].tags == (() if is_whole else ("partial",))
    assert served.lines[-1].endswith(" stored" if is_whole else " cut")


def test_the_upstream_connection_is_closed_when_the_client_disconnects(served, provider):
    provider.reply = Reply([GREETING + b"\n\n", HOLD, END + b"\n\n"])
    with httpx2.stream(
        "POST", f"{served.root}/v1/chat/completions", json=CHAT, timeout=60
    ) as answer:
        assert next(answer.iter_raw())
    assert provider.gone.wait(60)
    assert stored(served)[-1] == "assistant: Grüße, 世界 😀"


def test_unrequested_gzip_is_passed_unchanged_and_stored(served, provider):
    packed = gzip.compress(GREETING + b"\n\n") + gzip.compress(END + b"\n\n")
    provider.reply = Reply(
        [packed[:9], packed[9:-9], packed[-9:]], headers={"Content-Encoding": "gzip"}
    )
    with httpx2.stream(
        "POST", f"{served.root}/v1/chat/completions", json=CHAT, timeout=60
    ) as answer:
        assert b"".join(answer.iter_raw()) == packed
    assert provider.requests[0].header("accept-encoding") == "identity"
    assert stored(served)[-1] == "assistant: Grüße, 世界 😀"
    assert served.lines[-1].endswith(" stored")


def test_a_large_answer_is_passed_and_not_stored(served, provider):
    block = chunk("x" * (1 << 20)) + b"\n\n"
    provider.reply = Reply([block] * 40)
    answer = plain_http.post(f"{served.root}/v1/chat/completions", json=CHAT, timeout=120)
    assert answer.content == provider.reply.whole
    assert stored(served) == []


def test_a_large_request_arrives_complete(served, provider):
    picture = {"type": "image_url", "image_url": {"url": "data:," + "A" * (20 << 20)}}
    question = {"type": "text", "text": "what is this?"}
    body = {"model": "m", "messages": [{"role": "user", "content": [question, picture]}]}
    data = json.dumps(body).encode()
    answer = plain_http.post(f"{served.root}/v1/chat/completions", content=data, timeout=120)
    assert answer.status_code == 200
    assert provider.requests[0].body == data


def test_a_request_of_more_than_32_mb_is_not_sent_upstream(served, provider):
    answer = plain_http.post(f"{served.root}/v1/messages", content=b" " * (33 << 20), timeout=120)
    assert answer.status_code == 413
    assert answer.json()["type"] == "error"
    assert provider.requests == []


@each("status", [204, 301, 400, 401, 429, 500, 529])
def test_status_headers_and_body_of_an_error_are_passed_on(served, provider, status):
    body = [] if status == 204 else [b'{"error": "x"}']
    headers = {"Retry-After": "7", "X-Request-Id": "r1", "Location": "http://127.0.0.1:9/"}
    provider.reply = Reply(body, "application/json", status, "length", headers)
    answer = plain_http.post(f"{served.root}/v1/chat/completions", json=CHAT)
    assert (answer.status_code, answer.content) == (status, b"".join(body))
    assert {name: answer.headers[name] for name in headers} == headers
    assert stored(served, requests=len(provider.requests)) == []
    assert len(served.lines) == len(provider.requests)  # none is repeated


@each(
    ("path", "shape"),
    [
        ("/v1/chat/completions", lambda body: body["error"]["message"]),
        ("/v1/responses", lambda body: body["error"]["message"]),
        ("/v1/messages", lambda body: body["error"]["message"]),
        ("/api/chat", lambda body: body["error"]),
        ("/v1/models", lambda body: body["error"]["message"]),
    ],
)
def test_an_unreachable_upstream_is_an_error_of_the_protocol(served, provider, path, shape):
    provider.shutdown()
    provider.server_close()
    answer = plain_http.post(f"{served.root}{path}", json=CHAT)
    assert answer.status_code == 502
    error = shape(answer.json())
    assert f" at 127.0.0.1:{provider.server_port} cannot be reached (" in error
    assert error.endswith(".url or --upstream")


@pytest.mark.parametrize("data", [b"garbage\r\n\r\n", b""])
def test_an_upstream_that_speaks_no_http_is_named_as_such(tmp_path, data):
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def speak() -> None:
            with listening.accept()[0] as client:
                client.recv(1 << 16)
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
                while client.recv(1 << 16):
                    pass  # unread bytes would reset the connection

        speaker = threading.Thread(target=speak)
        speaker.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        with serving(tmp_path / "a.db", {"openai": url}) as served:
            answer = plain_http.post(f"{served.root}/v1/chat/completions", json=CHAT)
        speaker.join()
    assert answer.status_code == 502
    assert "sent no valid HTTP answer" in answer.json()["error"]["message"]


@each("length", ["3", "9999"])
def test_chunks_are_passed_whole_whatever_length_the_answer_claims(served, provider, length):
    body = b'{"answer": "whole"}'
    provider.reply = Reply([body], "application/json", headers={"Content-Length": length})
    answer = plain_http.post(f"{served.root}/v1/chat/completions", json=CHAT)
    assert (answer.status_code, answer.content) == (200, body)


@each("status", [600, 999, 99, 1000, 101])
def test_an_impossible_status_is_an_error_of_the_protocol(served, provider, status):
    provider.reply = Reply([b"{}"], "application/json", status, "length")
    answer = plain_http.post(f"{served.root}/v1/messages", json=CHAT)
    assert answer.status_code == 502
    assert answer.json()["type"] == "error"
    served.settle(len(provider.requests))
    assert len(served.lines) == len(provider.requests)
    assert "\n" not in served.lines[-1]


ODD_HEADS = {
    "control characters": (b"X-Odd: a\x1b[31mb\x7f\r\n", 200),
    "NUL": (b"X-Odd: a\0b\r\n", 502),
    "a lone CR": (b"X-Odd: a\rb\r\n", 502),
    "200 headers": (b"".join(b"X-%d: v\r\n" % number for number in range(200)), 200),
    "a huge header": (b"X-Odd: " + b"a" * 1_000_000 + b"\r\n", 502),
    "two lengths": (b"Content-Length: 1\r\n", 502),
}


@pytest.fixture
def raw_upstream(store_path):
    """Serve in front of a socket of the test, which is returned, too."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with serving(store_path, {"openai": url}) as served:
            yield served, listener


@each("before", [b"", b"HTTP/1.1 100 Continue\r\n\r\n", EARLY_HINTS])
@each(("headers", "status"), [pytest.param(*row, id=name) for name, row in ODD_HEADS.items()])
def test_an_odd_head_of_an_answer_is_passed_on_or_a_clear_error(
    raw_upstream, before, headers, status
):
    served, listener = raw_upstream
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
    reply, known = before + head + headers + b"\r\n{}", len(served.lines)
    thread = threading.Thread(target=answer_once, args=(listener, reply), daemon=True)
    thread.start()
    answer = plain_http.post(f"{served.root}/v1/chat/completions", json=CHAT, timeout=60)
    served.settle(known + 1)
    [line] = served.lines[known:]
    assert answer.status_code == status
    assert answer.json() == {} if status == 200 else "message" in answer.json()["error"]
    assert "\n" not in line


def answer_once(listener: socket.socket, reply: bytes) -> None:
    """Read a request of one read, and answer it with these bytes."""
    connection, _ = listener.accept()
    with connection, suppress(OSError):  # the server may have closed the connection
        connection.recv(1 << 20)
        connection.sendall(reply)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 16):
            pass


def test_the_raw_answer_differs_in_our_own_header_only(served, provider):
    body = json.dumps(CHAT).encode()
    provider.reply = Reply(STREAMS["comments and events"][0])
    proxied_answer = raw(served, "/v1/chat/completions", body)
    direct = raw(served, "/v1/chat/completions", body, root=provider.url)
    assert proxied_answer.partition(b"\r\n\r\n")[2] == direct.partition(b"\r\n\r\n")[2]
    heads = [
        {line.lower() for line in answer.partition(b"\r\n\r\n")[0].split(b"\r\n")}
        for answer in (proxied_answer, direct)
    ]
    assert heads[0] - heads[1] == {
        b"x-reservoir: skipped; reason=no messages",
        b"connection: close",
    }
    assert heads[1] - heads[0] == set()


#: Pieces of streams, whole and broken, and arbitrary bytes.
PIECES = st.one_of(
    st.sampled_from(
        [GREETING, END, b"\n", b"\r\n", b"\r", b"data: ", b"event: x\n", b": \n", b"{"]
    ),
    st.binary(min_size=1, max_size=60),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(PIECES, max_size=12),
    st.sampled_from(["chunked", "length", "close"]),
    st.sampled_from(["text/event-stream", "application/x-ndjson", "application/json", "x/y"]),
    st.sampled_from(["/v1/chat/completions", "/v1/messages", "/v1/responses", "/api/chat"]),
)
def test_any_bytes_are_passed_unchanged(served, provider, pieces, framing, kind, path):
    provider.reply = Reply(pieces, kind, framing=framing)
    body = CHAT | {"input": CHAT["messages"]}
    answer = plain_http.post(served.root + path, json=body, timeout=120)
    assert (answer.status_code, answer.content) == (200, b"".join(pieces))


def test_an_answer_that_is_cut_by_the_end_of_the_server_is_stored(
    store_path, provider, monkeypatch
):
    monkeypatch.setattr(limits, "LAST_ANSWERS", 0.1)
    provider.reply = Reply([GREETING + b"\n\n", HOLD])
    with ExitStack() as answers, proxied.serving(store_path, {"openai": provider.url}) as served:
        url = f"{served.root}/v1/chat/completions"
        answer = answers.enter_context(httpx2.stream("POST", url, json=CHAT, timeout=60))
        pieces = answer.iter_raw()  # closes the connection when it is deleted
        assert next(pieces) == GREETING + b"\n\n"
    with Reservoir.open(store_path) as reservoir:
        question, reply = reservoir.view(Scope(None), 0)
    assert (question.content, reply.content) == ("why Redis?", "Grüße, 世界 😀")
    assert reply.tags == ("partial",)


def begin_request(url: str, length: int, form: str = "") -> socket.socket:
    """Return a connection on which the head of a request was sent."""
    parts = urlsplit(url)
    connection = socket.create_connection(("127.0.0.1", parts.port or 80), timeout=60)
    lines = (
        f"POST {parts.path} HTTP/1.1",
        f"Host: {parts.netloc}",
        f"Content-Length: {length}",
        f"Content-Type: {form or 'application/json'}",
        "Accept: application/json, text/event-stream",
        "Connection: close",
    )
    connection.sendall("\r\n".join([*lines, "", ""]).encode())
    return connection


FORM = "application/x-www-form-urlencoded"


def test_a_request_that_stops_arriving_is_refused(served, monkeypatch):
    monkeypatch.setattr(limits, "READ_TIMEOUT", 0.05)
    enter = f"{served.state.origin}/ui/enter"
    for url in (f"{served.root}/v1/messages", f"{served.root}/mcp", enter):
        with begin_request(url, 9, FORM if url == enter else "") as connection:
            connection.sendall(b"{")
            assert connection.recv(65_536).startswith(b"HTTP/1.1 408 "), url


@pytest.mark.parametrize("length", [(32 << 20) + 1, 2**63, 10**20 - 1])
def test_a_request_whose_length_is_too_large_is_refused_before_it_arrives(
    served, monkeypatch, length
):
    monkeypatch.setattr(limits, "DISCARD_PAUSE", 0.05)
    enter = f"{served.state.origin}/ui/enter"  # a form that is too large is none
    statuses = {f"{served.root}/v1/messages": 413, f"{served.root}/mcp": 413, enter: 401}
    for url, status in statuses.items():
        with begin_request(url, length, FORM if url == enter else "") as connection:
            connection.sendall(b"{")
            assert connection.recv(65_536).startswith(b"HTTP/1.1 %d " % status), url


@pytest.mark.parametrize("piece", [b"", b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\n"])
def test_a_connection_whose_request_does_not_begin_is_closed(served, monkeypatch, piece):
    monkeypatch.setattr(limits, "HEAD_TIMEOUT", 0.05)
    parts = urlsplit(served.root)
    with socket.create_connection(("127.0.0.1", parts.port or 80), timeout=60) as connection:
        with suppress(ConnectionError):  # closed before the piece is sent
            connection.sendall(piece)
            assert connection.recv(65_536) == b""


def test_a_client_that_sends_too_much_receives_the_answer(served, monkeypatch):
    # A busy machine may send nothing for longer.
    monkeypatch.setattr(limits, "DISCARD_TIMEOUT", 60.0)
    monkeypatch.setattr(limits, "DISCARD_PAUSE", 60.0)
    size = 16 << 20
    with begin_request(f"{served.state.origin}/ui/enter", size, FORM) as connection:
        connection.sendall(b"x" * size)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/messages", "/v1/chat/completions"])
def test_a_websocket_is_refused_so_that_clients_go_on_with_http(served, provider, path):
    parts = urlsplit(served.root + path)
    head = (
        f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: keep-alive, Upgrade\r\n"
        "Upgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n\r\n"
    )
    with socket.create_connection((parts.hostname or "", parts.port or 80), timeout=60) as client:
        client.sendall(head.encode())
        client.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := client.recv(65_536):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 426 ")
    assert b"websockets are not supported" in answer
    assert provider.requests == []


@pytest.mark.parametrize("what", ["lines", "chunks"])
def test_other_requests_run_between_the_parts_of_an_answer(served, provider, monkeypatch, what):
    """Count the parts that are read before the event loop gets a turn."""
    count, most, loops = 0, 0, list[asyncio.AbstractEventLoop]()
    owner, name = (Reader, "_read_line") if what == "lines" else (Listener, "feed")
    read = getattr(owner, name)

    def turn() -> None:
        nonlocal count, most
        most, count = max(most, count), 0
        loops[0].call_soon(turn)

    def counted(reader: Any, part: bytes) -> Any:
        nonlocal count
        if not loops:
            loops.append(asyncio.get_running_loop())
            turn()
        count += 1
        return read(reader, part)

    monkeypatch.setattr(owner, name, counted)
    empty = [b"data: {}\n\n" * 100_000] if what == "lines" else [b":\n"] * 20_000
    provider.reply = Reply([*empty, GREETING + b"\n\n", END + b"\n\n"])
    plain_http.post(f"{served.root}/v1/chat/completions", json=CHAT, timeout=60)
    assert stored(served) == ["user: why Redis?", "assistant: Grüße, 世界 😀"]
    bound = limits.LINES_AT_A_TIME if what == "lines" else limits.CHUNKS_AT_A_TIME
    assert 0 < most <= 2 * bound
