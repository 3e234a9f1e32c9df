"""What size costs: stores of a thousand to a million messages.

    python benchmarks/speed/scale.py [--messages 1000 10000 100000] [--json FILE] [--plot PNG]

For each size: how long the store takes to build, how large the file is, and context and search as
whole cold processes, over everything in one partition and over a tenth of the store, with the file
in the page cache and evicted from it. The growth exponent is the slope of log(time above a bare
Typer program) over log(messages): 1 is linear. Building a million takes about ten minutes.
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
    """Take a file out of the page cache, where the system lets us."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def asked(store: Path, runs: int, *, warm: bool) -> dict[str, Run]:
    """Medians of context and search on one partition of a store."""
    lines = {
        "context": ["context", QUESTION, "-p", "part-0", "--budget", "2000"],
        "search": ["search", QUESTION, "-p", "part-0"],
    }
    taken: dict[str, list[Run]] = {name: [] for name in lines}
    for turn in range(runs + 1):
        for name, words in lines.items():
            if not warm:
                evict(store)
            done = run([str(RESERVOIR), "--db", str(store), *words])
            if turn:
                taken[name].append(done)
    return {name: medians(each) for name, each in taken.items()}


def bare_seconds(folder: Path) -> float:
    """Return the median time of a bare Typer program."""
    script = folder / "bare.py"
    script.write_text(BARE, encoding="utf-8")
    return medians([run([sys.executable, str(script), "one"]) for _ in range(9)]).seconds


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Fit the slope of log(seconds) over log(size) by least squares."""
    x = [math.log(each) for each in sizes]
    y = [math.log(max(each, 1e-4)) for each in seconds]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    above = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return above / sum((a - mean_x) ** 2 for a in x)


def measured(folder: Path, size: int, runs: int) -> list[dict[str, object]]:
    """Measure the rows of one size."""
    rows: list[dict[str, object]] = []
    for partitions, part in ((1, "everything"), (10, "a tenth")):
        started = time.perf_counter()
        store = synthetic.build(folder, size, partitions=partitions)
        built = time.perf_counter() - started
        for warm in (True, False):
            if not warm and not hasattr(os, "posix_fadvise"):
                continue
            for name, each in asked(store, runs, warm=warm).items():
                rows.append(
                    {
                        "messages": size,
                        "of": part,
                        "command": name,
                        "cache": "warm" if warm else "cold",
                        "seconds": each.seconds,
                        "megabytes": each.megabytes,
                        "file_megabytes": store.stat().st_size / 1e6,
                        "build_seconds": built if built > 1 else None,
                    }
                )
    return rows


def draw(rows: list[dict], path: Path) -> None:
    """Seconds over messages, both axes logarithmic."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for part, marker in (("everything", "o"), ("a tenth", "s")):
        for cache, style in (("warm", "-"), ("cold", ":")):
            some = [
                each
                for each in rows
                if (each["of"], each["cache"], each["command"]) == (part, cache, "context")
            ]
            label = f"{part}, {'in the page cache' if cache == 'warm' else 'from disk'}"
            places = [each["messages"] for each in some]
            axes.plot(places, [each["seconds"] for each in some], style, marker=marker, label=label)
    axes.set(xscale="log", yscale="log", xlabel="messages in the store", ylabel="seconds")
    axes.set_title("reservoir context, a whole cold process")
    axes.grid(alpha=0.3, which="both")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Build, measure, print."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--messages", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--folder", type=Path, default=Path(".benchmarks"), help="keeps stores")
    options.add_argument("--json", type=Path, help="write the figures to this file too")
    options.add_argument("--plot", type=Path, help="draw them into this PNG")
    given = options.parse_args()
    given.folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        os.environ.update({"RESERVOIR_HOME": home, "HF_HUB_OFFLINE": "1"})
        bare = bare_seconds(Path(home))
        rows = [row for size in given.messages for row in measured(given.folder, size, given.runs)]
    print(f"a bare Typer program takes {1000 * bare:.0f} ms ({machine()})")
    print(f"{'messages':>10} {'of':<11}{'command':<9}{'cache':<6}{'ms':>7}{'x bare':>8}{'MB':>6}")
    for each in rows:
        print(
            f"{each['messages']:>10,} {each['of']:<11}{each['command']:<9}{each['cache']:<6}"
            f"{1000 * each['seconds']:7.0f}{each['seconds'] / bare:8.1f}{each['megabytes']:6.0f}"
        )
    for part in ("everything", "a tenth"):
        some = [each for each in rows if (each["of"], each["cache"]) == (part, "warm")]
        some = [each for each in some if each["command"] == "context" and each["messages"] > 5_000]
        if len(some) > 1:
            above = [each["seconds"] - bare for each in some]
            found = exponent([each["messages"] for each in some], above)
            print(f"growth exponent of context over {part}, from 10,000 on: {found:.2f}")
    if given.json:
        report = {"machine": machine(), "bare_seconds": bare, "rows": rows}
        given.json.write_text(json.dumps(report, indent=2), encoding="utf-8")
    if given.plot:
        draw(rows, given.plot)


if __name__ == "__main__":
    main()
