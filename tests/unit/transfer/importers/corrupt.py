"""Damage each sample at random, thousands of times, and import it.

    python tests/unit/transfer/importers/corrupt.py [COUNT] [NAME…]

Each time the store must be sound, nothing may crash, and importing again must add nothing.
"""

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from corrupting import import_damaged
from databases import NAMES, made_database
from llm_logs import newer_log, older_log
from reading import SAMPLES


def samples(folder: Path) -> dict[str, bytes]:
    """Return every sample by its name."""
    made = {each.name: each.read_bytes() for each in sorted(SAMPLES.iterdir())}
    made["older-logs.db"] = older_log(folder / "older.db").read_bytes()
    made["newer-logs.db"] = newer_log(folder / "newer.db").read_bytes()
    for tool in NAMES:
        path = made_database(folder, tool)
        made[path.name] = path.read_bytes()
    return made


def main() -> None:
    """Damage and import samples; print the outcomes."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as folder:
        for name, sample in samples(Path(made)).items():
            if sys.argv[2:] and name not in sys.argv[2:]:
                continue
            began = time.perf_counter()
            outcomes: Counter[str] = Counter()
            for seed in range(count):
                try:
                    outcomes[import_damaged(sample, name, seed, Path(folder))] += 1
                except Exception as error:
                    outcomes["FAILED"] += 1
                    print(f"{name}, seed {seed}: {type(error).__name__}", flush=True)
            told = ", ".join(f"{each} {number:,}" for each, number in sorted(outcomes.items()))
            print(f"{name:<20}{told}  ({time.perf_counter() - began:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
