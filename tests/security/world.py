"""A folder with a store full of hostile messages, and files of every kind."""

import json
import os
import shutil
import sqlite3
import zipfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

from hostile_values import ESCAPES, INJECTIONS

from reservoir_cli.messages import Conversation, Message, Scope, ToolCall
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.storage import prepare_rows

_BEGIN = datetime(2026, 5, 9, 12, tzinfo=UTC)


def make(folder: Path) -> Path:
    """Create a folder to be copied.

    :returns: the folder; its store is ``home/reservoir.db``.
    """
    folder.mkdir()
    with Reservoir.open(folder / "home" / "reservoir.db") as reservoir:
        for number, text in enumerate([*ESCAPES, *INJECTIONS]):
            _say(reservoir, "default", "default", number, text)
        # Earlier versions stored such names, which are refused now.
        with patch.object(prepare_rows, "check_name"):
            _say(reservoir, f"evil{ESCAPES[0]}", f"inner{ESCAPES[4]}", 90, "elsewhere")
        _say(reservoir, INJECTIONS[0], INJECTIONS[1], 91, "by name")
    _write_files(folder)
    return folder


def _say(reservoir: Reservoir, partition: str, instance: str, number: int, text: str) -> None:
    conversation = Conversation(
        f"c{text}", title=f"title {text}", source=f"s{text}", model=f"m{text}"
    )
    moment, trace = _BEGIN + timedelta(minutes=number), f"t{number}{text}"
    call = ToolCall(f"id{text}", f"tool{text}", json.dumps({"argument": text}))
    thread = {"trace_id": trace, "conversation_id": conversation.id, "source": f"s{text}"}
    messages = [
        Message("user", f"queue {text} question?", moment, **thread),
        Message("assistant", f"reply {text}", moment, tool_calls=(call,), **thread),
        Message("tool", f"result {text}", moment, name=text, tool_call_id=call.id, **thread),
        Message("assistant", f"done\t{text}\nnext line {text}", moment, **thread),
    ]
    scope = Scope(partition, instance)
    reservoir.store.add_conversations(scope, [conversation])
    reservoir.ingest(messages, partition=partition, instance=instance, embed=False)


def _write_files(folder: Path) -> None:
    rows = [{"role": "user", "content": f"row {escape}"} for escape in ESCAPES]
    texts = {
        "note.md": f"# A note\n{''.join(ESCAPES)}\n",
        "list.json": json.dumps(rows),
        "rows.jsonl": "".join(json.dumps(row) + "\n" for row in rows),
        "deep.json": "[" * 100_000,
        "numbers.json": '[{"role": "user", "content": "a", "created_at": 1e400, "x": %s}]'
        % ("9" * 10_000),
        "empty": "",
        "settings.toml": 'partition = "evil"\nrecent_context_size = 3\n',
        "broken.toml": "a = [",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "bytes.bin").write_bytes(bytes(range(256)) * 20)
    (folder / "folder").mkdir()
    (folder / "folder" / "inner.jsonl").write_text(json.dumps(rows[0]), encoding="utf-8")
    (folder / "folder" / "up").symlink_to("..")
    (folder / "loop").symlink_to("loop")
    with zipfile.ZipFile(folder / "archive.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("../../outside.jsonl", "/etc/absolute.jsonl", f"{ESCAPES[0]}.jsonl"):
            archive.writestr(name, texts["rows.jsonl"])
    (folder / "torn.zip").write_bytes((folder / "archive.zip").read_bytes()[:-9])
    shutil.copy(folder / "home" / "reservoir.db", folder / "other.db")
    whole = (folder / "home" / "reservoir.db").read_bytes()
    (folder / "torn.db").write_bytes(whole[:4096] + os.urandom(4096) + whole[8192:])


def copied(world: Path, folder: Path) -> Path:
    """Copy the original folder to a place of its own."""
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(world, folder, symlinks=True)
    return folder


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of commands that run in a folder."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "RESERVOIR_HOME": str(folder / "home"),
        "RESERVOIR_EMBEDDING_MODEL": "nobody/absent-model",
        "HF_HUB_OFFLINE": "1",
        "TZ": "UTC",
    }


def held(folder: Path) -> list[tuple[object, ...]]:
    """Check the store of a folder; return its messages."""
    with closing(sqlite3.connect(folder / "home" / "reservoir.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        first = "id, trace_id, conversation_id, partition, instance, role, content"
        rows = connection.execute(f"SELECT {first}, * FROM messages ORDER BY id").fetchall()
        for table in ("pending", "messages_fts"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (len(rows),)
    return rows
