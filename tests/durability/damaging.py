"""Damage a store as a failing disk does, and check every command.

A command either works, or prints one line with the error and one with a hint; ``doctor`` finds
everything SQLite can find, ``--repair`` rebuilds derived data, and a backup restores the rest.
"""

import json
import random
import sqlite3
import sys
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from killing import rows
from trials import Home, Result, Tally, copied, settle

from reservoir_cli.messages import Scope
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.passage import Passage

#: Commands that are run on each damaged store; ``export`` prints every text.
READING = (
    ("export", "--all-partitions"),
    ("view", "20", "--json"),
    ("search", "redis postgres", "-n", "20"),
    ("search", "--keyword", "redis"),
    ("context", "why did the deploy of the queue fail?", "--budget", "600"),
    ("partitions",),
)
#: Exit codes of a damaged store; that of ``doctor`` is 1.
_REFUSED = 3
_PAGE = 4096


@dataclass
class Damages(Tally):
    """A tally that counts the outcomes of damage.

    :param outcomes: how often damage had no effect, was found, was repaired, and so on.
    """

    outcomes: Counter[str] = field(default_factory=Counter)


def build(folder: Path, count: int = 400, models: Path | None = None) -> Home:
    """Build a store with embeddings by the model, or with random vectors."""
    home = Home(folder / "damaged", models)
    file = folder / "to-damage.jsonl"
    rows(file, random.Random(5), count)
    home.must("ingest", *([] if models else ["--no-embed"]), str(file))
    if models is None:
        _invent_vectors(home.db)
    settle(home.db)
    return home


def _invent_vectors(path: Path) -> None:
    rng = np.random.default_rng(5)
    with closing(open_store(str(path))) as store:
        store.activate_model("invented", "nobody/absent-model")
        while messages := store.unembedded(256, Scope(None)):
            passages = {}
            for message in messages:
                vector = rng.standard_normal(384).astype(np.float32)
                vector /= np.linalg.norm(vector)
                passages[message.key] = [Passage(message.id, 0, 0, len(message.content), vector)]
            store.add_passages("invented", passages)


def zero_page(path: Path, number: int) -> None:
    """Fill a page of a file with zeros; the first page is number 1."""
    with path.open("r+b") as file:
        file.seek((number - 1) * 4096)
        file.write(bytes(4096))


def page_of(path: Path, text: str) -> int:
    """Return the number of the page that holds a text."""
    return path.read_bytes().index(text.encode()) // 4096 + 1


def damage(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Flip bits, overwrite a sector or a page, or truncate a file; return what was done."""
    kinds = ("a bit", "a bit", "a bit", "some bits", "a sector", "a page", "a page", "the end")
    kind = rng.choice(kinds)
    if kind == "the end":
        return data[: rng.randrange(len(data))], kind
    changed = bytearray(data)
    if kind in ("a sector", "a page"):
        size = 512 if kind == "a sector" else _PAGE
        start = rng.randrange(len(data) // size) * size
        changed[start : start + size] = rng.choice((bytes(size), rng.randbytes(size)))
    else:
        for _ in range(1 if kind == "a bit" else 20):
            changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed), kind


def damaged(home: Home, seed: int, trials: int) -> Damages:
    """Damage a store again and again; each time run all commands, repair it, and restore it."""
    base = home.folder / "base.db"
    backup = home.folder / "backup.db"
    copied(home.db, base)
    home.must("backup", str(backup), "--yes")
    whole = base.read_bytes()
    expected = {command: home.must(*command).out for command in READING}
    texts = _texts(expected[READING[0]])
    tally = Damages("damaged store")
    with tally.timed():
        for number in range(trials):
            rng = random.Random(f"{seed}-{number}")
            copied(base, home.db)
            changed, kind = damage(whole, rng)
            home.db.write_bytes(changed)
            label = f"{kind}, seed {seed} at {number}"
            _ask(home, expected, tally, label)
            _mend(home, texts, tally, label)
            _restore(home, backup, texts, tally, label)
            tally.trials += 1
            tally.size += len(whole)
    return tally


def _texts(exported: str) -> dict[int, str]:
    messages = (json.loads(line) for line in exported.splitlines())
    return {row["id"]: row["content"] for row in messages}


def _ask(home: Home, expected: dict[tuple[str, ...], str], tally: Damages, label: str) -> None:
    """Check that every command works or refuses."""
    noticed = other = False
    for command in READING:
        result = home(*command)
        _check_form(result, tally, f"{command[0]}: {label}", 0, _REFUSED)
        noticed |= result.code != 0
        other |= result.code == 0 and result.out != expected[command]
    tally.hit += noticed
    silent = other and not noticed
    outcome = "a command refuses" if noticed else "other output" if silent else "no consequence"
    tally.outcomes[outcome] += 1


def _check_form(result: Result, tally: Damages, label: str, *codes: int) -> None:
    tally.hold(
        result.code in codes, f"exit code {result.code}: {label}: {result.err.strip()[-200:]}"
    )
    tally.hold("Traceback" not in result.err, f"a traceback: {label}")
    if result.code and not result.out.startswith(("ok\t", "note\t", "fault\t")):
        tally.hold(
            result.is_one_line_error and "hint: " in result.err,
            f"not told: {label}: {result.err[-200:]}",
        )


def _mend(home: Home, texts: dict[int, str], tally: Damages, label: str) -> None:
    """Check that ``doctor`` finds what SQLite finds, and that ``--repair`` loses nothing."""
    wrong = _sqlite_says(home.db)
    doctor = home("doctor")
    _check_form(doctor, tally, f"doctor: {label}", 0, 1)
    tally.hold(doctor.code == 1 or not wrong, f"doctor does not find it: {label}")
    tally.outcomes["doctor finds it" if doctor.code else "doctor finds nothing"] += 1
    before = _readable(home.db)
    repaired = home("doctor", "--repair")
    _check_form(repaired, tally, f"doctor --repair: {label}", 0, 1)
    if doctor.code:
        tally.outcomes["mended" if repaired.code == 0 else "beyond repair"] += 1
    if repaired.code == 0:
        second = home("doctor")
        tally.hold(second.code == 0, f"mended, but doctor finds more: {label}")
        export = home("export", "--all-partitions")
        tally.hold(export.code == 0, f"mended, but unreadable: {label}")
        repaired_texts = _texts(export.out) if export.code == 0 else {}
        tally.lost += len(texts.keys() - repaired_texts.keys())
        changed = sum(repaired_texts.get(number) != text for number, text in texts.items())
        tally.outcomes["mended, with another text"] += bool(changed and doctor.code)
        tally.outcomes["nobody finds that a text changed"] += bool(changed and not doctor.code)
    else:
        tally.hold("copy a backup" in repaired.out or "backup" in repaired.out, f"no way: {label}")
        tally.hold(_readable(home.db) >= before, f"a failed repair took something: {label}")
        _salvage(home, texts, tally, label)


def _salvage(home: Home, texts: dict[int, str], tally: Damages, label: str) -> None:
    """Check that salvaging gives a sound store, unless nothing can be read."""
    target = home.folder / "saved.db"
    result = home("doctor", "--salvage", str(target), "--json")
    _check_form(result, tally, f"doctor --salvage: {label}", 0, _REFUSED)
    if result.code:
        tally.outcomes["not to be opened"] += 1
        return
    report = json.loads(result.out)
    tally.hold(home("--db", str(target), "doctor").code == 0, f"saved, but not sound: {label}")
    export = home("--db", str(target), "export", "--all-partitions")
    saved_texts = _texts(export.out) if export.code == 0 else {}
    tally.hold(len(saved_texts) == report["saved"], f"saved, but unreadable: {label}")
    tally.hold(texts.keys() >= saved_texts.keys(), f"saved what was never said: {label}")
    tally.hold(len(saved_texts) + report["lost"] >= len(texts), f"lost without a word: {label}")
    tally.outcomes["saved from what is beyond repair"] += 1
    tally.outcomes["messages saved"] += len(saved_texts)
    target.unlink()


def _restore(home: Home, backup: Path, texts: dict[int, str], tally: Damages, label: str) -> None:
    """Follow the printed hint: move the files away and copy a backup there."""
    for file in home.folder.glob("reservoir.db*"):
        file.unlink()
    home.db.write_bytes(backup.read_bytes())
    export = home("export", "--all-partitions")
    tally.hold(export.code == 0 and _texts(export.out) == texts, f"not restored: {label}")


def _sqlite_says(path: Path) -> bool:
    """Return whether ``PRAGMA integrity_check`` finds a fault."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            return connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]
    except (sqlite3.DatabaseError, UnicodeDecodeError):  # a name in the error may be damaged
        return True


def _readable(path: Path) -> int:
    """Return how many messages SQLite reads before an error."""
    count = 0
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            connection.text_factory = bytes
            for _ in connection.execute("SELECT id, content FROM messages NOT INDEXED"):
                count += 1
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        pass
    return count


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        models = Path(sys.argv[2]) if len(sys.argv) > 2 else None
        result = damaged(build(Path(place), models=models), 1, int(sys.argv[1]))
    print(result.outcomes, result.lost, round(result.seconds), *result.wrong, sep="\n")
