"""Copy a large store from a file to a PostgreSQL server and back, killing the copy three times.

    python benchmarks/speed/server_copy.py [--messages 1000000] [--partitions 64] [--kills 3]
                                           [--folder F] [--url URL] [--back]

Without a URL a temporary server is started. Each ``reservoir db copy`` is a whole process; it is
killed with SIGKILL after a share of the messages, and then run again. The last run compares both
stores row by row. Then the size of each table on the server is printed, also per message.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import synthetic
from processes import RESERVOIR, machine

from reservoir_cli.errors import ReservoirError
from reservoir_cli.storage.open_store import open_store

sys.path.append(str(Path(__file__).parents[2] / "tests" / "support"))
from postgres_server import PostgresServer

#: Settings of the test server: commits wait for the disk, and autovacuum runs.
_SETTINGS = {
    "fsync": "on",
    "autovacuum": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "maintenance_work_mem": "256MB",
}
_MB = 1024 if sys.platform == "linux" else 1024**2  # Linux reports kilobytes, macOS bytes


@dataclass
class Run:
    """The figures of one process of ``db copy``.

    :param seconds: wall-clock time.
    :param cpu: CPU time in seconds.
    :param megabytes: peak memory.
    :param messages: number of messages in the target when it ended.
    """

    seconds: float
    cpu: float
    megabytes: float
    code: int
    messages: int


def count_messages(target: str) -> int:
    """Return the number of messages in a store; 0 if it does not exist yet, or is incomplete."""
    try:
        with closing(open_store(target, create=False)) as store:
            return sum(count for *_, count in store.channels()) if store.size() else 0
    except ReservoirError:
        return 0


def copy(source: str, target: str, stop_at: int | None) -> Run:
    """Run ``db copy``; kill it when the target has ``stop_at`` messages."""
    started = time.perf_counter()
    process = subprocess.Popen([str(RESERVOIR), "db", "copy", source, target])
    ended = None
    while ended is None:
        waited, status, usage = os.wait4(process.pid, os.WNOHANG)
        if waited:
            ended = time.perf_counter() - started
        elif stop_at is not None and count_messages(target) >= stop_at:
            process.send_signal(signal.SIGKILL)
            stop_at = None
        else:
            time.sleep(5)
    code = process.returncode = os.waitstatus_to_exitcode(status)
    cpu = usage.ru_utime + usage.ru_stime
    run = Run(ended, cpu, usage.ru_maxrss / _MB, code, count_messages(target))
    if code not in (0, -signal.SIGKILL):
        raise SystemExit(f"db copy ended with {code}")
    print(f"| {_line(run)} |", flush=True)
    return run


def _line(run: Run) -> str:
    end = "killed" if run.code else "finished, equal"
    cells = f"{run.seconds:,.0f}", f"{run.cpu:,.0f}", f"{run.megabytes:,.0f}", f"{run.messages:,}"
    return " | ".join((end, *cells))


def copies(source: str, target: str, messages: int, kills: int) -> None:
    """Copy a store with a number of kills, evenly spread over the messages, and print a table."""
    print(f"{machine()}\n\n| run | seconds | CPU s | peak MB | messages there |")
    print("|---|---|---|---|---|", flush=True)
    shares = [messages * number // (kills + 1) for number in range(1, kills + 1)]
    runs = [copy(source, target, stop_at) for stop_at in [*shares, None]]
    seconds, cpu = sum(run.seconds for run in runs), sum(run.cpu for run in runs)
    print(f"\n{seconds:,.0f} s in all, {messages / seconds:,.0f} messages a second with comparing;")
    print(
        f"{1000 * cpu / messages:.2f} ms of CPU a message in the client; {machine()}\n", flush=True
    )


def sizes(url: str, messages: int) -> None:
    """Print the size of each table on the server."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as server:
        rows = server.execute(
            """
            SELECT c.relname, pg_table_size(c.oid), pg_indexes_size(c.oid) FROM pg_class c
            WHERE c.relnamespace = 'reservoir'::regnamespace AND c.relkind = 'r'
            AND pg_total_relation_size(c.oid) > 1e6 ORDER BY 2 + 3 DESC, 1
            """
        ).fetchall()
    print("| table | MB | its indexes, MB | bytes a message |\n|---|---|---|---|")
    for name, table, indexes in [
        *rows,
        ("all", *(sum(row[column] for row in rows) for column in (1, 2))),
    ]:
        mean = (table + indexes) / messages
        print(f"| {name} | {table / 1e6:,.0f} | {indexes / 1e6:,.0f} | {mean:,.0f} |")


def main() -> None:
    """Build the store, copy it, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=64)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/reservoir-benchmarks"))
    parser.add_argument("--url", help="an empty database")
    parser.add_argument("--back", action="store_true", help="copy it back to a file, too")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    file = synthetic.build(options.folder, options.messages, partitions=options.partitions)
    messages = count_messages(str(file))
    print(f"the file: {messages:,} messages, {file.stat().st_size / 1e6:,.0f} MB", flush=True)
    server = None if options.url else PostgresServer(settings=_SETTINGS)
    copied_back = options.folder / "copied-back.db"
    try:
        url = options.url or server.empty_database()
        copies(str(file), url, messages, options.kills)
        sizes(url, messages)
        if options.back:
            copies(url, str(copied_back), messages, 0)
    finally:
        if server:
            server.remove()
        for path in copied_back.parent.glob(f"{copied_back.name}*"):
            path.unlink()


if __name__ == "__main__":
    main()
