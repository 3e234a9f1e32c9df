"""Check that ``reservoir serve`` relays silent, large, and many simultaneous streams completely.

    python benchmarks/speed/proxy_streams.py [--silence SECONDS] [--bytes N]
                                             [--streams N --seconds SECONDS] [--pause SECONDS]
                                             [--messages N --folder FOLDER]

Without options nothing is tested. The same request is sent to the provider directly and through
the server, and the bytes of both answers are compared. Each of many streams asks different
questions, whose answers take three seconds; at the end the store must contain all questions and
answers. With ``--messages`` it begins with synthetic ones, in the partition of the questions.
Exits with 1 if a byte is lost, or if memory grows by more than a tenth after the first minute.
"""

import argparse
import hashlib
import http.client
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import synthetic
from processes import RESERVOIR, machine
from proxy import megabytes, serving

#: The model's name selects the answer: ``silence=600``, ``bytes=1000000``, or ``slow=3``.
PROVIDER = """
import asyncio, json
def event(text):
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]},
                                  ensure_ascii=False).encode() + b"\\n\\n"
END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\\n\\ndata: [DONE]\\n\\n'
HEAD = (b"HTTP/1.1 200 OK\\r\\nContent-Type: text/event-stream\\r\\nTransfer-Encoding: chunked"
        b"\\r\\nConnection: close\\r\\n\\r\\n")
async def chunks(kind, amount, question):
    yield event("Gr\\u00fc\\u00dfe, \\u4e16\\u754c: ")
    if kind == "silence":
        await asyncio.sleep(amount)
    elif kind == "bytes":
        sent = 0
        while sent < amount:
            chunk = event("".join(f"{number} \\u4e16 " for number in range(sent, sent + 8_000)))
            sent += len(chunk)
            yield chunk
    else:
        for number in range(10):
            await asyncio.sleep(amount / 10)
            yield event(f"part {number} ")
    yield event("the end of " + question)
    yield END
async def answer(reader, writer):
    try:
        head = await reader.readuntil(b"\\r\\n\\r\\n")
        at = head.lower().index(b"content-length:") + 15
        body = json.loads(await reader.readexactly(int(head[at:].split(None, 1)[0])))
        kind, _, amount = body["model"].partition("=")
        question = body["messages"][-1]["content"].split("\\n")[0]
        writer.write(HEAD)
        async for chunk in chunks(kind, float(amount), question):
            for half in (chunk[:17], chunk[17:]):  # cut inside a character
                writer.write(b"%x\\r\\n%b\\r\\n" % (len(half), half))
            await writer.drain()
        writer.write(b"0\\r\\n\\r\\n")
        await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()
async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


def ask(base_url: str, model: str, question: str) -> tuple[int, str, int]:
    """Ask a question; return the size of the answer in bytes, its hash, and the status."""
    parts = urlsplit(base_url)
    assert parts.hostname
    with closing(http.client.HTTPConnection(parts.hostname, parts.port)) as connection:
        body = {"model": model, "messages": [{"role": "user", "content": question}], "stream": True}
        headers = {"Content-Type": "application/json"}
        path = f"{parts.path}/chat/completions"
        connection.request("POST", path, json.dumps(body), headers)
        answer, size, digest = connection.getresponse(), 0, hashlib.sha256()
        while chunk := answer.read1(1 << 20):
            size += len(chunk)
            digest.update(chunk)
    return size, digest.hexdigest(), answer.status


def compare(direct: str, proxied: str, model: str, pid: int) -> bool:
    """Print and return whether an answer has the same bytes with and without the server."""
    before, started = megabytes(pid), time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(ask, url, model, f"what is {model}?") for url in (direct, proxied)]
        expected, relayed = (future.result()[:2] for future in futures)
    equal, seconds = expected == relayed, time.monotonic() - started
    sizes = f"{expected[0]:,} bytes, {relayed[0]:,} through the server"
    print(f"{model}: {sizes}, equal: {equal}, {seconds:.0f} s")
    print(f"  memory before it {before:.0f} MB, after it {megabytes(pid):.0f} MB", flush=True)
    return equal


def crowd(url: str, options: argparse.Namespace, store: Path, pid: int) -> bool:
    """Run many streams at the same time; print the stored messages and the memory per minute."""
    counts, lock = Counter[str](), threading.Lock()
    started = time.monotonic()

    def run(stream: int) -> None:
        time.sleep(options.pause * stream / options.streams)
        number = 0
        while time.monotonic() < started + options.seconds:
            question = f"what did stream {stream} say in part {number}?"
            size, _, status = ask(url, "slow=3", question)
            number += 1
            with lock:
                counts["answers" if status == 200 else "refused"] += 1
                counts["bytes"] += size
            time.sleep(options.pause)

    threads = [threading.Thread(target=run, args=(stream,)) for stream in range(options.streams)]
    for thread in threads:
        thread.start()
    memory = []
    for minute in range(1, int(options.seconds // 60) + 1):
        time.sleep(max(started + 60 * minute - time.monotonic(), 0))
        memory.append(megabytes(pid))
        print(f"  minute {minute}: {memory[-1]:.0f} MB, {counts['answers']} answers", flush=True)
    for thread in threads:
        thread.join()
    return _report(counts, store, memory)


def _report(counts: Counter[str], store: Path, memory: list[float]) -> bool:
    expected = 2 * counts["answers"]
    deadline = time.monotonic() + 60
    while (stored := _count_stored(store)) != expected and time.monotonic() < deadline:
        time.sleep(0.5)
    print(
        f"{counts['answers']} answers of {counts['bytes']:,} bytes, {stored} of {expected} stored"
    )
    print(f"{counts['refused']} times the provider could not be reached")
    if len(memory) < 2:
        return stored == expected
    growth = memory[-1] / memory[0]
    print(f"memory at the end / after a minute: {growth:.3f}")
    return stored == expected and growth <= 1.1


def _count_stored(store: Path) -> int:
    """Return how many messages of complete exchanges the proxy has stored."""
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
        sql = "SELECT count(*) FROM messages WHERE source = 'proxy' AND content LIKE ?"
        return sum(
            connection.execute(sql, [text]).fetchone()[0]
            for text in ("what did stream%", "%the end of what did stream%")
        )


def main() -> int:
    """Run the selected checks, and print their results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--silence", type=float, default=0, help="seconds of silence in an answer")
    parser.add_argument("--bytes", type=int, default=0, help="size of an answer")
    parser.add_argument("--streams", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=0, help="duration of many streams")
    parser.add_argument("--pause", type=float, default=10, help="seconds between two questions")
    parser.add_argument("--messages", type=int, default=0, help="size of the store at the start")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "scaling")
    options = parser.parse_args()
    print(machine(), flush=True)
    ok = True
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RESERVOIR_HOME"] = folder
        store = Path(folder) / "reservoir.db"
        if options.messages:
            options.folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(synthetic.build(options.folder, options.messages), store)
        else:
            subprocess.run([RESERVOIR, "-q", "--db", store, "ingest"], input=b"hello", check=True)
        with serving(store, PROVIDER) as (direct, proxied, pid):
            if options.messages:
                proxied = f"{proxied.removesuffix('/v1')}/part-0/bench/v1"
            if options.bytes:
                ok &= compare(direct, proxied, f"bytes={options.bytes}", pid)
            if options.silence:
                ok &= compare(direct, proxied, f"silence={options.silence}", pid)
            if options.seconds:
                ok &= crowd(proxied, options, store, pid)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
