"""Measure which lines and branches of the package the tests run.

Does nothing unless ``RESERVOIR_TEST_COVERAGE`` names a folder. Test processes and the commands
that they fork are counted; programs that a test starts in a new process are not.
"""

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("RESERVOIR_TEST_COVERAGE", "")).resolve()
PACKAGE = Path(__file__).parents[2] / "reservoir_cli"
#: How many modules are listed, those with the most missing lines first.
WORST = 12

if os.environ.get("RESERVOIR_TEST_COVERAGE"):
    from probed_code import Finder, ProbedCode
    from slipcover import Slipcover, print_coverage

    probes = Slipcover(branch=True)
    for path in PACKAGE.rglob("*.py"):
        probes.newly_seen[str(path)].clear()  # side by side on the few pages that `save` looks at
    code = ProbedCode(probes, PACKAGE, FOLDER / "code")
    sys.meta_path.insert(0, Finder(code))
else:
    probes = None


def variables() -> dict[str, str]:
    """Return the environment variables that make a process record its coverage."""
    return {"RESERVOIR_TEST_COVERAGE": str(FOLDER)} if probes else {}


def begin() -> None:
    """Create the folder for coverage data, without those of the previous run."""
    if probes:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for file in FOLDER.glob("*.jsonl"):
            file.unlink()
        code.remove_others()


def save(process: int | None = None) -> None:
    """Append newly covered lines and branches to a file.

    :param process: the process whose file is used; by default this one.
    """
    if not probes:
        return
    seen = {}
    for name, lines in list(probes.newly_seen.items()):
        if lines:
            if new := lines - probes.all_seen[name]:
                seen[name] = sorted(new, key=repr)
            lines.clear()  # a process that is forked from this one looks at its own lines alone
    if seen:
        with _file_of(process or os.getpid()).open("ab", buffering=0) as file:
            file.write(json.dumps(seen).encode() + b"\n")


def save_at_exit() -> None:
    """Make a forked process save its coverage before it exits."""
    leave, parent = os._exit, os.getppid()

    def leaving(code: int) -> None:
        with suppress(Exception):
            save(parent)
        leave(code)

    if probes:
        os._exit = leaving  # type: ignore[assignment]


def know(process: int, offset: int = 0) -> int:
    """Read what a process and its children saved since an offset; return the new offset."""
    with suppress(FileNotFoundError), _file_of(process).open("rb") as file:
        file.seek(offset)
        for line in file:
            for name, seen in json.loads(line).items():
                probes.all_seen[name].update(map(_key, seen))
            offset += len(line)
    return offset


def _file_of(process: int) -> Path:
    return FOLDER / f"{process}.jsonl"


def _key(line_or_branch: Any) -> Any:
    return tuple(line_or_branch) if isinstance(line_or_branch, list) else line_or_branch


def report() -> list[str]:
    """Return a line for the package and for each of the modules with the most missing lines."""
    for file in FOLDER.glob("*.jsonl"):
        know(int(file.stem))
    _add_unloaded_modules()
    coverage = probes.get_coverage()
    with (FOLDER / "missing.txt").open("w", encoding="utf-8") as file:
        print_coverage(coverage, outfile=file, skip_covered=True)
    files = coverage["files"]
    worst = sorted(files, key=lambda name: -files[name]["summary"]["missing_lines"])[:WORST]
    return [
        f"{_shares(coverage['summary'])}: {PACKAGE.name}",
        *(f"{_shares(files[name]['summary'])}: {name}" for name in worst),
        f"The lines that no test runs are listed in {FOLDER / 'missing.txt'}.",
    ]


def _add_unloaded_modules() -> None:
    """Count the modules that no test has loaded."""
    for file in map(str, PACKAGE.rglob("*.py")):
        if file not in probes.code_lines:
            code.load(Path(file))


def _shares(summary: dict[str, int]) -> str:
    """Format the shares of covered lines and branches."""
    shares = []
    for kind in ("lines", "branches"):
        covered, missing = summary[f"covered_{kind}"], summary[f"missing_{kind}"]
        share = covered / ((covered + missing) or 1)
        shares.append(f"{share:6.1%} of {covered + missing:6,} {kind}")
    return ", ".join(shares)
