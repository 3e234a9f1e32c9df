"""Play a week of prompts in an agent, each asked through ``recall`` as its hook asks.

The data are ``facts`` (``id``, ``project``, ``question``, ``answer``, ``at``) and ``sessions`` of
``turns`` (``prompt``, ``need``, the id of the fact that helps or null, ``reply``). The facts are
stored among other talk; then each session is played, a minute between turns.
"""

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

from sets import Collection
from stores import fill_store, open_reservoir, progress, store
from vectors import CachedEmbedder

from reservoir_cli import Message, Reservoir

_PARTITION = "default"
_BUDGET = 1_500
_FIRST_SESSION = datetime(2026, 11, 16, 8, tzinfo=UTC)


def play_week(
    path: Path,
    others: Sequence[Collection],
    embedder: CachedEmbedder,
    cache: Path,
    settings: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Return for each prompt what it needed and what was recalled for it.

    :param others: other talk, each collection in an instance of its own.
    """
    data = json.loads(path.read_text(encoding="utf-8"))
    facts = {fact["id"]: fact for fact in data["facts"]}
    base = _fill(others, embedder, cache)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        copy = Path(shutil.copy(base, Path(folder) / "store.db"))
        with open_reservoir(copy, embedder, settings) as reservoir:
            for fact in facts.values():
                _store_fact(reservoir, fact)
            rows: list[dict[str, Any]] = []
            for session in progress(data["sessions"], "sessions"):
                rows += _play_session(reservoir, session, facts)
    return rows


def _fill(others: Sequence[Collection], embedder: CachedEmbedder, cache: Path) -> Path:
    """Store other talk in one partition; return the store's path."""
    messages = tuple(message for collection in others for message in collection.messages)
    marker = fill_store(Collection("week", (), ()), embedder, cache)
    path = cache / f"week-{len(others)}-{len(messages)}-{marker.stem}.db"
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            fresh = Path(folder) / "store.db"
            with open_reservoir(fresh, embedder, {}) as reservoir:
                for collection in progress(others, "storing"):
                    store(reservoir, collection.name, collection.messages, partition=_PARTITION)
            fresh.replace(path)
    return path


def _store_fact(reservoir: Reservoir, fact: Mapping[str, Any]) -> None:
    at, name = datetime.fromisoformat(fact["at"]), f"fact {fact['id']}"
    pair = [("user", fact["question"], at), ("assistant", fact["answer"], at + _seconds(20))]
    _ingest(reservoir, fact["project"], name, f"{name} 0", pair)


def _play_session(
    reservoir: Reservoir, session: Mapping[str, Any], facts: Mapping[int, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Ask each prompt of a session, then store it with its reply."""
    name = f"session {session['id']}"
    started = _FIRST_SESSION + timedelta(hours=9 * session["id"])
    rows = []
    for number, turn in enumerate(session["turns"]):
        at = started + timedelta(minutes=number)
        outcome = reservoir.recall(
            turn["prompt"],
            partition=_PARTITION,
            budget=_BUDGET,
            exclude_conversation=name,
            now=at,
            recorded=False,
        ).to_row()
        rows.append(_judge(turn, outcome, facts))
        pair = [("user", turn["prompt"], at), ("assistant", turn["reply"], at + _seconds(30))]
        _ingest(reservoir, session["project"], name, f"{name} {number}", pair)
    return rows


def _judge(
    turn: Mapping[str, Any], outcome: Mapping[str, Any], facts: Mapping[int, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return what a prompt needed, the tokens it got, and the part of them that it needed."""
    need, text = turn["need"], _plain(outcome["text"])
    found, wanted = False, 0
    if need is not None:
        answer = _plain(facts[need]["answer"])
        found = answer in text
        wanted = sum(
            message["tokens"] or 0
            for message in outcome["messages"]
            if message["conversation_id"] == f"fact {need}" or answer in _plain(message["content"])
        )
    return {
        "prompt": turn["prompt"],
        "need": need,
        "tokens": outcome["tokens"],
        "messages": len(outcome["messages"]),
        "found": found,
        "wanted": min(wanted, outcome["tokens"]),
    }


def week_figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the figures of a played week."""
    idle = [row for row in rows if row["need"] is None]
    needy = [row for row in rows if row["need"] is not None]
    injected = [row["tokens"] for row in rows if row["tokens"]]
    total = sum(injected)
    return {
        "prompts": len(rows),
        "injected at all": _share(bool(row["tokens"]) for row in rows),
        "injected without need": _share(bool(row["tokens"]) for row in idle),
        "facts inside where they help": _share(row["found"] for row in needy),
        "median tokens": float(median(injected)) if injected else 0.0,
        "total tokens": float(total),
        "share of tokens that are wanted": sum(row["wanted"] for row in rows) / max(total, 1),
    }


def print_week(rows: Sequence[Mapping[str, Any]], *, each: bool) -> None:
    """Print the figures of a week, and each prompt if requested."""
    if each:
        for row in rows:
            need = "-" if row["need"] is None else "found" if row["found"] else "MISSED"
            print(f"{row['tokens']:>6,}  {row['wanted']:>4}  {need:<7}{row['prompt'][:80]}")
    for name, value in week_figures(rows).items():
        print(f"{name:<34}{value:>12,.3f}")


def _share(values: Any) -> float:
    values = list(values)
    return float(sum(values)) / max(len(values), 1)


def _plain(text: str) -> str:
    return " ".join(text.split())


def _seconds(count: int) -> timedelta:
    return timedelta(seconds=count)


def _ingest(
    reservoir: Reservoir,
    project: str,
    conversation: str,
    trace: str,
    pair: Sequence[tuple[str, str, datetime]],
) -> None:
    messages = [
        Message(role, text, created_at=at, conversation_id=conversation, trace_id=trace)
        for role, text, at in pair
    ]
    reservoir.ingest(messages, partition=_PARTITION, instance=project)
