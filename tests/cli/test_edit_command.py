"""``edit``: by argument, from stdin, and in an editor."""

import os
import sys

import pytest


@pytest.fixture
def filled_cli(cli):
    cli.store({"content": "the walrus sleeps"}, {"content": "at work", "partition": "work"})
    return cli


def content(filled_cli):
    return filled_cli.rows()[0]["content"]


@pytest.mark.parametrize(
    ("arguments", "stdin"), [(["the otter swims"], ""), (["-"], "the otter swims\n")]
)
def test_the_text_comes_from_the_argument_or_stdin(filled_cli, arguments, stdin):
    result = filled_cli("-q", "edit", "#1", *arguments, stdin=stdin)
    assert result.out == ""
    assert content(filled_cli) == "the otter swims"
    assert b"walrus" not in filled_cli.db.read_bytes()


def test_it_reports_the_edit_and_copies_that_it_cannot_reach(filled_cli):
    notes = filled_cli("edit", "1", "new").err.splitlines()
    assert notes[0] == "#1 user: the walrus sleeps"
    assert "#1 user: new" in notes
    assert notes[-1] == "note: backups and exports made earlier still have the old text"


@pytest.mark.parametrize("text", ["", "  ", "the walrus sleeps"])
def test_an_empty_or_unchanged_text_changes_nothing(filled_cli, text):
    assert "nothing was changed" in filled_cli("edit", "1", text).err
    assert content(filled_cli) == "the walrus sleeps"


def test_a_message_elsewhere_is_not_edited(filled_cli):
    assert "-p work" in filled_cli("edit", "2", "new", code=1).err
    assert filled_cli("edit", "99", "new", code=1).err.startswith(
        "error: no message 99 in default\nhint: on a"
    )


EDITOR = """
import os, pathlib, stat, sys
file = pathlib.Path(sys.argv[-1])
pathlib.Path(sys.argv[1]).write_text(f"{stat.S_IMODE(file.stat().st_mode):o} {file}")
file.write_text(file.read_text().replace("walrus", sys.argv[2]) + "\\n")
"""


@pytest.mark.parametrize("name", ["VISUAL", "EDITOR"])
def test_an_editor_runs_without_a_shell_on_a_private_file(filled_cli, tmp_path, name):
    script, seen = tmp_path / "my editor.py", tmp_path / "seen"
    script.write_text(EDITOR)
    command = f"{sys.executable} '{script}' {seen} '$(touch oops) ; otter'"
    filled_cli("edit", "1", env={"EDITOR": "false", name: command})
    assert content(filled_cli) == "the $(touch oops) ; otter sleeps"
    mode, file = seen.read_text().split(" ", 1)
    assert mode == "600"
    assert not os.path.exists(os.path.dirname(file))


@pytest.mark.parametrize(
    ("editor", "code", "message"),
    [
        ("true", 0, "nothing was changed"),
        ("false", 1, "nothing was changed"),
        ("/nowhere/at-all", 1, "hint: set EDITOR"),
        ("'unclosed", 2, "cannot parse EDITOR"),
        ("", 2, "no text and no editor"),
    ],
)
def test_an_editor_that_changes_nothing_or_fails_is_reported(filled_cli, editor, code, message):
    assert message in filled_cli("edit", "1", env={"EDITOR": editor}, code=code).err
    assert content(filled_cli) == "the walrus sleeps"


def test_a_text_from_an_editor_that_cannot_be_stored_is_printed(filled_cli, tmp_path):
    script = tmp_path / "editor.py"
    forget = "\nimport subprocess\nsubprocess.run(['reservoir', 'forget', '--id', '1', '--yes'])\n"
    script.write_text(EDITOR + forget)
    command = f"{sys.executable} {script} {tmp_path / 'seen'} otter"
    result = filled_cli("edit", "1", env={"EDITOR": command}, code=1)
    assert result.out == "the otter sleeps\n"
    assert "error: no message 1" in result.err


def test_an_editor_does_not_overwrite_masked_secrets(cli, tmp_path):
    key = "AKIAIOSFODNN7EXAMPLQ"
    cli.say(f"aws_access_key_id={key} of the walrus")
    script = tmp_path / "editor.py"
    script.write_text(EDITOR)
    env = {"EDITOR": f"{sys.executable} {script} {tmp_path / 'seen'} otter"}
    masked = cli("edit", "1", env={**env, "RESERVOIR_REDACT": "mask"}, code=1).err
    assert "hint: RESERVOIR_REDACT=mark reservoir edit 1 -p default edits it as it is" in masked
    assert content(cli) == f"aws_access_key_id={key} of the walrus"
    cli("edit", "1", env={**env, "RESERVOIR_REDACT": "mark"})
    assert content(cli) == f"aws_access_key_id={key} of the otter"
