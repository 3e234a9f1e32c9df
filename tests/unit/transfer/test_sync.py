"""Keeping a store current with files that grow, vanish, come back, and are read by others."""

import json
import os
import platform
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from builders import EVERYWHERE, FakeEmbedder, embed, ingestor

from reservoir_cli.messages import Message, Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.retrieval import indexing
from reservoir_cli.settings import config
from reservoir_cli.storage import replicate
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.factory import open_store
from reservoir_cli.storage.sources import Sources
from reservoir_cli.transfer import sync as syncing
from reservoir_cli.transfer.importers import Record
from reservoir_cli.transfer.importers.claude_code import ClaudeCode
from reservoir_cli.transfer.importers.input_files import File
from reservoir_cli.transfer.importers.resume import Checkpoint, Resumable
from reservoir_cli.transfer.importers.watched_files import exclusion, walk
from reservoir_cli.transfer.sync import Source, SourceReport

#: Long after all files were written.
LATER = datetime.now(UTC) + timedelta(days=1)
WORK = Scope("work", "claude-code")


def line(kind: str, number: int, content: Any, **more: Any) -> dict[str, Any]:
    """A line of a session of Claude Code."""
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


def turn(number: int, asked: str, said: str, **more: Any) -> list[dict[str, Any]]:
    """A question and its reply."""
    return [
        line("user", number, asked, **more),
        line("assistant", number + 1, [{"type": "text", "text": said}], stop="end_turn", **more),
    ]


def text(*lines: dict[str, Any]) -> str:
    return "".join(json.dumps(each) + "\n" for each in lines)


class Machine:
    """A folder of sessions, and a store that is kept current with it."""

    def __init__(self, store: Store, root: Path) -> None:
        self.store, self.root = store, root
        self.source = Source("claude-code", "claude-code", root, "work")
        self.settings: dict[str, Any] = {}
        self.embedder: FakeEmbedder | None = None

    def write(self, name: str, *lines: dict[str, Any], torn: str = "") -> Path:
        """Append to a file."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(text(*lines) + torn)
        return path

    def sync(self, *, now: datetime = LATER, source: Source | None = None) -> SourceReport:
        way_in = ingestor(self.store, self.embedder, self.settings)
        [report] = syncing.sync(way_in, [source or self.source], now=now).sources
        assert report.failures == []
        return report

    def said(self, scope: Scope = EVERYWHERE) -> list[str]:
        return [message.content for message in self.store.last(scope, 0)]


@pytest.fixture
def machine(store: Store, tmp_path: Path) -> Machine:
    return Machine(store, tmp_path / "projects")


@pytest.fixture
def now() -> datetime:
    """A time at which what was just written is not old."""
    return datetime.now(UTC)


# What is new


def test_what_was_added_is_read_and_nothing_else(machine: Machine) -> None:
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    assert machine.sync().imports.imported == 2
    unchanged = machine.sync()
    assert (unchanged.files, unchanged.read, unchanged.imports.total) == (1, 0, 0)
    machine.write("a/s1.jsonl", *turn(3, "two?", "two."))
    grown = machine.sync()
    assert (grown.read, grown.imports.imported) == (1, 2)
    assert machine.said(WORK) == ["one?", "one.", "two?", "two."]
    messages = machine.store.last(WORK, 0)
    assert {message.conversation_id for message in messages} == {"s1"}
    assert messages[2].trace_id == messages[3].trace_id != messages[0].trace_id


@pytest.mark.sqlite("how a file is read does not depend on the store")
def test_reading_on_gives_what_reading_at_once_gives(machine: Machine, tmp_path: Path) -> None:
    samples = Path(__file__).parent / "importers" / "samples"
    for tool in ("claude-code", "codex"):
        at_once = machine.root / tool / "whole.jsonl"
        at_once.parent.mkdir(parents=True)
        shutil.copy(samples / f"{tool}.jsonl", at_once)
        data = at_once.read_bytes().splitlines(keepends=True)
        growing = tmp_path / "growing" / tool / "whole.jsonl"
        growing.parent.mkdir(parents=True)
        for number in range(1, len(data) + 1):
            growing.write_bytes(b"".join(data[:number]))
            for path, partition in ((growing.parent, "step"), (at_once.parent, "whole")):
                if partition == "step" or number == len(data):
                    source = Source(tool, tool, path, partition)
                    way_in = ingestor(machine.store)
                    syncing.sync(way_in, [source], whole=True, now=LATER)
        wanted, found = (
            {
                (m.source_id, m.role, m.content, m.trace_id, m.conversation_id, m.created_at)
                for m in machine.store.last(Scope(partition, tool), 0)
            }
            for partition in ("whole", "step")
        )
        assert found == wanted, tool
        assert len(machine.store.last(Scope("step", tool), 0)) == len(wanted)


def test_only_the_end_of_a_file_that_grew_is_read(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = machine.write(
        "a/s1.jsonl", *(each for n in range(40) for each in turn(2 * n, f"q{n}", "a" * 500))
    )
    machine.sync()
    before = path.stat().st_size
    machine.write("a/s1.jsonl", *turn(90, "last?", "last."))
    starts = []
    resume = ClaudeCode.resume

    def noted(self: ClaudeCode, file: File, start: Checkpoint) -> Iterator[Any]:
        starts.append((start.offset, file.size))
        return resume(self, file, start)

    monkeypatch.setattr(ClaudeCode, "resume", noted)
    machine.sync()
    [(offset, size)] = starts
    assert before - 2_000 < offset <= before
    assert size == path.stat().st_size - offset


def test_another_version_of_the_importer_reads_the_file_again(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    machine.sync()
    monkeypatch.setattr(ClaudeCode, "version", 2)
    os.utime(path)
    again = machine.sync()
    assert (again.imports.imported, again.imports.already) == (0, 2)
    stored = Sources(machine.store).get("work", platform.node(), str(path))
    assert stored is not None
    assert stored.version == 2


def machine_name(machine: Machine) -> str:
    with machine.store.snapshot():
        rows = machine.store._connection.execute(
            "SELECT machine FROM sources WHERE partition = ?", ["work"]
        )
        return str(rows.fetchall()[0][0])


def test_a_file_that_was_replaced_is_read_from_its_beginning(machine: Machine) -> None:
    path = machine.write("a/s1.jsonl", *turn(1, "one?", "one."), *turn(3, "two?", "two."))
    machine.sync()
    longer = [*turn(5, "three?", "three."), *turn(7, "four?", "four."), *turn(9, "five?", "five.")]
    path.write_text(text(*longer), encoding="utf-8")
    assert machine.sync().imports.imported == 6
    path.write_text(text(*turn(11, "six?", "six.")), encoding="utf-8")  # shorter than before
    assert machine.sync().imports.imported == 2
    assert len(machine.said(WORK)) == 12


def test_files_vanish_move_and_come_back(machine: Machine) -> None:
    path = machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    machine.sync()
    moved = machine.root / "b" / "s1.jsonl"
    moved.parent.mkdir()
    path.rename(moved)
    report = machine.sync()
    assert (report.imports.imported, report.imports.already) == (0, 2)
    moved.unlink()
    assert machine.sync().files == 0
    assert Sources(machine.store).seen("work", platform.node(), "claude-code") == {}
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    assert machine.sync().imports.already == 2
    assert machine.said(WORK) == ["one?", "one."]


def test_a_file_that_vanishes_between_the_look_and_the_reading(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    machine.write("a/s2.jsonl", *turn(3, "two?", "two.", sessionId="s2"))

    def looked(root: Path, excluded: Any) -> Iterator[Any]:
        files = list(walk(root, excluded))
        path.unlink(missing_ok=True)
        return iter(files)

    monkeypatch.setattr(syncing.watched_files, "walk", looked)
    assert machine.sync().imports.imported == 2


def test_a_file_that_grows_while_it_is_read(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    resume = ClaudeCode.resume
    added = [turn(3, "two?", "two.")]

    def growing(self: ClaudeCode, file: File, start: Checkpoint) -> Iterator[Any]:
        for item in resume(self, file, start):
            if added:
                machine.write("a/s1.jsonl", *added.pop(), torn='{"type": "us')
            yield item

    monkeypatch.setattr(ClaudeCode, "resume", growing)
    machine.sync(now=datetime.now(UTC))
    machine.write("a/s1.jsonl", torn='er", "uuid": "u9"}\n')
    machine.sync()
    assert machine.said(WORK) == ["one?", "one.", "two?", "two."]


# Unfinished turns


def test_an_unfinished_last_turn_is_held_back_until_it_is_complete(
    machine: Machine, now: datetime
) -> None:
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."), line("user", 3, "two?"))
    report = machine.sync(now=now)
    assert (report.imports.imported, report.held) == (2, 1)
    assert machine.sync(now=now).read == 0
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    machine.write("a/s1.jsonl", line("assistant", 4, [call], stop="tool_use"))
    assert machine.sync(now=now).held == 1
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "a file"}
    machine.write("a/s1.jsonl", line("user", 5, [result]))
    assert machine.sync(now=now).held == 1
    machine.write("a/s1.jsonl", *turn(6, "", "two.")[1:])
    report = machine.sync(now=now)
    assert (report.imports.imported, report.held) == (4, 0)
    messages = machine.store.last(WORK, 0)
    assert [message.role for message in messages[2:]] == ["user", "assistant", "tool", "assistant"]
    assert len({message.trace_id for message in messages[2:]}) == 1


def test_an_unfinished_turn_is_stored_when_it_is_old_and_its_rest_later(
    machine: Machine, now: datetime
) -> None:
    machine.write("a/s1.jsonl", line("user", 1, "one?"))
    assert machine.sync(now=now).held == 1
    assert machine.sync(now=now + timedelta(hours=1)).imports.imported == 1
    assert machine.sync(now=now + timedelta(hours=1)).read == 0
    machine.write("a/s1.jsonl", *turn(1, "one?", "one.")[1:])
    machine.sync(now=now)
    assert machine.said(WORK) == ["one?", "one."]


def test_a_torn_last_line_is_left_until_it_is_whole(machine: Machine, now: datetime) -> None:
    whole = json.dumps(line("user", 3, "two?"))
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."), torn=whole[:40])
    report = machine.sync(now=now)
    assert (report.imports.imported, report.imports.skipped) == (2, 0)
    machine.write("a/s1.jsonl", torn=f"{whole[40:]}\n")
    machine.write("a/s1.jsonl", *turn(3, "", "two.")[1:])
    assert machine.sync(now=now).imports.imported == 2


def test_a_reply_that_was_stored_half_is_replaced_by_the_whole_one(machine: Machine) -> None:
    machine.embedder = FakeEmbedder()
    reply = line("assistant", 2, [{"type": "text", "text": "zebra first"}])
    machine.write("a/s1.jsonl", line("user", 1, "one?"), reply)
    machine.write("a/s1.jsonl", {"type": "ai-title", "aiTitle": "A title", "sessionId": "s1"})
    machine.sync()
    embed(machine.store, machine.embedder)
    before = machine.store.last(WORK, 0)
    more = line("assistant", 3, [{"type": "text", "text": "then the giraffe"}], stop="end_turn")
    more["message"]["id"], more["requestId"] = "m2", "r2"
    machine.write("a/s1.jsonl", more)
    report = machine.sync()
    assert (report.imports.imported, report.imports.renewed) == (0, 1)
    after = machine.store.last(WORK, 0)
    assert [message.id for message in after] == [message.id for message in before]
    assert after[1].content == "zebra first\nthen the giraffe"
    assert after[1].tokens > before[1].tokens
    assert [each[0] for each in machine.store.keyword("giraffe", WORK, 9)[0]] == [after[1].id]
    assert machine.store.count_unembedded() == 1
    embed(machine.store, machine.embedder)
    [passage] = machine.store.passages([after[1].key])[after[1].key]
    assert passage.end == len(after[1].content)
    [talk] = machine.store.conversations(WORK)
    assert talk.conversation.title == "A title"
    assert machine.store.problems() == []


def test_a_shorter_or_other_text_of_a_known_id_changes_nothing(machine: Machine) -> None:
    path = machine.write("a/s1.jsonl", *turn(1, "one?", "what was said"))
    machine.sync()
    for said in ("what", "something else that is longer"):
        path.write_text(text(*turn(1, "one?", said)), encoding="utf-8")
        os.utime(path, ns=(1, len(said)))
        assert machine.sync().imports.renewed == 0
    assert machine.said(WORK) == ["one?", "what was said"]


# What is left out


def test_a_resumed_session_that_copies_all_lines_adds_only_what_is_new(machine: Machine) -> None:
    first = turn(1, "one?", "one.")
    machine.write("a/s1.jsonl", *first)
    machine.sync()
    copied = [each | {"sessionId": "s2"} for each in first]
    machine.write("a/s2.jsonl", *copied, *turn(3, "two?", "two.", sessionId="s2"))
    report = machine.sync()
    assert (report.imports.imported, report.imports.already) == (2, 2)
    assert machine.said(WORK) == ["one?", "one.", "two?", "two."]


def test_files_of_helpers_are_conversations_of_their_own(machine: Machine) -> None:
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    helper = {"isSidechain": True, "agentId": "h1"}
    machine.write("a/s1/subagents/agent-h1.jsonl", *turn(3, "look", "found", **helper))
    machine.sync()
    names = {message.conversation_id for message in machine.store.last(WORK, 0)}
    assert names == {"s1", "s1/h1"}
    machine.write("a/s1/subagents/agent-h1.jsonl", *turn(5, "look again", "found it", **helper))
    assert machine.sync().imports.imported == 2


def test_sessions_that_codex_copied_from_others_are_left_out(machine: Machine) -> None:
    def rollout(number: str) -> list[dict[str, Any]]:
        said = [("user", "input_text", "why?"), ("assistant", "output_text", "so")]
        return [
            {"type": "session_meta", "payload": {"id": number, "cwd": "/app"}},
            *(
                {
                    "type": "response_item",
                    "timestamp": "2026-06-01T09:00:00Z",
                    "payload": {
                        "type": "message",
                        "role": role,
                        "content": [{"type": kind, "text": f"{words} {number}"}],
                    },
                }
                for role, kind, words in said
            ),
            {"type": "event_msg", "payload": {"type": "task_complete"}},
        ]

    for number in ("01aa", "01bb"):
        name = f"sessions/2026/06/01/rollout-2026-06-01T09-00-00-{number}.jsonl"
        machine.write(name, *rollout(number))
    listed = {"records": [{"imported_thread_id": "01bb", "source_path": "/a.jsonl"}, None]}
    ledger = machine.root / "external_agent_session_imports.json"
    ledger.write_text(json.dumps(listed), encoding="utf-8")
    source = Source("codex", "codex", machine.root / "sessions", "work")
    assert machine.sync(source=source).imports.imported == 2
    assert machine.said() == ["why? 01aa", "so 01aa"]
    assert machine.sync(source=source).read == 0


def test_excluded_folders_are_left_out(machine: Machine) -> None:
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    machine.write("secret/s2.jsonl", *turn(3, "two?", "two.", sessionId="s2"))
    machine.write(
        "b/s3.jsonl", *turn(5, "three?", "three.", sessionId="s3", cwd="/home/me/diary/x")
    )
    excluded = (str(machine.root / "secret"), "/home/me/diary")
    source = Source("claude-code", "claude-code", machine.root, "work", excluded)
    report = machine.sync(source=source)
    assert (report.files, report.excluded) == (2, 2)
    assert machine.said() == ["one?", "one."]


def test_an_exclusion_is_a_folder_or_a_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    excluded = exclusion(["~/diary", "*/scratch*"])
    left_out = ["/home/me/diary", "/home/me/diary/a/b", "/x/scratch-1"]
    assert [path for path in [*left_out, "/home/me/diary2", "/x"] if excluded(path)] == left_out
    assert not exclusion([])("")


@pytest.mark.parametrize(
    "mark", ["DO NOT INDEX", "<note>DO NOT INDEX THIS CHAT</note>", "hello\nDO NOT INDEX please"]
)
def test_a_conversation_that_is_marked_is_left_out_with_its_helpers(
    machine: Machine, mark: str
) -> None:
    machine.write("a/s1.jsonl", *turn(1, "private?", "yes."), *turn(3, mark, "all right"))
    machine.write("a/s2.jsonl", *turn(5, "why DO NOT INDEX?", "so.", sessionId="s2"))
    helper = {"isSidechain": True, "agentId": "h1"}
    machine.write("a/s1/subagents/agent-h1.jsonl", *turn(7, "look", "found", **helper))
    report = machine.sync()
    assert report.marked == {"s1", "s1/h1"}
    machine.write("a/s1.jsonl", *turn(9, "more?", "more."))
    machine.write("a/s1/subagents/agent-h1.jsonl", *turn(11, "look", "found", **helper))
    machine.sync()
    machine.write("a/s1.jsonl", *turn(13, "still more?", "more."))
    machine.sync()
    assert machine.said() == ["why DO NOT INDEX?", "so."]


def test_what_was_forgotten_does_not_come_back(machine: Machine, monkeypatch: Any) -> None:
    path = machine.write("a/s1.jsonl", *turn(1, "walrus?", "walrus."), *turn(3, "two?", "two."))
    machine.sync()
    state = Sources(machine.store).get("work", platform.node(), str(path))
    assert state is not None
    assert "s1" in state.state
    assert machine.store.delete([message.key for message in machine.store.last(WORK, 0)][:2])
    emptied = Sources(machine.store).get("work", platform.node(), str(path))
    assert emptied is not None
    assert (emptied.state, emptied.head, emptied.bytes_read) == ("", "", 0)
    assert machine.sync().read == 0
    machine.write("a/s1.jsonl", *turn(5, "three?", "three."))
    assert machine.sync().imports.forgotten == 2
    assert machine.said(WORK) == ["two?", "two.", "three?", "three."]


def test_the_table_holds_no_text_of_a_message(machine: Machine) -> None:
    title = {"type": "ai-title", "aiTitle": "aardvark title", "sessionId": "s1"}
    machine.write("a/s1.jsonl", title, *turn(1, "aardvark one?", "aardvark."), title)
    machine.write("a/s1.jsonl", *turn(3, "aardvark two?", "aardvark."))
    machine.sync()
    with machine.store.snapshot():
        rows = machine.store._connection.execute(
            "SELECT * FROM sources WHERE partition = ?", ["work"]
        ).fetchall()
    assert rows
    assert "aardvark" not in str(rows)


def test_what_would_expire_is_not_imported(machine: Machine) -> None:
    machine.write("a/s1.jsonl", *turn(1, "old?", "old."))
    today = datetime.now(UTC).isoformat()
    machine.write("a/s1.jsonl", *turn(3, "new?", "new.", timestamp=today))
    machine.settings = {"retention_days": 30}
    report = machine.sync()
    assert (report.imports.imported, report.imports.expired) == (2, 2)
    assert machine.said() == ["new?", "new."]


def test_secrets_are_removed_on_the_way_in(machine: Machine) -> None:
    key = f"AKIA{'ABCDEFGH23456777'}"
    machine.write("a/s1.jsonl", *turn(1, f"the key is {key}", "I see."))
    machine.settings = {"redact": "remove"}
    machine.sync()
    assert key not in str(machine.said())
    assert machine.said()[0].startswith("the key is [")


# Partitions


def test_a_renamed_partition_takes_its_sources_along(machine: Machine) -> None:
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    machine.sync()
    machine.store.move_partition("work", "job")
    moved = Source("claude-code", "claude-code", machine.root, "job")
    assert machine.sync(source=moved).read == 0
    machine.write("a/s1.jsonl", *turn(3, "two?", "two."))
    assert machine.sync(source=moved).imports.imported == 2
    assert machine.said(Scope("job", "claude-code")) == ["one?", "one.", "two?", "two."]


def test_merged_partitions_keep_the_sources_of_both(machine: Machine) -> None:
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    machine.write("b/s2.jsonl", *turn(3, "two?", "two.", sessionId="s2"))
    for folder, partition in (("a", "work"), ("b", "home")):
        machine.sync(source=Source(folder, "claude-code", machine.root / folder, partition))
    machine.store.move_partition("work", "home")
    both = Source("claude-code", "claude-code", machine.root, "home")
    assert machine.sync(source=both).read == 0


def test_what_another_partition_has_is_not_stored_again(machine: Machine) -> None:
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    machine.sync()
    machine.write("a/s1.jsonl", *turn(3, "two?", "two."))
    report = machine.sync(source=Source("claude-code", "claude-code", machine.root, "play"))
    assert (report.imports.imported, report.imports.already) == (2, 2)
    assert machine.said(Scope("work")) == ["one?", "one."]
    assert machine.said(Scope("play")) == ["two?", "two."]


def test_a_copy_of_the_store_takes_its_sources_along(
    machine: Machine, new_location: Callable[[], str]
) -> None:
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    machine.sync()
    with closing(open_store(new_location())) as other:
        replicate.copy(machine.store, other, lambda *_: None)
        assert Machine(other, machine.root).sync().read == 0


# The settings, databases, and other syncs


def test_sources_come_from_the_settings(tmp_path: Path) -> None:
    path = tmp_path / "reservoir.toml"
    path.write_text(
        '[sources.claude-code]\npath = "/a"\n[sources.mine]\ntool = "codex"\npath = "/b"\n'
        'partition = "work"\nexclude = ["/b/x"]\n',
        encoding="utf-8",
    )
    first, second = syncing.configured(config.load(path))
    assert first == Source("claude-code", "claude-code", Path("/a"), "default")
    assert second == Source("mine", "codex", Path("/b"), "work", ("/b/x",))
    assert syncing.named([first, second], ["codex"]) == [second]


@pytest.mark.sqlite("the log of llm is a file of its own")
def test_the_log_of_llm_is_read_on_with_its_write_ahead_log(
    machine: Machine, tmp_path: Path
) -> None:
    path = tmp_path / "logs.db"
    source = Source("llm", "llm", path, "work")
    with closing(sqlite3.connect(path, isolation_level=None)) as log:
        log.execute("PRAGMA journal_mode=WAL")
        log.execute(
            "CREATE TABLE responses (id TEXT, model TEXT, prompt TEXT, system TEXT, "
            "response TEXT, conversation_id TEXT, datetime_utc TEXT)"
        )
        said = ["old", "before", "", "then", "other", "2026-01-01T09:00:00+00:00"]
        log.execute("INSERT INTO responses VALUES (?, 'm', ?, ?, ?, ?, ?)", said)
        machine.sync(source=source)
        for number in range(1, 4):
            log.execute(
                "INSERT INTO responses VALUES (?, 'm', ?, '', ?, 'c', ?)",
                [f"r{number}", f"q{number}", f"a{number}", f"2026-06-0{number}T09:00:00+00:00"],
            )
            imports = machine.sync(source=source).imports
            assert imports.imported == 2
            assert imports.already == (2 if number == 1 else 2 * (number - 1))  # not all of it
            assert machine.sync(source=source).read == 0
    assert machine.said() == ["before", "then", "q1", "a1", "q2", "a2", "q3", "a3"]


@pytest.mark.sqlite("the order does not depend on the store")
def test_the_newest_of_what_came_in_is_embedded_first(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "GROUP", 4)
    embedder, batches = FakeEmbedder(), []
    encode = embedder.encode_documents
    monkeypatch.setattr(
        embedder, "encode_documents", lambda texts: batches.append(list(texts)) or encode(texts)
    )
    path = machine.write(
        "a/s1.jsonl", *(row for n in range(0, 10, 2) for row in turn(n, f"{n}", f"{n + 1}"))
    )
    with Reservoir.open(tmp_path / "own.db", embedder=embedder) as reservoir:
        reservoir.sync([Source("claude-code", "claude-code", path, "work")], now=LATER)
        assert reservoir.store.count_unembedded() == 0
    assert [sorted(map(int, batch)) for batch in batches] == [[6, 7, 8, 9], [2, 3, 4, 5], [0, 1]]


def test_of_two_syncs_the_second_does_nothing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    resume, others = ClaudeCode.resume, []

    def during(self: ClaudeCode, file: File, start: Checkpoint) -> Iterator[Any]:
        others.append(syncing.sync(ingestor(machine.store), [machine.source], now=LATER))
        return resume(self, file, start)

    monkeypatch.setattr(ClaudeCode, "resume", during)
    assert machine.sync().imports.imported == 2
    assert [(other.busy, other.sources) for other in others] == [(True, ())]


def test_files_of_another_kind_are_passed_over(machine: Machine) -> None:
    (machine.root / "a").mkdir(parents=True)
    (machine.root / "a" / "notes.json").write_text('{"type": "index"}', encoding="utf-8")
    (machine.root / "a" / "broken.jsonl").write_bytes(b"\0\xff" * 400)
    machine.write("a/empty.jsonl")
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    (machine.root / "link.jsonl").symlink_to(machine.root / "a" / "s1.jsonl")
    assert machine.sync().imports.imported == 2
    assert machine.sync().read == 0


def test_the_importers_that_read_on_are_known_by_their_method() -> None:
    assert isinstance(ClaudeCode(), Resumable)
    assert not isinstance(syncing.importers.importers()["openai"], Resumable)


def test_a_message_from_elsewhere_with_the_same_words_stays(machine: Machine) -> None:
    now = datetime.now(UTC)
    ingestor(machine.store).ingest(Scope("work", "work"), [Message("user", "one?")], embed=False)
    machine.write("a/s1.jsonl", *turn(1, "one?", "one.", timestamp=now.isoformat()))
    machine.sync()
    assert sorted(machine.said()) == ["one.", "one?", "one?"]


def test_a_checkpoint_is_small_however_long_a_session_is(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    lines = (each for n in range(2_000) for each in turn(2 * n, f"q{n}", f"a{n}"))
    path.write_text(text(*lines), encoding="utf-8")
    file = File.of_path(path, path.stat())
    items = list(ClaudeCode().resume(file, Checkpoint()))
    assert sum(isinstance(item, Record) for item in items) == 4_000
    last = items[-1]
    assert isinstance(last, Checkpoint)
    assert last.last
    assert len(json.dumps(last.state)) < 2_000
