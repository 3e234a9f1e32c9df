"""Syncing a store with files that grow, disappear, reappear, and are replaced."""

import json
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from builders import FakeEmbedder, ingestor
from sessions import LATER, WORK, Machine, line, text, turn

from reservoir_cli.messages import Message, Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.retrieval import embed_messages
from reservoir_cli.settings import config
from reservoir_cli.storage.copying import copy_store
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.tables.sources import Sources
from reservoir_cli.transfer.formats.claude_code import ClaudeCode
from reservoir_cli.transfer.formats.registry import importers
from reservoir_cli.transfer.reading.decompressed_file import File
from reservoir_cli.transfer.reading.importer import Checkpoint, Record
from reservoir_cli.transfer.sync import history_sources
from reservoir_cli.transfer.sync import sync_sources as syncing
from reservoir_cli.transfer.sync.history_sources import Source
from reservoir_cli.transfer.sync.watched_files import walk


def test_only_added_lines_are_read(machine):
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    assert machine.sync().imports.imported == 2
    unchanged = machine.sync()
    assert (unchanged.files, unchanged.read, unchanged.imports.total) == (1, 0, 0)
    machine.write("a/s1.jsonl", *turn(3, "two?", "two."))
    report = machine.sync()
    assert (report.read, report.imports.imported) == (1, 2)
    assert machine.said(WORK) == ["one?", "one.", "two?", "two."]
    messages = machine.store.last(WORK, 0)
    assert {message.conversation_id for message in messages} == {"s1"}
    assert messages[2].trace_id == messages[3].trace_id != messages[0].trace_id


@pytest.mark.sqlite("how a file is read does not depend on the store")
def test_reading_in_steps_gives_the_same_messages(machine, tmp_path):
    samples = Path(__file__).parents[1] / "formats" / "samples"
    for tool in ("claude-code", "codex"):
        at_once = machine.root / tool / "whole.jsonl"
        at_once.parent.mkdir(parents=True)
        shutil.copy(samples / f"{tool}.jsonl", at_once)
        data = at_once.read_bytes().splitlines(keepends=True)
        growing = tmp_path / "growing" / tool / "whole.jsonl"
        growing.parent.mkdir(parents=True)
        for count in range(1, len(data) + 1):
            growing.write_bytes(b"".join(data[:count]))
            for path, partition in ((growing.parent, "step"), (at_once.parent, "whole")):
                if partition == "step" or count == len(data):
                    source = Source(tool, tool, path, partition)
                    ingestion = ingestor(machine.store)
                    syncing.sync(ingestion, [source], whole=True, copies=True, now=LATER)
        expected, imported = (
            {
                (
                    message.source_id,
                    message.role,
                    message.content,
                    message.trace_id,
                    message.conversation_id,
                    message.created_at,
                )
                for message in machine.store.last(Scope(partition, tool), 0)
            }
            for partition in ("whole", "step")
        )
        assert imported == expected, tool
        assert len(machine.store.last(Scope("step", tool), 0)) == len(expected)


def test_only_the_end_of_a_file_that_grew_is_read(machine, monkeypatch):
    path = machine.write(
        "a/s1.jsonl", *(row for n in range(40) for row in turn(2 * n, f"q{n}", "a" * 500))
    )
    machine.sync()
    before = path.stat().st_size
    machine.write("a/s1.jsonl", *turn(90, "last?", "last."))
    starts = []
    resume = ClaudeCode.resume

    def record_start(self: ClaudeCode, file: File, start: Checkpoint) -> Iterator[Any]:
        starts.append((start.offset, file.size))
        return resume(self, file, start)

    monkeypatch.setattr(ClaudeCode, "resume", record_start)
    machine.sync()
    [(offset, size)] = starts
    assert before - 2_000 < offset <= before
    assert size == path.stat().st_size - offset


def test_a_new_version_of_the_importer_reads_files_that_an_older_one_ignored(machine, monkeypatch):
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    with monkeypatch.context() as older:
        older.setattr(ClaudeCode, "version", ClaudeCode.version - 1)
        older.setattr(ClaudeCode, "detect", lambda *_: False)
        assert machine.sync().imports.total == 0
    assert machine.sync().imports.imported == 2
    assert machine.sync().read == 0


def test_another_version_of_the_importer_reads_the_file_again(machine, monkeypatch):
    path = machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    machine.sync()
    version = ClaudeCode.version + 1
    monkeypatch.setattr(ClaudeCode, "version", version)
    os.utime(path)
    second = machine.sync()
    assert (second.imports.imported, second.imports.already) == (0, 2)
    stored = Sources(machine.store).get("work", platform.node(), str(path))
    assert stored is not None
    assert stored.version == version


def machine_name(machine: Machine) -> str:
    with machine.store.snapshot():
        rows = machine.store._connection.execute(
            "SELECT machine FROM sources WHERE partition = ?", ["work"]
        )
        return str(rows.fetchall()[0][0])


def test_a_replaced_file_is_read_from_its_beginning(machine):
    path = machine.write("a/s1.jsonl", *turn(1, "one?", "one."), *turn(3, "two?", "two."))
    machine.sync()
    replacement = [
        *turn(5, "three?", "three."),
        *turn(7, "four?", "four."),
        *turn(9, "five?", "five."),
    ]
    path.write_text(text(*replacement), encoding="utf-8")
    assert machine.sync().imports.imported == 6
    path.write_text(text(*turn(11, "six?", "six.")), encoding="utf-8")  # shorter than before
    assert machine.sync().imports.imported == 2
    assert len(machine.said(WORK)) == 12


DAMAGED = {
    "text": "torn",
    "cut off": '{"importer": {"lines": 2, "thr',
    "a list": "[]",
    "no state of the importer": "{}",
    "another type": '{"importer": 3}',
    "names without values": '{"importer": {"lines": "x", "seen": 1}}',
    "marks that are no ids": '{"importer": null, "do_not_index": [{}]}',
    "settings": '{"left_out": "torn',
}


@pytest.mark.parametrize("state", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_state_is_named_and_only_its_file_read_again(machine, state):
    samples = Path(__file__).parents[1] / "formats" / "samples"
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    machine.write("a/s2.jsonl", *turn(11, "other?", "other.", sessionId="s2"))
    codex = machine.root.parent / "codex"
    codex.mkdir()
    shutil.copy(samples / "codex.jsonl", codex / "rollout.jsonl")
    sources = [Source("codex", "codex", codex, "work"), machine.source]

    def sync() -> tuple[list[str], int]:
        ingestion = ingestor(machine.store)
        notes: list[str] = []
        ingestion.notify = notes.append
        reports = syncing.sync(ingestion, sources, now=LATER).sources
        assert [report.failures for report in reports] == [[], []]
        return notes, sum(report.imports.imported for report in reports)

    sync()
    stored = len(machine.said())
    with machine.store.write():
        for path in (codex / "rollout.jsonl", machine.root / "a" / "s1.jsonl"):
            machine.store._connection.execute(
                "UPDATE sources SET state = ? WHERE path = ?", [state, str(path)]
            )
            with path.open("a", encoding="utf-8") as file:
                file.write("\n")
    machine.write("a/s1.jsonl", *turn(3, "two?", "two."))
    machine.write("a/s2.jsonl", *turn(13, "more?", "more.", sessionId="s2"))
    notes, imported = sync()
    named = [note for note in notes if "damaged" in note]
    assert [note.rpartition(os.sep)[2] for note in named] == ["rollout.jsonl", "s1.jsonl"]
    assert (imported, len(machine.said())) == (4, stored + 4)
    assert sync() == ([], 0)


def test_a_file_that_a_crash_filled_with_nuls_is_read_with_what_follows(machine):
    path = machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    path.write_bytes(path.read_bytes() + bytes(4_096))
    machine.write("a/s1.jsonl", *turn(3, "two?", "two."))
    assert machine.sync().imports.imported == 4
    path.write_bytes(path.read_bytes() + bytes(100_000))
    machine.sync()
    machine.write("a/s1.jsonl", *turn(5, "three?", "three."))
    machine.sync()
    assert machine.said(WORK) == ["one?", "one.", "two?", "two.", "three?", "three."]


def test_files_may_disappear_move_and_reappear(machine):
    path = machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    machine.sync()
    moved = machine.root / "b" / "s1.jsonl"
    moved.parent.mkdir()
    path.rename(moved)
    report = machine.sync()
    assert (report.imports.imported, report.imports.already) == (0, 2)
    moved.unlink()
    assert machine.sync().files == 0
    assert Sources(machine.store).file_states("work", platform.node()) == {}
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    assert machine.sync().imports.already == 2
    assert machine.said(WORK) == ["one?", "one."]


def test_a_file_may_disappear_between_listing_and_reading(machine, monkeypatch):
    path = machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    machine.write("a/s2.jsonl", *turn(3, "two?", "two.", sessionId="s2"))

    def walk_and_delete(*arguments: Any) -> Iterator[Any]:
        files = list(walk(*arguments))
        path.unlink(missing_ok=True)
        return iter(files)

    monkeypatch.setattr(syncing.watched_files, "walk", walk_and_delete)
    assert machine.sync().imports.imported == 2


SYNC = """
import sys
from pathlib import Path
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.transfer.sync.history_sources import Source
store, folder = map(Path, sys.argv[1:])
with Reservoir.open(store) as reservoir:
    source = Source("claude-code", "claude-code", folder, "work")
    [report] = reservoir.sync([source], embed=False, whole=True).sources
print(report.imports.imported, *report.failures)
"""


@pytest.mark.skipif(os.name != "posix", reason="the file modes are those of POSIX")
def test_a_folder_that_may_not_be_read_is_reported_and_the_others_are_read(machine, tmp_path):
    command = [sys.executable, "-c", SYNC, str(tmp_path / "other.db"), str(machine.root)]
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("root is stopped by no file mode, and setpriv is not here")
        command[:0] = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    closed = machine.write("b/s2.jsonl", *turn(3, "two?", "two.", sessionId="s2")).parent
    closed.chmod(0)
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    closed.chmod(0o700)
    assert result.stdout == f"2 cannot read {closed}: Permission denied\n"


def test_a_file_may_grow_while_it_is_read(machine, monkeypatch):
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    resume = ClaudeCode.resume
    added = [turn(3, "two?", "two.")]

    def append_while_reading(self: ClaudeCode, file: File, start: Checkpoint) -> Iterator[Any]:
        for item in resume(self, file, start):
            if added:
                machine.write("a/s1.jsonl", *added.pop(), torn='{"type": "us')
            yield item

    monkeypatch.setattr(ClaudeCode, "resume", append_while_reading)
    machine.sync(now=datetime.now(UTC))
    machine.write("a/s1.jsonl", torn='er", "uuid": "u9"}\n')
    machine.sync()
    assert machine.said(WORK) == ["one?", "one.", "two?", "two."]


# Partitions


def test_sources_follow_a_renamed_partition(machine):
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    machine.sync()
    machine.store.move_partition("work", "job")
    renamed = Source("claude-code", "claude-code", machine.root, "job")
    assert machine.sync(source=renamed).read == 0
    machine.write("a/s1.jsonl", *turn(3, "two?", "two."))
    assert machine.sync(source=renamed).imports.imported == 2
    assert machine.said(Scope("job", "claude-code")) == ["one?", "one.", "two?", "two."]


def test_merged_partitions_keep_the_sources_of_both(machine):
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    machine.write("b/s2.jsonl", *turn(3, "two?", "two.", sessionId="s2"))
    for folder, partition in (("a", "work"), ("b", "home")):
        machine.sync(source=Source(folder, "claude-code", machine.root / folder, partition))
    machine.store.move_partition("work", "home")
    merged = Source("claude-code", "claude-code", machine.root, "home")
    assert machine.sync(source=merged).read == 0


def test_a_conversation_of_another_partition_stays_there(machine):
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    machine.sync()
    machine.write("a/s1.jsonl", *turn(3, "two?", "two."))
    machine.write("a/s2.jsonl", *turn(5, "new?", "new.", sessionId="s2"))
    report = machine.sync(source=Source("claude-code", "claude-code", machine.root, "play"))
    assert (report.imports.imported, report.imports.already) == (4, 2)
    assert machine.said(Scope("work")) == ["one?", "one.", "two?", "two."]
    assert machine.said(Scope("play")) == ["new?", "new."]


def test_a_copy_of_the_store_has_its_sources(machine, new_location):
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    machine.sync()
    with closing(open_store(new_location())) as copy:
        copy_store.copy(machine.store, copy, lambda *_: None)
        assert Machine(copy, machine.root).sync().read == 0


# The settings, databases, and other syncs


def test_sources_come_from_the_settings(tmp_path):
    path = tmp_path / "reservoir.toml"
    path.write_text(
        '[sources.claude-code]\npath = "/a"\n[sources.mine]\ntool = "codex"\npath = "/b"\n'
        'partition = "work"\nexclude = ["/b/x"]\n',
        encoding="utf-8",
    )
    first, second = history_sources.configured_sources(config.load(path))
    assert first == Source("claude-code", "claude-code", Path("/a"), "default")
    assert second == Source("mine", "codex", Path("/b"), "work", ("/b/x",))
    assert history_sources.select_sources([first, second], ["codex"]) == [second]


@pytest.mark.sqlite("the log of llm is a file of its own")
def test_new_entries_of_the_log_of_llm_are_read_from_its_write_ahead_log(machine, tmp_path):
    path = tmp_path / "logs.db"
    source = Source("llm", "llm", path, "work")
    with closing(sqlite3.connect(path, isolation_level=None)) as log:
        log.execute("PRAGMA journal_mode=WAL")
        log.execute(
            "CREATE TABLE responses (id TEXT, model TEXT, prompt TEXT, system TEXT, "
            "response TEXT, conversation_id TEXT, datetime_utc TEXT)"
        )
        row = ["old", "before", "", "then", "other", "2026-01-01T09:00:00+00:00"]
        log.execute("INSERT INTO responses VALUES (?, 'm', ?, ?, ?, ?, ?)", row)
        machine.sync(source=source)
        for number in range(1, 4):
            when = f"2026-06-0{number}T09:00:00+00:00"
            row = [f"r{number}", f"q{number}", "", f"a{number}", "c", when]
            log.execute("INSERT INTO responses VALUES (?, 'm', ?, ?, ?, ?, ?)", row)
            imports = machine.sync(source=source).imports
            assert imports.imported == 2
            assert imports.already == (2 if number == 1 else 2 * (number - 1))  # not all of it
            assert machine.sync(source=source).read == 0
    assert machine.said() == ["before", "then", "q1", "a1", "q2", "a2", "q3", "a3"]


@pytest.mark.sqlite("the order does not depend on the store")
def test_the_newest_synced_messages_are_embedded_first(machine, tmp_path, monkeypatch):
    monkeypatch.setattr(embed_messages, "BATCH", 4)
    embedder, batches = FakeEmbedder(), []
    encode = embedder.encode_documents
    monkeypatch.setattr(
        embedder, "encode_documents", lambda texts: batches.append(list(texts)) or encode(texts)
    )
    rows = (row for n in range(0, 10, 2) for row in turn(n, f"{n}", f"{n + 1}"))
    path = machine.write("a/s1.jsonl", *rows)
    with Reservoir.open(tmp_path / "own.db", embedder=embedder) as reservoir:
        reservoir.sync([Source("claude-code", "claude-code", path, "work")], now=LATER)
        assert reservoir.store.count_unembedded() == 0
    assert [sorted(map(int, batch)) for batch in batches] == [[6, 7, 8, 9], [2, 3, 4, 5], [0, 1]]


def test_of_two_syncs_the_second_does_nothing(machine, monkeypatch):
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    resume, inner_reports = ClaudeCode.resume, []

    def sync_meanwhile(self: ClaudeCode, file: File, start: Checkpoint) -> Iterator[Any]:
        inner_reports.append(syncing.sync(ingestor(machine.store), [machine.source], now=LATER))
        return resume(self, file, start)

    monkeypatch.setattr(ClaudeCode, "resume", sync_meanwhile)
    assert machine.sync().imports.imported == 2
    assert [(report.busy, report.sources) for report in inner_reports] == [(True, ())]


def test_other_files_are_skipped(machine):
    machine.write("a/empty.jsonl")
    (machine.root / "a" / "notes.json").write_text('{"type": "index"}', encoding="utf-8")
    (machine.root / "a" / "other.db").write_bytes(b"\0\xff" * 400)
    machine.write("a/index.jsonl", torn='xxx\n{"type": "index"}\n[1]\n')
    machine.write("a/document.jsonl", torn='{\n  "type": "index"\n}\n')
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    (machine.root / "link.jsonl").symlink_to(machine.root / "a" / "s1.jsonl")
    assert machine.sync().imports.imported == 2
    assert machine.sync().read == 0


@pytest.mark.sqlite("how a file is read does not depend on the store")
@pytest.mark.parametrize("tool", ["claude-code", "codex"])
def test_a_session_whose_beginning_is_damaged_is_read_and_the_damage_reported(machine, tool):
    sample = Path(__file__).parents[1] / "formats" / "samples" / f"{tool}.jsonl"
    lines = sample.read_bytes().splitlines(keepends=True)
    machine.root.mkdir()
    source = Source(tool, tool, machine.root, "work")
    (machine.root / "whole.jsonl").write_bytes(b"".join(lines[1:]))
    whole = machine.sync(source=source).imports
    for number, beginning in enumerate([b"xxx\n", lines[0][20:], b"\xff" * 300 + b"\n" + lines[0]]):
        path = machine.root / f"cut-{number}.jsonl"
        path.write_bytes(beginning + b"".join(lines[1:]))
        imports = machine.sync(source=source).imports
        assert (imports.total, imports.skipped) == (whole.total + 1, whole.skipped + 1)
        assert f"{path}, line 1: not valid JSON" in imports.reasons
        assert machine.sync(source=source).read == 0


@pytest.mark.sqlite("how a file is read does not depend on the store")
def test_a_session_without_a_valid_line_is_reported(machine):
    path = machine.write("a/s1.jsonl", torn=text(line("user", 1, "one?"))[9:])
    assert machine.sync().imports.reasons == [f"{path}, line 1: not valid JSON"]
    machine.write("a/s1.jsonl", *turn(3, "two?", "two."))
    assert machine.sync().imports.imported == 2


@pytest.mark.sqlite("how a file is read does not depend on the store")
def test_a_file_in_utf_16_is_read_whole_each_time(machine):
    path = machine.write("a/s1.jsonl")
    first, second = turn(1, "a röad?", "b"), turn(3, "c?", "d")
    for messages in (first, [*first, *second]):
        path.write_bytes(text(*messages).encode("utf-16"))
        report = machine.sync()
        assert (report.imports.imported, report.failures) == (2, [])


@pytest.mark.parametrize("data", [b"\xff\xfe" + b"\0\xd8" * 400, b"\0\xff" * 400])
def test_a_file_that_is_not_text_is_reported_once(machine, data):
    path = machine.write("a/s1.jsonl")
    path.write_bytes(data)
    failure = f"cannot read {path} as a history of claude-code: it is not text"
    for expected in ([f"{failure}; convert it to text in UTF-8"], []):
        [report] = syncing.sync(ingestor(machine.store), [machine.source], now=LATER).sources
        assert (report.failures, report.imports.total) == (expected, 0)
    path.write_text(text(*turn(1, "one?", "one.")), encoding="utf-8")
    assert machine.sync().imports.imported == 2


def test_importers_that_can_resume_are_recognised():
    tools = (ClaudeCode(), importers()["openai"])
    assert [tool.resumes_lines for tool in tools] == [True, False]


def test_an_equal_message_from_another_source_stays(machine):
    ingestor(machine.store).ingest(Scope("work", "work"), [Message("user", "one?")], embed=False)
    machine.write("a/s1.jsonl", *turn(1, "one?", "one.", timestamp=datetime.now(UTC).isoformat()))
    machine.sync()
    assert sorted(machine.said()) == ["one.", "one?", "one?"]


def test_a_checkpoint_is_small_for_any_length_of_session(tmp_path):
    path = tmp_path / "s1.jsonl"
    lines = (row for n in range(2_000) for row in turn(2 * n, f"q{n}", f"a{n}"))
    path.write_text(text(*lines), encoding="utf-8")
    items = list(ClaudeCode().resume(File.of_path(path, path.stat()), Checkpoint()))
    assert sum(isinstance(item, Record) for item in items) == 4_000
    last = items[-1]
    assert (type(last), last.last) == (Checkpoint, True)
    assert len(json.dumps(last.state)) < 2_000


@pytest.mark.sqlite("only its connection reports statements")
def test_what_is_known_of_files_is_read_once_for_all_unchanged_sources(machine):
    sources = []
    for number, name in enumerate("abc"):
        machine.write(f"{name}/s{name}.jsonl", *turn(3 * number, f"{name}?", f"{name}."))
        sources.append(Source(name, "claude-code", machine.root / name, "work"))

    def sync() -> int:
        statements: list[str] = []  # reads of the table of files are counted
        machine.store._connection.set_trace_callback(statements.append)
        syncing.sync(ingestor(machine.store), sources, now=LATER)
        machine.store._connection.set_trace_callback(None)
        return sum("FROM sources" in statement for statement in statements)

    assert sync()
    assert sorted(machine.said(WORK)) == ["a.", "a?", "b.", "b?", "c.", "c?"]
    assert sync() == 1
