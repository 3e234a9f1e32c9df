"""Where each program keeps its history, on each platform, and what is found there."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from databases import NAMES, create_database
from llm_logs import older_log
from reading import SAMPLES, entries_by_file, records, skipped

from reservoir_cli.messages import Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.transfer.formats.registry import importers
from reservoir_cli.transfer.reading import platform_folders
from reservoir_cli.transfer.sync import discover_histories

#: Folders on Linux, the sample that is put there, and under which name.
LINUX = {
    "gemini-cli": (".gemini/tmp/loom/chats/session-1.jsonl", "gemini-cli.jsonl"),
    "opencode": (".local/share/opencode/opencode.db", "opencode"),
    "copilot-chat": (
        ".config/Code/User/workspaceStorage/a1/chatSessions/s.json",
        "copilot-chat.json",
    ),
    "copilot-cli": (".copilot/session-state/s1/events.jsonl", "copilot-cli.jsonl"),
    "cursor": (".config/Cursor/User/globalStorage/state.vscdb", "cursor"),
    "qwen-code": (".qwen/projects/-loom/chats/s.jsonl", "qwen-code.jsonl"),
    "claude-code": (".claude/projects/-loom/5e55.jsonl", "claude-code.jsonl"),
    "antigravity": (
        ".gemini/antigravity/brain/b1/.system_generated/logs/transcript.jsonl",
        "antigravity.jsonl",
    ),
    "kimi-code": (".kimi-code/sessions/wd/s1/agents/main/wire.jsonl", "kimi-code.jsonl"),
    "droid": (".factory/sessions/-loom/d.jsonl", "droid.jsonl"),
    "amp": (".local/share/amp/threads/T-bees.json", "amp.json"),
    "codex": (".codex/sessions/2026/05/09/rollout-1.jsonl", "codex.jsonl"),
    "pi": (".pi/agent/sessions/--loom--/p.jsonl", "pi.jsonl"),
    "continue": (".continue/sessions/co-1.json", "continue.json"),
    "llm": (".config/io.datasette.llm/logs.db", "llm"),
    "cline": (".cline/data/tasks/1778386000000/api_conversation_history.json", "cline.json"),
    "hermes": (".hermes/state.db", "hermes"),
    "goose": (".local/share/goose/sessions/sessions.db", "goose"),
    "lm-studio": (".lmstudio/conversations/1.conversation.json", "lm-studio.json"),
    "aider": (".aider.chat.history.md", "aider.md"),
    "zed": (".local/share/zed/threads/threads.db", "zed"),
    "open-webui": (".open-webui/webui.db", "open-webui"),
}
#: Further places on Linux: other editors, servers, and second folders of a program.
MORE = {
    ".config/claude/projects/-kiln/6e66.jsonl": ("claude-code", "claude-code.jsonl"),
    ".config/Claude/local-agent-mode-sessions/a/b/local_1/.claude/projects/-kiln/7e77.jsonl": (
        "claude-code",
        "claude-code.jsonl",
    ),
    ".cursor/projects/home-ann-vault/agent-transcripts/c1/c1.jsonl": ("cursor", "cursor.jsonl"),
    ".vscode-server/data/User/workspaceStorage/b2/GitHub.copilot-chat/transcripts/t.jsonl": (
        "copilot-chat",
        "copilot-cli.jsonl",
    ),
    ".local/share/code-server/User/workspaceStorage/b3/chatSessions/u.json": (
        "copilot-chat",
        "copilot-chat.json",
    ),
    ".var/app/com.visualstudio.code/config/Code/User/workspaceStorage/b4/chatSessions/v.jsonl": (
        "copilot-chat",
        "copilot-chat.jsonl",
    ),
    ".config/Windsurf/User/globalStorage/saoudrizwan.claude-dev/tasks/1778386000001/"
    "api_conversation_history.json": ("cline", "cline.json"),
    ".openclaw/agents/main/sessions/o.jsonl": ("pi", "pi.jsonl"),
    ".kimi/sessions/5f/s2/context.jsonl": ("kimi-code", "kimi-code.jsonl"),
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    person = tmp_path / "person"
    person.mkdir()
    for name in list(os.environ):
        if name.startswith("XDG_") or name.endswith(("_HOME", "_DIR", "_DB", "_PATH")):
            monkeypatch.delenv(name)
    monkeypatch.setattr(Path, "home", lambda: person)
    monkeypatch.setenv("HOME", str(person))
    monkeypatch.chdir(person)
    return person


def put(sample: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if sample == "llm":
        older_log(path)
    elif sample in NAMES:
        create_database(path.parent, sample).rename(path)
    else:
        shutil.copy(SAMPLES / sample, path)


@pytest.mark.skipif(sys.platform != "linux", reason="these folders are those of Linux")
def test_every_history_on_linux_is_found_and_read(home, tmp_path):
    assert all(history.files == 0 for history in discover_histories.look())
    for path, sample in LINUX.values():
        put(sample, home / path)
    for path, (_, sample) in MORE.items():
        put(sample, home / path)
    linked = home / ".claude/projects/-elsewhere"
    linked.symlink_to(home / ".config/claude/projects/-kiln")
    found = discover_histories.look()
    assert {history.form for history in found if history.files} == LINUX.keys()
    assert sum(history.files for history in found) == len(LINUX) + len(MORE)
    assert {history.tool for history in found} >= {"OpenClaw", "Claude Desktop", "Cline", "Pi"}
    assert [history.links for history in found if history.links] == [(str(linked),)]
    with Reservoir.open(tmp_path / "store.db") as reservoir:
        for history in found:
            if history.form == "zed" and sys.version_info < (3, 14):
                continue  # needs an extra
            report = reservoir.import_files(history.path, form=history.form, partition="p")
            assert report.imported + report.already, history.path
            again = reservoir.import_files(history.path, form=history.form, partition="p")
            assert again.imported == 0
        assert reservoir.view(Scope("p"), 0)


@pytest.mark.skipif(sys.platform != "linux", reason="these folders are those of Linux")
def test_init_names_each_history_with_its_count_and_what_it_passed_over(home):
    samples = {form: home / path for form, (path, _) in LINUX.items()}
    if sys.version_info < (3, 14):
        del samples["zed"]  # needs an extra
    for form, path in samples.items():
        put(LINUX[form][1], path)
    counts = {form: len(records(entries_of(path, form))) for form, path in samples.items()}
    codex = samples["codex"].parent
    (codex / "rollout-2.jsonl").write_text('{"odd": 1}\n', encoding="utf-8")
    (codex / "rollout-3.jsonl").symlink_to(samples["codex"])
    (home / ".claude/projects/-linked").symlink_to(codex)
    env = {**os.environ, "RESERVOIR_HOME": str(home / "reservoir"), "COLUMNS": "200"}
    command = [sys.executable, "-m", "reservoir_cli", "init", "--yes", "--no-embed", "--json"]
    run = subprocess.run(command, env=env, capture_output=True, encoding="utf-8", check=True)
    rows = {row["format"]: row for row in json.loads(run.stdout)["histories"] if row["files"]}
    assert {form: row["messages"] for form, row in rows.items()} == counts
    assert {form: row["imported"] for form, row in rows.items()} == counts
    assert all(row["tool"] in run.stderr for row in rows.values())
    assert any("1 link" in note for note in rows["claude-code"]["notes"])
    assert rows["codex"]["skipped"] == len(skipped(entries_of(samples["codex"], "codex"))) + 1
    assert f"--format codex {home}/.codex/sessions" in run.stderr  # which says why


def entries_of(path: Path, form: str) -> list[Any]:
    return [entry for entries in entries_by_file(path, form).values() for entry in entries]


#: Places by program: on macOS, and on Windows, where %APPDATA% is AppData/Roaming.
SUPPORT, ROAMING = "Library/Application Support", "AppData/Roaming"
PLATFORMS = {
    "claude-code": (
        [".claude/projects", ".config/claude/projects"],
        [f"{SUPPORT}/Claude/local-agent-mode-sessions"],
        [f"{ROAMING}/Claude/local-agent-mode-sessions"],
    ),
    "copilot-chat": (
        [".vscode-server/data/User/workspaceStorage"],
        [f"{SUPPORT}/Code/User/workspaceStorage", f"{SUPPORT}/Windsurf/User/workspaceStorage"],
        [f"{ROAMING}/Code/User/workspaceStorage", f"{ROAMING}/VSCodium/User/workspaceStorage"],
    ),
    "cursor": (
        [".cursor/projects"],
        [f"{SUPPORT}/Cursor/User/globalStorage/state.vscdb"],
        [f"{ROAMING}/Cursor/User/globalStorage/state.vscdb"],
    ),
    "cline": (
        [".cline/data/sessions", ".cline/data/tasks"],
        [f"{SUPPORT}/Code/User/globalStorage/saoudrizwan.claude-dev/tasks"],
        [f"{ROAMING}/Code/User/globalStorage/kilocode.kilo-code/tasks"],
    ),
    "amp": (
        [".local/share/amp/threads"],
        [f"{SUPPORT}/Code/User/globalStorage/sourcegraph.amp/threads3"],
        [f"{ROAMING}/Code/User/globalStorage/sourcegraph.amp/threads3"],
    ),
    "goose": (
        [],
        [".local/share/goose/sessions/sessions.db"],
        [f"{ROAMING}/Block/goose/data/sessions/sessions.db"],
    ),
    "zed": ([], [f"{SUPPORT}/Zed/threads/threads.db"], ["AppData/Local/Zed/threads/threads.db"]),
    "llm": ([], [f"{SUPPORT}/io.datasette.llm/logs.db"], [f"{ROAMING}/io.datasette.llm/logs.db"]),
    "codex": ([".codex/sessions"], [], []),
    "gemini-cli": ([".gemini/tmp"], [], []),
    "opencode": ([".local/share/opencode/opencode.db", ".local/share/kilo/kilo.db"], [], []),
    "copilot-cli": ([".copilot/session-state"], [], []),
    "qwen-code": ([".qwen/projects"], [], []),
    "antigravity": ([f".gemini/antigravity{kind}/brain" for kind in ("", "-cli", "-ide")], [], []),
    "kimi-code": ([".kimi-code/sessions", ".kimi/sessions"], [], []),
    "droid": ([".factory/sessions"], [], []),
    "pi": ([".pi/agent/sessions", ".openclaw/agents", ".clawdbot/agents"], [], []),
    "continue": ([".continue/sessions"], [], []),
    "hermes": ([".hermes/state.db"], [], []),
    "lm-studio": ([".lmstudio/conversations"], [], []),
    "aider": ([".aider.chat.history.md"], [], []),
    "open-webui": ([".open-webui/webui.db"], [], []),
}


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_each_platform_has_its_folders(platform, home, monkeypatch):
    import platformdirs

    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(
        platformdirs, "user_config_path", lambda app, **_: home / "AppData/Roaming" / app
    )
    with_places = {name for name, importer in importers().items() if list(importer.places())}
    assert with_places == PLATFORMS.keys()
    for name, (everywhere, mac, windows) in PLATFORMS.items():
        paths = [place.path for place in importers()[name].places()]
        for expected in everywhere + (mac if platform == "darwin" else windows):
            assert home / expected in paths, (name, expected)


def test_claude_code_may_have_several_folders(home, monkeypatch):
    first, second = home / "work", home / "play"
    for value in (f"{first},{second}", f" {first} , {second} ,", f"{first}{os.pathsep}{second}"):
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", value)
        if os.pathsep != ":" or value.count(":") < 2:
            assert platform_folders.claude_config_dirs() == [first, second]
    odd = home / "a,b"
    odd.mkdir()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(odd))
    assert platform_folders.claude_config_dirs() == [odd]
