"""Damage each sample at random, thousands of times, and read it.

    python tests/unit/transfer/formats/corrupt.py [COUNT] [NAME…]

Nothing may crash, and what is read must be complete and the same again. One file in fifty is also
imported twice into a store, which must be sound, and importing again must add nothing.
"""

import faulthandler
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from corrupting import import_damaged, read_damaged
from databases import NAMES, create_database
from llm_logs import newer_log, older_log
from reading import SAMPLES

#: Every so many damaged files, one is stored, too.
_STORED_EVERY = 50
#: No damaged file may take longer than this, in seconds.
_LONGEST = 60


def samples(folder: Path) -> dict[str, bytes]:
    """Return every sample by its name."""
    contents = {path.name: path.read_bytes() for path in sorted(SAMPLES.iterdir())}
    contents["older-logs.db"] = older_log(folder / "older.db").read_bytes()
    contents["newer-logs.db"] = newer_log(folder / "newer.db").read_bytes()
    for tool in NAMES:
        path = create_database(folder, tool)
        contents[path.name] = path.read_bytes()
    return contents


def damage(name: str, sample: bytes, count: int) -> str:
    """Damage and read a sample many times; return a line for each failure, and the outcomes."""
    started, failures, outcomes = time.perf_counter(), list[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(count):
            for trial in (read_damaged, import_damaged)[: 1 if seed % _STORED_EVERY else 2]:
                faulthandler.dump_traceback_later(_LONGEST, exit=True)
                try:
                    outcome = trial(sample, name, seed, Path(folder))
                except Exception as error:
                    outcome = "FAILED"
                    problem = f"{type(error).__name__}: {error}"
                    failures.append(f"{name}, seed {seed}, {trial.__name__}: {problem}")
                outcomes[outcome if trial is read_damaged else f"stored: {outcome}"] += 1
        faulthandler.cancel_dump_traceback_later()
    summary = ", ".join(f"{outcome} {times:,}" for outcome, times in sorted(outcomes.items()))
    failures.append(f"{name:<20}{summary}  ({time.perf_counter() - started:.0f} s)")
    return "\n".join(failures)


def main() -> None:
    """Damage and read samples, several at the same time; print the outcomes."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor() as pool:
        names = samples(Path(folder))
        chosen = {name: names[name] for name in sys.argv[2:] or names}
        trials = [pool.submit(damage, *item, count) for item in chosen.items()]
        for trial in as_completed(trials):
            print(trial.result(), flush=True)


if __name__ == "__main__":
    main()
