"""Print a benchmark's figures as tables, write them as JSON, and plot them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evidence import DEPTHS

Figures = Mapping[str, Any]


def print_table(title: str, figures: Mapping[str, Figures], budgets: Sequence[int]) -> None:
    """Print a line per ranking: score, interval, recall by budget, and share with all evidence.

    The last columns are the share of questions that lose evidence at a larger budget, and recall
    by depth.
    """
    wide = max(map(len, [title, *figures]))
    head = "".join(f"{budget:>7,}" for budget in budgets)
    depths = "".join(f"{f'@{depth}':>6}" for depth in DEPTHS)
    print(f"\n{title:<{wide}}  score  95% interval  {head}    all  loses{depths}")
    for name, row in figures.items():
        if row:
            low, high = (_share(bound) for bound in row["interval"])
            by_budget = "".join(f"{_share(share):>7}" for share in row["by_budget"].values())
            by_depth = "".join(f"{_share(share):>6}" for share in row["by_depth"].values())
            print(
                f"{name:<{wide}}  {_share(row['score']):>5}  [{low:>4}, {high:>4}]  {by_budget}"
                f"  {_share(row['all_evidence']):>5}  {_share(row['lose_at_larger']):>5}{by_depth}"
            )


def print_differences(title: str, figures: Mapping[str, Figures]) -> None:
    """Print the paired differences to another run."""
    print(f"\n{title}")
    for name, row in figures.items():
        low, high = row["interval"]
        mark = "*" if low > 0 or high < 0 else " "
        print(f"{name:<40} {row['difference']:+.3f} [{low:+.3f}, {high:+.3f}]{mark}")


def print_gate(gate: Mapping[str, Any]) -> None:
    """Print the questions that recall refuses, and a line per floor with those below it."""
    print(f"\nrefused: true {gate['true refused']:.3f}, foreign {gate['foreign refused']}")
    print("floor  true refused  foreign refused")
    for row in gate["curve"]:
        print(f"{row['floor']:5.2f}  {row['true']:12.3f}  {row['foreign']:15.2f}")


def write_json(path: Path, figures: Mapping[str, Any]) -> None:
    """Write all figures, unrounded."""
    path.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def draw(path: Path, figures: Mapping[str, Figures], title: str) -> None:
    """Plot recall over budget, a line per ranking.

    :raises SystemExit: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SystemExit("--plot needs matplotlib: pip install 'reservoir-cli[bench]'") from None

    figure = Figure(figsize=(6.5, 5), layout="constrained")
    axes = figure.subplots()
    for name, row in figures.items():
        budgets = [int(budget) for budget in row["by_budget"]]
        axes.plot(budgets, list(row["by_budget"].values()), marker="o", label=name)
    axes.set_xscale("log")
    axes.set_xticks(budgets, [f"{budget:,}" for budget in budgets])
    axes.minorticks_off()
    axes.set_ylim(0, 1)
    axes.set_xlabel("budget in tokens")
    axes.set_ylabel("share of the evidence inside")
    axes.set_title(title)
    axes.grid(alpha=0.3)
    figure.legend(fontsize="small", loc="outside lower center", ncols=2)
    figure.savefig(path, dpi=120)


def _share(value: float) -> str:
    """Format a share with three decimals and no leading zero."""
    return f"{value:.3f}".replace("0.", ".", 1)
