"""How many secrets are found in folders of files, how fast, and what one message costs.

    python benchmarks/speed/redacting.py [FOLDER…]

Of an open-source project's files nearly all that is found is made up for its tests: what counts is
how little there is, and whether it looks like a secret. ``--show`` prints what was found.
"""

import argparse
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from processes import RESERVOIR, machine, run

from reservoir_cli.redaction import find

#: A file as large as this is data, not text that anybody says.
_MOST = 2_000_000
_MESSAGE = "The queue lost 214 jobs when the cache failed over, so we keep them in the database."
_WITH_ONE = f"{_MESSAGE} Its url is redis://jobs:Tr0ub4dor9@cache:6379/0."


def texts(folders: list[Path]) -> Iterator[tuple[Path, str]]:
    """Every text file in folders."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink() and path.stat().st_size <= _MOST:
                try:
                    yield path, path.read_text("utf-8")
                except UnicodeDecodeError:
                    continue


def survey(folders: list[Path], *, show: bool) -> None:
    """Print what is found in the files of folders."""
    files = characters = 0
    seconds = 0.0
    kinds: Counter[str] = Counter()
    for path, text in texts(folders):
        began = time.perf_counter()
        found = find(text)
        seconds += time.perf_counter() - began
        files += 1
        characters += len(text)
        kinds.update(each.kind for each in found)
        for each in found if show else ():
            print(f"{path.name}\t{each.kind}\t{text[each.start : each.end][:60]!r}")
    print(f"{files:,} files, {characters / 1e6:,.1f} MB, {characters / 1e6 / seconds:.1f} MB/s")
    for kind, count in kinds.most_common():
        print(f"  {kind:<20}{count:>8,}")


def cost(runs: int) -> None:
    """Print what looking for secrets adds to storing one message, each in a process of its own."""
    print(machine())
    with tempfile.TemporaryDirectory() as home:
        command = [str(RESERVOIR), "ingest", "--no-embed"]
        for text, name in ((_MESSAGE, "without a secret"), (_WITH_ONE, "with a secret")):
            taken: dict[str, list[float]] = {"off": [], "mark": [], "remove": []}
            for _ in range(runs):
                for mode, seconds in taken.items():
                    env = {"RESERVOIR_HOME": home, "RESERVOIR_REDACT": mode}
                    seconds.append(run(command, text, env).seconds)
            off = statistics.median(taken["off"])
            for mode, seconds in taken.items():
                middle = statistics.median(seconds)
                print(f"{name}, {mode:<7}{1000 * middle:6.0f} ms {1000 * (middle - off):+6.1f} ms")


def main() -> None:
    """Survey the folders, then measure the cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--runs", type=int, default=15)
    given = parser.parse_args()
    if given.folders:
        survey(given.folders, show=given.show)
    cost(given.runs)


if __name__ == "__main__":
    main()
