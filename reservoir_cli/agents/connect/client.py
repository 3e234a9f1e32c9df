"""The base class of clients: programs that talk to models and can be connected."""

import os
import re
import shlex
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile
from pathlib import Path
from typing import Any, ClassVar

from reservoir_cli.agents.connect.edit_file import Edit, RefusedFileError, SettingsFile
from reservoir_cli.util.installation import IN_PYTHON
from reservoir_cli.util.programs import split_command

SERVER = "reservoir"  #: The name of our entry in every client's settings.
_MODULE = IN_PYTHON[-1]  #: Our package, as ``python -m`` runs it.
_BUDGET = r"--budget[ =]\d+"  #: The option that users may add to our hook commands.
#: The arguments of one of our hook commands, with NULs between them.
_HOOK = re.compile(
    r"(?:(?:--(?:config|db)\0[^\0]+|-(?!-config\0|-db\0)[^\0]+)\0)*hook"
    r"(?:\0--budget[\0=]\d+)?\0(?:user-prompt|stop|session-\w+)(?:\0--budget[\0=]\d+)?"
)
POWERSHELL_CALL = "& "  #: What PowerShell needs before a program in quotation marks, to run it.
_VARIABLE = re.compile(r"[A-Za-z_]\w*=")  #: A variable before a command.
#: The events of Claude Code, which Codex has too.
HOOK_EVENTS = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "user-prompt",
    "Stop": "stop",
    "SessionEnd": "session-end",
}


class Client(ABC):
    """A program that starts the MCP servers of its settings file; subclasses know that file."""

    name: ClassVar[str]
    title: ClassVar[str]
    program: ClassVar[str | None] = None  #: The program's name on PATH, if it has one.
    #: The format of its history, if we find that on this machine.
    history: ClassVar[str | None] = None
    servers: ClassVar[str] = "mcpServers"  #: The member of the settings that holds the servers.
    comments: ClassVar[bool] = True  #: Extensions of JSON that the client accepts.
    trailing_commas: ClassVar[bool] = True
    events: ClassVar[Mapping[str, str]] = {}  #: Our hook events by the client's.
    hook_timeout: ClassVar[int] = 3  #: The timeout of a hook, in the client's unit.
    next_step: ClassVar[str] = ""  #: What the user has to do after connecting.
    hooks_step: ClassVar[str] = ""

    @abstractmethod
    def settings(self) -> Path:
        """Return the file that names the MCP servers; it need not exist."""

    def hooks_settings(self) -> Path:
        """Return the file that names the hooks; it need not exist."""
        return self.settings()

    def open(self, path: Path, *, blank: bool = False) -> SettingsFile:
        """Read one of the client's files."""
        return SettingsFile(
            path, comments=self.comments, trailing_commas=self.trailing_commas, blank=blank
        )

    def folder(self) -> Path:
        """Return a folder that exists once the client has been started."""
        return self.settings().parent

    def is_installed(self) -> bool:
        """Return whether the client is on this machine."""
        has_files = self.folder().is_dir() or self.settings().is_file()
        return has_files or self.executable() is not None

    def executable(self) -> str | None:
        """Return the path of the client's program, if it is on PATH."""
        return shutil.which(self.program) if self.program else None

    def own_command(self, command: Sequence[str]) -> list[str] | None:
        """Return the arguments with which the client's own command adds the server, if any."""
        return None

    def entry(self, command: Sequence[str]) -> dict[str, Any]:
        """Return the settings entry that starts our server."""
        return {"command": command[0], "args": list(command[1:])}

    def command_of(self, entry: Any) -> list[str] | None:
        """Return the command line of a settings entry, if it starts a program."""
        command = entry.get("command") if isinstance(entry, dict) else None
        args = entry.get("args", []) if isinstance(entry, dict) else []
        if not isinstance(command, str) or not isinstance(args, list):
            return None
        return [command, *map(str, args)]

    def our_command(self, file: SettingsFile) -> list[str] | None:
        """Return the command line of our entry, if the file has one."""
        command = self.command_of(file.find((self.servers, SERVER)))
        return command if command and "mcp" in (_our_arguments(command) or ()) else None

    def server_edits(self, file: SettingsFile, command: Sequence[str]) -> list[Edit]:
        """Return the edits after which the client starts our server."""
        path = (self.servers, SERVER)
        present, entry = file.find(path), self.entry(command)
        if present is None:
            return [Edit(path, entry)]
        if self.our_command(file) is None:
            raise RefusedFileError(
                f"{file.path} has another server named {SERVER}", hint="remove or rename it first"
            )
        # Keep the user's additions to the entry.
        keys = [key for key in ("command", "args") if key in entry]
        return [Edit((*path, key), entry[key]) for key in keys if present.get(key) != entry[key]]

    def server_removals(self, file: SettingsFile) -> list[Edit]:
        """Return the edits that remove our server."""
        if self.our_command(file) is None:
            return []
        return [Edit((self.servers, SERVER), removes=True)]

    def hooks(self, file: SettingsFile) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield the path and the command of each of our hooks."""
        for event in self.events:
            groups = file.find(("hooks", event))
            for number, group in enumerate(groups if isinstance(groups, list) else []):
                handlers = group.get("hooks") if isinstance(group, dict) else None
                for index, handler in enumerate(handlers if isinstance(handlers, list) else []):
                    command = handler.get("command") if isinstance(handler, dict) else None
                    if isinstance(command, str) and _is_our_hook(command):
                        yield ("hooks", event, number, "hooks", index), command

    def hook_edits(self, file: SettingsFile, program: Sequence[str]) -> list[Edit]:
        """Return the edits after which each event calls our hook; variables and budget stay."""
        edits, present = [], set()
        for path, command in self.hooks(file):
            present.add(path[1])
            ours = self.hook_command([*program, "hook", self.events[str(path[1])]])
            new_command = " ".join([ours, *re.findall(_BUDGET, command)])
            if not f" {command}".endswith(f" {new_command}"):
                edits.append(Edit((*path, "command"), new_command))
        for event in self.events:
            if event not in present:
                groups = file.find(("hooks", event))
                number = len(groups) if isinstance(groups, list) else 0
                ours = self.hook_command([*program, "hook", self.events[event]])
                handler = {"type": "command", "command": ours, "timeout": self.hook_timeout}
                edits.append(Edit(("hooks", event, number), {"hooks": [handler]}))
        return edits

    def hook_removals(self, file: SettingsFile) -> list[Edit]:
        """Return the edits that remove our hooks, the last hook first."""
        edits = []
        for path, _ in reversed(list(self.hooks(file))):
            group = path[:3]
            is_only = len(file.find((*group, "hooks"))) == 1
            edits.append(Edit(group if is_only else path, removes=True))
        return edits

    def hook_command(self, command: Sequence[str], *, windows: bool = os.name == "nt") -> str:
        """Return a command line for the shell in which the client runs its hooks."""
        return shell_command(command, windows=windows)


def _is_our_hook(command: str) -> bool:
    """Return whether a command is ``reservoir … hook EVENT``, with variables or a budget."""
    try:
        words = split_command(command.removeprefix(POWERSHELL_CALL))
    except ValueError:
        return False
    arguments = _our_arguments(list(dropwhile(_VARIABLE.match, words)))
    return arguments is not None and _HOOK.fullmatch("\0".join(arguments)) is not None


def _our_arguments(command: Sequence[str]) -> Sequence[str] | None:
    name = re.split(r"[/\\]", command[0])[-1].removesuffix(".exe") if command else ""
    if name == SERVER:
        return command[1:]
    options = list(command[1:4])
    return command[2 + options.index(_MODULE) :] if _MODULE in options else None


def shell_command(command: Sequence[str], *, windows: bool = os.name == "nt") -> str:
    """Return a command line for shells: on Windows bash or cmd, which both accept slashes."""
    if not windows:
        return shlex.join(command)
    words = [word.replace("\\", "/") for word in command]
    return " ".join(f'"{word}"' if " " in word else word for word in words)


def xdg_config() -> Path:
    """Return the XDG folder for settings, which some programs use on all platforms."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def app_data() -> Path:
    """Return the folder in which desktop programs keep their settings on this platform."""
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return xdg_config()
