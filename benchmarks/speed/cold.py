"""What a person pays at the prompt: each command as a whole cold process.

    python benchmarks/speed/cold.py [--messages 10000 100000] [--runs 7] [--folder F] [--json FILE]

Times are medians, of the wall clock and of the processor; the commands take turns, so that a noisy
minute hits all of them. Beside each stands its ratio to a bare Typer program of two commands, and,
where there is one, to a naive script that does the same job (``naive.py``). The page cache is warm.
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
    """Each command line by what it is called, with what it reads from stdin."""
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
    """Return the fastest possible command: an empty Python program."""
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
    taken: dict[str, list[Run]] = {name: [] for name in lines}
    for turn in range(runs + 1):
        for name, (command, stdin) in lines.items():
            if turn > 3 and name.startswith("naive"):
                continue  # seconds each, and steady
            done = run(command, stdin, env)
            if turn:
                taken[name].append(done)
    return {name: medians(each) for name, each in taken.items()}


def table(size: int, found: dict[str, Run]) -> None:
    """Print one size's figures."""
    bare = found["bare Typer"]
    print(f"\n{size:,} messages ({machine()})")
    print(f"{'':<22}{'ms':>8}{'x bare Typer':>14}{'CPU ms':>8}{'x':>6}{'x naive':>9}{'MB':>7}")
    for name, each in found.items():
        naive = found.get("naive add" if name.startswith("ingest") else "naive ask")
        asked = name.startswith(("ingest", "search", "context"))
        beside = f"{each.seconds / naive.seconds:9.3f}" if naive and asked else " " * 9
        print(
            f"{name:<22}{1000 * each.seconds:8.0f}{each.seconds / bare.seconds:14.2f}"
            f"{1000 * each.computed:8.0f}{each.computed / bare.computed:6.2f}{beside}"
            f"{each.megabytes:7.0f}"
        )


def main() -> None:
    """Build the stores, measure, print."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--messages", type=int, nargs="+", default=[10_000, 100_000])
    options.add_argument("--runs", type=int, default=7)
    options.add_argument("--partitions", type=int, default=1, help="spread them over so many")
    options.add_argument("--folder", type=Path, default=Path(".benchmarks"), help="keeps stores")
    options.add_argument("--no-naive", action="store_true", help="leave the naive script out")
    options.add_argument("--json", type=Path, help="write the figures to this file too")
    given = options.parse_args()
    given.folder.mkdir(exist_ok=True)
    figures = {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        env = {"RESERVOIR_HOME": str(folder / "home"), "HF_HUB_OFFLINE": "1"}
        os.environ.update(env)
        for size in given.messages:
            built = synthetic.build(given.folder, size, partitions=given.partitions)
            store = Path(shutil.copy(built, folder / f"{size}.db"))
            copy = None if given.no_naive else folder / f"{size}-naive.db"
            if copy is not None:
                run([sys.executable, str(HERE / "naive.py"), "build", str(store), str(copy)])
            found = measure({**baselines(folder), **commands(store, copy)}, given.runs, env)
            table(size, found)
            figures[size] = {name: vars(each) for name, each in found.items()}
    if given.json:
        given.json.write_text(json.dumps({"machine": machine(), **figures}, indent=2), "utf-8")


if __name__ == "__main__":
    main()
