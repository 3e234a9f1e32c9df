"""Connect and disconnect clients, on real settings files in a temporary home."""

import json
import os
import stat
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reservoir_cli.agents.connect import (
    CLIENTS,
    ConnectReport,
    client_named,
    connect,
    disconnect,
    status,
)
from reservoir_cli.agents.connect import edit_file as recorded
from reservoir_cli.agents.connect.client import Client
from reservoir_cli.agents.connect.edit_file import RefusedFileError, SettingsFile
from reservoir_cli.errors import ReservoirError, UsageError

PROGRAM = ["/opt/a b/reservoir"]
ALL = sorted(CLIENTS)
WITH_HOOKS = [name for name in ALL if CLIENTS[name].events]
WriteSettings = Callable[[Client], bytes]


@pytest.fixture(params=ALL)
def client(request: pytest.FixtureRequest) -> Client:
    return CLIENTS[request.param]


def kinds(report: ConnectReport) -> list[str]:
    return [change.kind for change in report.changes]


def files(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def parsed(client: Client) -> dict[str, Any]:
    return client.open(client.settings()).data


def append(path: Path, key: str) -> None:
    """Add a key to a client's settings, as the client or its user would."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        path.write_text(f"{key} = true\n{text}", encoding="utf-8")
    else:
        start = text.index("{", text.rindex("//\n") if text.startswith("//") else 0) + 1
        path.write_text(f'{text[:start]}"{key}": true, {text[start:]}', encoding="utf-8")


def test_a_client_starts_our_server_and_keeps_its_settings(client, write_settings):
    write_settings(client)
    before = parsed(client)
    report = connect(client, PROGRAM, partition="work")
    assert kinds(report)[0] == "changed"
    after = parsed(client)
    entry = after[client.servers].pop("reservoir")
    assert client.command_of(entry) == [*PROGRAM, "mcp", "-p", "work"]
    assert after[client.servers] == before.pop(client.servers, {})
    assert {key: after[key] for key in before} == before
    assert status(client).command == [*PROGRAM, "mcp", "-p", "work"]


def test_disconnecting_restores_every_byte(client, user, write_settings):
    write_settings(client)
    before = files(user)
    connect(client, PROGRAM, hooks=bool(client.events))
    assert files(user) != before
    report = disconnect(client)
    assert "restored" in kinds(report)
    assert files(user) == before
    if os.name == "posix":
        assert stat.S_IMODE(client.settings().stat().st_mode) == 0o640
    assert kinds(disconnect(client)) == ["unchanged"] * len(report.changes)
    assert not recorded._load()


def test_a_file_that_we_created_is_removed(client, user):
    client.folder().mkdir(parents=True)
    report = connect(client, PROGRAM, hooks=bool(client.events))
    assert set(kinds(report)) == {"created"}
    for change in report.changes:
        assert change.backup is None
        if os.name == "posix":
            assert stat.S_IMODE(change.file.stat().st_mode) == 0o600
    assert set(kinds(disconnect(client))) == {"removed"}
    assert files(user) == {}
    assert client.folder().is_dir()


@pytest.mark.parametrize("empty", [True, False])
def test_a_file_without_settings_is_left_as_it_was_after_an_edit_was_undone(client, user, empty):
    client.folder().mkdir(parents=True, exist_ok=True)
    path = client.settings()
    if empty:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    connect(client, PROGRAM)
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    expected = "restored" if empty else "removed"
    assert disconnect(client, dry_run=True).changes[0].kind == expected
    assert disconnect(client).changes[0].kind == expected
    assert (path.read_bytes() == b"") if empty else not path.exists()


def test_a_folder_that_we_created_is_removed(user, tmp_path):
    program = tmp_path / "programs" / "zed"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    connect(CLIENTS["zed"], PROGRAM)
    disconnect(CLIENTS["zed"])
    assert list(user.iterdir()) == []


def test_later_changes_by_others_stay(client, write_settings):
    original = write_settings(client)
    connect(client, PROGRAM, hooks=bool(client.events))
    append(client.settings(), "theirs")
    assert kinds(disconnect(client))[0] == "changed"
    after = client.settings().read_bytes()
    client.settings().write_bytes(original)
    append(client.settings(), "theirs")
    assert after == client.settings().read_bytes()


def test_containers_that_we_added_are_removed_with_our_entries(client, user):
    client.settings().parent.mkdir(parents=True, exist_ok=True)
    client.folder().mkdir(exist_ok=True)
    is_toml = client.settings().suffix == ".toml"
    client.settings().write_text("mine = true\n" if is_toml else '{"mine": true}\n')
    connect(client, PROGRAM, hooks=bool(client.events))
    append(client.settings(), "theirs")
    disconnect(client)
    after = client.settings().read_text()
    assert after == (
        "theirs = true\nmine = true\n" if is_toml else '{"theirs": true, "mine": true}\n'
    )


def test_connecting_again_writes_nothing(client, user, write_settings):
    write_settings(client)
    connect(client, PROGRAM, hooks=bool(client.events))
    before = {path: (user / path).stat().st_mtime_ns for path in files(user)}
    report = connect(client, PROGRAM, hooks=bool(client.events))
    assert not report.is_changed
    assert {path: (user / path).stat().st_mtime_ns for path in files(user)} == before


def test_the_path_of_a_moved_program_is_updated_and_removed_without_a_trace(
    client, user, write_settings
):
    write_settings(client)
    before = files(user)
    connect(client, PROGRAM, hooks=bool(client.events))
    assert set(kinds(connect(client, ["/usr/bin/reservoir"]))) == {"changed"}
    assert status(client).command == ["/usr/bin/reservoir", "mcp"]
    assert b"/opt/a b" not in b"".join(
        data for path, data in files(user).items() if "before" not in path
    )
    disconnect(client)
    assert files(user) == before


def test_an_update_keeps_what_the_user_added_to_our_entry(client, write_settings):
    write_settings(client)
    connect(client, PROGRAM)
    file = client.open(client.settings())
    added = SettingsFile(client.settings())
    text = added._format.assign(file.text, (client.servers, "reservoir", "theirs"), "kept")
    client.settings().write_text(text, encoding="utf-8")
    connect(client, ["/usr/bin/reservoir"])
    assert parsed(client)[client.servers]["reservoir"]["theirs"] == "kept"
    disconnect(client)
    assert "reservoir" not in parsed(client).get(client.servers, {})


def test_a_dry_run_shows_the_change_and_writes_nothing(client, user, write_settings):
    write_settings(client)
    before = files(user)
    report = connect(client, PROGRAM, hooks=bool(client.events), dry_run=True)
    assert files(user) == before
    assert not recorded._load()
    assert f"--- {client.settings()}\n" in report.changes[0].diff
    assert "/opt/a b/reservoir" in report.changes[0].diff
    connect(client, PROGRAM)
    connected = files(user)
    assert "-" in disconnect(client, dry_run=True).changes[0].diff
    assert files(user) == connected


def test_a_client_that_is_not_installed_is_refused_except_in_a_dry_run(client, user):
    with pytest.raises(ReservoirError, match="is not installed") as refusal:
        connect(client, PROGRAM)
    assert refusal.value.exit_code == 1
    report = connect(client, PROGRAM, dry_run=True)
    assert report.changes[0].kind == "created"
    assert report.changes[0].diff.startswith("--- /dev/null\n")
    assert files(user) == {}
    assert not status(client).is_installed
    assert not disconnect(client).is_changed


def test_claude_code_is_installed_if_it_has_settings_without_a_folder(user):
    (user / ".claude.json").write_text("{}")
    connect(CLIENTS["claude"], PROGRAM, hooks=True)
    assert status(CLIENTS["claude"]).hooks is True


@pytest.mark.parametrize("broken", [b"{", b'{"a": \xff}', b"[]", b"= 1\n"])
def test_invalid_settings_are_refused_with_a_snippet_to_paste(client, user, write_settings, broken):
    write_settings(client)
    if client.settings().suffix == ".toml" and broken == b"[]":
        broken = b"[]\n"
    client.settings().write_bytes(broken)
    with pytest.raises(RefusedFileError) as refusal:
        connect(client, PROGRAM)
    assert str(client.settings()) in refusal.value.message
    loads = tomllib.loads if client.settings().suffix == ".toml" else json.loads
    entry = loads(refusal.value.snippet)[client.servers]["reservoir"]
    assert client.command_of(entry) == [*PROGRAM, "mcp"]
    assert files(user) == {str(client.settings().relative_to(user)): broken}
    assert status(client).error
    with pytest.raises(RefusedFileError):
        disconnect(client)


@pytest.mark.parametrize("name", WITH_HOOKS)
def test_nothing_is_changed_if_one_of_two_files_is_invalid(name, user, write_settings):
    client = CLIENTS[name]
    write_settings(client)
    client.hooks_settings().write_text("{")
    before = files(user)
    with pytest.raises(RefusedFileError):
        connect(client, PROGRAM, hooks=True)
    assert files(user) == before


@pytest.mark.parametrize("container", ["null", "[]", '"x"', "1"])
def test_a_container_of_another_type_is_refused(user, container):
    path = CLIENTS["cursor"].settings()
    path.parent.mkdir()
    path.write_text(f'{{"mcpServers": {container}}}')
    with pytest.raises(RefusedFileError, match="cannot edit"):
        connect(CLIENTS["cursor"], PROGRAM)


@pytest.mark.parametrize("name", ["claude", "claude-desktop", "gemini", "codex"])
def test_settings_that_the_client_cannot_read_are_refused(name, user):
    client = CLIENTS[name]
    client.hooks_settings().parent.mkdir(parents=True, exist_ok=True)
    client.folder().mkdir(exist_ok=True)
    client.hooks_settings().write_text('{"a": [1,]}')
    with pytest.raises(RefusedFileError, match="line 1 is not valid JSON"):
        connect(client, PROGRAM, hooks=bool(client.events))


def test_a_file_that_changes_during_the_edit_is_refused(client, write_settings):
    write_settings(client)
    file = client.open(client.settings())
    text = file.after(client.server_edits(file, [*PROGRAM, "mcp"]))
    append(client.settings(), "theirs")
    theirs = client.settings().read_bytes()
    with pytest.raises(RefusedFileError, match="changed meanwhile") as refusal:
        file.write(text)
    assert refusal.value.exit_code == 1
    assert client.settings().read_bytes() == theirs
    assert [path.name for path in client.settings().parent.iterdir() if path.is_file()] == [
        client.settings().name
    ]


@pytest.mark.skipif(os.name != "posix", reason="symbolic links need a privilege on Windows")
def test_a_symbolic_link_is_followed_and_stays(client, user, write_settings):
    write_settings(client)
    dotfiles = user / "dotfiles"
    dotfiles.mkdir()
    target = client.settings().rename(dotfiles / "settings")
    client.settings().symlink_to(target)
    before = target.read_bytes()
    connect(client, PROGRAM)
    assert client.settings().is_symlink()
    assert b"/opt/a b/reservoir" in target.read_bytes()
    # The backup is beside the link: a folder of dotfiles may be public.
    assert [path.name for path in dotfiles.iterdir()] == ["settings"]
    disconnect(client)
    assert client.settings().is_symlink()
    assert target.read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="links need a privilege on Windows")
@pytest.mark.parametrize("link", ["dangling", "hard", "hooks", "backup"])
def test_a_link_that_an_edit_would_break_or_fill_is_refused(client, user, write_settings, link):
    write_settings(client)
    path, dotfile = client.settings(), user / "dotfiles" / "settings"
    dotfile.parent.mkdir()
    if link == "dangling":
        path.unlink()
        path.symlink_to(dotfile.parent / "new" / "settings")
    elif link == "backup":
        path.with_name(f"{path.name}.before-reservoir").symlink_to(dotfile)
    else:
        path = client.hooks_settings() if link == "hooks" and client.events else path
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(path.read_bytes() if path.exists() else b"{}")
        os.link(path, dotfile)
    before = files(user)
    for dry_run in (False, True):
        with pytest.raises(RefusedFileError, match="link") as refusal:
            connect(client, PROGRAM, hooks=bool(client.events), dry_run=dry_run)
        assert "reservoir" in refusal.value.snippet
    assert files(user) == before


@pytest.mark.skipif(os.name != "posix", reason="links need a privilege on Windows")
def test_a_hard_link_made_after_connecting_is_not_broken(client, user, write_settings):
    write_settings(client)
    connect(client, PROGRAM)
    os.link(client.settings(), user / "another")
    before = files(user)
    with pytest.raises(RefusedFileError, match="hard link"):
        disconnect(client)
    assert files(user) == before
    (user / "another").unlink()
    assert disconnect(client).is_changed


@pytest.mark.skipif(os.name != "posix", reason="Windows has no modes")
def test_the_file_mode_is_kept_and_the_backup_is_private(client, write_settings):
    original = write_settings(client)
    report = connect(client, PROGRAM)
    assert stat.S_IMODE(client.settings().stat().st_mode) == 0o640
    backup = report.changes[0].backup
    assert backup is not None
    assert backup.read_bytes() == original
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600


def test_if_a_file_is_read_only_nothing_is_changed(client, user, write_settings):
    write_settings(client)
    client.hooks_settings().parent.mkdir(exist_ok=True)
    if client.hooks_settings() != client.settings():
        client.hooks_settings().write_text("{}")
    client.hooks_settings().chmod(0o400)
    before = files(user)
    with pytest.raises(RefusedFileError, match="read-only") as refusal:
        connect(client, PROGRAM, hooks=bool(client.events))
    assert "reservoir" in refusal.value.snippet
    assert files(user) == before
    assert connect(client, PROGRAM, hooks=bool(client.events), dry_run=True).is_changed
    client.hooks_settings().chmod(0o600)
    connect(client, PROGRAM, hooks=bool(client.events))
    client.hooks_settings().chmod(0o400)
    before = files(user)
    with pytest.raises(RefusedFileError, match="read-only"):
        disconnect(client)
    assert files(user) == before


def test_another_server_with_our_name_is_not_changed(client, user, write_settings):
    write_settings(client)
    file = client.open(client.settings())
    theirs = client.entry(["npx", "reservoir-water-levels"])
    text = file._format.assign(file.text, (client.servers, "reservoir"), theirs)
    client.settings().write_text(text, encoding="utf-8")
    before = files(user)
    with pytest.raises(RefusedFileError, match="another server named reservoir"):
        connect(client, PROGRAM)
    assert not disconnect(client).is_changed
    assert files(user) == before


def test_without_a_record_only_our_entry_is_removed(client, write_settings):
    write_settings(client)
    before = parsed(client)
    connect(client, PROGRAM, hooks=bool(client.events))
    recorded.save_record(client.settings(), None)
    disconnect(client)
    after = parsed(client)
    assert after.pop(client.servers, {}) == before.pop(client.servers, {})
    assert {key: after[key] for key in before} == before


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"files": 1}', b'{"files": {"a": {}}}'])
def test_damaged_records_are_ignored(write_settings, home, damage):
    client = CLIENTS["zed"]
    original = write_settings(client)
    connect(client, PROGRAM)
    (home / "connections.json").write_bytes(damage)
    disconnect(client)
    assert client.settings().read_bytes() == original


def test_a_lost_or_changed_backup_is_never_restored(write_settings):
    client = CLIENTS["zed"]
    original = write_settings(client)
    backup = connect(client, PROGRAM).changes[0].backup
    assert backup is not None
    backup.write_text("{}")
    disconnect(client)
    assert client.settings().read_bytes() == original


def script(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!{sys.executable}\nimport json, os, sys\n{body}")
    path.chmod(0o755)


@pytest.mark.skipif(os.name != "posix", reason="the stand-in for a client is a script")
def test_the_command_of_a_client_adds_the_server(user, tmp_path, write_settings):
    client = CLIENTS["claude"]
    write_settings(client)
    before = client.settings().read_bytes()
    body = """
assert sys.argv[1:7] == ["mcp", "add", "--scope", "user", "reservoir", "--"]
path = os.path.expanduser("~/.claude.json")
data = json.load(open(path))
command, *args = sys.argv[7:]
data["mcpServers"] = {"reservoir": {"type": "stdio", "command": command, "args": args}}
data["machineID"] = "1"
json.dump(data, open(path, "w"))
"""
    script(tmp_path / "programs", "claude", body)
    report = connect(client, PROGRAM, partition="work")
    assert report.via == "claude mcp add"
    assert kinds(report) == ["changed", "unchanged"]
    assert json.loads(client.settings().read_bytes())["machineID"] == "1"
    assert connect(client, PROGRAM, partition="work").via is None
    disconnect(client)
    assert client.settings().read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="the stand-in for a client is a script")
@pytest.mark.parametrize("body", ["sys.exit(1)", "", "sys.stdin.read()"])
@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "vscode"])
def test_the_file_is_edited_if_the_command_of_the_client_does_nothing(
    user, tmp_path, write_settings, name, body
):
    client = CLIENTS[name]
    before = write_settings(client)
    assert client.program
    script(tmp_path / "programs", client.program, body)
    report = connect(client, PROGRAM)
    assert report.via is None
    assert status(client).command == [*PROGRAM, "mcp"]
    disconnect(client)
    assert client.settings().read_bytes() == before


def test_an_unknown_client_is_named_with_the_known_ones():
    with pytest.raises(UsageError, match="unknown client: claud") as error:
        client_named("claud")
    assert error.value.hint is not None
    assert error.value.hint.startswith("did you mean claude?")
