"""Split commands into words, start other programs, and read when a process started."""

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from reservoir_cli.util.timeouts import PROCESS_LIST

#: Flags of Windows; the module subprocess has them only there.
_NEW_PROCESS_GROUP, _NO_WINDOW = 0x200, 0x0800_0000
#: Linux has it for each process; the file of this process says whether it is there.
_STATUS = Path("/proc/self/stat")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
#: The position of ``starttime`` in ``/proc/PID/stat``, counted from the state (proc(5)).
_START_FIELD = 19
#: The states of a process that has ended, but whose parent has not asked for its exit code.
_ENDED = ("Z", "X")
#: The access right to ask Windows about a process, and the code of one that has not ended.
_QUERY_LIMITED_INFORMATION, _STILL_ACTIVE = 0x1000, 259


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


def process_start_time(pid: int) -> str | None:
    """Return a text that tells when a process started, to compare; ``None`` without one.

    A reused PID is not taken for the process it belonged to.
    """
    if sys.platform == "win32":
        return _ask_windows(pid)
    return _read_proc(pid) if _STATUS.is_file() else _ask_ps(pid)


def _read_proc(pid: int) -> str | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
        # The program's name may contain blanks and parentheses.
        fields = text.rpartition(b")")[2].decode("ascii").split()
        boot = _BOOT_ID.read_text("ascii").strip() if _BOOT_ID.exists() else ""
        return None if fields[0] in _ENDED else f"{boot} {fields[_START_FIELD]}".strip()
    except (OSError, IndexError, ValueError):
        return None


def _ask_ps(pid: int) -> str | None:
    command = ["ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)]
    environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    try:
        process = subprocess.run(
            command, capture_output=True, env=environment, timeout=PROCESS_LIST, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    state, *start = process.stdout.decode("ascii", "replace").split() or [_ENDED[0]]
    return None if state.startswith(_ENDED) else " ".join(start)


def _ask_windows(pid: int) -> str | None:
    if sys.platform == "win32":  # for mypy, which knows these names only there
        import ctypes
        from ctypes import wintypes

        kernel, number = ctypes.WinDLL("kernel32"), wintypes.DWORD
        kernel.OpenProcess.restype = wintypes.HANDLE
        kernel.OpenProcess.argtypes = [number, wintypes.BOOL, number]
        times = [wintypes.FILETIME() for _ in range(4)]
        kernel.GetProcessTimes.argtypes = [wintypes.HANDLE, *[ctypes.c_void_p] * len(times)]
        kernel.GetExitCodeProcess.argtypes = [wintypes.HANDLE, ctypes.c_void_p]
        kernel.CloseHandle.argtypes = [wintypes.HANDLE]
        handle = kernel.OpenProcess(_QUERY_LIMITED_INFORMATION, False, pid)
        if not handle:
            return None
        try:
            code, created = number(), times[0]
            runs = kernel.GetExitCodeProcess(handle, ctypes.byref(code))
            has_times = kernel.GetProcessTimes(handle, *map(ctypes.byref, times))
            if runs and has_times and code.value == _STILL_ACTIVE:
                return str((created.dwHighDateTime << 32) + created.dwLowDateTime)
        finally:
            kernel.CloseHandle(handle)
    return None
