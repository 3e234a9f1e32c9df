"""The demo: store the sample conversations, then ask them three questions.

It runs the commands a person would type and shows each with its output. The store is the
demo's own, in the folder that RESERVOIR_HOME names.
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

SAMPLES = Path(__file__).parent
RESERVOIR = Path(sys.executable).with_name("reservoir")


def run(*arguments: str) -> None:
    """Show a command and run it; its output goes where ours goes."""
    sys.stdout.write(f"\n$ reservoir {shlex.join(arguments)}\n")
    sys.stdout.flush()
    if code := subprocess.run([RESERVOIR, *arguments], check=False).returncode:
        sys.exit(code)  # the command has printed the error


def main() -> None:
    """Store, then ask."""
    files = sorted(os.path.relpath(path) for path in SAMPLES.glob("*.jsonl"))
    say(
        "Mara's conversations of eight months go into one file: her work on a task board, "
        "and her kitchen, travels and books at home."
    )
    run("ingest", *files)
    questions = json.loads((SAMPLES / "questions.json").read_text(encoding="utf-8"))["questions"]
    say(
        "Now she asks about things that were said half a year ago. Within the budget Reservoir "
        "prints what a model needs to answer: recalled messages with their days, the newest "
        "messages, and the question last. The line below it says what was spent."
    )
    for question in questions[:3]:
        run("context", question["question"], "-p", question["partition"], "--budget", "700")
    say(
        "Ask this store something yourself, or pipe the context into any model:\n\n"
        '    RESERVOIR_HOME=.demo .venv/bin/reservoir context "…" -p work --budget 700'
    )


def say(text: str) -> None:
    """Print a paragraph between the commands."""
    sys.stdout.write(f"\n{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:  # the reader closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
