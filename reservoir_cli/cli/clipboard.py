"""Copy text to the clipboard."""

import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence

from reservoir_cli.errors import ReservoirError
from reservoir_cli.util.timeouts import CLIPBOARD

_LONGEST_SEQUENCE = 74_994  # terminals drop longer escape sequences
_PIPE = "pipe the context to your own command"  # the hint if copying fails


def copy(text: str) -> None:
    """Copy text by the platform's command, else through the terminal (OSC 52), or raise an error.

    Through SSH the terminal comes first: the command would copy on the other machine.
    """
    terminal = next((stream for stream in (sys.stderr, sys.stdout) if stream.isatty()), None)
    encoded = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
    command = next((words for words in _commands() if shutil.which(words[0])), None)
    is_remote = bool(os.environ.get("SSH_CONNECTION"))
    if terminal and len(encoded) <= _LONGEST_SEQUENCE and (is_remote or command is None):
        terminal.write(f"\x1b]52;c;{encoded}\a")
        terminal.flush()
        return
    if command is None:
        raise ReservoirError(
            "--copy found no clipboard", hint=f"install wl-clipboard, xclip or xsel, or {_PIPE}"
        )
    _run(command, text)


def _commands() -> Iterator[Sequence[str]]:
    if sys.platform == "darwin":
        yield ("pbcopy",)
    elif sys.platform == "win32":
        yield ("clip.exe",)
    else:
        if os.environ.get("WAYLAND_DISPLAY"):
            yield ("wl-copy",)
        if os.environ.get("DISPLAY"):
            yield ("xclip", "-selection", "clipboard")
            yield ("xsel", "--clipboard", "--input")
        yield ("termux-clipboard-set",)
        if "WSL_DISTRO_NAME" in os.environ:
            yield ("clip.exe",)


def _run(command: Sequence[str], text: str) -> None:
    # clip.exe would decode UTF-8 by the system's code page.
    encoding = "utf-16" if command[0] == "clip.exe" else "utf-8"
    try:
        # xclip stays in the background and would keep inherited streams open.
        process = subprocess.run(
            command,
            input=text.encode(encoding, "replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=CLIPBOARD,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ReservoirError(f"{command[0]} could not copy the context", hint=_PIPE) from error
    if process.returncode:
        raise ReservoirError(
            f"{command[0]} could not copy the context: exit {process.returncode}", hint=_PIPE
        )
