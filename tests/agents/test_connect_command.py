"""``reservoir connect`` and ``reservoir disconnect`` on the command line."""

import dataclasses
import json
import os
import shlex
import shutil
import sys
import tomllib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import forked
import pytest

from reservoir_cli.agents.connect import CLIENTS, status
from reservoir_cli.agents.connect.connection import own_command, own_program
from reservoir_cli.errors import UsageError

Run = Callable[..., forked.Answer]
SAMPLES = Path(__file__).parents[1] / "unit" / "transfer" / "formats" / "samples"
ZED = CLIENTS["zed"]
MISSING = (
    "warning: reservoir mcp needs the extra mcp: "
    'pip install "reservoir-cli[mcp]" --find-links dist\n'
)


@pytest.fixture
def run(user: Path, tmp_path: Path) -> Run:
    """Run a command with an empty PATH, and check its exit code.

    The warning that the extra ``mcp`` is missing is removed.
    """
    paths = {"HOME": str(user), "PATH": str(tmp_path / "programs"), "LANG": "C.UTF-8"}

    def typed(*arguments: str, code: int = 0, **variables: str) -> forked.Answer:
        answer = forked.run(*arguments, env={**paths, **variables}, folder=tmp_path)
        assert answer.code == code, answer
        return dataclasses.replace(answer, err=answer.err.replace(MISSING, ""))

    return typed


def test_connecting_is_reported_on_stderr_and_so_is_connecting_twice(run, user, write_settings):
    original = write_settings(ZED)
    result = run("connect", "zed", "-p", "work")
    assert result.out == b""
    assert result.err.startswith("connected Zed\nchanged ~/.config/zed/settings.json; before: ~/")
    assert "note: Zed has no hooks" in result.err
    assert run("connect", "zed", "-p", "work").err.startswith("Zed is connected already\n")
    result = run("disconnect", "zed")
    assert result.err == "disconnected Zed\nrestored ~/.config/zed/settings.json\n"
    assert ZED.settings().read_bytes() == original
    assert run("disconnect", "zed").err == "Zed is not connected\n"


def test_connecting_with_other_options_replaces_them(run, write_settings):
    write_settings(ZED)
    for options in (["-p", "two words"], ["-p", "home"], []):
        assert run("connect", "zed", *options).err.startswith("connected Zed\n")
        assert status(ZED).command[-1 - len(options) :] == ["mcp", *options]


@pytest.mark.parametrize("name", ["claude", "codex", "opencode", "zed"])
def test_a_connection_that_only_reads_stays_so_until_it_is_removed(run, write_settings, name):
    client, original = CLIENTS[name], write_settings(CLIENTS[name])
    run("connect", name, "-p", "work", "--read-only")
    assert status(client).command[-4:] == ["mcp", "-p", "work", "--read-only"]
    run("connect", name)
    assert status(client).command[-2:] == ["mcp", "--read-only"]
    assert "is connected already" in run("connect", name, "--read-only").err
    run("disconnect", name)
    assert client.settings().read_bytes() == original
    run("connect", name)
    assert status(client).command[-1] == "mcp"
    run("connect", "--read-only", code=2)


def test_a_dry_run_prints_a_diff_on_stdout(run, write_settings):
    original = write_settings(CLIENTS["codex"])
    shown = run("connect", "codex", "--hooks", "--dry-run")
    assert shown.err == ""
    added = [line for line in shown.out.decode().splitlines() if line.startswith("+")]
    assert "+[mcp_servers.reservoir]" in added
    assert '+  "hooks": {' in added
    assert CLIENTS["codex"].settings().read_bytes() == original
    assert run("connect", "codex", "-q").err == ""
    assert run("connect", "codex", "--dry-run").out == b""
    assert b"-[mcp_servers.reservoir]" in run("disconnect", "codex", "--dry-run").out


def test_connecting_hooks_adds_the_history_of_the_client_to_the_settings(
    run, user, tmp_path, write_settings
):
    note = "note: hooks import nothing until reservoir init has found Codex\n"
    write_settings(CLIENTS["codex"])
    assert note not in run("connect", "codex").err
    assert note in run("connect", "codex", "--hooks").err
    known = tmp_path / "known.toml"
    known.write_text('[sources.mine]\ntool = "codex"\npath = "~/.codex/sessions"\n')
    told = run("connect", "codex", "--hooks", RESERVOIR_CONFIG=str(known)).err
    assert "sources" not in told
    assert note not in told
    (user / ".codex/sessions").mkdir(parents=True)
    shutil.copy(SAMPLES / "codex.jsonl", user / ".codex/sessions/rollout-1.jsonl")
    settings = tmp_path / "settings.toml"
    told = run("connect", "codex", "--hooks", "-p", "work", RESERVOIR_CONFIG=str(settings)).err
    assert f"added codex to [sources] of {settings}" in told
    assert "folder, else default: reservoir config set partition=work\n" in told
    source = {"tool": "codex", "path": "~/.codex/sessions", "partition": "work"}
    assert tomllib.loads(settings.read_text())["sources"] == {"codex": source}


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "zed"])
def test_the_tools_alone_may_be_connected(run, write_settings, name):
    client, original = CLIENTS[name], write_settings(CLIENTS[name])
    if client.events:
        run("connect", name, "--hooks")
    assert "hooks import nothing" not in run("connect", "--hooks=mcp", name, "-p", "work").err
    connected = status(client)
    assert connected.command[-3:] == ["mcp", "-p", "work"]
    assert not connected.hooks
    run("disconnect", name)
    assert client.settings().read_bytes() == original
    assert client.hooks_settings() == client.settings() or not client.hooks_settings().exists()
    run("connect", name, "--hooks=all", code=2)
    assert "contradicts" in run("connect", name, "--hooks", "--hooks=mcp", code=2).err


def test_without_an_argument_installed_clients_are_listed(run, user, write_settings):
    alone = run("connect")
    assert alone.out == b""
    assert alone.err.startswith(
        "note: found none of these clients on this machine: claude, codex, "
    )
    for name in ("zed", "gemini", "codex", "claude"):
        write_settings(CLIENTS[name])
    run("connect", "gemini", "--hooks")
    CLIENTS["codex"].settings().write_text("= broken")
    assert run("connect").out.decode().splitlines() == [
        "claude\tnot connected\tno\t~/.claude.json",
        "codex\tsettings are invalid\t\t~/.codex/config.toml",
        "gemini\tconnected\tyes\t~/.gemini/settings.json",
        "zed\tnot connected\t-\t~/.config/zed/settings.json",
    ]


def test_the_list_as_json_has_every_client(run, write_settings):
    write_settings(ZED)
    run("connect", "zed")
    document = run("connect", "--json").document
    assert document["schema_version"] == 1
    rows = {row["name"]: row for row in document["clients"]}
    assert list(rows) == list(CLIENTS)
    assert rows["zed"] == {
        "name": "zed",
        "title": "Zed",
        "installed": True,
        "connected": True,
        "command": [*own_program(), "mcp"],
        "up_to_date": True,
        "hooks": None,
        "settings": str(ZED.settings()),
        "error": None,
    }
    assert rows["claude"]["installed"] is False
    assert rows["claude"]["hooks"] is False
    text = ZED.settings().read_text(encoding="utf-8")
    ZED.settings().write_text(text.replace(own_program()[0], "/moved/reservoir"), encoding="utf-8")
    assert run("connect").out.decode().startswith("zed\tanother program\t")
    (row,) = [row for row in run("connect", "--json").document["clients"] if row["connected"]]
    assert row["up_to_date"] is False


def test_a_change_as_json_names_the_files(run, write_settings):
    write_settings(ZED)
    shown = run("connect", "zed", "--dry-run", "--json").document
    assert shown["dry_run"] is True
    assert shown["files"][0]["diff"].startswith(f"--- {ZED.settings()}\n")
    result = run("connect", "zed", "--json")
    backup = f"{ZED.settings()}.before-reservoir"
    assert result.document == {
        "schema_version": 1,
        "client": "zed",
        "dry_run": False,
        "changed": True,
        "via": None,
        "files": [{"file": str(ZED.settings()), "change": "changed", "backup": backup}],
    }
    assert run("disconnect", "zed", "--json").document["files"][0]["change"] == "restored"


def test_invalid_settings_are_refused_and_the_snippet_is_printed(run):
    ZED.settings().parent.mkdir(parents=True)
    ZED.settings().write_text('{\n"a": nul\n}')
    refused = run("connect", "zed", code=1)
    assert "settings.json is invalid: line 2 is not valid JSON\nhint: " in refused.err
    assert refused.err.count("error: ") == 1
    snippet = json.loads(refused.out)
    assert snippet["context_servers"]["reservoir"]["args"] == ["mcp"]
    answer = run("connect", "zed", "--json", code=1).document
    assert answer["error"]["exit_code"] == 1
    assert '"reservoir"' in answer["error"]["hint"]
    assert ZED.settings().read_text() == '{\n"a": nul\n}'


@pytest.mark.parametrize(
    "arguments",
    [
        ["connect", "emacs"],
        ["disconnect", "emacs"],
        ["disconnect"],
        ["connect", "--hooks"],
        ["connect", "--dry-run"],
        ["connect", "zed", "--hooks"],
        ["--db", "postgresql://me:secret@host/db", "connect", "zed"],
        ["--db", "postgresql://host/db?user=me&password=secret", "connect", "zed"],
        ["--db", "postgresql://me:a#secret@host/db", "connect", "zed"],
    ],
    ids=" ".join,
)
def test_wrong_usage_changes_nothing(run, user, arguments):
    ZED.settings().parent.mkdir(parents=True)
    answer = run(*arguments, code=2)
    assert "hint: " in answer.err
    assert "secret" not in answer.err
    assert not ZED.settings().exists()


def test_a_client_that_is_not_installed_is_exit_1_and_its_dry_run_exit_0(run):
    refused = run("connect", "zed", code=1)
    assert "error: Zed is not installed" in refused.err
    assert b"context_servers" in run("connect", "zed", "--dry-run").out


def test_global_options_are_written_to_the_settings_of_the_client(run, tmp_path):
    ZED.settings().parent.mkdir(parents=True)
    (tmp_path / "mine.toml").touch()
    result = run("--db", "mine.db", "--config", "mine.toml", "connect", "zed", RESERVOIR_HOME="/x")
    assert "warning" not in result.err
    entry = json.loads(ZED.settings().read_bytes())["context_servers"]["reservoir"]
    assert entry["command"] == own_program()[0]
    config, store = tmp_path / "mine.toml", tmp_path / "mine.db"
    assert entry["args"] == ["--config", str(config), "--db", str(store), "mcp"]


def test_the_home_folder_in_the_path_of_a_store_is_expanded(user):
    assert own_command(None, "~/my.db")[-2:] == ["--db", str(user / "my.db")]


def test_variables_that_the_client_may_lack_are_warned_about(run, tmp_path):
    ZED.settings().parent.mkdir(parents=True)
    home = str(tmp_path / "elsewhere")
    warned = run("connect", "zed", RESERVOIR_HOME=home).err
    assert "warning: RESERVOIR_HOME may not be set where the client starts reservoir" in warned
    repeated = warned.partition("to include the paths: reservoir ")[2].splitlines()[0]
    assert repeated == f"--db {home}/reservoir.db connect zed"
    assert "warning" not in run(*repeated.split(), RESERVOIR_HOME=home).err


def test_the_command_that_writes_the_paths_keeps_the_options(run, user):
    options = ("claude", "-p", "my work", "--hooks")
    (user / ".claude").mkdir()
    warned = run("connect", *options, RESERVOIR_HOME="/elsewhere").err
    assert f"reservoir.db connect {shlex.join(options)}\n" in warned


def test_the_warning_names_the_settings_file_only_if_it_exists(run, tmp_path):
    ZED.settings().parent.mkdir(parents=True)
    home = tmp_path / "elsewhere"
    home.mkdir()
    (home / "reservoir.toml").touch()
    warned = run("connect", "zed", RESERVOIR_HOME=str(home)).err
    assert f"--config {home}/reservoir.toml --db {home}/reservoir.db connect zed" in warned


def test_a_settings_file_that_does_not_exist_is_not_written_to_a_client(run):
    ZED.settings().parent.mkdir(parents=True)
    refused = run("--config", "nowhere.toml", "connect", "zed", code=2)
    assert "error: there is no settings file nowhere.toml" in refused.err
    assert not ZED.settings().exists()


def test_a_missing_extra_is_warned_about(user, tmp_path):
    env = {"HOME": str(user), "PATH": "", "LANG": "C.UTF-8"}
    answer = forked.run("connect", "zed", "--dry-run", env=env, folder=tmp_path)
    assert (MISSING in answer.err) == (find_spec("mcp_types") is None)


def test_the_path_of_the_running_program_is_found(tmp_path, monkeypatch):
    (tmp_path / "reservoir").write_text("")
    link = tmp_path / "bin" / "reservoir"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "reservoir")
    monkeypatch.setattr(sys, "argv", [str(link)])
    assert own_program() == [str(link)]
    monkeypatch.chdir(tmp_path)  # not a file in the current folder
    monkeypatch.setattr(sys, "argv", ["reservoir"])
    assert own_program() != [str(tmp_path / "reservoir")]
    assert os.path.isabs(own_program()[0])


def test_without_a_script_python_runs_the_module(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["-c"])
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert own_program() == [sys.executable, "-P", "-m", "reservoir_cli"]
    with pytest.raises(UsageError):
        own_command(None, "postgresql://me:secret@host/db")
    assert own_command(None, "postgresql://host/db")[-2:] == ["--db", "postgresql://host/db"]
