"""A user of seven tools: all are imported, and one project moves to a partition of its own."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli
from databases import create_database

SAMPLES = Path(__file__).parents[1] / "unit" / "transfer" / "formats" / "samples"
FILES = {
    "codex.jsonl": ".codex/sessions/2026/05/09/rollout-1.jsonl",
    "gemini-cli.jsonl": ".gemini/tmp/loom/chats/session-1.jsonl",
    "qwen-code.jsonl": ".qwen/projects/-loom/chats/s.jsonl",
    "droid.jsonl": ".factory/sessions/-loom/d.jsonl",
    "pi.jsonl": ".pi/agent/sessions/--loom--/p.jsonl",
}
SESSION = ".claude/projects/-home-me-pottery/5e55.jsonl"


def line(kind: str, number: int, content: Any) -> str:
    message: dict[str, Any] = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": f"m{number}", "model": "claude", "stop_reason": "end_turn"}
    entry = {
        "type": kind,
        "uuid": f"u{number}",
        "sessionId": "5e55",
        "cwd": "/home/me/pottery",
        "timestamp": f"2026-06-01T09:00:{number:02}.000Z",
        "message": message,
    }
    return json.dumps(entry) + "\n"


def talk(file: Path, number: int, question: str, answer: str) -> None:
    """Append a turn to a running session."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as session:
        session.write(line("user", number, question))
        session.write(line("assistant", number + 1, [{"type": "text", "text": answer}]))


@pytest.fixture
def person(cli: Cli, tmp_path: Path) -> Cli:
    """Return a user with histories of seven tools, one of them of a running session."""
    home = tmp_path / "person"
    for sample, path in FILES.items():
        (home / path).parent.mkdir(parents=True)
        shutil.copy(SAMPLES / sample, home / path)
    (home / ".local/share/opencode").mkdir(parents=True)
    database = create_database(tmp_path, "opencode")
    database.rename(home / ".local/share/opencode/opencode.db")
    talk(home / SESSION, 1, "How hot is the kiln?", "1,240 degrees.")
    cli.env["HOME"] = str(home)
    return cli


def places(person: Cli) -> dict[tuple[str, str], list[str]]:
    """Map each message, by its source and id, to the partitions that have it."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in person.rows("--all-partitions"):
        identity = (row["source"], row["source_id"])
        found.setdefault(identity, []).append(f"{row['partition']}: {row['content']}")
    return found


def test_three_commands_give_a_project_a_partition_that_its_running_session_follows(person):
    report = person("init", "--yes", "--no-embed")
    for tool in ("Claude Code", "Codex", "Gemini CLI", "opencode", "Qwen Code", "Droid", "Pi"):
        assert f"{tool}: 1 file, " in report.err, tool
        assert f"{tool}: imported " in report.err, tool
    assert "Gemini CLI: imported 10, already there 0, skipped 2" in report.err
    assert (
        "note: why some were skipped: reservoir ingest --dry-run --format gemini-cli" in report.err
    )
    person("move", "--project", "pottery", "--to", "workshop", "--yes")
    session = Path(person.env["HOME"]) / SESSION
    talk(session, 3, "And the glaze?", "Tin, and a little copper.")
    os.utime(session, (1_790_000_000, 1_790_000_000))
    assert "claude-code: imported 2" in person("sync", "--no-embed").err
    stored = places(person)
    assert all(len(copies) == 1 for copies in stored.values())
    texts = sorted(copy for (copy,) in stored.values() if copy.startswith("workshop: "))
    assert texts == [
        "workshop: 1,240 degrees.",
        "workshop: And the glaze?",
        "workshop: How hot is the kiln?",
        "workshop: Tin, and a little copper.",
    ]
    again = person("init", "--yes", "--no-embed", "--json").document
    assert {row["new"] for row in again["histories"] if row["files"]} == {0}
