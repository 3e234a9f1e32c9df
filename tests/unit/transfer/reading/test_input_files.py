import gzip
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import zipfile
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from llm_logs import newer_log, older_log
from reading import SAMPLES, entries_by_file, file_of, lines, records, skipped

from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.transfer.detect_format import DetectedFile, find
from reservoir_cli.transfer.formats.registry import importers
from reservoir_cli.transfer.reading.decompressed_file import File
from reservoir_cli.transfer.reading.importer import Record
from reservoir_cli.util.read_files import _RegularFile

CHAT = (SAMPLES / "chatgpt.json").read_bytes()
CODE = (SAMPLES / "claude-code.jsonl").read_bytes()


def detect(source: Path | File, form: str | None = None) -> tuple[list[DetectedFile], int]:
    with ExitStack() as open_files:
        selection = find(source, form, open_files)
        return selection.files, len(selection.ignored)


def error_message(source: Path | File, form: str | None = None) -> str:
    with pytest.raises(ReservoirError) as caught:
        detect(source, form)
    assert caught.value.exit_code == 1
    return caught.value.message


def write_zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def write_files(folder: Path, members: dict[str, bytes]) -> Path:
    for name, data in members.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


EXPORT = {
    "chat.html": b"<html></html>",
    "conversations.json": CHAT,
    "user.json": b'{"id": "user-1", "email": "a@example.org"}',
    "message_feedback.json": b'[{"id": "x", "rating": "thumbs_up"}]',
    "model_comparisons.json": b'[{"messages": [{"role": "user", "content": "shown twice"}]}]',
    "readme.txt": b"Your export",
    "file-abc/picture.png": b"\x89PNG\r\n" + bytes(99),
}
#: Files of a folder or zip, those that are read, and the number of skipped ones.
LAYOUTS = [
    ("an export", EXPORT, ["conversations.json"], 6),
    (
        "shards",
        {"conversations-000.json": CHAT, "conversations-001.json": CHAT, "user.json": b"{}"},
        ["conversations-000.json", "conversations-001.json"],
        1,
    ),
    (
        "sessions, helpers, and notes beside them",
        {
            "p/5e55.jsonl": CODE,
            "p/5e55/subagents/agent-a.jsonl": CODE,
            "p/memory/MEMORY.md": b"# Notes",
            "p/sessions-index.json": b'{"version": 1, "entries": []}',
        },
        ["p/5e55.jsonl", "p/5e55/subagents/agent-a.jsonl"],
        2,
    ),
    ("notes", {"a.md": b"# A", "b/c.txt": b"C", "d.html": b"<p>"}, ["a.md", "b/c.txt"], 1),
]


def records_without_times(path: Path) -> dict[str, list[Any]]:
    """Return the records of a path without times, since a zip rounds those of files."""
    return {
        name: [
            replace(entry, message=replace(entry.message, created_at=None))
            if isinstance(entry, Record)
            else entry
            for entry in entries
        ]
        for name, entries in entries_by_file(path).items()
    }


@pytest.mark.parametrize(
    ("members", "expected", "passed_over"),
    [row[1:] for row in LAYOUTS],
    ids=[row[0] for row in LAYOUTS],
)
def test_a_folder_and_a_zip_of_it_are_read_alike(tmp_path, members, expected, passed_over):
    folder = write_files(tmp_path / "folder", members)
    archive = write_zip(tmp_path / "export.zip", members)
    for source in (folder, archive):
        detected, skipped_count = detect(source)
        names = [file.file.name.removeprefix(f"{source}/") for file in detected]
        assert sorted(names) == sorted(expected)
        assert skipped_count == passed_over
    in_folder, in_zip = records_without_times(folder), records_without_times(archive)
    assert in_folder == in_zip
    assert any(records(entries) for entries in in_zip.values())


def test_a_named_format_selects_its_files_in_a_folder(tmp_path):
    folder = write_files(tmp_path, {**EXPORT, "old/5e55.jsonl": CODE})
    assert list(entries_by_file(folder, "claude-code")) == ["old/5e55.jsonl"]
    assert list(entries_by_file(folder, "text")) == ["readme.txt"]
    assert "has the format codex" in error_message(folder, "codex")


@pytest.mark.parametrize("damage", [b"xxx", b'{"type": "us', b"\0" * 40, b"# notes"])
def test_a_format_is_recognised_behind_damaged_lines(tmp_path, damage):
    folder = write_files(tmp_path / "sessions", {"a.jsonl": damage + b"\n" + CODE})
    for source in (folder, folder / "a.jsonl"):
        [file], _ = detect(source)
        assert file.importer.name == "claude-code"


def test_a_named_format_selects_files_whose_beginning_is_damaged(tmp_path):
    damaged = {"cut.jsonl": CODE[20:], "line.jsonl": b"xxx\n" + CODE, "all.jsonl": b'{"type": "us'}
    others = {"chat.jsonl": b'xxx\n{"role": "user", "content": "x"}', "note.txt": b"xxx\n" + CODE}
    folder = write_files(tmp_path / "sessions", {"whole.jsonl": CODE, **damaged, **others})
    chosen, passed_over = detect(folder, "claude-code")
    assert {Path(file.file.name).name for file in chosen} == {"whole.jsonl", *damaged}
    assert passed_over == len(others)
    assert len(detect(folder)[0]) == 3  # one has no whole line


def test_an_unknown_format_is_wrong_usage_for_any_file(tmp_path):
    for source in (tmp_path, tmp_path / "absent", file_of("x")):
        with pytest.raises(UsageError) as caught:
            detect(source, "morse")
        assert all(name in str(caught.value.hint) for name in importers())


def test_a_zip_is_recognised_by_its_content_and_can_be_read_from_memory(tmp_path):
    data = write_zip(tmp_path / "a.zip", EXPORT).read_bytes()
    detected, _ = detect(File.of_bytes("stdin", data))
    assert [file.file.name for file in detected] == ["stdin/conversations.json"]


# What must not happen


def test_links_in_a_folder_are_not_followed(tmp_path):
    outside = write_files(
        tmp_path / "outside", {"secret.md": b"secret", "more/secret.md": b"secret"}
    )
    folder = write_files(tmp_path / "folder", {"own.md": b"own"})
    (folder / "file.md").symlink_to(outside / "secret.md")
    (folder / "sub").symlink_to(outside / "more", target_is_directory=True)
    (folder / "round").symlink_to(folder, target_is_directory=True)
    assert list(entries_by_file(folder)) == ["own.md"]


def test_an_explicitly_named_link_is_followed(tmp_path):
    write_files(tmp_path, {"own.md": b"own"})
    (tmp_path / "link.md").symlink_to(tmp_path / "own.md")
    assert len(records(entries_by_file(tmp_path / "link.md")[""])) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_in_a_folder_is_skipped(tmp_path):
    write_files(tmp_path, {"own.md": b"own"})
    os.mkfifo(tmp_path / "pipe.md")
    assert list(entries_by_file(tmp_path)) == ["own.md"]


def test_paths_that_lead_out_of_a_zip_are_only_names(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    members = {"../../evil.md": b"up", "/etc/evil.md": b"root", "C:\\evil.md": b"drive"}
    archive = write_zip(inner / "a.zip", members)
    before = sorted(tmp_path.rglob("*"))
    assert len(entries_by_file(archive)) == 3
    assert sorted(tmp_path.rglob("*")) == before


def test_a_zip_bomb_is_refused(tmp_path):
    line = lines({"role": "user", "content": "a"})
    archive = write_zip(tmp_path / "bomb.zip", {"a.jsonl": (line * 3 + " " * 80_000_000).encode()})
    assert archive.stat().st_size < 1_000_000
    [entries] = entries_by_file(archive).values()
    assert len(records(entries)) == 3
    assert ("what follows", "it unpacks to far more than its size") in skipped(entries)


def test_a_zip_in_a_zip_is_not_opened(tmp_path):
    inner = write_zip(tmp_path / "inner.zip", EXPORT).read_bytes()
    assert "has a known format" in error_message(
        write_zip(tmp_path / "outer.zip", {"inner.zip": inner})
    )


def test_a_zip_in_a_folder_is_read_for_conversations(tmp_path):
    inner = write_zip(tmp_path / "inner.zip", EXPORT).read_bytes()
    folder = write_files(tmp_path / "Downloads", {"notes.md": b"# Notes", "cut.zip": inner[:200]})
    archive = write_zip(folder / "chatgpt.ZIP", {**EXPORT, "inner.zip": inner})
    write_zip(folder / "program.zip", {"README.md": b"# Read me", "package.json": b'{"a": 1}'})
    with ExitStack() as open_files:
        selection = find(folder, None, open_files)
        [detected] = selection.files
        assert detected.file.name == f"{archive}/conversations.json"
        assert len(selection.ignored) == len(EXPORT) + 3
        assert [record for record in detected.records() if isinstance(record, Record)]


def test_a_zip_bomb_in_a_folder_is_not_read(tmp_path):
    folder = write_files(tmp_path, {"notes.md": b"# Notes"})
    bomb = bytearray(write_zip(folder / "bomb.zip", {"a.jsonl": CODE}).read_bytes())
    size = bomb.index(b"PK\x01\x02") + 24
    bomb[size : size + 4] = (2 << 30).to_bytes(4, "little")
    (folder / "bomb.zip").write_bytes(bomb)
    assert list(entries_by_file(folder)) == ["notes.md"]


def test_zips_that_are_not_read_are_named(tmp_path):
    folder = tmp_path / "my export"
    folder.mkdir()
    inner = write_zip(folder / "data.ZIP", {"notes.md": b"# Notes"})
    with pytest.raises(ReservoirError) as caught:
        detect(folder)
    command = f"reservoir ingest '{inner}'"
    assert caught.value.hint == f"a zip in a folder is read only for conversations: {command}"
    with pytest.raises(ReservoirError) as caught:
        detect(write_zip(tmp_path / "outer.zip", {"inner.zip": inner.read_bytes()}))
    assert caught.value.hint == "a zip in a zip is not read: unpack it and name the file"


def test_a_database_in_a_zip_is_named_and_not_unpacked(tmp_path):
    data = older_log(tmp_path / "logs.db").read_bytes()
    [entries] = entries_by_file(write_zip(tmp_path / "a.zip", {"logs.db": data})).values()
    [(position, reason)] = skipped(entries)
    assert position == "the file"
    assert "in a zip" in reason


# What cannot be read


def test_a_damaged_zip_is_an_error_or_says_where_it_is_damaged(tmp_path):
    archive = write_zip(
        tmp_path / "a.zip", {"a.jsonl": lines({"role": "user", "content": "a"}).encode()}
    )
    data = archive.read_bytes()
    archive.write_bytes(data[: len(data) // 2])
    assert "damaged zip" in error_message(archive)
    for index in range(30, len(data)):
        archive.write_bytes(data[:index] + bytes([data[index] ^ 0xFF]) + data[index + 1 :])
        try:
            by_name = entries_by_file(archive)
        except ReservoirError:
            continue
        for entries in by_name.values():
            assert len(records(entries)) + len(skipped(entries)) >= 1


@pytest.mark.parametrize("data", [b"", b"garbage", b"<html>404 Not Found</html>"])
def test_a_file_named_like_a_zip_is_not_read_as_text(tmp_path, data):
    page = tmp_path / "export.ZIP"
    page.write_bytes(data)
    assert error_message(page) == f"{page} is not a zip, despite its name"
    assert detect(page, "text")


FIND = """
import sys
from contextlib import ExitStack
from pathlib import Path
from reservoir_cli.errors import ReservoirError
from reservoir_cli.transfer.detect_format import find
from reservoir_cli.transfer.reading.importer import Record
for folder in sys.argv[1:]:
    with ExitStack() as open_files:
        try:
            selection = find(Path(folder), None, open_files)
            files, others = selection.files, len(selection.ignored)
        except ReservoirError as error:
            print(error.message)
            continue
        entries = [entry for file in files for entry in file.records()]
        print(others, *(entry.reason for entry in entries if not isinstance(entry, Record)))
"""


@pytest.mark.skipif(os.name != "posix", reason="the file modes are those of POSIX")
def test_a_file_or_folder_in_a_folder_that_may_not_be_read_is_reported(tmp_path):
    command = [sys.executable, "-c", FIND]
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("root is stopped by no file mode, and setpriv is not here")
        command[:0] = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    mixed, alone, closed, partly = map(tmp_path.joinpath, ("mixed", "alone", "closed", "partly"))
    row = lines({"role": "user", "content": "a"})
    for folder in (mixed, alone, closed / "inside", partly, partly / "inside"):
        folder.mkdir(parents=True)
        (folder / "mine.jsonl").write_text(row, encoding="utf-8")
    (mixed / "other.txt").write_text("no rows", encoding="utf-8")
    (mixed / "roots.jsonl").write_text(row, encoding="utf-8")
    for path in (mixed / "roots.jsonl", alone / "mine.jsonl", closed / "inside", partly / "inside"):
        path.chmod(0)
    command += map(str, (mixed, alone, closed, partly))
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    (closed / "inside").chmod(0o700)
    (partly / "inside").chmod(0o700)
    assert result.stdout.splitlines() == [
        "1 cannot be read: Permission denied",
        f"cannot read {alone / 'mine.jsonl'}: Permission denied",
        f"cannot read {closed / 'inside'}: Permission denied",
        "0 cannot be read: Permission denied",
    ]


def test_a_zip_with_a_password_says_so(tmp_path):
    archive = write_zip(tmp_path / "a.zip", {"a.md": b"x"})
    data = bytearray(archive.read_bytes())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    archive.write_bytes(data)
    assert "password" in error_message(archive)


def test_a_missing_or_empty_input_is_an_error(tmp_path):
    assert "absent" in error_message(tmp_path / "absent")
    assert "not a path" in error_message(Path("a\0b"))
    assert "has a known format" in error_message(tmp_path)
    with pytest.raises(ReservoirError) as caught:
        detect(tmp_path)
    assert caught.value.hint == "there are no files in it to read"
    assert "has a known format" in error_message(write_zip(tmp_path / "a.zip", {}))
    write_files(tmp_path, {"user.json": b"{}", "picture.md": b"\x89PNG" + bytes(999)})
    assert "has a known format" in error_message(tmp_path)


def test_another_database_is_an_error(tmp_path):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE messages (id)")
    with pytest.raises(ReservoirError, match="is a database of an unknown format"):
        entries_by_file(path)
    path.write_bytes(b"SQLite format 3\0" + bytes(5_000))
    with pytest.raises(ReservoirError, match="damaged database"):
        entries_by_file(path)


def test_another_database_next_to_notes_is_skipped(tmp_path):
    (tmp_path / "note.md").write_text("# Redis\n")
    with closing(sqlite3.connect(tmp_path / "other.db")) as database, database:
        database.execute("CREATE TABLE messages (id)")
    with ExitStack() as open_files:
        selection = find(tmp_path, None, open_files)
        assert [Path(file.file.name).name for file in selection.files] == ["note.md"]
        assert len(selection.ignored) == 1


def test_a_reservoir_store_is_an_error_with_the_right_command(tmp_path):
    path = tmp_path / "store.db"
    open_store(str(path)).close()
    with pytest.raises(ReservoirError, match="is a store of Reservoir") as caught:
        entries_by_file(path)
    assert "export --all-partitions" in str(caught.value.hint)


def test_a_turn_without_its_messages_is_skipped(tmp_path):
    path = newer_log(tmp_path / "logs.db")
    count = len(records(entries_by_file(path)[""]))
    with closing(sqlite3.connect(path)) as log, log:
        log.execute("UPDATE turns SET tip_message_hash = 'lost' WHERE rowid = 1")
    assert 0 < len(records(entries_by_file(path)[""])) <= count


def test_reading_a_log_creates_no_files_next_to_it(tmp_path):
    path = older_log(tmp_path / "logs.db")
    with closing(sqlite3.connect(path)) as log:
        log.execute("PRAGMA journal_mode = WAL")
    assert records(entries_by_file(path)[""])
    assert [path.name for path in tmp_path.iterdir()] == ["logs.db"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_an_error(tmp_path):
    file = write_files(tmp_path, {"a.md": b"x"}) / "a.md"
    file.chmod(0)
    assert "Permission denied" in error_message(file)
    file.chmod(stat.S_IRUSR)
    assert entries_by_file(file)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_an_explicitly_named_pipe_is_read_to_its_end(tmp_path):
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    data = lines(*({"role": "user", "content": f"m{number}"} for number in range(5_000)))
    writer = threading.Thread(target=pipe.write_text, args=(data,))
    writer.start()
    [entries] = entries_by_file(pipe).values()
    writer.join()
    assert len(records(entries)) == 5_000


def test_a_file_that_grows_is_read_to_its_end_at_the_beginning(tmp_path):
    path = tmp_path / "talk.jsonl"
    path.write_bytes(b"one\ntwo\n")
    file = File.of_path(path, path.stat())
    with file.open() as stream, path.open("ab") as writer:
        writer.write(b"three\n" * 100_000)
        writer.flush()
        assert stream.read() == b"one\ntwo\n"
    with file.open() as stream:
        assert len(stream.read()) == 600_008


def test_a_file_of_the_system_that_has_no_data_yet_is_an_error():
    # As /proc/kmsg, which is a regular file by its mode, but only root may read it.
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    with _RegularFile(reading, "rb") as file, closing(os.fdopen(writing, "wb")):
        for read in (file.read, lambda size: file.readinto(bytearray(size))):
            with pytest.raises(OSError, match="not a regular file"):
                read(9)


def test_the_number_of_read_bytes_is_known(tmp_path):
    archive = write_zip(tmp_path / "a.zip", EXPORT)
    with ExitStack() as open_files:
        [detected] = find(archive, None, open_files).files
        list(detected.records())
        assert detected.file.done == detected.file.size == len(CHAT)


@pytest.mark.parametrize("encode", [gzip.compress, lambda data: data.decode().encode("utf-16")])
def test_compressed_and_utf_16_files_are_read(encode, tmp_path):
    path = tmp_path / ("s1.jsonl.gz" if encode is gzip.compress else "s1.jsonl")
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / "s1.jsonl").write_bytes(CODE)
    path.write_bytes(encode(CODE))
    [expected] = entries_by_file(tmp_path / "whole").values()
    [entries] = entries_by_file(path).values()
    assert records(entries) == records(expected)
    shutil.rmtree(tmp_path / "whole")
    [entries] = entries_by_file(tmp_path).values()
    assert records(entries) == records(expected)


def test_a_compressed_bomb_is_read_up_to_a_limit(tmp_path):
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress(CODE + b" " * 80_000_000))
    [entries] = entries_by_file(path).values()
    assert ("what follows", "it unpacks to far more than its size") in skipped(entries)
    path.write_bytes(gzip.compress(CODE)[:-8] + bytes(8))  # a wrong checksum
    with pytest.raises(ReservoirError, match="the file is damaged here"):
        entries_by_file(path)


@pytest.mark.parametrize("name", ["history.tgz", "history.tar.gz", "history.tar.zst"])
def test_an_archive_that_is_not_read_says_what_to_do(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(gzip.compress(bytes(10_240)))
    with pytest.raises(ReservoirError) as caught:
        detect(path)
    assert caught.value.hint == "unpack it and name the folder"


def test_links_and_other_files_are_listed(tmp_path):
    folder = write_files(tmp_path / "folder", {"5e55.jsonl": CODE, "user.json": b"{}"})
    (folder / "linked").symlink_to(tmp_path, target_is_directory=True)
    (folder / "link.jsonl").symlink_to(folder / "5e55.jsonl")
    with ExitStack() as open_files:
        selection = find(folder, None, open_files)
    assert [file.file.name for file in selection.files] == [str(folder / "5e55.jsonl")]
    assert selection.ignored == [str(folder / "user.json")]
    assert selection.links == [str(folder / "linked"), str(folder / "link.jsonl")]


def test_a_named_format_holds_for_lists_and_unknown_lines_in_a_folder(tmp_path):
    chat = b'{"role": "user", "content": [{"type": "tool_result", "content": "x"}]}\n'
    folder = write_files(tmp_path, {"a.jsonl": chat, "b.jsonl": b'{"odd": 1}\n'})
    assert list(entries_by_file(folder)) == ["a.jsonl"]
    for form in ("openai", "anthropic"):
        assert len(records(entries_by_file(folder, form)["a.jsonl"])) == 1
    assert entries_by_file(write_files(tmp_path / "odd", {"b.jsonl": b'{"odd": 1}\n'}), "codex")
