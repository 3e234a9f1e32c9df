"""The time limit of ``reservoir hook``: a hook that hangs or dies, with and without ``fork``."""

import os
import subprocess
import sys

import pytest
from trials import PATIENCE, ends

from reservoir_cli.agents.hook_time_limit import is_hook

posix_only = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")

#: Code that hangs after ``begin()``: without and with the interpreter's lock, with half of the
#: output written, and stopped by a signal.
HANGS = {
    "waiting": "import time; time.sleep(600)",
    "holding the lock": "import ctypes; ctypes.PyDLL(None).sleep(600)",
    "half printed": "import os, time; os.write(1, b'half'); time.sleep(600)",
    "stopped": "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
}


@posix_only
def test_a_hanging_hook_is_ended_with_0_and_without_output(tmp_path):
    hooks, pids = {}, tmp_path / "pids"
    pids.mkdir()
    for name, code in HANGS.items():
        script = f"""
import os
from reservoir_cli.agents import hook_time_limit
hook_time_limit._age = lambda: 0.0
hook_time_limit.LIMIT = 0.4
hook_time_limit.begin()
with open({str(pids / name)!r}, "w") as file:
    file.write(str(os.getpid()))
{code}
"""
        command = [sys.executable, "-c", script]
        hooks[name] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    outputs = {name: hook.communicate(timeout=PATIENCE)[0] for name, hook in hooks.items()}
    assert outputs == dict.fromkeys(HANGS, b"")
    assert {name: hook.returncode for name, hook in hooks.items()} == dict.fromkeys(HANGS, 0)
    workers = [file.read_text(encoding="utf-8") for file in pids.iterdir()]
    assert [worker for worker in workers if worker and not ends(int(worker))] == []


#: Code that makes the import of what writes the log slow, as on a busy machine.
SLOW_IMPORT = """
import sys, time
class Slow:
    def find_spec(self, name, *_):
        if name == "reservoir_cli.settings.log_file":
            time.sleep(0.3)
sys.meta_path.insert(0, Slow())
"""


@posix_only
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


@posix_only
def test_a_worker_that_dies_prints_nothing(tmp_path):
    code = "import os, signal; os.write(1, b'half'); os.kill(os.getpid(), signal.SIGSEGV)"
    script = f"from reservoir_cli.agents import hook_time_limit; hook_time_limit.begin(); {code}"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert (result.returncode, result.stdout) == (0, b"")


NO_FORK = """
import os, sys, time
if hasattr(os, "fork"):
    del os.fork
from reservoir_cli.agents import hook_time_limit
hook_time_limit._age = lambda: 0.0
hook_time_limit.LIMIT = 0.4
hook_time_limit.begin()
"""


def test_without_fork_a_thread_ends_a_hanging_hook():
    command = [sys.executable, "-c", NO_FORK + "time.sleep(600)"]
    result = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False)
    assert (result.returncode, result.stdout) == (0, b"")


#: A clock whose time does not pass until the test says so.
STANDING = """
import threading, types
passed = threading.Event()
wait = lambda _: passed.wait()
hook_time_limit.time = types.SimpleNamespace(monotonic=time.monotonic, sleep=wait)
"""


def test_without_fork_output_is_never_truncated():
    code = "hook_time_limit.finish(); passed.set(); time.sleep(0.4); os.write(1, b'whole')"
    imports, begin = NO_FORK.split("hook_time_limit.begin()")
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
