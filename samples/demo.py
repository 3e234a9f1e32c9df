"""The demo: store the sample conversations, then ask them three questions.

It runs the commands that a person would type, and marks the line of each context that answers the
question. The store is the demo's own, in the folder that RESERVOIR_HOME names.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

SAMPLES = Path(__file__).parent
RESERVOIR = Path(sys.executable).with_name("reservoir")
BUDGET = 300
MARK = "→ "
QUESTIONS = (
    "Why did we drop Redis?",
    "What latency have we promised to paying customers for webhooks?",
    "Why did I go down to 68 % water in my sourdough?",
)


def main() -> None:
    """Import the samples, ask the questions, and say what to type next."""
    sys.stdout.write("Eight months of Mara's conversations, about work and home, in one file.\n")
    files = sorted(os.path.relpath(path) for path in SAMPLES.glob("*.jsonl"))
    # Its progress bar shows on a terminal.
    run("ingest", *files, capture=False, shown="ingest samples/*.jsonl")
    known = json.loads((SAMPLES / "questions.json").read_text(encoding="utf-8"))["questions"]
    by_question = {item["question"]: item for item in known}
    sys.stdout.write(
        f"Half a year later she asks, with {BUDGET} tokens. {MARK}marks the answer, … a cut line.\n"
    )
    for question in QUESTIONS:
        item = by_question[question]
        shown = run("context", question, "-p", item["partition"], "--budget", str(BUDGET))
        sys.stdout.write(mark_answer(shown, item["answer"]))
    reservoir = os.path.relpath(RESERVOIR)
    say(
        f"Import your own with {reservoir} init, or ask these something yourself:\n"
        f'    RESERVOIR_HOME=.demo {reservoir} context "your question" -p work --budget {BUDGET}'
    )


def run(*arguments: str, capture: bool = True, shown: str | None = None) -> str:
    """Print a command, run it, and return its captured output without empty lines.

    :param shown: the arguments as a person would type them.
    """
    say(f"$ reservoir {shown or shlex.join(arguments)}")
    result = subprocess.run(
        [RESERVOIR, *arguments], check=False, encoding="utf-8", capture_output=capture
    )
    if result.returncode:
        sys.exit(result.stderr or result.returncode)  # the reason, unless it is printed already
    lines = f"{result.stdout or ''}{result.stderr or ''}".splitlines()
    return "".join(f"{line}\n" for line in lines if line)


def mark_answer(shown: str, answer: str) -> str:
    """Mark the line of a context that has most of the words of the known answer.

    Other lines are cut to the width of the terminal, so that the answers stay in sight.
    """
    wanted = words(answer)
    lines = shown.splitlines()
    best = max(lines, key=lambda line: len(words(line) & wanted))
    width = shutil.get_terminal_size().columns
    cut = (line if len(line) <= width else f"{line[: width - 1]}…" for line in lines)
    return "".join(
        f"{MARK}{line}\n" if line == best else f"{short}\n"
        for line, short in zip(lines, cut, strict=True)
    )


def words(text: str) -> set[str]:
    """Return the numbers and the longer words of a text."""
    return {word for word in re.findall(r"[\w.]+", text.lower()) if len(word) > 3 or word.isdigit()}


def say(text: str) -> None:
    """Print a paragraph."""
    sys.stdout.write(f"\n{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:  # the reader closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
