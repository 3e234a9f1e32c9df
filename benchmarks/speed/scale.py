"""Measure how time and memory grow with the store, from a thousand to a million messages.

    python benchmarks/speed/scale.py [--messages 1000 10000 100000] [--json FILE] [--plot PNG]

For each size this measures the build time, the size of the file, and context and search as whole
processes, with all messages in one partition and with a tenth of them, with the file in the page
cache and evicted from it. The growth exponent is the slope of log(time above a bare Typer program)
over log(messages): 1 is linear. Building a million messages takes about ten minutes.
"""

import argparse
import json
import math
import os
import sys
import tempfile
import time
from pathlib import Path

import synthetic
from cold import BARE
from processes import RESERVOIR, Run, machine, medians, run

QUESTION = synthetic.QUESTIONS[0]


def evict(path: Path) -> None:
    """Evict a file from the page cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def time_commands(store: Path, runs: int, *, warm: bool) -> dict[str, Run]:
    """Return the medians of context and search on one partition of a store."""
    lines = {
        "context": ["context", QUESTION, "-p", "part-0", "--budget", "2000"],
        "search": ["search", QUESTION, "-p", "part-0"],
    }
    measured: dict[str, list[Run]] = {name: [] for name in lines}
    for turn in range(runs + 1):
        for name, words in lines.items():
            if not warm:
                evict(store)
            result = run([str(RESERVOIR), "--db", str(store), *words])
            if turn:
                measured[name].append(result)
    return {name: medians(results) for name, results in measured.items()}


def bare_seconds(folder: Path) -> float:
    """Return the median time of a bare Typer program."""
    script = folder / "bare.py"
    script.write_text(BARE, encoding="utf-8")
    return medians([run([sys.executable, str(script), "one"]) for _ in range(9)]).seconds


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Fit the slope of log(seconds) over log(size) by least squares."""
    x = [math.log(size) for size in sizes]
    y = [math.log(max(time, 1e-4)) for time in seconds]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    above = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return above / sum((a - mean_x) ** 2 for a in x)


def measure(folder: Path, size: int, runs: int) -> list[dict[str, object]]:
    """Build the stores of one size, and return their rows of the table."""
    rows: list[dict[str, object]] = []
    for partitions, part in ((1, "everything"), (10, "a tenth")):
        started = time.perf_counter()
        store = synthetic.build(folder, size, partitions=partitions)
        built = time.perf_counter() - started
        for warm in (True, False):
            if not warm and not hasattr(os, "posix_fadvise"):
                continue
            for name, result in time_commands(store, runs, warm=warm).items():
                rows.append(
                    {
                        "messages": size,
                        "of": part,
                        "command": name,
                        "cache": "warm" if warm else "cold",
                        "seconds": result.seconds,
                        "megabytes": result.megabytes,
                        "file_megabytes": store.stat().st_size / 1e6,
                        "build_seconds": built if built > 1 else None,
                    }
                )
    return rows


def draw(rows: list[dict], path: Path) -> None:
    """Plot seconds over messages, with logarithmic axes."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for part, marker in (("everything", "o"), ("a tenth", "s")):
        for cache, style in (("warm", "-"), ("cold", ":")):
            line = [
                row
                for row in rows
                if (row["of"], row["cache"], row["command"]) == (part, cache, "context")
            ]
            label = f"{part}, {'in the page cache' if cache == 'warm' else 'from disk'}"
            x, y = ([row[key] for row in line] for key in ("messages", "seconds"))
            axes.plot(x, y, style, marker=marker, label=label)
    axes.set(xscale="log", yscale="log", xlabel="messages in the store", ylabel="seconds")
    axes.set_title("reservoir context, a whole cold process")
    axes.grid(alpha=0.3, which="both")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Build the stores, measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--messages", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path(".benchmarks"), help="keeps stores")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--plot", type=Path, help="plot them in this PNG")
    options = parser.parse_args()
    folder, runs = options.folder, options.runs
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        os.environ.update({"RESERVOIR_HOME": home, "HF_HUB_OFFLINE": "1"})
        bare = bare_seconds(Path(home))
        rows = [row for size in options.messages for row in measure(folder, size, runs)]
    print(f"a bare Typer program takes {1000 * bare:.0f} ms ({machine()})")
    print(f"{'messages':>10} {'of':<11}{'command':<9}{'cache':<6}{'ms':>7}{'x bare':>8}{'MB':>6}")
    for row in rows:
        print(
            f"{row['messages']:>10,} {row['of']:<11}{row['command']:<9}{row['cache']:<6}"
            f"{1000 * row['seconds']:7.0f}{row['seconds'] / bare:8.1f}{row['megabytes']:6.0f}"
        )
    for part in ("everything", "a tenth"):
        line = [row for row in rows if (row["of"], row["cache"]) == (part, "warm")]
        line = [row for row in line if row["command"] == "context" and row["messages"] > 5_000]
        if len(line) > 1:
            above = [row["seconds"] - bare for row in line]
            growth = exponent([row["messages"] for row in line], above)
            print(f"growth exponent of context over {part}, from 10,000 on: {growth:.2f}")
    if options.json:
        report = {"machine": machine(), "bare_seconds": bare, "rows": rows}
        options.json.write_text(json.dumps(report, indent=2), encoding="utf-8")
    if options.plot:
        draw(rows, options.plot)


if __name__ == "__main__":
    main()
