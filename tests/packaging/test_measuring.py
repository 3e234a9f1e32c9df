"""Coverage is measured, in forked processes too."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

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


def test_lines_and_branches_that_a_forked_process_runs_are_counted(tmp_path: Path) -> None:
    pytest.importorskip("slipcover")
    (tmp_path / "mine.txt").write_text("not of a run", encoding="utf-8")
    result = subprocess.run(
        [sys.executable, "-c", RUN],
        env={**os.environ, "RESERVOIR_TEST_COVERAGE": str(tmp_path), "PYTHONPATH": str(SUPPORT)},
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
