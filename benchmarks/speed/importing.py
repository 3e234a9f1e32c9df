"""Measure how fast a large export is imported, and how much memory that takes.

    python benchmarks/speed/importing.py [--mb 1000] [--zip]

This writes an export in ChatGPT's format with synthetic text, reads it without a store, imports it
into a new store without embedding, and imports it again. Each step is a separate process.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WORDS = (
    "the queue lost jobs because the failover of the primary took eleven seconds and nobody had "
    "noticed until morning so we moved it to postgres with skip locked which holds since then"
).split()
READ = """
import json, sys
from contextlib import ExitStack
from pathlib import Path
from reservoir_cli.transfer.detect_format import find
from reservoir_cli.transfer.reading.importer import Record
with ExitStack() as open_files:
    files = find(Path(sys.argv[1]), None, open_files).files
    count = sum(isinstance(record, Record) for file in files for record in file.records())
    print(json.dumps({"imported": count, "already_there": 0}))
"""


def node(rng: random.Random, name: str, parent: str | None, number: int) -> dict[str, Any]:
    """Return a node of an export, with a realistic share of metadata."""
    created = 1_700_000_000 + number * 37.25
    role = ("user", "assistant")[number % 2]
    text = " ".join(rng.choices(WORDS, k=rng.choice((20, 60, 120, 400))))
    message = {
        "id": name,
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": created,
        "update_time": None,
        "content": {"content_type": "text", "parts": [text]},
        "status": "finished_successfully",
        "end_turn": True,
        "weight": 1.0,
        "metadata": {
            "citations": [],
            "content_references": [],
            "message_type": None,
            "model_slug": "gpt-4o",
            "default_model_slug": "gpt-4o",
            "parent_id": parent,
            "request_id": f"{rng.getrandbits(64):016x}-AMS",
            "timestamp_": "absolute",
            "finish_details": {"type": "stop", "stop_tokens": [200002]},
        },
        "recipient": "all",
        "channel": None,
    }
    return {"id": name, "message": message, "parent": parent, "children": []}


def conversation(rng: random.Random, number: int) -> dict[str, Any]:
    """Return a conversation of 4 to 60 messages."""
    mapping: dict[str, Any] = {}
    parent: str | None = None
    for position in range(rng.randint(4, 60)):
        name = f"{rng.getrandbits(128):032x}"
        mapping[name] = node(rng, name, parent, number * 60 + position)
        parent = name
    identity = f"{rng.getrandbits(128):032x}"
    return {
        "title": f"Conversation {number}",
        "create_time": 1_700_000_000 + number,
        "update_time": None,
        "mapping": mapping,
        "current_node": parent,
        "conversation_id": identity,
        "id": identity,
    }


def export(size: int, seed: int = 7) -> Iterator[bytes]:
    """Yield the bytes of a ``conversations.json`` of about the given size."""
    rng = random.Random(seed)
    written, number = 0, 0
    yield b"["
    while written < size:
        data = json.dumps(conversation(rng, number)).encode()
        yield (b"," if number else b"") + data
        written += len(data)
        number += 1
    yield b"]"


def write(path: Path, size: int, zipped: bool) -> None:
    """Write an export to a file."""
    if not zipped:
        with path.open("wb") as file:
            file.writelines(export(size))
        return
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("conversations.json", "w", force_zip64=True) as member:
            for chunk in export(size):
                member.write(chunk)


def run(name: str, *command: str, env: dict[str, str]) -> None:
    """Run a process, and print its duration and its peak memory."""
    started = time.perf_counter()
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE)
    assert process.stdout is not None
    totals = json.load(process.stdout)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    seconds = time.perf_counter() - started
    count = totals["imported"] + totals["already_there"]
    print(
        f"{name:<14}{seconds:7.1f} s{count / seconds:9,.0f} messages/s"
        f"{usage.ru_maxrss / 1024:6,.0f} MB at most",
        flush=True,
    )


def main() -> None:
    """Write the export, measure, and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=int, default=1_000)
    parser.add_argument("--zip", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / ("export.zip" if options.zip else "conversations.json")
        write(file, options.mb * 1_000_000, options.zip)
        print(f"an export of {file.stat().st_size / 1e6:,.0f} MB on disk")
        env = {**os.environ, "RESERVOIR_HOME": f"{folder}/home"}
        ingest = (
            sys.executable,
            "-m",
            "reservoir_cli",
            "ingest",
            "--no-embed",
            "--json",
            str(file),
        )
        run("reading alone", sys.executable, "-c", READ, str(file), env=env)
        run("importing", *ingest, env=env)
        run("once more", *ingest, env=env)


if __name__ == "__main__":
    main()
