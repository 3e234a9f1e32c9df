"""Coverage is measured, in forked processes too."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import module_from_spec
from pathlib import Path

import measuring
import pytest

from reservoir_cli.util.parse_time_options import parse_duration

SUPPORT = Path(__file__).parents[1] / "support"
RUN = """
import os
import measuring
from reservoir_cli.util import parse_time_options

measuring.begin()
child = os.fork()
if not child:
    measuring.save_at_exit()
    try:
        parse_time_options.parse_duration("90m")
    finally:
        os._exit(0)
os.waitpid(child, 0)
measuring.save()
print(*measuring.report(), sep="\\n")
"""


def body_of(function: Callable[..., object]) -> set[int]:
    code = function.__code__
    return {line for *_, line in code.co_lines() if line} - {code.co_firstlineno}


def numbers(ranges: list[str]) -> set[int]:
    """Return the line numbers in a text such as ``30, 43-46, 51->53``."""
    ends = [text.strip(",").split("-") for text in ranges if "->" not in text]
    return {line for end in ends for line in range(int(end[0]), int(end[-1]) + 1)}


def test_lines_and_branches_that_a_forked_process_runs_are_counted(tmp_path):
    pytest.importorskip("slipcover")
    (tmp_path / "mine.txt").write_text("not of a run", encoding="utf-8")
    part = tmp_path / "part"  # of the package: putting probes into all modules takes ten seconds
    shutil.copytree(measuring.PACKAGE / "util", part / "reservoir_cli" / "util")
    for name in ("__init__.py", "errors.py"):
        shutil.copy(measuring.PACKAGE / name, part / "reservoir_cli")
    support = part / "tests" / "support"
    support.mkdir(parents=True)
    for name in ("measuring.py", "probed_code.py"):
        shutil.copy(SUPPORT / name, support)
    result = subprocess.run(
        [sys.executable, "-c", RUN],
        env={
            **os.environ,
            "RESERVOIR_TEST_COVERAGE": str(tmp_path),
            "PYTHONPATH": f"{part}{os.pathsep}{support}",
        },
        cwd=part,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    whole, *worst, _ = result.stdout.splitlines()
    shares = r" *\d+\.\d% of +[\d,]+ lines, +\d+\.\d% of +[\d,]+ branches: reservoir_cli"
    assert re.fullmatch(shares, whole)
    assert 0 < len(worst) < 18
    assert all(re.match(shares + "/", line) for line in worst)
    missing = (tmp_path / "missing.txt").read_text(encoding="utf-8")
    [row] = [line.split() for line in missing.splitlines() if "util/parse_time_options.py" in line]
    branches, missed_branches = row[3:5]
    assert int(missed_branches) == int(branches) - 1
    assert len(body_of(parse_duration) & numbers(row[7:])) == 1, "of its lines, the error alone"
    assert (tmp_path / "mine.txt").exists()


MODULE = """
def sign(number):
    for step in range(3):
        if number < 0:
            return -1
    return [1 for _ in "x"][0]

sign(2)
"""


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="newer Pythons need no probes in the code")
def test_probes_are_put_into_a_module_once_and_count_as_those_of_slipcover(tmp_path):
    slipcover = pytest.importorskip("slipcover")
    from probed_code import Finder, ProbedCode, _compiled

    package, folder = tmp_path / "measured", tmp_path / "code"
    package.mkdir()
    file = package / "__init__.py"
    file.write_text(MODULE, encoding="utf-8")

    expected = slipcover.Slipcover(branch=True)
    exec(expected.instrument(_compiled(file)), {})
    times = set()
    for _ in range(2):
        probes = slipcover.Slipcover(branch=True)
        spec = Finder(ProbedCode(probes, package, folder)).find_spec("measured", [str(tmp_path)])
        spec.loader.exec_module(module_from_spec(spec))
        assert probes.code_lines == expected.code_lines
        assert probes.code_branches == expected.code_branches
        assert probes.newly_seen == expected.newly_seen
        (path,) = folder.iterdir()
        times.add(path.stat().st_mtime_ns)
    assert len(times) == 1

    file.write_text(MODULE + "sign(-2)\n", encoding="utf-8")
    code = ProbedCode(probes, package, folder)
    code.load(file)
    code.remove_others()
    (new,) = folder.iterdir()
    assert new != path
