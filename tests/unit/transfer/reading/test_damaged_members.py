"""Members of a zip that cannot be read, and what is no file, are counted and named."""

import os
import socket
import stat
import struct
import zipfile
from contextlib import ExitStack
from pathlib import Path

import pytest
from reading import lines, records

from reservoir_cli.errors import ReservoirError
from reservoir_cli.transfer.detect_format import FileSelection, find
from reservoir_cli.transfer.reading.importer import Skipped

DAMAGED = Skipped("what follows", "the zip is damaged here")


def say(word: str, times: int = 200) -> str:
    return lines(*({"role": "user", "content": f"{word} {number}"} for number in range(times)))


def write_zip(path: Path, method: int, *members: tuple[str, str]) -> bytearray:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, text in members:
            archive.writestr(name, text)
    return bytearray(path.read_bytes())


def read(path: Path) -> tuple[int, list[tuple[str, Skipped]], list[str]]:
    """Return the number of messages, what was skipped with its file, and what was ignored."""
    with ExitStack() as open_files:
        selection = find(path, None, open_files)
        entries = [(Path(file.file.name).name, list(file.records())) for file in selection.files]
    skipped = [(name, entry) for name, read in entries for entry in read if type(entry) is Skipped]
    return sum(len(records(read)) for _, read in entries), skipped, selection.ignored


@pytest.mark.parametrize(
    ("method", "names"),
    [
        (zipfile.ZIP_DEFLATED, ("kiln.jsonl", "loom.jsonl")),
        (zipfile.ZIP_STORED, ("kiln.jsonl", "loom.jsonl")),
        pytest.param(
            *(zipfile.ZIP_STORED, ("same.jsonl", "same.jsonl")),
            marks=pytest.mark.filterwarnings("ignore:Duplicate name"),
        ),
    ],
)
def test_a_damaged_member_is_named_and_the_others_are_read(tmp_path, method, names):
    path = tmp_path / "export.zip"
    data = write_zip(path, method, *zip(names, (say("kiln"), say("loom")), strict=True))
    data[150:160] = bytes(byte ^ 0xFF for byte in data[150:160])
    path.write_bytes(data)
    assert read(path) == (200, [(names[0], DAMAGED)], [])
    (tmp_path / "note.md").write_text("a note")
    assert read(tmp_path) == (200, [(names[0], DAMAGED)], [str(tmp_path / "note.md")])


def test_damage_and_an_unsupported_method_are_told_apart(tmp_path):
    path = tmp_path / "export.zip"
    data = write_zip(path, zipfile.ZIP_STORED, ("kiln.jsonl", say("kiln")))
    unsupported = data.copy()
    at = data.find(b"PK\x01\x02") + 10
    unsupported[at : at + 2] = struct.pack("<H", 99)
    data[60:70] = bytes(10)
    for written, reason, hint in (
        (data, "the zip is damaged here", "download it again"),
        (unsupported, "its compression method is not supported", "unpack the zip"),
    ):
        path.write_bytes(written)
        with pytest.raises(ReservoirError, match=f"kiln.jsonl: {reason}") as caught:
            read(path)
        assert hint in str(caught.value.hint)


def select(path: Path) -> FileSelection:
    with ExitStack() as open_files:
        return find(path, None, open_files)


def test_a_link_in_a_zip_is_passed_over(tmp_path):
    path = tmp_path / "notes.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.md", "kiln")
        link = zipfile.ZipInfo("b.md")
        link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/hostname")
    selection = select(path)
    assert (len(selection.files), selection.links) == (1, [f"{path}/b.md"])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX only")
def test_pipes_and_sockets_in_a_folder_are_ignored_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    Path("a.md").write_text("kiln")
    os.mkfifo("pipe.md")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.md")
        ignored = select(tmp_path).ignored
        assert ignored == [str(tmp_path / name) for name in ("pipe.md", "socket.md")]
        with pytest.raises(ReservoirError) as caught:
            select(tmp_path / "socket.md")
    assert caught.value.hint == "name a regular file"
