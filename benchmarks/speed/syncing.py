"""Time ``reservoir sync`` with many unchanged files, and with one long session that grew.

    python benchmarks/speed/syncing.py [FILES] [MB]

Times are medians of five whole processes: wall-clock time and CPU time. The start-up time is that
of ``reservoir --version``.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RESERVOIR = (sys.executable, "-m", "reservoir_cli")
TRIES = 5


def lines(session: str, first: int, count: int, length: int = 400) -> str:
    """Return lines of a Claude Code session: questions and replies in turn."""
    rows = []
    for number in range(first, first + count):
        role = ("user", "assistant")[number % 2]
        message: dict[str, object] = {
            "role": role,
            "content": f"{number} {'word ' * (length // 5)}",
        }
        if role == "assistant":
            message |= {"id": f"m{number}", "model": "m", "stop_reason": "end_turn"}
        rows.append(
            {
                "type": role,
                "uuid": f"{session}-{number}",
                "sessionId": session,
                "requestId": f"r{number}",
                "cwd": "/home/me/app",
                "timestamp": f"2026-06-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:00Z",
                "message": message,
            }
        )
    return "".join(json.dumps(row) + "\n" for row in rows)


def run_timed(env: dict[str, str], *command: str) -> tuple[float, float]:
    """Run a command; return its wall-clock time and its CPU time in seconds."""
    before, started = os.times(), time.perf_counter()
    subprocess.run([*RESERVOIR, *command], env=env, check=True, capture_output=True)
    after, seconds = os.times(), time.perf_counter() - started
    used = after.children_user + after.children_system
    return seconds, used - before.children_user - before.children_system


def describe(runs: list[tuple[float, float]]) -> str:
    """Return the medians of runs as text."""
    clock, processor = (statistics.median(times) for times in zip(*runs, strict=True))
    return f"{clock:.3f} s, of the processor {processor:.3f} s"


def main(files: int = 10_000, megabytes: int = 50) -> None:
    """Print the times."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        env = os.environ | {"RESERVOIR_HOME": str(home / "store"), "HOME": str(home)}
        sessions = home / ".claude" / "projects"
        settings = home / "all.toml"
        settings.write_text(f"[sources.claude-code]\npath = '{sessions}'\n", encoding="utf-8")
        for number in range(files):
            path = sessions / f"project-{number // 100}" / f"s{number}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(lines(f"s{number}", 0, 2), encoding="utf-8")
        print(f"start-up: {describe([run_timed(env, '--version') for _ in range(TRIES)])}")
        print(f"first sync of {files:,} files: {describe([run_timed(env, 'sync', '--no-embed')])}")
        sync = ("--config", str(settings), "sync", "--no-embed")
        unchanged = [run_timed(env, *sync) for _ in range(TRIES)]
        print(f"{files:,} unchanged files: {describe(unchanged)}")
        long = sessions / "long" / "long.jsonl"
        long.parent.mkdir()
        count = megabytes * 1_000_000 // len(lines("long", 0, 1))
        long.write_text(lines("long", 0, count), encoding="utf-8")
        first = [run_timed(env, *sync)]
        print(f"first sync of {long.stat().st_size / 1e6:.0f} MB: {describe(first)}")
        grown = []
        for turn in range(TRIES):
            with long.open("a", encoding="utf-8") as file:
                file.write(lines("long", count + 10 * turn, 10))
            grown.append(run_timed(env, *sync))
        print(f"ten more lines, beside {files:,} files: {describe(grown)}")
        config = home / "alone.toml"
        config.write_text(f"[sources.claude-code]\npath = '{long.parent}'\n", encoding="utf-8")
        grown = []
        for turn in range(TRIES, 2 * TRIES):
            with long.open("a", encoding="utf-8") as file:
                file.write(lines("long", count + 10 * turn, 10))
            grown.append(run_timed(env, "--config", str(config), "sync", "--no-embed"))
        print(f"ten more lines, alone: {describe(grown)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
