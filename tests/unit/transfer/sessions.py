"""Sessions of Claude Code, and a store that is synced with them."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from builders import EVERYWHERE, FakeEmbedder, ingestor

from reservoir_cli.messages import Scope
from reservoir_cli.storage.store import Store
from reservoir_cli.transfer.sync import sync_sources as syncing
from reservoir_cli.transfer.sync.history_sources import Source
from reservoir_cli.transfer.sync.sync_reports import SourceReport

#: A time long after all files were written.
LATER = datetime.now(UTC) + timedelta(days=1)
WORK = Scope("work", "claude-code")


def line(kind: str, number: int, content: Any, **more: Any) -> dict[str, Any]:
    """Return a line of a session of Claude Code."""
    message: dict[str, Any] = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": f"m{number}", "model": "claude", "stop_reason": more.pop("stop", None)}
        more.setdefault("requestId", f"r{number}")
    return {
        "type": kind,
        "uuid": f"u{number}",
        "sessionId": "s1",
        "cwd": "/home/me/app",
        "timestamp": f"2026-06-01T09:{number // 60:02}:{number % 60:02}.000Z",
        "message": message,
        **more,
    }


def turn(number: int, question: str, reply: str, **more: Any) -> list[dict[str, Any]]:
    """Return the lines of a question and its reply."""
    return [
        line("user", number, question, **more),
        line("assistant", number + 1, [{"type": "text", "text": reply}], stop="end_turn", **more),
    ]


def text(*lines: dict[str, Any]) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


class Machine:
    """A folder of sessions, and a store that is synced with it."""

    def __init__(self, store: Store, root: Path) -> None:
        self.store, self.root = store, root
        self.source = Source("claude-code", "claude-code", root, "work")
        self.settings: dict[str, Any] = {}
        self.projects: dict[str, str] = {}
        self.embedder: FakeEmbedder | None = None

    def write(self, name: str, *lines: dict[str, Any], torn: str = "") -> Path:
        """Append lines to a file."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(text(*lines) + torn)
        return path

    def sync(self, *, now: datetime = LATER, source: Source | None = None) -> SourceReport:
        ingestion = ingestor(self.store, self.embedder, self.settings)
        ingestion.config = replace(ingestion.config, projects=self.projects)
        [report] = syncing.sync(ingestion, [source or self.source], now=now).sources
        assert report.failures == []
        return report

    def said(self, scope: Scope = EVERYWHERE) -> list[str]:
        return [message.content for message in self.store.last(scope, 0)]
