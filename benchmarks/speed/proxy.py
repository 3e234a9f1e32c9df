"""Measure the overhead of ``reservoir serve`` in front of a model.

    python benchmarks/speed/proxy.py [--messages 100000] [--requests 200] [--pause 0]
                                     [--streams 50] [--seconds 60] [--folder FOLDER]

The provider is a process that answers immediately. The overhead is the time to the first byte of a
request through the server, minus the median of direct requests; all use open connections. A
question that is asked again, as in every later request of a conversation, gets the same block as
before. Each run uses a fresh copy of the store. Then a number of streams run at the same time, and
the server's memory is read at the beginning and at the end.
"""

import argparse
import http.client
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import synthetic
from processes import RESERVOIR, machine

PROVIDER = """
import asyncio
CHUNK = b'data: {"choices":[{"index":0,"delta":{"content":"word "}}]}\\n\\n'
END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\\n\\ndata: [DONE]\\n\\n'
BODY = CHUNK * 20 + END
HEAD = b"HTTP/1.1 200 OK\\r\\nContent-Type: text/event-stream\\r\\nContent-Length: %d\\r\\n\\r\\n"
async def answer(reader, writer):
    try:
        while head := await reader.readuntil(b"\\r\\n\\r\\n"):
            at = head.lower().index(b"content-length:") + 15
            await reader.readexactly(int(head[at:].split(None, 1)[0]))
            writer.write(HEAD % len(BODY) + BODY)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


class Client:
    """One open connection to a server."""

    def __init__(self, base_url: str) -> None:
        parts = urlsplit(base_url)
        assert parts.hostname
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port)
        self._path = f"{parts.path}/chat/completions"
        self.notes: Counter[str] = Counter()

    def ask(self, question: str) -> float:
        """Ask a question; return the milliseconds to the first byte of the answer."""
        body = json.dumps({"messages": [{"role": "user", "content": question}], "stream": True})
        started = time.perf_counter()
        self._connection.request("POST", self._path, body, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        answer.read(1)
        milliseconds = 1000 * (time.perf_counter() - started)
        rest = answer.read()
        assert rest.endswith(b"[DONE]\n\n")
        self.notes[(answer.getheader("x-reservoir") or "").partition(";")[0]] += 1
        return milliseconds


def overhead(direct: str, proxied: str, requests: int, pause: float, pid: int) -> None:
    """Print how much later the first byte arrives through the server, and its CPU time.

    :param pause: seconds between an answer and the next question.
    """
    plain, client = Client(direct), Client(proxied)
    for question in synthetic.QUESTIONS * 2:
        client.ask(question)
    questions = [f"{synthetic.QUESTIONS[number % 4]} ({number})" for number in range(requests)]
    base = statistics.median(plain.ask(question) for question in questions)
    print(f"direct: median {base:.1f} ms")
    for name in ("new question", "question again"):
        client.notes.clear()
        before = cpu_ms(pid)
        added = sorted(ask_later(client, question, pause) - base for question in questions)
        last = added[int(0.99 * (len(added) - 1))]
        computed = (cpu_ms(pid) - before) / requests
        print(f"{name:15} overhead: median {statistics.median(added):.1f} ms, 99th {last:.1f} ms")
        print(f"{'':15} computed: {computed:.1f} ms a request; {dict(client.notes)}")


def ask_later(client: Client, question: str, pause: float) -> float:
    """Ask a question after a pause; see :meth:`Client.ask`."""
    time.sleep(pause)
    return client.ask(question)


def load(url: str, streams: int, seconds: float, pid: int) -> None:
    """Run many streams at the same time, and print the answers and the server's memory."""
    end, counts, lock = time.monotonic() + seconds, Counter[str](), threading.Lock()
    numbers = itertools.count()

    def ask() -> None:
        client = Client(url)
        while time.monotonic() < end:
            client.ask(f"{synthetic.QUESTIONS[next(numbers) % 4]} ({next(numbers)})")
            with lock:
                counts["answers"] += 1

    threads = [threading.Thread(target=ask) for _ in range(streams)]
    for thread in threads:
        thread.start()
    time.sleep(seconds / 10)
    early = megabytes(pid)
    for thread in threads:
        thread.join()
    print(f"{streams} streams for {seconds:.0f} s: {counts['answers']} answers, all of them whole")
    print(f"memory after a tenth of it {early:.0f} MB, at its end {megabytes(pid):.0f} MB")


def megabytes(pid: int) -> float:
    """Return the current memory of a process; 0 where the system does not report it."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0.0
    lines = (line.split() for line in status.splitlines() if line.startswith("VmRSS:"))
    return next((int(words[1]) / 1024 for words in lines), 0.0)


def cpu_ms(pid: int) -> float:
    """Return the CPU time of a process in ms; 0 where the system does not report it."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return 1000 * (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(store: Path, provider: str) -> Iterator[tuple[str, str, int]]:
    """Yield the URL of a provider, the URL of a server in front of it, and the server's PID.

    :param provider: a program that prints its port.
    """
    command = [sys.executable, "-c", provider]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as upstream:
        assert upstream.stdout
        direct = f"http://127.0.0.1:{upstream.stdout.readline().strip()}/v1"
        server = subprocess.Popen(
            [RESERVOIR, "-q", "--db", store, "serve", "--port=0", f"--upstream=openai={direct}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert server.stdout
            base_url = server.stdout.readline().strip()
            time.sleep(5)  # while the model is loaded
            yield direct, base_url, server.pid
        finally:
            server.terminate()
            server.wait()
            upstream.terminate()


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--streams", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "scaling")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    store = synthetic.build(options.folder, options.messages)
    print(machine(), f"{options.messages:,} messages")
    with (
        tempfile.TemporaryDirectory(dir=options.folder) as copies,
        serving(Path(shutil.copy(store, copies)), PROVIDER) as (direct, base_url, pid),
    ):
        proxied = f"{base_url.removesuffix('/v1')}/part-0/bench/v1"
        overhead(direct, proxied, options.requests, options.pause, pid)
        if options.seconds:
            load(proxied, options.streams, options.seconds, pid)


if __name__ == "__main__":
    main()
