"""Paths that are no usual files: pipes, devices, links in a circle, and empty or long names."""

import os
import threading
from pathlib import Path

import pytest
from each import each

posix_only = pytest.mark.skipif(os.name != "posix", reason="pipes and links of POSIX")
#: Commands that write a file, or read one, named last.
WRITING = {
    "export": ["export", "-o"],
    "backup": ["backup", "--yes"],
    "salvage": ["doctor", "--salvage"],
}
READING = {"ingest": ["ingest"], "trim": ["trim", "--iteration", "2"], "config": ["--config"]}


@pytest.fixture
def said(cli):
    cli.say("we dropped Redis")
    return cli


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    """Return a link to a link that leads back."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.symlink_to(second)
    second.symlink_to(first)
    return first


@each("name", [*WRITING, *READING])
def test_an_empty_name_is_wrong_usage(said, name):
    arguments = {**WRITING, **READING}[name]
    end = ["view"] if name == "config" else []
    result = said(*arguments, "", *end, code=2)
    assert result.out == ""
    assert result.err.startswith("error: the name of a file is empty\nhint: name a file")


@posix_only
@pytest.mark.parametrize("name", WRITING)
def test_a_link_that_leads_in_a_circle_is_not_replaced(said, loop, name):
    result = said(*WRITING[name], str(loop), code=1)
    reason = "Too many levels of symbolic links"
    hint = "its links lead in a circle: name another"
    assert result.err == f"error: cannot write {loop}: {reason}\nhint: {hint}\n"
    assert loop.is_symlink()


@posix_only
@pytest.mark.parametrize("name", WRITING)
def test_a_link_is_kept_and_its_target_written(said, tmp_path, name):
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)
    said(*WRITING[name], str(link))
    assert link.is_symlink()
    assert target.stat().st_size


@posix_only
def test_a_pipe_that_nobody_reads_is_not_waited_for(said, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    result = said("export", "-o", str(pipe), code=1)
    assert result.err == (
        f"error: cannot write {pipe}: nobody reads from this pipe\n"
        "hint: start the program at its other end first, or name a regular file\n"
    )


@posix_only
def test_a_pipe_with_a_reader_is_written_to(said, tmp_path):
    pipe, read = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    said("export", "-o", str(pipe))
    reader.join()
    assert "we dropped Redis" in read[0]
    assert pipe.is_fifo()


@posix_only
@pytest.mark.parametrize("target", ["pipe", os.devnull])
def test_what_is_no_file_is_not_offered_to_be_replaced(said, tmp_path, target):
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / target
    result = said("backup", str(path), code=1)
    assert result.err == (
        f"error: cannot write {path}: not a regular file\nhint: name a regular file\n"
    )


def test_a_settings_file_whose_name_is_too_long_is_wrong_usage(said):
    for arguments in (["view"], ["config", "set", "redact=mask"]):
        result = said("--config", "n" * 300, *arguments, code=2)
        assert result.err.startswith("error: cannot read the settings file nnn")
