"""Measure each command as a whole process, from start to exit.

    python benchmarks/speed/cold.py [--messages 10000 100000] [--runs 7] [--folder F] [--json FILE]

Figures are medians of wall-clock and CPU time; the commands take turns, so that other load affects
all of them. Each is compared with a bare Typer program of two commands, and where there is one,
with a naive script that does the same job (``naive.py``). The page cache is warm.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import synthetic
from processes import RESERVOIR, Run, machine, medians, run

HERE = Path(__file__).parent
QUESTION = synthetic.QUESTIONS[0]
PARTITION = ("-p", "part-0")
BARE = """
import typer
app = typer.Typer(pretty_exceptions_enable=False)
@app.command()
def one(name: str = "x") -> None:
    print(name)
@app.command()
def two(name: str = "x") -> None:
    print(name)
app()
"""


def commands(store: Path, copy: Path | None) -> dict[str, tuple[list[str], str]]:
    """Return the command lines by name, each with its stdin."""
    ours = [str(RESERVOIR), "--db", str(store)]
    lines: dict[str, tuple[list[str], str]] = {
        "view 10": ([*ours, "view", "10", *PARTITION, "-i", "tool-0"], ""),
        "config --get": ([*ours, "config", "--get", "partition"], ""),
        "ingest": ([*ours, "ingest", "-p", "new"], "Redis lost 214 jobs in the failover."),
        "ingest --no-embed": ([*ours, "ingest", "--no-embed", "-p", "later"], "And the limiter?"),
        "search": ([*ours, "search", QUESTION, *PARTITION], ""),
        "search --keyword": ([*ours, "search", "--keyword", "redis queue", *PARTITION], ""),
        "context": ([*ours, "context", QUESTION, *PARTITION, "--budget", "2000"], ""),
        "context --model": ([*ours, "context", QUESTION, *PARTITION, "--model", "gpt-4o"], ""),
    }
    if copy is not None:
        naive = [sys.executable, str(HERE / "naive.py")]
        lines["naive ask"] = ([*naive, "ask", str(copy), QUESTION], "")
        lines["naive add"] = ([*naive, "add", str(copy), "Redis lost 214 jobs."], "")
    return lines


def baselines(folder: Path) -> dict[str, tuple[list[str], str]]:
    """Return the commands to compare with: an empty Python program, bare Typer, and --help."""
    bare = folder / "bare.py"
    bare.write_text(BARE, encoding="utf-8")
    return {
        "python -c pass": ([sys.executable, "-c", "pass"], ""),
        "bare Typer": ([sys.executable, str(bare), "one"], ""),
        "reservoir --help": ([str(RESERVOIR), "--help"], ""),
    }


def measure(
    lines: dict[str, tuple[list[str], str]], runs: int, env: dict[str, str]
) -> dict[str, Run]:
    """Return the medians of commands that take turns; the first turn is not counted."""
    measured: dict[str, list[Run]] = {name: [] for name in lines}
    for turn in range(runs + 1):
        for name, (command, stdin) in lines.items():
            if turn > 3 and name.startswith("naive"):
                continue  # takes seconds, and varies little
            result = run(command, stdin, env)
            if turn:
                measured[name].append(result)
    return {name: medians(results) for name, results in measured.items()}


def print_table(size: int, results: dict[str, Run]) -> None:
    """Print the figures of one size."""
    bare = results["bare Typer"]
    print(f"\n{size:,} messages ({machine()})")
    print(f"{'':<22}{'ms':>8}{'x bare Typer':>14}{'CPU ms':>8}{'x':>6}{'x naive':>9}{'MB':>7}")
    for name, row in results.items():
        naive = results.get("naive add" if name.startswith("ingest") else "naive ask")
        has_naive = name.startswith(("ingest", "search", "context"))
        ratio = f"{row.seconds / naive.seconds:9.3f}" if naive and has_naive else " " * 9
        print(
            f"{name:<22}{1000 * row.seconds:8.0f}{row.seconds / bare.seconds:14.2f}"
            f"{1000 * row.cpu_seconds:8.0f}{row.cpu_seconds / bare.cpu_seconds:6.2f}{ratio}"
            f"{row.megabytes:7.0f}"
        )


def main() -> None:
    """Build the stores, measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--messages", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--partitions", type=int, default=1, help="number of partitions")
    parser.add_argument("--folder", type=Path, default=Path(".benchmarks"), help="keeps stores")
    parser.add_argument("--no-naive", action="store_true", help="leave the naive script out")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    figures = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        env = {"RESERVOIR_HOME": str(folder / "home"), "HF_HUB_OFFLINE": "1"}
        os.environ.update(env)
        for size in options.messages:
            built = synthetic.build(options.folder, size, partitions=options.partitions)
            store = Path(shutil.copy(built, folder / f"{size}.db"))
            copy = None if options.no_naive else folder / f"{size}-naive.db"
            if copy is not None:
                run([sys.executable, str(HERE / "naive.py"), "build", str(store), str(copy)])
            results = measure({**baselines(folder), **commands(store, copy)}, options.runs, env)
            print_table(size, results)
            figures[size] = {name: vars(result) for name, result in results.items()}
    if options.json:
        options.json.write_text(json.dumps({"machine": machine(), **figures}, indent=2), "utf-8")


if __name__ == "__main__":
    main()
