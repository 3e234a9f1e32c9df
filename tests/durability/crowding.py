"""Run many processes on one store at once: some ingest, some ask, one imports.

Each command is a separate process. Every acknowledged message must be stored.
"""

import os
import random
import statistics
import sys
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from killing import rows, text
from trials import Home, faults

#: Questions that the texts of the trials answer.
_ASKED = ("why did the deploy of the queue fail?", "redis or postgres?", "lease of the worker")
_ROWS = 300


@dataclass
class Run:
    """One process: start time, seconds of wall-clock time, exit code, peak memory in MB."""

    at: float
    seconds: float
    code: int
    megabytes: float


@dataclass
class Crowd:
    """The results of a crowd.

    :param runs: processes by kind of command.
    :param acknowledged: texts by the printed id.
    :param imported: rows of files whose import succeeded.
    :param unrecorded: questions whose run was not recorded.
    :param log: (seconds since the start, bytes of the write-ahead log).
    """

    seconds: float = 0
    runs: dict[str, list[Run]] = field(default_factory=lambda: defaultdict(list))
    acknowledged: dict[int, str] = field(default_factory=dict)
    imported: int = 0
    lost: int = 0
    unrecorded: int = 0
    wrong: list[str] = field(default_factory=list)
    log: list[tuple[float, int]] = field(default_factory=list)
    size: int = 0

    @property
    def failed(self) -> int:
        """Return the number of processes that failed."""
        return sum(run.code != 0 for runs in self.runs.values() for run in runs)


class _Together:
    """Loops that start processes until a point in time."""

    def __init__(self, home: Home, seconds: float) -> None:
        self.home, self.crowd = home, Crowd()
        self._lock = threading.Lock()
        self._began = time.perf_counter()
        self._end = self._began + seconds

    @property
    def going(self) -> bool:
        return time.perf_counter() < self._end

    def run(self, kind: str, *arguments: str, stdin: str = "") -> str | None:
        """Run one command; return its output, or ``None`` if it failed."""
        started = time.perf_counter()
        process = self.home.spawn(*arguments)
        process.stdin.write(stdin.encode())
        process.stdin.close()
        out, err = process.stdout.read().decode(), process.stderr.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = code = os.waitstatus_to_exitcode(status)
        process.stdout.close()
        process.stderr.close()
        ended = time.perf_counter()
        kilobytes = 1024 if sys.platform == "linux" else 1024**2
        run = Run(started - self._began, ended - started, code, usage.ru_maxrss / kilobytes)
        with self._lock:
            self.crowd.runs[kind].append(run)
            # A question never waits for other writers in order to record its run.
            lines = err.splitlines()
            odd = [line for line in lines if "this run is not recorded" not in line]
            self.crowd.unrecorded += len(lines) - len(odd)
            if code or any("locked" in line or "Traceback" in line for line in odd):
                self.crowd.wrong.append(f"{kind} ended with {code}: {err.strip()[-300:]}")
        return out if code == 0 else None

    def ingest(self, number: int) -> None:
        """Store one message after another."""
        rng, count = random.Random(number), 0
        options = () if number % 2 else ("--no-embed",)
        kind = "ingest" if number % 2 else "ingest --no-embed"
        while self.going:
            count += 1
            message = f"process {number}, {text(rng, count, long=False)}"
            out = self.run(kind, "ingest", *options, stdin=message)
            if out:
                with self._lock:
                    self.crowd.acknowledged[int(out)] = message

    def ask(self, number: int) -> None:
        """Ask one question after another."""
        rng = random.Random(number)
        while self.going:
            question = rng.choice(_ASKED)
            if number % 2:
                self.run("context", "context", question, "--budget", "1000")
            else:
                self.run("search", "search", question)

    def load(self, folder: Path) -> None:
        """Import one file after another, each with different messages."""
        number = 0
        while self.going:
            number += 1
            file = folder / f"import-{number}.jsonl"
            rows(file, random.Random(number), _ROWS, name=f"import-{number}")
            if self.run("import", "ingest", str(file)) is not None:
                self.crowd.imported += _ROWS
            file.unlink()

    def watch(self) -> None:
        """Record the length of the write-ahead log."""
        log = self.home.db.with_name(self.home.db.name + "-wal")
        while self.going:
            length = log.stat().st_size if log.exists() else 0
            self.crowd.log.append((time.perf_counter() - self._began, length))
            time.sleep(0.1)


def crowd(
    folder: Path,
    seconds: float,
    models: Path | None = None,
    *,
    writers: int = 16,
    askers: int = 4,
    importers: int = 1,
) -> Crowd:
    """Let many processes use one store for a while, then look for lost messages."""
    home = Home(folder / "crowd", models)
    home.must("ingest", "--no-embed", stdin="the first one")
    work = _Together(home, seconds)
    threads = [threading.Thread(target=work.ingest, args=(number,)) for number in range(writers)]
    threads += [threading.Thread(target=work.ask, args=(number,)) for number in range(askers)]
    threads += [threading.Thread(target=work.load, args=(folder,)) for _ in range(importers)]
    threads.append(threading.Thread(target=work.watch))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    result = work.crowd
    result.seconds = seconds
    stored = dict(home.rows())
    result.lost = sum(
        stored.get(number) != message for number, message in result.acknowledged.items()
    )
    brought = home.rows("COUNT(*)", "source = 'trial'")[0][0]
    result.lost += max(0, result.imported - brought)
    result.wrong += faults(home.db)
    result.size = home.db.stat().st_size
    return result


def table(result: Crowd) -> str:
    """Return latencies, failures and memory as a Markdown table."""
    lines = [
        "| command | runs | failed | median s | 95 % | longest | MB, first third | last third |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind, runs in sorted(result.runs.items()):
        times = sorted(run.seconds for run in runs)
        high = times[min(len(times) - 1, int(0.95 * len(times)))]
        failed = sum(run.code != 0 for run in runs)
        early = [run.megabytes for run in runs if run.at < result.seconds / 3] or [0]
        late = [run.megabytes for run in runs if run.at > result.seconds * 2 / 3] or [0]
        lines.append(
            f"| {kind} | {len(runs):,} | {failed} | {statistics.median(times):.2f} | {high:.2f} "
            f"| {times[-1]:.2f} | {max(early):.0f} | {max(late):.0f} |"
        )
    return "\n".join(lines)


def summary(result: Crowd) -> str:
    """Summarise kept messages and the length of the log in a sentence."""
    third = result.seconds / 3
    early = max((size for moment, size in result.log if moment < third), default=0)
    late = max((size for moment, size in result.log if moment > 2 * third), default=0)
    return (
        f"{result.seconds:.0f} s: {len(result.acknowledged):,} messages acknowledged and "
        f"{result.imported:,} imported, {result.lost} lost, {result.failed} processes failed, "
        f"{result.unrecorded} runs not recorded, "
        f"{len(result.wrong)} other faults; the store has {result.size / 1e6:.1f} MB, its log had "
        f"at most {early / 1e6:.1f} MB in the first third of the time and {late / 1e6:.1f} MB in "
        "the last."
    )
