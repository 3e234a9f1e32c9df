"""Discovery of histories in the folders of their tools, on each platform."""

import sys
from pathlib import Path

import pytest
from databases import create_database

from reservoir_cli.transfer.formats.registry import importer_named
from reservoir_cli.transfer.reading import platform_folders
from reservoir_cli.transfer.sync import discover_histories

VARIABLES = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "GEMINI_CLI_HOME", "COPILOT_HOME")
DATABASES = ("OPENCODE_DB", "KILO_DB")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in (*VARIABLES, *DATABASES):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def write(path: Path, size: int = 10) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)


def discovered(form: str) -> list[tuple[Path, int, int]]:
    histories = [history for history in discover_histories.look() if history.form == form]
    return [(history.path, history.files, history.size) for history in histories]


def path_of(tool: str, number: int = 0) -> Path:
    return list(importer_named(tool).places())[number].path


def test_sessions_of_gemini_cli_are_counted_without_its_other_files(home):
    project = home / ".gemini/tmp/birds"
    write(project / "chats/session-2026-05-10.jsonl")
    write(project / "chats/session-2025-11-03.json")
    write(project / "chats/5e55/helper.jsonl")
    write(project / "logs.json")
    assert discovered("gemini-cli") == [(home / ".gemini/tmp", 3, 30)]


def test_older_transcripts_of_cursor_which_are_text_are_found_to_be_named_as_unread(home):
    write(home / ".cursor/projects/birds/agent-transcripts/5e55.txt")
    write(home / ".cursor/projects/birds/notes.txt")
    assert discovered("cursor")[-1] == (home / ".cursor/projects", 1, 10)


def test_opencode_is_found_by_its_database_and_by_older_sessions(home):
    data = home / ".local/share/opencode"
    assert discovered("opencode") == [(data / "opencode.db", 0, 0)]
    write(data / "storage/session/p1/ses_1.json")
    write(data / "storage/message/ses_1/msg_1.json")
    older = (data / "storage/session", 1, 10)
    assert discovered("opencode") == [older]
    database = create_database(data, "opencode")
    assert discovered("opencode") == [(database, 1, database.stat().st_size), older]


def test_sessions_of_kilo_code_are_found_in_its_database(home):
    folder = home / ".local/share/kilo"
    folder.mkdir(parents=True)
    database = create_database(folder, "opencode").rename(folder / "kilo.db")
    [history] = [history for history in discover_histories.look() if history.path == database]
    assert (history.tool, history.form, history.files) == ("Kilo Code", "opencode", 1)


@pytest.mark.skipif(sys.platform != "linux", reason="these folders are those of Linux")
def test_sessions_in_all_editors_are_found(home):
    workspaces = home / ".config/Code/User/workspaceStorage"
    assert discovered("copilot-chat") == [(workspaces, 0, 0)]
    write(workspaces / "0f1e/chatSessions/a.jsonl")
    write(workspaces / "0f1e/chatSessions/b.json")
    write(workspaces / "0f1e/workspace.json")
    empty = home / ".config/Code - Insiders/User/globalStorage/emptyWindowChatSessions"
    write(empty / "c.json")
    assert discovered("copilot-chat") == [(workspaces, 2, 20), (empty, 1, 10)]
    state = home / ".config/Cursor/User/globalStorage/state.vscdb"
    write(state)
    assert discovered("cursor") == [(state, 1, 10)]


def test_editors_are_searched_in_the_folders_of_macos(home, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/elsewhere")
    library = home / "Library/Application Support"
    assert platform_folders.editor_user_dir("Cursor") == library / "Cursor/User"


def test_variables_of_the_tools_locate_their_histories(home, monkeypatch):
    for name in VARIABLES:
        monkeypatch.setenv(name, str(home / name))
    write(home / "COPILOT_HOME/session-state/s1/events.jsonl")
    assert discovered("copilot-cli") == [(home / "COPILOT_HOME/session-state", 1, 10)]
    assert path_of("gemini-cli") == home / "GEMINI_CLI_HOME/.gemini/tmp"
    assert path_of("opencode") == home / "XDG_DATA_HOME/opencode/opencode.db"
    if sys.platform == "linux":
        assert platform_folders.editor_user_dir("Code") == home / "XDG_CONFIG_HOME/Code/User"


def test_variables_locate_the_databases_of_opencode_and_kilo_code(home, monkeypatch):
    data = home / ".local/share"
    elsewhere = home / "sessions.sqlite"
    write(elsewhere)
    write(data / "kilo/mine")
    monkeypatch.setenv("OPENCODE_DB", str(elsewhere))
    monkeypatch.setenv("KILO_DB", "mine")  # in its folder
    assert discovered("opencode") == [(elsewhere, 1, 10), (data / "kilo/mine", 1, 10)]
