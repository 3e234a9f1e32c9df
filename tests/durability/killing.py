"""Kill every command that writes with ``kill -9`` at random times, and check for losses.

Each kind of trial is a function ``(folder, seed, trials) → Tally``.
"""

import json
import random
import shutil
import sqlite3
import tomllib
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from trials import Home, Tally, copied, faults, settle

from reservoir_cli.embedding import compiled_models
from reservoir_cli.storage.schema import VERSION

_WORDS = "queue redis postgres deploy worker lease cat sofa backup night index token".split()
NEEDLE = "zebrafish"


def text(rng: random.Random, number: int, *, long: bool = True) -> str:
    """Return a unique message; if long ones are allowed, occasionally one of many pages."""
    count = 20_000 if long and rng.random() < 0.1 else rng.randint(1, 80)
    return f"{number}: {' '.join(rng.choices(_WORDS, k=count))} end of {number}"


def rows(
    file: Path, rng: random.Random, count: int, *, needle_every: int = 0, name: str = "row"
) -> None:
    """Write an export of conversations with their own ids and times."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    with file.open("w", encoding="utf-8") as lines:
        for number in range(count):
            content = f"{number} {' '.join(rng.choices(_WORDS, k=rng.randint(3, 60)))}"
            if needle_every and number % needle_every == 0:
                content += f" {NEEDLE}"
            row = {
                "partition": "default",
                "instance": "default",
                "role": ("user", "assistant")[number % 2],
                "content": content,
                "created_at": (start + timedelta(minutes=number)).isoformat(),
                "source": "trial",
                "source_id": f"{name}-{number}",
                "trace_id": f"{name}-trace-{number // 2}",
                "conversation_id": f"{name}-talk-{number // 20}",
            }
            lines.write(json.dumps(row) + "\n")


def ingest(folder: Path, seed: int, trials: int) -> Tally:
    """Kill commands that store a message: a printed id means that it is on disk."""
    home, rng = Home(folder / "ingest"), random.Random(seed)
    home.must("ingest", "--no-embed", stdin="the first one")
    seconds = home.seconds("ingest", "--no-embed", stdin="the first one")
    sent, acknowledged = {"the first one"}, {}
    tally = Tally("ingest")
    with tally.timed():
        for number in range(trials):
            message = text(rng, number)
            sent.add(message)
            command = ("ingest", "--no-embed")
            if number % 3:
                result = home.killed(rng, seconds, *command, stdin=message)
            else:
                result = home.killed_at_its_answer(*command, stdin=message)
            tally.trials += 1
            tally.hit += result.code < 0
            if result.out.endswith("\n"):
                acknowledged[int(result.out)] = message
                tally.size += len(message)
            stored = dict(home.rows())
            tally.lost += sum(
                stored.get(message_id) != message for message_id, message in acknowledged.items()
            )
            tally.hold(sent.issuperset(stored.values()), f"a torn message, seed {seed} at {number}")
            tally.hold(not faults(home.db), f"a fault, seed {seed} at {number}")
        tally.hold(home("doctor").code == 0, f"doctor finds a fault, seed {seed}")
    return tally


def import_file(folder: Path, seed: int, trials: int, count: int = 4_000) -> Tally:
    """Compare an import that was killed up to three times and resumed with an uninterrupted one."""
    rng = random.Random(seed)
    file = folder / "rows.jsonl"
    rows(file, rng, count)
    whole = Home(folder / "whole")
    seconds = whole.seconds("ingest", "--no-embed", str(file))
    expected = whole.rows("*")
    tally = Tally("import")
    with tally.timed():
        while tally.trials < trials:
            home = Home(folder / f"import-{tally.trials}")
            for _ in range(min(rng.randint(1, 3), trials - tally.trials)):
                result = home.killed(rng, seconds, "ingest", "--no-embed", str(file))
                tally.trials += 1
                tally.hit += result.code < 0
                if home.db.exists() and home.db.stat().st_size:
                    tally.hold(not faults(home.db), f"a fault, seed {seed} at {tally.trials}")
                    stored = home.rows("*")
                    part = stored == expected[: len(stored)]
                    tally.hold(part, f"not a beginning, seed {seed} at {tally.trials}")
            home.must("ingest", "--no-embed", str(file))
            imported = home.rows("*")
            tally.lost += len(set(expected) - set(imported))
            tally.hold(imported == expected, f"another result, seed {seed} at {tally.trials}")
            tally.hold(home("doctor").code == 0, f"doctor, seed {seed} at {tally.trials}")
            tally.size += home.db.stat().st_size
    return tally


def embed(folder: Path, seed: int, trials: int, models: Path, count: int = 1_200) -> Tally:
    """Kill ``embed``: each message has complete vectors or is pending."""
    home, rng = Home(folder / "embed", models), random.Random(seed)
    file = folder / "to-embed.jsonl"
    rows(file, rng, count)
    home.must("ingest", "--no-embed", str(file))
    settle(home.db)
    base = folder / "pending.db"
    copied(home.db, base)
    seconds = home.seconds("embed")
    expected = _embedded(home)
    tally = Tally("embed")
    with tally.timed():
        while tally.trials < trials:
            copied(base, home.db)
            for _ in range(min(rng.randint(1, 3), trials - tally.trials)):
                result = home.killed(rng, seconds, "embed")
                tally.trials += 1
                tally.hit += result.code < 0
                tally.hold(not faults(home.db), f"a fault, seed {seed} at {tally.trials}")
                tally.lost += count - len(home.rows())
            home.must("embed")
            tally.hold(_embedded(home) == expected, f"not all, seed {seed} at {tally.trials}")
            tally.hold(home("doctor").code == 0, f"doctor, seed {seed} at {tally.trials}")
            tally.size += home.db.stat().st_size
    return tally


def _embedded(home: Home) -> tuple[int, ...]:
    """Return the numbers of messages, embedded, pending and rankable messages."""
    with closing(sqlite3.connect(home.db)) as connection:
        counts = ("messages", "embeddings", "pending")
        counted = [
            connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone() for table in counts
        ]
        counted.append(connection.execute("SELECT SUM(n) FROM blocks").fetchone())
    return tuple(row[0] for row in counted)


def forget(folder: Path, seed: int, trials: int, count: int = 1_000) -> Tally:
    """Kill ``forget``: it forgets all or nothing, and leaves no forgotten word in any file."""
    home, rng = Home(folder / "forget"), random.Random(seed)
    file = folder / "to-forget.jsonl"
    rows(file, rng, count, needle_every=5)
    home.must("ingest", "--no-embed", str(file))
    settle(home.db)
    base = folder / "unforgotten.db"
    copied(home.db, base)
    before = dict(home.rows())
    matching = {number for number, content in before.items() if NEEDLE in content}
    command = ("forget", "--match", NEEDLE, "--all-partitions", "--yes")
    seconds = home.seconds(*command)
    tally = Tally("forget")
    with tally.timed():
        for number in range(trials):
            copied(base, home.db)
            result = home.killed(rng, seconds, *command)
            tally.trials += 1
            tally.hit += result.code < 0
            stored = dict(home.rows())
            forgotten = before.keys() - stored.keys()
            tally.lost += len(forgotten - matching)
            tally.hold(
                not forgotten or forgotten >= matching, f"half forgotten, seed {seed} at {number}"
            )
            tally.hold(not faults(home.db), f"a fault, seed {seed} at {number}")
            home.must("view", "1")  # any command finishes it
            words_left = NEEDLE.encode() in home.files().lower()
            tally.hold(words_left == (not forgotten), f"words are left, seed {seed} at {number}")
            home.must(*command)
            tally.hold(NEEDLE.encode() not in home.files(), f"words stay, seed {seed} at {number}")
            tally.hold(
                dict(home.rows()).keys() == before.keys() - matching, f"seed {seed}, {number}"
            )
            tally.size += home.db.stat().st_size
        tally.hold(home("doctor").code == 0, f"doctor finds a fault, seed {seed}")
    return tally


def compile_model(folder: Path, seed: int, trials: int) -> Tally:
    """Kill the first use of the model: it is compiled or absent, and the message is stored."""
    name = "sentence-transformers/all-MiniLM-L6-v2"
    home = Home(folder / "compile", RESERVOIR_EMBEDDING_MODEL=name)
    rng, models = random.Random(seed), home.folder / "cache" / "models"
    seconds = home.seconds("ingest", stdin="compiles the model")
    tally = Tally("compile")
    with tally.timed():
        for number in range(trials):
            label = f"seed {seed} at {number}"
            shutil.rmtree(models, ignore_errors=True)  # if the last process compiled nothing
            message = f"said while it compiles, {number}"
            # The first seconds only load libraries.
            result = home.killed(rng, seconds, "ingest", stdin=message)
            tally.trials += 1
            tally.hit += result.code < 0
            tally.lost += (message,) not in home.rows("content") and bool(result.out)
            finished = models.glob("[!.]*") if models.exists() else ()
            tally.hold(not any(map(compiled_models.is_damaged, finished)), f"half a model, {label}")
            tally.hold(not faults(home.db), f"a fault, {label}")
        home.must("embed")
        tally.hold(home("doctor").code == 0, f"doctor finds a fault, seed {seed}")
        tally.size += sum(file.stat().st_size for file in models.rglob("*"))
    return tally


def create(folder: Path, seed: int, trials: int) -> Tally:
    """Kill the command that creates a store."""
    home, rng = Home(folder / "create"), random.Random(seed)
    seconds = home.seconds("ingest", "--no-embed", stdin="the first")
    tally = Tally("create")
    with tally.timed():
        for number in range(trials):
            for file in home.db.parent.glob(f"{home.db.name}*"):
                file.unlink()
            result = home.killed(rng, seconds, "ingest", "--no-embed", stdin="the first")
            tally.trials += 1
            tally.hit += result.code < 0
            if home.db.exists():
                with closing(sqlite3.connect(home.db)) as connection:
                    created = connection.execute("PRAGMA user_version").fetchone()[0]
                tally.hold(created in (0, VERSION), f"half created, seed {seed} at {number}")
            tally.lost += bool(result.out) and ("the first",) not in home.rows("content")
            home.must("ingest", "--no-embed", stdin="the next")
            tally.hold(("the next",) in home.rows("content"), f"unusable, seed {seed} at {number}")
            tally.hold(not faults(home.db), f"a fault, seed {seed} at {number}")
            tally.size += home.db.stat().st_size
    return tally


def write_settings(folder: Path, seed: int, trials: int) -> Tally:
    """Kill changes of settings: the file is then the old or the new one, with all comments."""
    home, rng = Home(folder / "settings"), random.Random(seed)
    remarks = "".join(f"# remark {number}\n" for number in range(200))
    home.config.write_text(f"{remarks}recent_context_size = 7  # behind it\n", encoding="utf-8")
    seconds = home.seconds("config", "--set", "recent_context_size=8")
    tally, known = Tally("config write"), 8
    with tally.timed():
        for number in range(trials):
            new_value = number + 100
            change = f"recent_context_size={new_value}"
            result = home.killed(rng, seconds, "config", "--set", change)
            tally.trials += 1
            tally.hit += result.code < 0
            written = home.config.read_text(encoding="utf-8")
            value = tomllib.loads(written)["recent_context_size"]
            tally.lost += result.code == 0 and value != new_value
            tally.hold(value in (known, new_value), f"another value, seed {seed} at {number}")
            whole = written == f"{remarks}recent_context_size = {value}  # behind it\n"
            tally.hold(whole, f"half a file, seed {seed} at {number}")
            known = value
            tally.size += len(written)
        tally.hold(home("doctor").code == 0, f"doctor finds a fault, seed {seed}")
    return tally


def back_up(folder: Path, seed: int, trials: int) -> Tally:
    """Kill a backup that replaces a file: the file is then the old one or the complete new one."""
    home, rng = Home(folder / "backup"), random.Random(seed)
    file, target = folder / "to-copy.jsonl", folder / "copy.db"
    rows(file, rng, 4_000)
    home.must("ingest", "--no-embed", str(file))
    command = ("backup", str(target), "--yes")
    seconds = home.seconds(*command)
    known = target.read_bytes()
    tally = Tally("backup")
    with tally.timed():
        for number in range(trials):
            home.must("ingest", "--no-embed", stdin=f"one more, {number}")
            result = home.killed(rng, seconds, *command)
            tally.trials += 1
            tally.hit += result.code < 0
            copy = target.read_bytes()
            if copy != known:
                tally.hold(not faults(target), f"a fault, seed {seed} at {number}")
                tally.lost += len(set(_messages(home.db)) - set(_messages(target)))
            tally.hold(result.code or copy != known, f"not copied, seed {seed} at {number}")
            known = target.read_bytes()
            tally.size += len(known)
    return tally


def _messages(path: Path) -> list[tuple[int, str]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT id, content FROM messages").fetchall()


def session_lines(first: int, count: int) -> str:
    """Return a part of a session of Claude Code, with alternating questions and replies."""
    lines = []
    for number in range(first, first + count):
        role = ("user", "assistant")[number % 2]
        message = {"role": role, "content": f"{number} said", "id": f"m{number}"}
        line = {
            "type": role,
            "uuid": f"u{number}",
            "sessionId": "s",
            "requestId": f"r{number}",
            "timestamp": "2026-06-01T09:00:00Z",
            "message": message | {"stop_reason": "end_turn"},
        }
        lines.append(json.dumps(line) + "\n")
    return "".join(lines)


def sync(folder: Path, seed: int, trials: int, count: int = 2_400) -> Tally:
    """Kill syncs of growing files: every message is stored once, and there is no fault."""
    home, rng = Home(folder / "sync"), random.Random(seed)
    sessions = folder / "sessions"
    sessions.mkdir()
    file = sessions / "s.jsonl"
    file.write_text(session_lines(0, count), encoding="utf-8")
    home.must("config", "--set", f"sources.claude-code.path={sessions}")
    command = ("sync", "--no-embed")
    base = folder / "unsynced.db"
    home.must("ingest", "--no-embed", stdin="the first one")
    settle(home.db)
    copied(home.db, base)
    seconds = home.seconds(*command)
    copied(base, home.db)
    tally = Tally("sync")
    written = count
    with tally.timed():
        for number in range(trials):
            if number % 2:  # once more from the beginning
                home.must(*command)
                copied(base, home.db)
            if number % 3:
                with file.open("a", encoding="utf-8") as end:
                    end.write(session_lines(written, 20))
                written += 20
            result = home.killed(rng, seconds, *command)
            tally.trials += 1
            tally.hit += result.code < 0
            label = f"seed {seed} at {number}"
            ids = [
                source_id for (source_id,) in home.rows("source_id") if source_id.startswith("u")
            ]
            tally.hold(len(ids) == len(set(ids)), f"doubled, {label}")
            tally.hold(not faults(home.db), f"a fault, {label}")
            tally.size += file.stat().st_size
            if number % 3 == 2:
                home.must(*command)
                ids = [
                    source_id
                    for (source_id,) in home.rows("source_id")
                    if source_id.startswith("u")
                ]
                tally.lost += written - len(set(ids))
                tally.hold(len(ids) == written, f"doubled, {label}")
        home.must(*command)
        ids = [source_id for (source_id,) in home.rows("source_id") if source_id.startswith("u")]
        tally.lost += written - len(set(ids))
        tally.hold(len(ids) == written, f"doubled at the end, seed {seed}")
        tally.hold(home("doctor").code == 0, f"doctor finds a fault, seed {seed}")
    return tally


#: Kinds of trials that need no model.
KINDS: dict[str, Callable[[Path, int, int], Tally]] = {
    "ingest": ingest,
    "import": import_file,
    "sync": sync,
    "forget": forget,
    "create": create,
    "config": write_settings,
    "backup": back_up,
}
