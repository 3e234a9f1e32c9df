"""Split commands into words, and start other programs, on every platform."""

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from typing import IO, Any

#: Flags of Windows; the module subprocess has them only there.
_NEW_PROCESS_GROUP, _NO_WINDOW = 0x200, 0x0800_0000


def split_command(text: str, *, windows: bool = os.name == "nt") -> list[str]:
    """Split a command into its program and arguments, without a shell."""
    words = shlex.shlex(text, posix=True)
    words.whitespace_split, words.commenters = True, ""
    if windows:
        words.escape = ""
    return list(words)


def with_path(command: Sequence[str], *, windows: bool = os.name == "nt") -> list[str]:
    """Return a command with its program's path on Windows, which finds no ``code.cmd`` by name."""
    if not windows:
        return [*command]
    from shutil import which  # loads four compression libraries

    return [which(command[0]) or command[0], *command[1:]]


def start_in_background(
    command: Sequence[str], *, errors: int | IO[bytes] = subprocess.DEVNULL
) -> "subprocess.Popen[bytes]":
    """Start a program that outlives this process and its terminal, without input and output."""
    null = subprocess.DEVNULL
    options = background_options(sys.platform)
    return subprocess.Popen(command, stdin=null, stdout=null, stderr=errors, **options)


def background_options(platform: str) -> dict[str, Any]:
    """Return the options of ``Popen`` that separate a program from our terminal."""
    if platform == "win32":
        # A program without any console, as DETACHED_PROCESS starts it, opens a window when it
        # starts another: so does the launcher of a virtual environment, which starts Python.
        return {"creationflags": _NEW_PROCESS_GROUP | _NO_WINDOW}
    return {"start_new_session": True}
