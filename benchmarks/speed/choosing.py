"""Time the selection among long messages: CPU milliseconds of a context's selection step.

    python benchmarks/speed/choosing.py [--messages 10000] [--budgets 1000 4000]

Messages have about six passages. Their vectors are random, seeded with a checksum of the text, so
that no model is needed.
"""

import argparse
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import process_time
from zlib import crc32

import numpy as np
import synthetic
from numpy.typing import NDArray

from reservoir_cli import Message, Reservoir
from reservoir_cli.context import build_context
from reservoir_cli.embedding import Engine, split_passages

_RUNS, _PARAGRAPHS = 5, 6


class RandomEmbedder:
    """An embedder with random vectors, always the same for the same text."""

    name, model_id, dimensions = "random", "random-384", 384
    engine = Engine("reference", "made for this benchmark", "folder")

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a question."""
        vector = np.random.default_rng(crc32(text.encode())).standard_normal(self.dimensions)
        return (vector / np.linalg.norm(vector)).astype(np.float32)

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of passages."""
        return np.stack([self.encode_query(text) for text in texts])

    def knows(self, word: str) -> bool:
        """Return whether a word is a common one; here none is."""
        return False

    def passages(self, text: str) -> Sequence[tuple[int, int]]:
        """Return the passages of a text, counting words as tokens."""
        return split_passages.cut(
            text, [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]
        )


def long_messages(count: int) -> Iterator[Message]:
    """Yield messages of several paragraphs, questions and replies in turn."""
    writer = synthetic.Writer()
    for message in writer.messages(count):
        texts = [" ".join(writer.text() for _ in range(3)) for _ in range(_PARAGRAPHS)]
        yield Message(
            message.role,
            "\n\n".join([message.content, *texts]),
            created_at=message.created_at,
            conversation_id=message.conversation_id,
            trace_id=message.trace_id,
        )


def main() -> None:
    """Print the CPU times of the selection step for each budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--budgets", type=int, nargs="+", default=[1_000, 4_000])
    options = parser.parse_args()
    build_context.perf_counter = process_time  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory() as folder:
        with Reservoir.open(Path(folder) / "a.db", embedder=RandomEmbedder()) as reservoir:
            reservoir.ingest(list(long_messages(options.messages)))
            for budget in options.budgets:
                windows = [
                    reservoir.context(question, budget=budget)
                    for question in synthetic.QUESTIONS
                    for _ in range(_RUNS)
                ]
                times = sorted(window.timings_ms["select"] for window in windows)
                kept = sum(len(window.kept) for window in windows) / len(windows)
                print(
                    f"{budget:6,} tokens  {times[0]:6.1f} to {times[-1]:6.1f} ms, median "
                    f"{times[len(times) // 2]:6.1f} ms, {kept:.0f} messages"
                )


if __name__ == "__main__":
    main()
