"""Discovery of histories of Cline, Goose, LM Studio, aider, Zed and Open WebUI."""

import sys
from pathlib import Path

import pytest
from databases import create_database

from reservoir_cli.transfer.formats.registry import importer_named
from reservoir_cli.transfer.sync import discover_histories

VARIABLES = (
    "XDG_DATA_HOME",
    "XDG_CONFIG_HOME",
    "FLATPAK_XDG_DATA_HOME",
    "CLINE_DIR",
    "CLINE_DATA_DIR",
    "CLINE_SESSION_DATA_DIR",
    "GOOSE_PATH_ROOT",
    "AIDER_CHAT_HISTORY_FILE",
    "DATA_DIR",
)
TASK = "api_conversation_history.json"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    person = tmp_path / "person"
    person.mkdir()
    monkeypatch.setattr(Path, "home", lambda: person)
    monkeypatch.setenv("HOME", str(person))
    monkeypatch.chdir(person)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return person


def write(path: Path, size: int = 10) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    return path


def discovered(form: str) -> list[tuple[str, Path, int, int]]:
    histories = [history for history in discover_histories.look() if history.form == form]
    return [(history.tool, history.path, history.files, history.size) for history in histories]


def path_of(tool: str, number: int = 0) -> Path:
    return list(importer_named(tool).places())[number].path


@pytest.mark.skipif(sys.platform != "linux", reason="these folders are those of Linux")
def test_tasks_are_found_in_all_editors_and_extensions(home):
    cline, sessions = home / ".cline/data/tasks", home / ".cline/data/sessions"
    assert discovered("cline") == [("Cline", sessions, 0, 0)]
    roo = home / ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks"
    kilo = home / ".config/Cursor/User/globalStorage/kilocode.kilo-code/tasks"
    write(roo / "a" / TASK)
    write(roo / "a" / "ui_messages.json")
    write(kilo / "b" / TASK)
    assert discovered("cline") == [("Roo Code", roo, 1, 10), ("Kilo Code", kilo, 1, 10)]
    write(cline / "c" / TASK)
    assert discovered("cline")[0] == ("Cline", cline, 1, 10)
    write(sessions / "d" / "d.json")
    write(sessions / "d" / "d.messages.json")
    assert discovered("cline")[:2] == [("Cline", sessions, 1, 10), ("Cline", cline, 1, 10)]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has another folder")
def test_goose_is_found_by_its_database_or_else_by_its_files(home, monkeypatch):
    sessions = home / ".local/share/goose/sessions"
    assert discovered("goose") == [("Goose", sessions / "sessions.db", 0, 0)]
    write(sessions / "20250509_1.jsonl")
    assert discovered("goose") == [("Goose", sessions, 1, 10)]
    database = create_database(sessions, "goose")
    assert discovered("goose") == [("Goose", database, 1, database.stat().st_size)]
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    assert path_of("goose") == home / "data/goose/sessions/sessions.db"
    monkeypatch.setenv("GOOSE_PATH_ROOT", "relative")
    assert path_of("goose") == home / "data/goose/sessions/sessions.db"
    monkeypatch.setenv("GOOSE_PATH_ROOT", str(home / "root"))
    assert path_of("goose") == home / "root/data/sessions/sessions.db"


def test_lm_studio_may_be_in_another_folder(home):
    write(home / ".lmstudio/conversations/work/1.conversation.json")
    write(home / ".lmstudio/conversations/work/settings.json")
    assert discovered("lm-studio") == [("LM Studio", home / ".lmstudio/conversations", 1, 10)]
    pointer = home / ".lmstudio-home-pointer"
    for content in (b"", b"relative", b"\xff"):
        pointer.write_bytes(content)
        assert path_of("lm-studio") == home / ".lmstudio/conversations"
    pointer.write_text(f"{home / 'elsewhere'}\n", encoding="utf-8")
    assert path_of("lm-studio") == home / "elsewhere/conversations"


def test_aider_is_found_in_the_project(home, monkeypatch):
    name = ".aider.chat.history.md"
    assert discovered("aider") == [("aider", home / name, 0, 0)]
    history = write(home / "board" / name)
    (home / "board/src/deep").mkdir(parents=True)
    monkeypatch.chdir(home / "board/src/deep")
    assert discovered("aider") == [("aider", history, 1, 10)]
    configured = write(home / "elsewhere.md", 3)
    monkeypatch.setenv("AIDER_CHAT_HISTORY_FILE", str(configured))
    assert discovered("aider") == [("aider", configured, 1, 3)]


def test_zed_is_searched_in_the_folder_of_each_platform(home, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    assert path_of("zed") == home / ".local/share/zed/threads/threads.db"
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    assert path_of("zed") == home / "data/zed/threads/threads.db"
    monkeypatch.setenv("FLATPAK_XDG_DATA_HOME", str(home / "flat"))
    assert path_of("zed") == home / "flat/zed/threads/threads.db"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert path_of("zed") == home / "Library/Application Support/Zed/threads/threads.db"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(home / "local"))
    assert path_of("zed") == home / "local/Zed/threads/threads.db"


def test_variables_locate_cline_and_open_webui(home, monkeypatch):
    assert path_of("open-webui") == home / ".open-webui/webui.db"
    monkeypatch.setenv("DATA_DIR", str(home / "web"))
    assert path_of("open-webui") == home / "web/webui.db"
    monkeypatch.setenv("CLINE_DIR", str(home / "cline"))
    assert path_of("cline", 1) == home / "cline/data/tasks"
    monkeypatch.setenv("CLINE_DATA_DIR", str(home / "data"))
    assert path_of("cline", 1) == home / "data/tasks"
    assert path_of("cline") == home / "data/sessions"
    monkeypatch.setenv("CLINE_SESSION_DATA_DIR", str(home / "sessions"))
    assert path_of("cline") == home / "sessions"
