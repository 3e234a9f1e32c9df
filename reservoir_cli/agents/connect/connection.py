"""Connect a program to this one, and disconnect it.

A connection consists of entries in a program's settings: the MCP server ``reservoir mcp``, and
hooks that call ``reservoir hook``. Nothing else in those files is changed.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from reservoir_cli.agents.connect.client import SERVER, Client
from reservoir_cli.agents.connect.edit_file import (
    Change,
    Edit,
    RefusedFileError,
    SettingsFile,
    lookup,
)
from reservoir_cli.errors import ReservoirError, UsageError, mask_passwords
from reservoir_cli.settings.paths import expand_user
from reservoir_cli.settings.read_settings import missing_file_error
from reservoir_cli.settings.store_locations import is_on_a_server
from reservoir_cli.util import installation
from reservoir_cli.util.timeouts import CLIENT_COMMAND

_READ_ONLY = "--read-only"
_Plan = Callable[[SettingsFile], list[Edit]]  #: Returns the edits that a file needs.
_PROGRAM_NAME = "reservoir.exe" if sys.platform == "win32" else "reservoir"


@dataclass(frozen=True)
class ClientStatus:
    """The state of a client's connection; ``hooks`` is ``None`` if the client has none."""

    client: Client
    is_installed: bool
    command: list[str] | None = None
    hooks: bool | None = None
    error: str | None = None

    def is_up_to_date(self, program: Sequence[str]) -> bool:
        """Return whether the client starts our server with this program and its options."""
        return self.command is not None and self.command[: len(program)] == [*program]


@dataclass(frozen=True)
class ConnectReport:
    """The changes that connecting or disconnecting made, or would make."""

    client: Client
    changes: list[Change]
    via: str | None = None

    @property
    def is_changed(self) -> bool:
        """Return whether any file changed."""
        return any(change.kind != "unchanged" for change in self.changes)


def status(client: Client) -> ClientStatus:
    """Return the state of a client's connection."""
    is_installed = client.is_installed()
    has_hooks = bool(client.events)
    try:
        command = client.our_command(client.open(client.settings()))
        calls = has_hooks and any(client.hooks(client.open(client.hooks_settings())))
    except RefusedFileError as error:
        return ClientStatus(client, is_installed, error=error.message)
    return ClientStatus(client, is_installed, command, calls if has_hooks else None)


def connect(
    client: Client,
    program: Sequence[str],
    *,
    partition: str | None = None,
    read_only: bool = False,
    hooks: bool | None = None,
    dry_run: bool = False,
) -> ConnectReport:
    """Make a client start our server; entries of ours that are there are updated.

    :param read_only: whether the server offers only tools that read; an entry that says so stays.
    :param hooks: whether it also calls our hooks; ``None`` if it does so already.
    :param program: the absolute path of ``reservoir``, with its options.
    """
    if hooks and not client.events:
        raise UsageError(f"{client.title} has no hooks", hint="leave --hooks out")
    if not dry_run and not client.is_installed():
        raise ReservoirError(
            f"{client.title} is not installed: there is no {client.folder()}",
            hint=f"reservoir connect {client.name} --dry-run shows what would be written",
        )
    command = [*program, "mcp", *(["-p", partition] if partition else [])]
    with _adding_snippet(client, client.settings(), lambda it: client.server_edits(it, command)):
        former = client.our_command(client.open(client.settings()))
    if read_only or _READ_ONLY in (former or ()):
        command.append(_READ_ONLY)
    plans = _plans(client, command, program, hooks)
    for path, plan in plans.items():  # fail before anything is changed
        _apply(client, path, plan, dry_run=True, writable=not dry_run)
    added, via = ([], None) if dry_run else _add_with_own_command(client, command)
    changes = [_apply(client, path, plan, dry_run=dry_run) for path, plan in plans.items()]
    return ConnectReport(client, _merge([*added, *changes]), via)


def disconnect(client: Client, *, dry_run: bool = False) -> ConnectReport:
    """Remove our entries; a file that nobody else changed is restored byte for byte."""
    paths = dict.fromkeys((client.settings(), client.hooks_settings()))
    for path in paths:  # fail before anything is changed
        change = _revert(client, path, dry_run=True)
        if not dry_run and change.kind != "unchanged":
            client.open(path).check_writable()
    return ConnectReport(client, [_revert(client, path, dry_run=dry_run) for path in paths])


def _plans(
    client: Client, command: Sequence[str], program: Sequence[str], hooks: bool | None
) -> dict[Path, _Plan]:
    def add_server(file: SettingsFile) -> list[Edit]:
        return client.server_edits(file, command)

    def add_hooks(file: SettingsFile) -> list[Edit]:
        if hooks is False:
            removals = client.hook_removals(file)
            return [*removals, *_empty_containers(file, removals)]
        return client.hook_edits(file, program) if hooks or any(client.hooks(file)) else []

    settings, hooks_settings = client.settings(), client.hooks_settings()
    if not client.events:
        return {settings: add_server}
    if settings == hooks_settings:
        return {settings: lambda file: add_server(file) + add_hooks(file)}
    return {settings: add_server, hooks_settings: add_hooks}


def _apply(
    client: Client, path: Path, plan: _Plan, *, dry_run: bool, writable: bool = False
) -> Change:
    with _adding_snippet(client, path, plan):
        file = client.open(path)
        edits = plan(file)
        text = file.after(edits)
        if not edits:
            return Change(path, "unchanged")
        file.check_links()
        if writable:
            file.check_writable()
        if dry_run:
            kind = "created" if file.original is None else "changed"
            return Change(path, kind, diff=file.diff(text))
        folders, is_clean = file.missing_folders(), _is_clean(client, file)
        file.save_backup()
        change = file.write(text)
        file.remember(folders, _new_containers(file, edits), is_clean=is_clean)
        return change


@contextmanager
def _adding_snippet(client: Client, path: Path, plan: _Plan) -> Iterator[None]:
    try:
        yield
    except RefusedFileError as error:
        blank = client.open(path, blank=True)
        error.snippet = blank.after(plan(blank))
        raise


def _is_clean(client: Client, file: SettingsFile) -> bool:
    return client.our_command(file) is None and not any(client.hooks(file))


def _new_containers(file: SettingsFile, edits: Sequence[Edit]) -> list[tuple[str | int, ...]]:
    containers = {edit.path[:depth] for edit in edits for depth in range(1, len(edit.path))}
    return sorted((path for path in containers if file.find(path) is None), key=len)


def _add_with_own_command(
    client: Client, command: Sequence[str]
) -> tuple[list[Change], str | None]:
    executable, arguments = client.executable(), client.own_command(command)
    file = client.open(client.settings())
    is_present = file.find((client.servers, SERVER)) is not None
    if is_present or not executable or not arguments or not _is_safe_to_run(executable, arguments):
        return [], None
    folders = file.missing_folders()
    file.save_backup()
    if not _succeeds([executable, *arguments]):
        return [], None
    changed = client.open(client.settings())
    if changed.original == file.original:
        return [], None
    edits = [Edit((client.servers, SERVER))]
    file.remember(folders, _new_containers(file, edits), is_clean=_is_clean(client, file))
    kind = "created" if file.original is None else "changed"
    backup = None if file.original is None else file.backup
    words = " ".join(arguments[: 2 if arguments[0] == "mcp" else 1])
    return [Change(file.path, kind, backup, file.diff(changed.text))], f"{client.program} {words}"


def _is_safe_to_run(executable: str, arguments: Sequence[str]) -> bool:
    """Return whether a program gets the arguments unchanged; batch files expand them."""
    if not executable.lower().endswith((".cmd", ".bat")):
        return True
    return all(re.fullmatch(r"[\w .:\\/-]+", argument) for argument in arguments)


def _succeeds(command: Sequence[str]) -> bool:
    try:
        process = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=CLIENT_COMMAND,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return process.returncode == 0


def _merge(changes: Sequence[Change]) -> list[Change]:
    merged: dict[Path, Change] = {}
    for change in changes:
        if change.file not in merged or change.kind != "unchanged":
            merged[change.file] = change
    return list(merged.values())


def _revert(client: Client, path: Path, *, dry_run: bool) -> Change:
    file = client.open(path)
    try:
        before = file.original_contents()
    except LookupError:
        return _remove_entries(client, file, dry_run=dry_run)
    return file.restore(before, dry_run=dry_run)


def _remove_entries(client: Client, file: SettingsFile, *, dry_run: bool) -> Change:
    edits = client.server_removals(file) if file.path == client.settings() else []
    if file.path == client.hooks_settings():
        edits += client.hook_removals(file)
    if not edits:
        if not dry_run:
            file.forget()
        return Change(file.path, "unchanged")
    edits += _empty_containers(file, edits)
    text = file.after(edits)
    try:
        before = file.without_settings(text)
    except LookupError:
        if not dry_run:
            file.write(text)
            file.forget()
        return Change(file.path, "changed", diff=file.diff(text))
    return file.restore(before, dry_run=dry_run)


def _empty_containers(file: SettingsFile, edits: Sequence[Edit]) -> list[Edit]:
    removals: list[Edit] = []
    containers = [tuple(path) for path in file.record.containers] if file.record else []
    for path in sorted(set(containers), key=len, reverse=True):
        if lookup(file.data_after([*edits, *removals]), path) in ({}, []):
            removals.append(Edit(path, removes=True))
    return removals


def own_program() -> list[str]:
    """Return the absolute path of ``reservoir``, else a command that runs our package in Python.

    A symbolic link is not resolved, since it outlives the environment that it points to.
    """
    scripts = Path(sysconfig.get_path("scripts")) / _PROGRAM_NAME
    started_as = Path(sys.argv[0]).with_suffix(Path(_PROGRAM_NAME).suffix)
    candidates = [started_as] if started_as.is_absolute() or os.sep in sys.argv[0] else []
    for path in (*candidates, scripts, Path(shutil.which("reservoir") or "")):
        if path.name.lower() == _PROGRAM_NAME and path.is_file():
            return [os.path.abspath(path)]
    return [*installation.IN_PYTHON]


def own_command(config: Path | None, db: str | None) -> list[str]:
    """Return the program with the options that were typed before the command."""
    options = []
    if config is not None:
        if not config.is_file():
            raise missing_file_error(config)
        options += ["--config", os.path.abspath(config)]
    if db is not None:
        if is_on_a_server(db) and mask_passwords(db) != db:
            raise UsageError(
                "--db has a password, which would be written to another program's settings",
                hint="write the URL to Reservoir's settings: reservoir config set database=URL",
            )
        options += ["--db", db if is_on_a_server(db) else os.path.abspath(expand_user(db))]
    return [*own_program(), *options]
