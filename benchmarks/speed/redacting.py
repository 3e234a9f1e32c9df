"""Measure how many secrets are found in files, how fast, and the cost of redacting one message.

    python benchmarks/speed/redacting.py [FOLDER…] [--show]

Nearly all secrets found in an open-source project are invented for its tests. Check that there are
few, and with ``--show`` that they look like secrets.
"""

import argparse
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from processes import RESERVOIR, machine, run

from reservoir_cli.redaction.find_secrets import find

#: Larger files (in bytes) are skipped: they are data rather than text.
_MAX_SIZE = 2_000_000
_MESSAGE = "The queue lost 214 jobs when the cache failed over, so we keep them in the database."
_WITH_ONE = f"{_MESSAGE} Its url is redis://jobs:Tr0ub4dor9@cache:6379/0."


def texts(folders: list[Path]) -> Iterator[tuple[Path, str]]:
    """Yield the path and the text of every text file in folders."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink() and path.stat().st_size <= _MAX_SIZE:
                try:
                    yield path, path.read_text("utf-8")
                except UnicodeDecodeError:
                    continue


def survey(folders: list[Path], *, show: bool) -> None:
    """Print how many secrets the files of folders contain."""
    files = characters = 0
    seconds = 0.0
    kinds: Counter[str] = Counter()
    for path, text in texts(folders):
        started = time.perf_counter()
        secrets = find(text)
        seconds += time.perf_counter() - started
        files += 1
        characters += len(text)
        kinds.update(secret.kind for secret in secrets)
        for secret in secrets if show else ():
            print(f"{path.name}\t{secret.kind}\t{text[secret.start : secret.end][:60]!r}")
    print(f"{files:,} files, {characters / 1e6:,.1f} MB, {characters / 1e6 / seconds:.1f} MB/s")
    for kind, count in kinds.most_common():
        print(f"  {kind:<20}{count:>8,}")


def print_cost(runs: int) -> None:
    """Print how long a process takes to store one message, with and without redaction."""
    print(machine())
    with tempfile.TemporaryDirectory() as home:
        command = [str(RESERVOIR), "ingest", "--no-embed"]
        for text, name in ((_MESSAGE, "without a secret"), (_WITH_ONE, "with a secret")):
            times: dict[str, list[float]] = {"off": [], "mark": [], "remove": []}
            for _ in range(runs):
                for mode, seconds in times.items():
                    env = {"RESERVOIR_HOME": home, "RESERVOIR_REDACT": mode}
                    seconds.append(run(command, text, env).seconds)
            baseline = statistics.median(times["off"])
            for mode, seconds in times.items():
                median = statistics.median(seconds)
                change = 1000 * (median - baseline)
                print(f"{name}, {mode:<7}{1000 * median:6.0f} ms {change:+6.1f} ms")


def main() -> None:
    """Survey the folders, then measure the cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    if options.folders:
        survey(options.folders, show=options.show)
    print_cost(options.runs)


if __name__ == "__main__":
    main()
