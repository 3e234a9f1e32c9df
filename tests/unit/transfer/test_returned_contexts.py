"""Our own contexts in imported logs: only the question is stored."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reservoir_cli import Reservoir
from reservoir_cli.context.render.context_frame import MARKDOWN_LABEL, TEXT_LABEL, wrap
from reservoir_cli.messages import Message, Scope
from reservoir_cli.settings import config

EVERYTHING = Scope(None)
DAYS = 5
REPLY = "It is the cursor, and the page size of the second request. " * 40


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def reservoir(store, notes) -> Reservoir:
    settings = {"embedding_model": "nobody/absent-model"}
    return Reservoir(store, config.load(None, settings), notify=notes.append)


def contents(reservoir: Reservoir) -> list[str]:
    return [message.content for message in reservoir.store.last(EVERYTHING, 0)]


def largest_context(reservoir: Reservoir, question: str) -> str:
    """Return the largest context that a store can print."""
    return wrap("\n\n".join(contents(reservoir)), question)


def llm_log(path: Path, exchanges: list[tuple[str, str]]) -> Path:
    """Write a log of llm, in which each prompt begins a conversation named after it."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as log, log:
        log.execute("CREATE TABLE conversations (id TEXT, name TEXT, model TEXT)")
        log.execute(
            "CREATE TABLE responses (id TEXT, model TEXT, prompt TEXT, system TEXT, response TEXT, "
            "conversation_id TEXT, datetime_utc TEXT)"
        )
        for day, (prompt, reply) in enumerate(exchanges):
            name = " ".join(prompt.split())[:99] + "…"
            log.execute("INSERT INTO conversations VALUES (?, ?, 'm')", [f"c{day}", name])
            created_at = f"2026-05-0{day + 1}T12:00:00"
            log.execute(
                "INSERT INTO responses VALUES (?, 'm', ?, NULL, ?, ?, ?)",
                [f"r{day}", prompt, reply, f"c{day}", created_at],
            )
    return path


def claude_code_session(path: Path, exchanges: list[tuple[str, str]]) -> Path:
    lines = []
    for day, exchange in enumerate(exchanges):
        for role, content in zip(("user", "assistant"), exchange, strict=True):
            lines.append(
                {
                    "type": role,
                    "uuid": f"{role}{day}",
                    "sessionId": f"s{day}",
                    "timestamp": f"2026-05-0{day + 1}T12:00:00Z",
                    "message": {"role": role, "content": content},
                }
            )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("write", [llm_log, claude_code_session], ids=["llm", "claude-code"])
def test_importing_its_own_contexts_adds_nothing_to_a_store(reservoir, tmp_path, write):
    exchanges: list[tuple[str, str]] = []
    for day in range(DAYS):
        question = f"Why does sync drop rows on day {day}?"
        exchanges.append((largest_context(reservoir, question), f"Day {day}. {REPLY}"))
        totals = reservoir.import_files(write(tmp_path / "log.db", exchanges))
        assert (totals.imported, totals.already, totals.contexts) == (2, 2 * day, 1)
        assert totals.line().endswith("skipped 0, contexts removed 1")
    expected = [
        text
        for day in range(DAYS)
        for text in (f"Why does sync drop rows on day {day}?", f"Day {day}. {REPLY}".strip())
    ]
    assert [text.strip() for text in contents(reservoir)] == expected
    titles = [summary.conversation.title for summary in reservoir.store.conversations(EVERYTHING)]
    assert titles == [None] * DAYS
    second = reservoir.import_files(tmp_path / "log.db")
    assert (second.imported, second.contexts) == (0, 0)


@pytest.mark.parametrize("label", [TEXT_LABEL, MARKDOWN_LABEL])
def test_a_single_message_is_stored_without_its_context(reservoir, notes, label):
    framed = wrap("user: old words", "Why Redis?", label)
    reservoir.ingest([Message("user", framed), Message("assistant", "It was there.")], embed=False)
    assert contents(reservoir) == ["Why Redis?", "It was there."]
    assert "contexts removed, their questions kept: 1" in notes


def test_a_context_without_a_question_leaves_nothing_to_store(reservoir, notes):
    reservoir.ingest([Message("user", wrap("user: old words"))], embed=False)
    assert contents(reservoir) == []
    assert notes == ["contexts removed, nothing else to store: 1"]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("old words", "other words"),
        lambda text: text.replace("[Reservoir context]", "[Reservoir]"),
        lambda text: text.replace("[/Reservoir ", "[/Reservoirs "),
        lambda text: text[:40],
    ],
    ids=["checksum", "beginning", "end", "cut"],
)
def test_a_frame_with_a_wrong_checksum_is_stored_whole(reservoir, tmp_path, change):
    text = change(wrap("user: the old words of yesterday", "Why Redis?"))
    reservoir.ingest([Message("user", text)], embed=False)
    (tmp_path / "note.txt").write_text(text, encoding="utf-8")
    totals = reservoir.import_files(tmp_path / "note.txt")
    assert (totals.imported, totals.contexts) == (1, 0)
    assert contents(reservoir) == [text, text]


def test_every_format_removes_contexts(reservoir, tmp_path):
    framed = wrap("user: old words", "Why Redis?")
    message = {"role": "user", "content": framed}
    files = {
        "openai": [message],
        "anthropic": {"messages": [message], "system": "Be brief."},
        "sharegpt": [{"conversations": [{"from": "human", "value": framed}]}],
        "reservoir": [{**message, "partition": "p", "instance": "i", "source_id": "1"}],
        "claude": [
            {"uuid": "u", "chat_messages": [{"uuid": "m", "sender": "human", "text": framed}]}
        ],
    }
    for form, value in files.items():
        path = tmp_path / f"{form}.json"
        path.write_text(json.dumps(value), encoding="utf-8")
        assert reservoir.import_files(path, form=form).contexts == 1
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": framed}]}
    rollout = {"type": "response_item", "timestamp": "2026-05-01T12:00:00Z", "payload": item}
    (tmp_path / "codex.jsonl").write_text(json.dumps(rollout) + "\n", encoding="utf-8")
    assert reservoir.import_files(tmp_path / "codex.jsonl", form="codex").contexts == 1
    assert set(contents(reservoir)) == {"Why Redis?", "Be brief."}


def test_nothing_is_stored_of_an_answer_that_only_carried_a_context(reservoir):
    framed = wrap("user: old words")
    shells = {
        framed: None,
        f"Wall time: 0.2130 seconds\nOutput:\n{framed}\n": None,
        f"<untrusted_context>\n{framed}\n</untrusted_context>": None,
        f"Wall time: 2 s\n<untrusted_context>{framed}</untrusted_context>": None,
        f"Output: two rows\n{framed}": "Output: two rows",
        f"<untrusted_context>{framed}</untrusted_context>\nthe rest": "the rest",
        "Wall time: 0.1 seconds": "Wall time: 0.1 seconds",
    }
    wrong = []
    for text, kept in shells.items():
        answer = Message("tool", text, tool_call_id="t")
        stored = [row.content.strip() for row in reservoir.ingest([answer], embed=False)]
        if stored != ([] if kept is None else [kept]):
            wrong.append((text, stored))
    assert not wrong
    assert reservoir.ingest([Message("user", framed)], embed=False) == []


def test_vectors_of_a_context_are_not_used_for_its_question(reservoir, tmp_path, fake_embedder):
    model = {"id": fake_embedder.model_id, "name": fake_embedder.name}
    vector = [1.0, *[0.0] * (fake_embedder.dimensions - 1)]
    row = {"partition": "p", "role": "user", "content": wrap("old", "Why Redis?")}
    row |= {"embedding": vector, "embedding_model": model, "source_id": "1"}
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    reservoir.store.activate_model(fake_embedder.model_id, fake_embedder.name)
    assert reservoir.import_files(path).imported == 1
    assert reservoir.store.count_unembedded(EVERYTHING) == 1


def test_an_exchange_stored_by_tee_and_by_a_log_is_recalled_once(reservoir, tmp_path):
    question, reply = "Which port does the staging database use?", "It uses port 5432."
    created_at = datetime(2026, 5, 1, 12, tzinfo=UTC)
    messages = [
        Message("user", question, created_at),
        Message("assistant", reply, created_at + timedelta(seconds=2)),
    ]
    reservoir.ingest(messages, instance="typed", embed=False, pair=True)
    exchanges = [(wrap("user: old words", question), f"{reply}\n")]
    reservoir.import_files(llm_log(tmp_path / "log.db", exchanges))
    newest = [Message("user", f"unrelated words {number}") for number in range(3)]
    reservoir.ingest(newest, embed=False)
    window = reservoir.context("the port of the staging database", budget=2_000)
    printed = [candidate.message.content.strip() for candidate in window.kept]
    assert (printed.count(question), printed.count(reply)) == (1, 1)
