"""Fill the disk at a random point, with a size limit or a small file system."""

import random
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from killing import NEEDLE, rows
from trials import Home, Tally, copied, faults, settle


def room(most: int) -> Callable[[], None]:
    """Limit the size of files that a process can write, as a quota does."""

    def limit() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    return limit


def limited(folder: Path, seed: int, trials: int, count: int = 1_500) -> Tally:
    """Limit the size of files so that an import, a message or a deletion fails anywhere."""
    home, rng = Home(folder / "limited"), random.Random(seed)
    file = folder / "to-fill.jsonl"
    rows(file, rng, count, needle_every=10)
    home.must("ingest", "--no-embed", stdin="the first one")
    settle(home.db)
    empty, filled = folder / "empty.db", folder / "filled.db"
    copied(home.db, empty)
    home.must("ingest", "--no-embed", str(file))
    settle(home.db)
    copied(home.db, filled)
    whole = home.rows("*")
    matching = set(home.rows("*", f"content LIKE '%{NEEDLE}%'"))
    forget = ("forget", "--match", NEEDLE, "--all-partitions", "--yes")
    tally = Tally("no room (limit)")
    with tally.timed():
        for number in range(trials):
            label = f"seed {seed} at {number}"
            limit = rng.randrange(filled.stat().st_size * 3 // 2)
            if number % 2:
                copied(empty, home.db)
                result = home("ingest", "--no-embed", str(file), preexec_fn=room(limit))
                stored = home.rows("*")
                tally.hold(stored == whole[: len(stored)], f"half a message, {label}")
                home.must("ingest", "--no-embed", str(file))
                found_rows = home.rows("*")
            else:
                copied(filled, home.db)
                result = home(*forget, preexec_fn=room(limit))
                forgotten = result.code == 0 or f"deleted {len(matching)} messages" in result.err
                # Either all of the messages to be forgotten are gone, or none.
                stored = home.rows("*")
                found_rows = [*stored, *(matching if forgotten else ())]
                tally.hold(forgotten == matching.isdisjoint(stored), f"half forgotten, {label}")
            tally.lost += len(set(whole) - set(found_rows))
            tally.hold(not faults(home.db), f"a fault, {label}")
            tally.hold(
                result.code in (0, 1, 3), f"exit code {result.code}, {label}: {result.err[-200:]}"
            )
            tally.hold(
                result.code == 0 or result.is_one_line_error,
                f"not told, {label}: {result.err[-200:]}",
            )
            tally.trials += 1
            tally.hit += result.code != 0
            tally.size += home.db.stat().st_size
    return tally


def small_disk(folder: Path, seed: int, trials: int, count: int = 1_500) -> Tally | None:
    """Fill up a file system of a few hundred kilobytes; return ``None`` if none can be mounted."""
    rng = random.Random(seed)
    file = folder / "to-disk.jsonl"
    rows(file, rng, count)
    tally = Tally("disk full (tmpfs)")
    with tally.timed():
        for number in range(trials):
            label = f"seed {seed} at {number}"
            with _mounted(folder / "disk", rng.randrange(300, 3_000)) as disk:
                if disk is None:
                    return None
                home, acknowledged = Home(disk / "home"), {}
                for index in range(4):
                    result = home("ingest", "--no-embed", stdin=f"{index} {'word ' * 2_000}")
                    if result.code == 0:
                        acknowledged[int(result.out)] = index
                    tally.hold(result.code == 0 or result.is_one_line_error, f"not told, {label}")
                result = home("ingest", "--no-embed", str(file))
                tally.hit += result.code != 0
                tally.hold(
                    result.code == 0 or result.is_one_line_error,
                    f"not told, {label}: {result.err[-200:]}",
                )
                if acknowledged:
                    (disk / "room").unlink()  # free some space
                    stored = dict(home.rows())
                    tally.lost += sum(number not in stored for number in acknowledged)
                    tally.hold(not faults(home.db), f"a fault, {label}")
                    tally.hold(home("doctor").code == 0, f"doctor, {label}")
                    tally.size += home.db.stat().st_size
            tally.trials += 1
    return tally


@contextmanager
def _mounted(folder: Path, kilobytes: int) -> Iterator[Path | None]:
    """Mount a small file system with a file that can be removed to free space."""
    folder.mkdir(exist_ok=True)
    size = f"size={kilobytes + 256}k"
    mount = ["mount", "-t", "tmpfs", "-o", size, "none", str(folder)]
    try:
        result = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        result = None
    if result is None or result.returncode:
        yield None
        return
    try:
        (folder / "room").write_bytes(bytes(256 * 1024))
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
