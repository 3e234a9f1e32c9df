"""Hostile files: devices and pipes, forged zips, huge numbers and deep nesting."""

import io
import json
import os
import sqlite3
import struct
import threading
import zipfile
import zlib
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path

import forked
import pytest
import world as worlds
from each import each
from forked_session import ForkedProcess
from hostile_values import ESCAPES

from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Message, Role, StoredMessage
from reservoir_cli.retrieval import embed_messages
from reservoir_cli.retrieval.question_dates.parser import find_dates
from reservoir_cli.storage.content_identity import plain
from reservoir_cli.transfer.detect_format import find
from reservoir_cli.transfer.leave_out import marked_by
from reservoir_cli.transfer.reading import foreign_databases, input_files
from reservoir_cli.transfer.reading.decompressed_file import File
from reservoir_cli.transfer.reading.importer import Record, Skipped
from reservoir_cli.util import read_files as reading
from reservoir_cli.util.private_files import write_private

PATIENCE = 300
ROW = b'{"role": "user", "content": "a"}\n'


def refused(folder: Path, *arguments: str, stdin: bytes = b"") -> str:
    """Return the error line of a command that refuses its input; one that hangs is killed."""
    answer = forked.run(*arguments, stdin=stdin, env=worlds.environment(folder), folder=folder)
    forked.hold(answer)
    assert answer.code in (1, 2, 3)
    return answer.err.splitlines()[0]


#: Every option and argument that names a file.
WAYS = [
    ["ingest", "{}"],
    ["trim", "{}", "--iteration", "2"],
    ["context", "x", "--system", "@{}"],
    ["context", "x", "--knowledge", "a=@{}"],
    ["--config", "{}", "view"],
    ["--db", "{}", "view"],
]


@each("command", WAYS)
def test_an_endless_device_is_refused(world, command):
    line = refused(world, *(word.format("/dev/zero") for word in command))
    assert "/dev/zero" in line


def test_pipes_without_a_writer_time_out(world):
    os.mkfifo(world / "pipe")
    env = worlds.environment(world)
    commands = [tuple(word.format("pipe") for word in command) for command in WAYS]
    running = [ForkedProcess(*command, env=env, folder=world) for command in commands]
    for command, process in zip(commands, running, strict=True):
        out, err = process.communicate(PATIENCE)
        answer = forked.Answer(command, process.returncode, out, err.decode())
        forked.hold(answer)
        assert answer.code in (1, 2, 3)
        assert "pipe" in answer.err.splitlines()[0]


def test_a_pipe_of_the_shell_is_read_to_its_end(world):
    reader, writer = os.pipe()
    feeder = threading.Thread(target=lambda: (os.write(writer, ROW * 3_000), os.close(writer)))
    feeder.start()
    data = reading.read_bounded(Path(f"/dev/fd/{reader}"))
    feeder.join()
    os.close(reader)
    assert data == ROW * 3_000


def test_input_too_large_for_memory_is_refused(tmp_path):
    (tmp_path / "large").write_bytes(b"x" * 101)
    with pytest.raises(OSError, match="larger than"):
        reading.read_bounded(tmp_path / "large", 100)
    assert len(reading.read_bounded(tmp_path / "large", 101)) == 101


def test_only_a_regular_file_is_replaced(world):
    # A pipe instead of a device: if this failed for root, the system would lose the device.
    os.mkfifo(world / "pipe")
    line = refused(world, "backup", "-y", "pipe")
    assert line == "error: cannot write pipe: not a regular file"
    with pytest.raises(OSError, match="not a regular file"):
        write_private(world / "pipe", "text")
    assert (world / "pipe").is_fifo()
    assert not list(world.glob(".*"))


def test_links_in_a_folder_are_not_followed(world):
    (world / "secret.jsonl").write_bytes(ROW * 2)
    (world / "folder" / "out.jsonl").symlink_to(world / "secret.jsonl")
    (world / "folder" / "round").symlink_to(".")
    os.mkfifo(world / "folder" / "pipe.jsonl")
    answer = forked.run(
        "ingest", "--no-embed", "folder", env=worlds.environment(world), folder=world
    )
    assert answer.code == 0
    assert answer.err.startswith("imported 1,")


def test_a_file_that_vanishes_or_grows_while_read_does_no_harm(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(ROW * 4)
    (tmp_path / "b.jsonl").write_bytes(ROW)
    with ExitStack() as open_files:
        first, second = find(tmp_path, None, open_files).files
        (tmp_path / "b.jsonl").unlink()
        [missing] = second.records()
        assert missing == Skipped("the file", "cannot be read: No such file or directory")
        read = first.records()
        next(read)
        with (tmp_path / "a.jsonl").open("ab") as file:
            file.write(ROW + b'{"role": "us')
        assert sum(isinstance(result, Skipped) for result in read) <= 1


# Zips


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def records(data: bytes) -> list[object]:
    with ExitStack() as open_files:
        files = find(File.of_bytes("a.zip", data), None, open_files).files
        return [record for file in files for record in file.records()]


def forged_zip(name: bytes, packed: bytes, claimed: int, count: int = 1) -> bytes:
    """Return a zip with a false size of its member and a false number of members."""
    sizes = (0, len(packed), claimed, len(name))
    local = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 8, 0, 0, *sizes, 0) + name
    central = struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, 0, 8, 0, 0, *sizes, 0, 0, 0, 0, 0, 0)
    table = central + name
    place = len(local) + len(packed)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, len(table), place, 0)
    return local + packed + table + end


@pytest.fixture(scope="module")
def packed() -> bytes:
    """Return a message and 80 MB of blanks as a zip packs them."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(ROW + b" " * (80 << 20)) + packer.flush()


def test_paths_in_a_zip_are_only_names(world):
    before = sorted(world.rglob("*"))
    answer = forked.run(
        "ingest", "--no-embed", "archive.zip", env=worlds.environment(world), folder=world
    )
    assert answer.code == 0
    assert answer.err.startswith(f"imported {len(ESCAPES)}, already there {2 * len(ESCAPES)},")
    assert sorted(world.rglob("*")) == before
    assert not (world.parents[1] / "outside.jsonl").exists()


def test_a_link_in_a_zip_is_not_read():
    link = zipfile.ZipInfo("link.jsonl")
    link.external_attr = 0o120777 << 16
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(link, ROW)
        archive.writestr("real.jsonl", ROW)
    assert len(records(buffer.getvalue())) == 1


def test_a_zip_of_many_small_bombs_is_refused(monkeypatch):
    monkeypatch.setattr(input_files, "_HARMLESS_ZIP", 1 << 20)
    bombs = {f"{number}.jsonl": b" " * 400_000 for number in range(10)}
    with pytest.raises(ReservoirError, match="unpacks to far more than its size"):
        records(zipped(bombs))
    assert not records(zipped({"0.jsonl": ROW + b" " * 400_000}))[1:]


@each("claimed", [0, 10, 1 << 20, 0xFFFFFFFE, 0xFFFFFFFF])
def test_a_zip_with_a_false_size_is_not_unpacked(packed, claimed):
    try:
        results = records(forged_zip(b"a.jsonl", packed, claimed))
    except ReservoirError:
        return
    assert all(isinstance(result, Skipped) for result in results)
    assert results or not claimed


def test_a_zip_with_a_false_count_is_read_as_far_as_possible():
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(ROW) + packer.flush()
    whole = bytearray(forged_zip(b"a.jsonl", packed, len(ROW), count=60_000))
    for place in (whole.index(b"PK\3\4") + 14, whole.index(b"PK\1\2") + 16):
        whole[place : place + 4] = struct.pack("<L", zlib.crc32(ROW))
    assert len(records(bytes(whole))) == 1


def test_a_zip_directory_too_large_for_memory_is_refused(monkeypatch):
    data = zipped({f"{number}.jsonl": ROW for number in range(50)})
    assert len(records(data)) == 50
    monkeypatch.setattr(input_files, "_LARGEST_TABLE", 1_000)
    with pytest.raises(ReservoirError, match="damaged zip"):
        records(data)


# Depths and numbers


@each("depth", [900, 960, 990, 100_000])
def test_every_command_handles_or_refuses_deep_nesting(world, depth):
    env = worlds.environment(world)
    partition = f"deep{depth}"
    deep = b'{"a":' * depth + b"1" + b"}" * depth
    call = b'{"id": "x", "function": {"name": "f", "arguments": %s}}' % deep
    listed = b'[%s,{"role": "assistant", "content": "y", "tool_calls": [%s]},%s]' % (
        ROW.strip(),
        call,
        b'{"role": "tool", "tool_call_id": "x", "content": "z"},{"role": "user", "content": "q"}',
    )
    (world / "deep.json").write_bytes(listed)
    for arguments in (
        ["trim", "deep.json", "--iteration", "2", "--budget", "500"],
        ["ingest", "--no-embed", "deep.json", "-p", partition],
        ["context", "what f?", "-p", partition, "--format", "anthropic"],
        ["context", "what f?", "-p", partition, "--format", "ollama"],
        ["export", "-p", partition, "--format", "anthropic"],
        ["view", "0", "-p", partition, "--json"],
    ):
        forked.hold(forked.run(*arguments, env=env, folder=world))


@each("number", ["1e400", "-1e400", "NaN", "Infinity"])
def test_nan_and_infinity_are_never_printed(world, number):
    text = f'[{{"role": "user", "content": "a", "x": {number}}}]'
    error = refused(world, "trim", "-", "--iteration", "2", stdin=text.encode())
    assert "a number that is too large, or NaN" in error


def test_a_number_of_a_million_digits_is_skipped_with_a_reason(world):
    text = b'{"role": "user", "content": "a", "created_at": %s}\n' % (b"9" * 1_000_000)
    (world / "digits.jsonl").write_bytes(text + ROW)
    env = worlds.environment(world)
    answer = forked.run("ingest", "--no-embed", "digits.jsonl", env=env, folder=world)
    assert answer.err.startswith("imported 1, already there 0, skipped 1\n")
    assert "too many digits" in answer.err


@each("when", ["9999-12-31T23:59:59.999999+00:00", "1970-01-01T00:00:00+00:00"])
def test_the_last_and_the_first_moment_can_be_stored_and_read(world, when):
    env = worlds.environment(world)
    stored = forked.run(
        "ingest", "--no-embed", "-p", when, "--at", when, stdin=b"x", env=env, folder=world
    )
    assert stored.code == 0
    (row,) = forked.run("view", "-p", when, "--json", env=env, folder=world).document["messages"]
    assert row["created_at"][:19] == when[:19]


@each("when", ["99999-01-01", "-0001-01-01", "1969-12-31", "9" * 400 + "d"])
def test_an_invalid_time_is_refused(world, when):
    line = refused(world, "ingest", f"--at={when}", stdin=b"x")
    assert "is not a time" in line or "is out of range" in line


@each("piece", ["1,", "on may ", "\u4e2d"])
def test_hundreds_of_thousands_of_characters_are_a_question(world, piece):
    env = worlds.environment(world)
    text = (piece * (200_000 // len(piece))).encode()
    for arguments in (["context", "-", "--budget", "300"], ["search", "--keyword", "-"]):
        forked.hold(forked.run(*arguments, stdin=text, env=env, folder=world))


def test_only_the_beginning_of_a_question_is_read_for_dates():
    date, now = "what was on 9 May 2026?", datetime(2026, 6, 1, tzinfo=UTC)
    assert find_dates("word " * 1_000 + date, now)
    assert not find_dates("word " * 2_000 + date, now)


@each("piece", ["<permissions>", "<permissions ", "<permissions></permissions"])
def test_tags_of_inserted_blocks_that_do_not_end_are_kept(piece):
    text = piece * 200_000  # would take hours if the rest were searched from every tag
    assert plain(text) == text.strip()


def test_inserted_blocks_are_left_out_up_to_their_first_end():
    reminder = "<system-reminder>a<permissions b></system-reminder>"
    assert plain(f"1{reminder}2</permissions b>3<session_context>4") == (
        "12</permissions b>3<session_context>4"
    )


@each("piece", ["\n", "<a>\n", "<a> "])
def test_a_mark_is_searched_once_in_each_line(piece):
    message = Message("user", piece * 200_000 + "why DO NOT INDEX?", conversation_id="c")
    assert marked_by(Record(message)) is None


def test_a_row_with_duplicate_keys_is_valid_json(world):
    text = b'{"role": "tool", "role": "user", "content": "one", "content": "two"}\n'
    (world / "twice.jsonl").write_bytes(text)
    env = worlds.environment(world)
    forked.run("ingest", "--no-embed", "twice.jsonl", "-p", "twice", env=env, folder=world)
    (row,) = forked.run("view", "-p", "twice", "--json", env=env, folder=world).document["messages"]
    assert (row["role"], row["content"]) == ("user", "two")
    assert json.dumps(row)


def test_a_keyword_search_of_a_book_is_refused(world):
    for words in (" ".join(f"w{number}" for number in range(10_001)), "\u4e2d" * 10_001):
        line = refused(world, "search", "--keyword", "-", stdin=words.encode())
        assert line == "error: a keyword search takes 10,000 words at most"


def test_only_the_beginning_of_an_endless_message_is_embedded(fake_embedder, monkeypatch):
    monkeypatch.setattr(embed_messages, "LONGEST", 100)
    texts = {1: "short", 2: "long " * 50, 3: " " * 200 + "behind"}
    passages = embed_messages.embed_messages(
        [stored(number, text) for number, text in texts.items()], fake_embedder
    )
    spans = {
        key.id: [(passage.start, passage.end) for passage in embedded]
        for key, embedded in passages.items()
    }
    assert spans == {1: [(0, 5)], 2: [(0, 100)], 3: []}


def stored(number: int, text: str) -> StoredMessage:
    moment = datetime(2026, 5, 9, tzinfo=UTC)
    return StoredMessage(
        number, "t", None, "p", "i", Role.USER, text, None, (), None, moment, "s", "s", 1
    )


def test_a_log_of_llm_cannot_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(foreign_databases, "LARGEST", 1_000)
    with closing(sqlite3.connect(tmp_path / "logs.db")) as connection, connection:
        columns = "id, model, prompt, system, response, conversation_id, datetime_utc"
        connection.execute(f"CREATE TABLE responses ({columns})")
        for number, text in enumerate(("short", "x" * 2_000)):
            row = (str(number), "m", text, None, "reply", None, "2026-05-09T12:00:00")
            connection.execute("INSERT INTO responses VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    with ExitStack() as open_files:
        [file] = find(tmp_path / "logs.db", None, open_files).files
        *records, last = file.records()
    assert [result.message.content for result in records if isinstance(result, Record)] == [
        "short",
        "reply",
    ]
    assert last == Skipped("response 2", "larger than 0 MB")


@each(
    "arguments",
    [
        ["embed", "--model", "{}"],
        ["ingest", "{}"],
        ["export", "-o", "{}"],
        ["backup", "-y", "{}"],
        ["--db", "{}", "view"],
        ["--config", "{}", "view"],
        ["trim", "{}", "--iteration", "1"],
        ["context", "x", "--system", "@{}"],
    ],
)
def test_an_invalid_file_name_is_refused(world, arguments):
    name = "x" * 5_000
    env = worlds.environment(world)
    answer = forked.run(*(word.format(name) for word in arguments), env=env, folder=world)
    forked.hold(answer)
    assert answer.code
    counter = {**env, "RESERVOIR_TOKEN_COUNTER": f"huggingface:{name}"}
    forked.hold(forked.run("context", "x", env=counter, folder=world))
