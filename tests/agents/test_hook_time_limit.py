"""The time limit of ``reservoir hook``: a hook that hangs, or that fails to start."""

import os
import subprocess
import sys

import pytest
from trials import PATIENCE

from reservoir_cli.agents.hook_time_limit import is_hook

BEGIN = """
import os, sys, threading, time
from reservoir_cli.agents import hook_time_limit
hook_time_limit._age = lambda: 0.0
hook_time_limit.LIMIT = 0.4
hook_time_limit.begin()
"""
#: An importer that hangs when it is asked for a module.
HANGING_IMPORT = """
class Hanging:
    def find_spec(self, name, *_):
        if name == {!r}:
            time.sleep(600)
sys.meta_path.insert(0, Hanging())
"""
#: Code that hangs after ``begin()``, in all the ways in which a hook may wait.
HANGS = {
    "waiting": "time.sleep(600)",
    "computing": "while True: pass",
    "for a lock": "lock = threading.Lock(); lock.acquire(); lock.acquire()",
    "for a disk": "os.read(os.pipe()[0], 1)",
    "importing": HANGING_IMPORT.format("absent") + "import absent",
    "unable to log": HANGING_IMPORT.format("reservoir_cli.settings.log_file") + "time.sleep(600)",
}


def test_a_hanging_hook_ends_by_itself_with_0_and_without_output():
    hooks = {
        name: subprocess.Popen(
            [sys.executable, "-c", BEGIN + code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for name, code in HANGS.items()
    }
    outputs = {name: hook.communicate(timeout=PATIENCE) for name, hook in hooks.items()}
    assert outputs == dict.fromkeys(HANGS, (b"", b""))
    assert {name: hook.returncode for name, hook in hooks.items()} == dict.fromkeys(HANGS, 0)


#: Code that makes the import of what writes the log slow, as on a busy machine.
SLOW_IMPORT = """
import sys, time
class Slow:
    def find_spec(self, name, *_):
        if name == "reservoir_cli.settings.log_file":
            time.sleep(0.3)
sys.meta_path.insert(0, Slow())
"""


@pytest.mark.parametrize("slow_import", ["", SLOW_IMPORT], ids=["quick", "slow"])
def test_a_hanging_hook_is_logged(tmp_path, slow_import):
    script = f"""{slow_import}
from reservoir_cli.agents import hook_time_limit
hook_time_limit._age = lambda: 0.0
hook_time_limit._LOGGING = 0.2
hook_time_limit.LIMIT = 1.0
hook_time_limit.begin()
import time; time.sleep(600)
"""
    file = tmp_path / "reservoir.log"
    for _ in range(10):  # a busy machine may be too slow even so
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "RESERVOIR_HOME": str(tmp_path)},
            timeout=PATIENCE,
            check=False,
        )
        if file.exists():
            break
    line = file.read_text(encoding="utf-8")
    assert line.endswith(" WARNING hook ended: it took more than 1.0 seconds\n")


def test_a_hook_that_fails_to_start_exits_with_0_and_prints_nothing():
    command = [sys.executable, "-c", f"{BEGIN}import nosuch"]
    result = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")


#: A clock whose time does not pass until the test says so.
STANDING = """
import threading, types
passed = threading.Event()
wait = lambda _: passed.wait()
hook_time_limit.time = types.SimpleNamespace(monotonic=time.monotonic, sleep=wait)
"""


def test_output_is_never_truncated():
    code = """
with hook_time_limit.printing:
    passed.set()
    time.sleep(0.4)
    os.write(1, b"whole")
"""
    imports, begin = BEGIN.split("hook_time_limit.begin()")
    script = f"{imports}{STANDING}hook_time_limit.begin(){begin}{code}"
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False)
    assert (result.returncode, result.stdout) == (0, b"whole")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["hook", "stop"], True),
        (["-q", "--db", "x", "hook", "stop"], True),
        (["--config=x", "--offline", "hook"], True),
        (["--db", "hook", "view"], False),
        (["search", "hook", "stop"], False),
        (["hook", "--help"], False),
        ([], False),
    ],
)
def test_only_the_command_hook_is_limited(arguments, expected):
    assert is_hook(arguments) is expected
