"""Use the installed package as a user would, with the standard library only.

Run by the Python of an environment into which the wheels were installed with ``bundled-model``; or
by another one, with the path of the command.
"""

import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

RESERVOIR = Path(*sys.argv[1:2] or [Path(sys.executable).with_name("reservoir")])
HOME = {"HF_HUB_OFFLINE": "1"}
TOOLS = ("pytest", "hypothesis", "mypy", "importlinter", "cogapp", "hatchling")
SAID = [
    ("user", "Should the job queue stay in Redis?"),
    ("assistant", "No: it lost 214 jobs in the failover. Postgres keeps them."),
    ("user", "The cat sleeps on the sofa, and nobody wakes it."),
]


def run(home: str, *arguments: str, stdin: str = "") -> str:
    """Run a command that must succeed without warnings; return its output."""
    result = subprocess.run(
        [RESERVOIR, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=home,
        env={**os.environ, **HOME, "RESERVOIR_HOME": home},
        timeout=600,
        check=False,
    )
    assert result.returncode == 0, (arguments, result)
    assert not any(word in result.stderr.lower() for word in ("warning", "error")), result.stderr
    return result.stdout


def use(home: str) -> None:
    """Run the commands that a new user needs."""
    output = run(home, "--version").split(",")[0].split()[-1]
    assert len(sys.argv) > 1 or output == version("reservoir-cli-slim")
    assert "context" in run(home, "--help")
    for role, text in SAID:
        run(home, "ingest", "-p", "work", "--role", role, stdin=text)

    for mode, term, expected in (
        (
            "--semantic",
            "a sleepy pet",
            "cat",
        ),  # by embedding similarity: it shares no word with the message
        ("--keyword", "failover", "214 jobs"),
    ):
        output = json.loads(run(home, "search", term, "-p", "work", mode, "--json"))
        assert expected in output["hits"][0]["content"], output

    question = "Why did we drop Redis?"
    context = run(home, "context", question, "-p", "work", "--budget", "400")
    assert "214 jobs" in context
    assert context.rstrip().endswith(question)
    shown = json.loads(run(home, "view", "0", "-p", "work", "--json"))["messages"]
    assert [(row["role"], row["content"]) for row in shown] == SAID
    checks = json.loads(run(home, "doctor", "--json"))["checks"]
    assert not [check for check in checks if check["status"] == "fail"], checks


def check_environment() -> None:
    """Check that this environment holds the installed packages only."""
    spec = find_spec("reservoir_cli")
    assert spec is not None
    assert spec.origin is not None
    assert Path(spec.origin).is_relative_to(sys.prefix), spec.origin
    present = [tool for tool in TOOLS if find_spec(tool)]
    assert not present, f"development tools are installed: {present}"


def main() -> None:
    """Run the smoke test and report success."""
    if len(sys.argv) == 1:
        check_environment()
    with tempfile.TemporaryDirectory() as home:
        HOME["RESERVOIR_MODEL_CACHE"] = f"{home}/models"
        use(home)
    print(f"{RESERVOIR} works")


if __name__ == "__main__":
    main()
