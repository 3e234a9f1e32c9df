"""Measure the response times and the memory of ``reservoir mcp``, and that no process survives.

    python benchmarks/speed/mcp_server.py [--messages 10000] [--runs 7] [--sessions 200]

Each run starts a server, opens a session, asks one question while nothing is loaded, and then
others: four repeatedly, then forty different ones. Times are wall-clock time, and CPU time where
the system reports it. Then a number of sessions are started and ended at random moments: the client
closes one or both of its pipes, or the server gets a signal. No process may survive.
"""

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import synthetic
from processes import RESERVOIR, machine

from reservoir_cli.embedding.load_model import load_embedder
from reservoir_cli.settings.schema import DEFAULT_MODEL
from reservoir_cli.tokens import load_counter

OPENING = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1"},
}


class Session:
    """A server process, and a client that sends it requests."""

    def __init__(self, store: Path) -> None:
        self.process = subprocess.Popen(
            [RESERVOIR, "--db", str(store), "mcp", "-p", "part-0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._number = 0

    def send(self, method: str, params: dict[str, Any]) -> None:
        """Send a request without waiting for its answer."""
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        """Send a request, and return its result."""
        self.send(method, params)
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())["result"]

    def recall(self, question: str) -> Any:
        """Call the tool ``recall``."""
        return self.ask("tools/call", {"name": "recall", "arguments": {"question": question}})

    def end(self) -> None:
        """Close the pipes, and wait until the server has ended."""
        for stream in (self.process.stdin, self.process.stdout):
            if stream:
                stream.close()
        self.process.wait()


def megabytes(pid: int) -> float:
    """Return the current memory of a process; 0 where the system does not report it."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0.0
    return next(
        (int(line.split()[1]) / 1024 for line in status.splitlines() if line[:6] == "VmRSS:"), 0.0
    )


def processor_ms(pid: int) -> float:
    """Return the CPU time of a process in ms; 0 where the system does not report it."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return sum(int((path / "schedstat").read_text().split()[0]) for path in threads) / 1e6
    except OSError:
        return 0.0


def one_run(store: Path) -> dict[str, float]:
    """Start a server, and return its response times in ms and its memory in MB."""
    figures: dict[str, float] = {}
    started = time.perf_counter()
    session = Session(store)
    pid, used = session.process.pid, 0.0

    def lap(name: str) -> None:
        nonlocal started, used
        figures[name] = 1000 * (time.perf_counter() - started)
        figures[f"{name}, processor"] = processor_ms(pid) - used
        started, used = time.perf_counter(), processor_ms(pid)

    session.ask("initialize", OPENING)
    lap("first answer")
    session.ask("tools/list", {})
    figures["memory idle"] = megabytes(pid)
    lap("list of tools")
    first = session.recall(synthetic.QUESTIONS[0])
    lap("first recall")
    assert not first["isError"], first
    different = [sentence for sentence in synthetic.sentences() if len(sentence) > 20][:40]
    for name, questions in (
        ("warm recall", synthetic.QUESTIONS * 5),
        ("warm recall of others", different),
    ):
        session.recall(questions[-1])
        runs = []
        for question in questions:
            started, used = time.perf_counter(), processor_ms(pid)
            session.recall(question)
            lap("one")
            runs.append((figures.pop("one"), figures.pop("one, processor")))
        clock, processor = zip(*runs, strict=True)
        figures[name] = statistics.median(clock)
        figures[f"{name}, processor"] = statistics.median(processor)
    figures["memory used"] = megabytes(pid)
    session.end()
    return figures


def survivors(store: Path, count: int, rng: random.Random) -> list[int]:
    """Start sessions and end each at a random moment; return the processes that survive.

    Child processes of a server are included: like the server, they have the store in their command
    line or among their open files.
    """
    pids = []
    for _ in range(count):
        session = Session(store)
        stage = rng.randrange(4)
        if stage:
            session.ask("initialize", OPENING)
        if stage > 1:
            params = {"name": "recall", "arguments": {"question": synthetic.QUESTIONS[0]}}
            session.send("tools/call", params)
        time.sleep(rng.uniform(0, 0.2) if stage in (0, 2) else 0)
        ending = rng.choice(["pipes", "SIGTERM", "SIGHUP", "SIGKILL", "stdin"])
        if ending.startswith("SIG"):
            session.process.send_signal(getattr(signal, ending))
        else:
            session.process.stdin.close()
        if ending == "pipes":
            session.process.stdout.close()
        try:
            session.process.wait(30)
        except subprocess.TimeoutExpired:
            pids.append(session.process.pid)
            session.process.kill()
        if ending != "pipes":
            session.process.stdout.close()
    return [*pids, *users_of(store)]


def users_of(store: Path) -> list[int]:
    """Return the other processes that have a store in their command line, or have it open."""
    users = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            files = [os.readlink(file) for file in (process / "fd").iterdir()]
        except OSError:  # it has ended, or belongs to another user
            continue
        if os.fsencode(store) in words or any(file.startswith(str(store)) for file in files):
            users.append(int(process.name))
    return [user for user in users if user != os.getpid()]


def count_description_tokens(store: Path) -> int:
    """Return the tokens of the tool list and the instructions that a client receives."""
    session = Session(store)
    instructions = session.ask("initialize", OPENING)["instructions"]
    tools = json.dumps(session.ask("tools/list", {}))
    session.end()
    return load_counter("approximate").count(tools + instructions)


def main() -> None:
    """Build the store, measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--sessions", type=int, default=200, help="started and killed")
    parser.add_argument("--folder", type=Path, default=Path(".benchmarks"), help="keeps stores")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ.update(RESERVOIR_HOME=str(folder / "home"), HF_HUB_OFFLINE="1")
        load_embedder(DEFAULT_MODEL, offline=True, progress=lambda *_: None)  # compiles it
        built = synthetic.build(options.folder, options.messages)
        store = Path(shutil.copy(built, folder / "store.db"))
        one_run(store)  # warms the page cache
        runs = [one_run(store) for _ in range(options.runs)]
        figures: dict[str, float] = {
            name: statistics.median(run[name] for run in runs) for name in runs[0]
        }
        figures["tokens"] = count_description_tokens(store)
        surviving = survivors(store, options.sessions, random.Random(1))
    print(f"\n{options.messages:,} messages, median of {options.runs} runs ({machine()})")
    for name, value in figures.items():
        unit = "MB" if name.startswith("memory") else "tokens" if name == "tokens" else "ms"
        print(f"{name:<34}{value:8.0f} {unit}")
    print(f"{options.sessions} sessions started and ended: {len(surviving)} processes left")
    if options.json:
        report = {
            "machine": machine(),
            **figures,
            "sessions": options.sessions,
            "left": len(surviving),
        }
        options.json.write_text(json.dumps(report, indent=2), "utf-8")


if __name__ == "__main__":
    main()
