"""What an import did not read, or could not read, is counted and named."""

import json
from pathlib import Path

import pytest

from reservoir_cli.transfer.reports import ImportReport
from reservoir_cli.transfer.sync.history_sources import Source

SESSION = {"sessionId": "s", "cwd": "/home/ann/tannery", "isSidechain": False}
ASKED = SESSION | {
    "type": "user",
    "uuid": "u1",
    "parentUuid": None,
    "message": {"role": "user", "content": "Which hide is softest?"},
}


def write(path: Path, *values: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


@pytest.fixture
def projects(tmp_path: Path) -> Path:
    folder = tmp_path / "projects"
    write(folder / "a" / "s.jsonl", ASKED)
    write(folder / "a" / "t.jsonl", {"type": "summary", "summary": "x", "leafUuid": "u"})
    write(folder / "a" / "u.jsonl", {"type": "summary", "summary": "y", "leafUuid": "u"})
    write(folder / "a" / "index.json", {"version": 1})
    (folder / "b").symlink_to(folder / "a")
    return folder


def test_an_import_names_what_gave_nothing_and_what_was_not_read(reservoir, projects):
    report = reservoir.import_files(projects, partition="p")
    assert report.imported == 1
    assert report.notes() == [
        "2 files of claude-code gave nothing: no messages",
        f"1 link passed over, name the target to import it: {projects / 'b'}",
        "1 other file ignored: index.json",
    ]


def test_a_file_whose_messages_are_in_another_one_says_so_only_alone(reservoir, tmp_path):
    question = {"step_index": 0, "source": "USER_EXPLICIT", "type": "USER_INPUT", "content": "Why?"}
    short = write(tmp_path / "logs" / "transcript.jsonl", question)
    write(tmp_path / "logs" / "transcript_full.jsonl", question)
    expected = ["1 file of antigravity gave nothing: the messages are in other files"]
    assert reservoir.import_files(short, partition="p").notes() == expected
    report = reservoir.import_files(short.parent, partition="p")
    assert (report.imported, report.notes()) == (1, [])


def test_a_sync_names_them_once(reservoir, projects):
    source = Source("code", "claude-code", projects, "p")
    [report] = reservoir.sync([source], embed=False, whole=True).sources
    assert report.imports.imported == 1
    assert report.imports.notes() == [
        "2 files of claude-code gave nothing: no messages",
        f"1 link passed over, name the target to import it: {projects / 'b'}",
        "1 other file ignored: index.json",
    ]
    [again] = reservoir.sync([source], embed=False, whole=True).sources
    assert [note.split()[1] for note in again.imports.notes()] == ["link"]


def test_a_file_that_is_only_named_as_a_format_says_that_it_is_not(reservoir, tmp_path):
    folder = tmp_path / "conversations"
    write(folder / "1.conversation.json", {"messages": []})
    report = reservoir.import_files(folder, form="lm-studio", partition="p")
    assert report.notes() == ["1 file of lm-studio gave nothing: not a format that reservoir reads"]


def test_times_that_cannot_be_read_are_counted(reservoir, tmp_path):
    rows = [{"role": "user", "content": f"hide {n}", "timestamp": "soon"} for n in range(3)]
    report = reservoir.import_files(write(tmp_path / "a.jsonl", *rows), partition="p")
    assert report.imported == 3
    assert report.notes() == [
        "3 times could not be read; these messages have the time of the one before"
    ]


def test_at_most_three_files_are_named_unless_all_are_asked_for():
    report = ImportReport(passed_over=5, ignored=["a", "b", "c", "d", "e"])
    assert report.notes() == ["5 other files ignored: a, b, c and 2 more (--json names all)"]
    assert report.notes(all_names=True) == ["5 other files ignored: a, b, c, d, e"]
