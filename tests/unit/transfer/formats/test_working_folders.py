"""Importers record the folder that a conversation is about, so that it can be excluded."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from builders import ingestor
from databases import create_database
from reading import SAMPLES

from reservoir_cli.messages import Scope
from reservoir_cli.transfer.detect_format import choose
from reservoir_cli.transfer.reading.decompressed_file import File
from reservoir_cli.transfer.reading.foreign_values import folder_name
from reservoir_cli.transfer.reading.importer import Record
from reservoir_cli.transfer.sync import sync_sources as syncing
from reservoir_cli.transfer.sync.history_sources import Source


def sample(name: str) -> Callable[[Path], Path]:
    return lambda folder: Path(shutil.copy(SAMPLES / name, folder))


def database(tool: str) -> Callable[[Path], Path]:
    return lambda folder: create_database(folder, tool)


def cline(folder: Path) -> Path:
    path = folder / "1778386000000" / "api_conversation_history.json"
    path.parent.mkdir()
    return Path(shutil.copy(SAMPLES / "cline.json", path))


def copilot_chat(folder: Path) -> Path:
    path = folder / "chatSessions" / "session.json"
    path.parent.mkdir()
    workspace = {"folder": "file:///home/ann/my%20diary"}
    (folder / "workspace.json").write_text(json.dumps(workspace), encoding="utf-8")
    return Path(shutil.copy(SAMPLES / "copilot-chat.json", path))


TOOLS = {
    "claude-code": sample("claude-code.jsonl"),
    "codex": sample("codex.jsonl"),
    "gemini-cli": sample("gemini-cli.jsonl"),
    "copilot-cli": sample("copilot-cli.jsonl"),
    "cline": cline,
    "goose": database("goose"),
    "opencode": database("opencode"),
    "cursor": database("cursor"),
    "zed": database("zed"),
    "copilot-chat": copilot_chat,
}


@pytest.mark.sqlite
@pytest.mark.parametrize("tool", TOOLS)
def test_excluded_folders_are_left_out_whichever_tool_was_used_there(store, tmp_path, tool):
    root = tmp_path / "history"
    root.mkdir()
    path = TOOLS[tool](root)
    file = File.of_path(path, path.stat())
    records = [entry for entry in choose(file).read(file) if isinstance(entry, Record)]
    named = {str(record.message.conversation_id) for record in records if record.folder}
    folders = {record.folder for record in records if record.folder}
    assert folders
    for record in records:
        if record.conversation and record.conversation.project and record.folder:
            assert folder_name(record.folder) == record.conversation.project
    source = Source(tool, tool, root, "work", tuple(map(str, folders)))
    [report] = syncing.sync(ingestor(store), [source], whole=True).sources
    assert report.imports.excluded
    stored = store.last(Scope("work"), 0)
    assert named.isdisjoint(str(message.conversation_id) for message in stored)
