import os
import sqlite3
import stat
import threading
import zipfile
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from llm_logs import newer_log, older_log
from reading import SAMPLES, file_of, found_in, lines, records, skipped

from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.storage.factory import open_store
from reservoir_cli.transfer.importers import DetectedFile, File, Record, find, importers

CHAT = (SAMPLES / "chatgpt.json").read_bytes()
CODE = (SAMPLES / "claude-code.jsonl").read_bytes()


def looked_at(
    source: Path | File, form: str | None = None
) -> tuple[list[DetectedFile], list[File]]:
    with ExitStack() as open_files:
        return find(source, form, open_files)


def refused(source: Path | File, form: str | None = None) -> str:
    with pytest.raises(ReservoirError) as caught:
        looked_at(source, form)
    assert caught.value.exit_code == 1
    return caught.value.message


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def laid_out(folder: Path, members: dict[str, bytes]) -> Path:
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


def untimed(path: Path) -> dict[str, list[Any]]:
    """Return the records of a path without times, since a zip rounds those of files."""
    return {
        name: [
            replace(each, message=replace(each.message, created_at=None))
            if isinstance(each, Record)
            else each
            for each in found
        ]
        for name, found in found_in(path).items()
    }


@pytest.mark.parametrize(
    ("members", "taken", "passed_over"),
    [row[1:] for row in LAYOUTS],
    ids=[row[0] for row in LAYOUTS],
)
def test_a_folder_and_a_zip_of_it_are_read_alike(
    tmp_path: Path, members: dict[str, bytes], taken: list[str], passed_over: int
) -> None:
    folder = laid_out(tmp_path / "folder", members)
    archive = zipped(tmp_path / "export.zip", members)
    for source in (folder, archive):
        found, others = looked_at(source)
        names = [each.file.name.removeprefix(f"{source}/") for each in found]
        assert sorted(names) == sorted(taken)
        assert len(others) == passed_over
    in_folder, in_zip = untimed(folder), untimed(archive)
    assert in_folder == in_zip
    assert any(records(each) for each in in_zip.values())


def test_a_named_format_selects_its_files_in_a_folder(tmp_path: Path) -> None:
    folder = laid_out(tmp_path, {**EXPORT, "old/5e55.jsonl": CODE})
    assert list(found_in(folder, "claude-code")) == ["old/5e55.jsonl"]
    assert list(found_in(folder, "text")) == ["readme.txt"]
    assert "has the format codex" in refused(folder, "codex")


def test_an_unknown_format_is_wrong_usage_for_any_file(tmp_path: Path) -> None:
    for source in (tmp_path, tmp_path / "absent", file_of("x")):
        with pytest.raises(UsageError) as caught:
            looked_at(source, "morse")
        assert all(name in str(caught.value.hint) for name in importers())


def test_a_zip_is_recognised_by_its_content_and_can_be_read_from_memory(tmp_path: Path) -> None:
    data = zipped(tmp_path / "a.zip", EXPORT).read_bytes()
    found, _ = looked_at(File.of_bytes("stdin", data))
    assert [each.file.name for each in found] == ["stdin/conversations.json"]


# What must not happen


def test_links_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    outside = laid_out(tmp_path / "outside", {"secret.md": b"secret", "more/secret.md": b"secret"})
    folder = laid_out(tmp_path / "folder", {"own.md": b"own"})
    (folder / "file.md").symlink_to(outside / "secret.md")
    (folder / "sub").symlink_to(outside / "more", target_is_directory=True)
    (folder / "round").symlink_to(folder, target_is_directory=True)
    assert list(found_in(folder)) == ["own.md"]


def test_an_explicitly_named_link_is_followed(tmp_path: Path) -> None:
    laid_out(tmp_path, {"own.md": b"own"})
    (tmp_path / "link.md").symlink_to(tmp_path / "own.md")
    assert len(records(found_in(tmp_path / "link.md")[""])) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_in_a_folder_is_skipped(tmp_path: Path) -> None:
    laid_out(tmp_path, {"own.md": b"own"})
    os.mkfifo(tmp_path / "pipe.md")
    assert list(found_in(tmp_path)) == ["own.md"]


def test_paths_that_lead_out_of_a_zip_are_only_names(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    members = {"../../evil.md": b"up", "/etc/evil.md": b"root", "C:\\evil.md": b"drive"}
    archive = zipped(inner / "a.zip", members)
    before = sorted(tmp_path.rglob("*"))
    assert len(found_in(archive)) == 3
    assert sorted(tmp_path.rglob("*")) == before


def test_a_zip_bomb_is_refused(tmp_path: Path) -> None:
    line = lines({"role": "user", "content": "a"})
    archive = zipped(tmp_path / "bomb.zip", {"a.jsonl": (line * 3 + " " * 200_000_000).encode()})
    assert archive.stat().st_size < 1_000_000
    [found] = found_in(archive).values()
    assert len(records(found)) == 3
    assert ("what follows", "it unpacks to far more than its size") in skipped(found)


def test_a_zip_in_a_zip_is_not_opened(tmp_path: Path) -> None:
    inner = zipped(tmp_path / "inner.zip", EXPORT).read_bytes()
    assert "has a known format" in refused(zipped(tmp_path / "outer.zip", {"inner.zip": inner}))


def test_zips_that_are_not_read_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "my export"
    folder.mkdir()
    inner = zipped(folder / "data.ZIP", EXPORT)
    with pytest.raises(ReservoirError) as caught:
        looked_at(folder)
    assert caught.value.hint == f"a zip in a folder is not read: reservoir ingest '{inner}'"
    with pytest.raises(ReservoirError) as caught:
        looked_at(zipped(tmp_path / "outer.zip", {"inner.zip": inner.read_bytes()}))
    assert caught.value.hint == "a zip in a zip is not read: unpack it and name the file"


def test_a_database_in_a_zip_is_named_and_not_unpacked(tmp_path: Path) -> None:
    data = older_log(tmp_path / "logs.db").read_bytes()
    [found] = found_in(zipped(tmp_path / "a.zip", {"logs.db": data})).values()
    [(place, reason)] = skipped(found)
    assert place == "the file"
    assert "in a zip" in reason


# What cannot be read


def test_a_damaged_zip_is_an_error_or_says_where_it_is_damaged(tmp_path: Path) -> None:
    archive = zipped(
        tmp_path / "a.zip", {"a.jsonl": lines({"role": "user", "content": "a"}).encode()}
    )
    whole = archive.read_bytes()
    archive.write_bytes(whole[: len(whole) // 2])
    assert "damaged zip" in refused(archive)
    for at in range(30, len(whole)):
        archive.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            found = found_in(archive)
        except ReservoirError:
            continue
        for each in found.values():
            assert len(records(each)) + len(skipped(each)) >= 1


def test_a_zip_with_a_password_says_so(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", {"a.md": b"x"})
    data = bytearray(archive.read_bytes())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    archive.write_bytes(data)
    assert "password" in refused(archive)


def test_a_missing_or_empty_input_is_an_error(tmp_path: Path) -> None:
    assert "absent" in refused(tmp_path / "absent")
    assert "not a path" in refused(Path("a\0b"))
    assert "has a known format" in refused(tmp_path)
    assert "has a known format" in refused(zipped(tmp_path / "a.zip", {}))
    laid_out(tmp_path, {"user.json": b"{}", "picture.md": b"\x89PNG" + bytes(999)})
    assert "has a known format" in refused(tmp_path)


def test_another_database_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("CREATE TABLE messages (id)")
    with pytest.raises(ReservoirError, match="not a log of llm"):
        found_in(path)
    path.write_bytes(b"SQLite format 3\0" + bytes(5_000))
    with pytest.raises(ReservoirError, match="damaged database"):
        found_in(path)


def test_another_database_next_to_notes_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("# Redis\n")
    with closing(sqlite3.connect(tmp_path / "other.db")) as other, other:
        other.execute("CREATE TABLE messages (id)")
    with ExitStack() as open_files:
        found, others = find(tmp_path, None, open_files)
        assert [Path(each.file.name).name for each in found] == ["note.md"]
        assert [Path(each.name).name for each in others] == ["other.db"]


def test_a_reservoir_store_is_an_error_with_the_right_command(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    open_store(str(path)).close()
    with pytest.raises(ReservoirError, match="is a store of Reservoir") as caught:
        found_in(path)
    assert "export --all-partitions" in str(caught.value.hint)


def test_a_turn_without_its_messages_is_skipped(tmp_path: Path) -> None:
    path = newer_log(tmp_path / "logs.db")
    whole = len(records(found_in(path)[""]))
    with closing(sqlite3.connect(path)) as log, log:
        log.execute("UPDATE turns SET tip_message_hash = 'lost' WHERE rowid = 1")
    assert 0 < len(records(found_in(path)[""])) <= whole


def test_reading_a_log_creates_no_files_next_to_it(tmp_path: Path) -> None:
    path = older_log(tmp_path / "logs.db")
    with closing(sqlite3.connect(path)) as log:
        log.execute("PRAGMA journal_mode = WAL")
    assert records(found_in(path)[""])
    assert [each.name for each in tmp_path.iterdir()] == ["logs.db"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_an_error(tmp_path: Path) -> None:
    file = laid_out(tmp_path, {"a.md": b"x"}) / "a.md"
    file.chmod(0)
    assert "Permission denied" in refused(file)
    file.chmod(stat.S_IRUSR)
    assert found_in(file)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_an_explicitly_named_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    data = lines(*({"role": "user", "content": f"m{number}"} for number in range(5_000)))
    writer = threading.Thread(target=pipe.write_text, args=(data,))
    writer.start()
    [found] = found_in(pipe).values()
    writer.join()
    assert len(records(found)) == 5_000


def test_the_number_of_read_bytes_is_known(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", EXPORT)
    with ExitStack() as open_files:
        [found] = find(archive, None, open_files)[0]
        list(found.records())
        assert found.file.done == found.file.size == len(CHAT)
