"""A benchmark's figures as a table, a JSON file and a picture."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evidence import DEPTHS

Figures = Mapping[str, Any]


def print_table(title: str, found: Mapping[str, Figures], budgets: Sequence[int]) -> None:
    """A line a ranking: score, interval, recall by budget, all evidence, recall by depth."""
    wide = max(map(len, [title, *found]))
    head = "".join(f"{budget:>7,}" for budget in budgets)
    depths = "".join(f"{f'@{depth}':>6}" for depth in DEPTHS)
    print(f"\n{title:<{wide}}  score  95% interval  {head}    all{depths}")
    for name, each in found.items():
        low, high = (_share(bound) for bound in each["interval"])
        by_budget = "".join(f"{_share(share):>7}" for share in each["by_budget"].values())
        by_depth = "".join(f"{_share(share):>6}" for share in each["by_depth"].values())
        print(
            f"{name:<{wide}}  {_share(each['score']):>5}  [{low:>4}, {high:>4}]  {by_budget}"
            f"  {_share(each['all_evidence']):>5}{by_depth}"
        )


def write_json(path: Path, found: Mapping[str, Any]) -> None:
    """All figures, unrounded."""
    path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def draw(path: Path, found: Mapping[str, Figures], title: str) -> None:
    """Recall against budget, a line a ranking.

    :raises SystemExit: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SystemExit("--plot needs matplotlib: pip install 'reservoir-cli[bench]'") from None

    figure = Figure(figsize=(6.5, 5), layout="constrained")
    axes = figure.subplots()
    for name, each in found.items():
        budgets = [int(budget) for budget in each["by_budget"]]
        axes.plot(budgets, list(each["by_budget"].values()), marker="o", label=name)
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
    """Three decimals, without the zero before them."""
    return f"{value:.3f}".replace("0.", ".", 1)
