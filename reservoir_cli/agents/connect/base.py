"""A program that talks to models, and how it is connected."""

import os
import re
import shlex
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from reservoir_cli.agents.connect.edit_file import Edit, RefusedFileError, SettingsFile

#: The name of our entry in every client's settings.
SERVER = "reservoir"
#: A hook command of ours, and the event it serves.
_HOOK = re.compile(r"reservoir(?:_cli|\.exe)?['\"]?(?: .*)? hook (user-prompt|stop|session-\w+)$")
#: The events of Claude Code, which Codex has too.
HOOK_EVENTS = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "user-prompt",
    "Stop": "stop",
    "SessionEnd": "session-end",
}


class Client(ABC):
    """A program that starts MCP servers, named in a settings file.

    A subclass says where the file is and what its entries look like.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    #: The program's name on PATH, if it has one.
    program: ClassVar[str | None] = None
    #: The member of the settings that holds the servers.
    servers: ClassVar[str] = "mcpServers"
    #: What JSON the client reads, beyond plain JSON.
    comments: ClassVar[bool] = True
    trailing_commas: ClassVar[bool] = True
    #: The client's hook events, and ours.
    events: ClassVar[Mapping[str, str]] = {}
    #: The timeout of a hook, in the client's unit.
    hook_timeout: ClassVar[int] = 3
    #: What the person has to do after connecting.
    next_step: ClassVar[str] = ""
    hooks_step: ClassVar[str] = ""

    @abstractmethod
    def settings(self) -> Path:
        """Return the file that names the MCP servers; it need not exist."""

    def hooks_settings(self) -> Path:
        """Return the file that names the hooks; it need not exist."""
        return self.settings()

    def open(self, path: Path, *, blank: bool = False) -> SettingsFile:
        """Read one of the client's files.

        :param blank: take it for empty.
        :raises RefusedFileError: it cannot be read, or the client would not read it.
        """
        return SettingsFile(
            path, comments=self.comments, trailing_commas=self.trailing_commas, blank=blank
        )

    def folder(self) -> Path:
        """Return the folder that exists if the client was ever started."""
        return self.settings().parent

    def is_installed(self) -> bool:
        """Return whether the client is on this machine."""
        return self.executable() is not None or self.folder().is_dir()

    def executable(self) -> str | None:
        """Return the path of the client's program, if it is on PATH."""
        return shutil.which(self.program) if self.program else None

    def own_command(self, command: Sequence[str]) -> list[str] | None:
        """Return the arguments with which the client adds the server itself, if it can."""
        return None

    def entry(self, command: Sequence[str]) -> dict[str, Any]:
        """Return the settings entry that starts our server."""
        return {"command": command[0], "args": list(command[1:])}

    def started_by(self, entry: Any) -> list[str] | None:
        """Return the command of a settings entry, if it starts a program."""
        command = entry.get("command") if isinstance(entry, dict) else None
        args = entry.get("args", []) if isinstance(entry, dict) else []
        if not isinstance(command, str) or not isinstance(args, list):
            return None
        return [command, *map(str, args)]

    def connected(self, file: SettingsFile) -> list[str] | None:
        """Return the command of our entry, if it is there."""
        command = self.started_by(file.find((self.servers, SERVER)))
        return command if command and _is_ours(command) else None

    def server_edits(self, file: SettingsFile, command: Sequence[str]) -> list[Edit]:
        """Return what has to change for the client to start our server.

        :raises RefusedFileError: another program has our name there.
        """
        at = (self.servers, SERVER)
        there, wanted = file.find(at), self.entry(command)
        if there is None:
            return [Edit(at, wanted)]
        if self.connected(file) is None:
            raise RefusedFileError(
                f"{file.path} has another server named {SERVER}",
                hint="remove or rename it first",
            )
        # What the person added to the entry stays.
        keys = [key for key in ("command", "args") if key in wanted]
        return [Edit((*at, key), wanted[key]) for key in keys if there.get(key) != wanted[key]]

    def server_removals(self, file: SettingsFile) -> list[Edit]:
        """Return what has to change for the client to start our server no more."""
        there = self.connected(file) is not None
        return [Edit((self.servers, SERVER), removes=True)] if there else []

    def hooks(self, file: SettingsFile) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield our hooks: the path of each, and its command."""
        for event in self.events:
            groups = file.find(("hooks", event))
            for number, group in enumerate(groups if isinstance(groups, list) else []):
                handlers = group.get("hooks") if isinstance(group, dict) else None
                for index, handler in enumerate(handlers if isinstance(handlers, list) else []):
                    command = handler.get("command") if isinstance(handler, dict) else None
                    if isinstance(command, str) and _HOOK.search(command):
                        yield ("hooks", event, number, "hooks", index), command

    def hook_edits(self, file: SettingsFile, program: Sequence[str]) -> list[Edit]:
        """Return what has to change for all hooks to call us."""
        edits, present = [], set()
        for path, command in self.hooks(file):
            present.add(path[1])
            wanted = shell_command([*program, "hook", self.events[str(path[1])]])
            if command != wanted:
                edits.append(Edit((*path, "command"), wanted))
        for event in self.events:
            if event not in present:
                there = file.find(("hooks", event))
                number = len(there) if isinstance(there, list) else 0
                edits.append(Edit(("hooks", event, number), self._hook_group(event, program)))
        return edits

    def hook_removals(self, file: SettingsFile) -> list[Edit]:
        """Return what has to change for no hook to call us; the last first."""
        edits = []
        for path, _ in reversed(list(self.hooks(file))):
            group = path[:3]
            alone = len(file.find((*group, "hooks"))) == 1
            edits.append(Edit(group if alone else path, removes=True))
        return edits

    def _hook_group(self, event: str, program: Sequence[str]) -> dict[str, Any]:
        command = shell_command([*program, "hook", self.events[event]])
        handler = {"type": "command", "command": command, "timeout": self.hook_timeout}
        return {"hooks": [handler]}


def _is_ours(command: Sequence[str]) -> bool:
    """Return whether a command line is ``reservoir … mcp …``, wherever that is installed."""
    name = re.split(r"[/\\]", command[0])[-1].removesuffix(".exe")
    return "mcp" in command[1:] and (name == SERVER or "reservoir_cli" in command[1:4])


def shell_command(command: Sequence[str]) -> str:
    """Return a command line for the shells that run hooks.

    On Windows that may be bash, cmd or PowerShell, which all know slashes and double quotes.
    """
    if os.name == "posix":
        return shlex.join(command)
    words = [word.replace("\\", "/") for word in command]
    return " ".join(f'"{word}"' if " " in word else word for word in words)
