"""Commands of users are split, and programs are started, as each platform needs it."""

import subprocess

import pytest
from each import each

from reservoir_cli.util.programs import background_options, split_command, with_path


@each(
    ("text", "words"),
    [
        (r"C:\tools\llm.exe -s brief", [r"C:\tools\llm.exe", "-s", "brief"]),
        (r'"C:\Program Files\Vim\gvim.exe" -f', [r"C:\Program Files\Vim\gvim.exe", "-f"]),
        ("llm -s 'in one line'", ["llm", "-s", "in one line"]),
        (r'notes "C:\a b\\"', ["notes", "C:\\a b\\\\"]),
        ("vi # the editor", ["vi", "#", "the", "editor"]),
        (" ", []),
    ],
)
def test_a_backslash_separates_folders_on_windows(text, words):
    assert split_command(text, windows=True) == words


def test_elsewhere_a_backslash_quotes_the_next_character():
    assert split_command(r"my\ editor 'a b' \"", windows=False) == ["my editor", "a b", '"']


@pytest.mark.parametrize("windows", [True, False])
def test_an_unclosed_quote_is_an_error(windows):
    with pytest.raises(ValueError, match="quotation"):
        split_command('"vi', windows=windows)


def test_windows_gets_the_path_of_a_program(tmp_path, monkeypatch):
    program = tmp_path / "editor"
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert with_path(["editor", "-w"], windows=True) == [str(program), "-w"]
    assert with_path(["editor", "-w"], windows=False) == ["editor", "-w"]
    assert with_path(["missing"], windows=True) == ["missing"]


def test_a_program_in_the_background_opens_no_window_and_leaves_the_terminal():
    flags = background_options("win32")["creationflags"]
    detached, new_group, no_window = 0x8, 0x200, 0x0800_0000  # from winbase.h
    assert flags == new_group | no_window
    assert not flags & detached
    for platform in ("linux", "darwin"):
        assert background_options(platform) == {"start_new_session": True}
    if hasattr(subprocess, "CREATE_NO_WINDOW"):
        assert subprocess.CREATE_NO_WINDOW == no_window
