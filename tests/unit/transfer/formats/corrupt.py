"""Damage each sample at random, thousands of times, and import it.

    python tests/unit/transfer/formats/corrupt.py [COUNT] [NAME…]

Each time the store must be sound, nothing may crash, and importing again must add nothing.
"""

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from corrupting import import_damaged
from databases import NAMES, create_database
from llm_logs import newer_log, older_log
from reading import SAMPLES


def samples(folder: Path) -> dict[str, bytes]:
    """Return every sample by its name."""
    contents = {path.name: path.read_bytes() for path in sorted(SAMPLES.iterdir())}
    contents["older-logs.db"] = older_log(folder / "older.db").read_bytes()
    contents["newer-logs.db"] = newer_log(folder / "newer.db").read_bytes()
    for tool in NAMES:
        path = create_database(folder, tool)
        contents[path.name] = path.read_bytes()
    return contents


def main() -> None:
    """Damage and import samples; print the outcomes."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as sample_folder, tempfile.TemporaryDirectory() as folder:
        for name, sample in samples(Path(sample_folder)).items():
            if sys.argv[2:] and name not in sys.argv[2:]:
                continue
            started = time.perf_counter()
            outcomes: Counter[str] = Counter()
            for seed in range(count):
                try:
                    outcomes[import_damaged(sample, name, seed, Path(folder))] += 1
                except Exception as error:
                    outcomes["FAILED"] += 1
                    print(f"{name}, seed {seed}: {type(error).__name__}", flush=True)
            summary = ", ".join(
                f"{outcome} {occurrences:,}" for outcome, occurrences in sorted(outcomes.items())
            )
            print(f"{name:<20}{summary}  ({time.perf_counter() - started:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
