"""Time a context from long messages of one instance, and from one turn with many tool calls.

    python benchmarks/speed/long_messages.py --messages 10000 --words 2000

Most of these messages do not fit the budget, and their texts must not be read.
"""

import argparse
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter

import synthetic

from reservoir_cli import Message, Reservoir
from reservoir_cli.messages import ToolCall

SETTINGS = {"embedding_model": "nobody/absent-model"}
START = datetime(2026, 1, 1, tzinfo=UTC)


def long_messages(count: int, words: int) -> Iterator[Message]:
    """Yield messages with a number of words, questions and replies in turn."""
    writer = synthetic.Writer()
    vocabulary = " ".join(writer.text() for _ in range(200)).split()
    for number in range(count):
        start = number * 37 % len(vocabulary)
        text = " ".join((vocabulary[start:] + vocabulary * (words // len(vocabulary) + 1))[:words])
        role = "assistant" if number % 2 else "user"
        created_at = START + timedelta(minutes=number)
        yield Message(role, f"{number} {text}", created_at=created_at, trace_id=f"t{number // 2}")


def calls(count: int) -> Iterator[Message]:
    """Yield one turn with a number of tool calls, each with its result."""
    fields = {"created_at": START, "trace_id": "t"}
    yield Message("user", "list the files", **fields)
    for number in range(count):
        call = ToolCall(f"c{number}", "ls", "{}")
        yield Message("assistant", "", tool_calls=(call,), **fields)
        yield Message("tool", f"file {number}", tool_call_id=call.id, **fields)
    yield Message("assistant", "done", **fields)


def main() -> None:
    """Print the seconds of a context for each kind of store and budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--words", type=int, default=2_000)
    options = parser.parse_args()
    kinds = {
        "long": long_messages(options.messages, options.words),
        "calls": calls(options.messages),
    }
    for kind, messages in kinds.items():
        with tempfile.TemporaryDirectory() as folder:
            with Reservoir.open(Path(folder) / "a.db", settings=SETTINGS) as reservoir:
                reservoir.ingest(list(messages), embed=False)
                for budget in (500, 1_000, 8_000, 100_000):
                    started = perf_counter()
                    window = reservoir.context(synthetic.QUESTIONS[0], budget=budget)
                    seconds = perf_counter() - started
                    print(f"{kind:5}  {budget:7,}  {seconds:6.2f} s  {window.used:7,} tokens")


if __name__ == "__main__":
    main()
