"""Build stores of any size with realistic text, for benchmarks.

Texts are Markov chains over the words of ``samples/``, mixed with invented names, so that word
frequencies are realistic and the vocabulary grows with the store. The vector of a message is a
mixture of two sample sentences' vectors with a little noise.
"""

import itertools
import json
import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.embedding.load_model import load_embedder
from reservoir_cli.messages import Conversation, Message, Scope
from reservoir_cli.settings.schema import DEFAULT_MODEL
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.store import Store
from reservoir_cli.tokens import load_counter

SAMPLES = Path(__file__).parents[2] / "samples"
START = datetime(2019, 1, 1, tzinfo=UTC)
#: The questions asked in every store, in the words of the samples.
QUESTIONS = (
    "why did we drop Redis for the job queue?",
    "which hotel in Kyoto did I book in October?",
    "how long should the sourdough rise in the fridge?",
    "what caused the cards to be missing on the phone?",
)
_BATCH = 1_000
_TALK = 20  # messages in a conversation


def sentences() -> list[str]:
    """Return the sentences of the samples."""
    parts = []
    for file in sorted(SAMPLES.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            parts += re.split(r"(?<=[.?!])\s+", json.loads(line)["content"])
    return [part.strip() for part in parts if len(part.split()) > 3]


class Writer:
    """Generate messages, always the same for the same seed."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self._successors: dict[str, list[str]] = {}
        for sentence in sentences():
            words = ["", *sentence.split(), ""]
            for word, successor in itertools.pairwise(words):
                self._successors.setdefault(word, []).append(successor)

    def text(self) -> str:
        """Return a message of about 30 words, rarely of several hundred."""
        length = int(self._random.lognormvariate(3.1, 0.8))
        words: list[str] = []
        last = ""
        while len(words) < length:
            last = self._random.choice(self._successors[last])
            words.append(last or f"{self._invent_name()}.")
        return " ".join(words)

    def _invent_name(self) -> str:
        """Return a random name; the n-th is drawn with a frequency of about 1/n."""
        number = int(2 ** self._random.uniform(0, 20))
        return f"{'bcdfghklmnprst'[number % 14]}{'aeiou'[number % 5]}{number:x}"

    def messages(self, count: int, seed: int = 0) -> Iterator[Message]:
        """Yield messages in conversations of twenty, a few minutes apart."""
        for number in range(count):
            talk, position = divmod(number, _TALK)
            yield Message(
                ("user", "assistant")[position % 2],
                self.text() + ("?" if position % 2 == 0 else ""),
                created_at=START + timedelta(minutes=3 * number + 5 * talk),
                conversation_id=f"talk-{seed}-{talk}",
                trace_id=f"trace-{seed}-{number // 2}",
                source="synthetic",
                source_id=f"{seed}-{number}",
            )


@cache
def _sample_vectors() -> NDArray[np.float32]:
    embedder = load_embedder(DEFAULT_MODEL, offline=True, progress=lambda *_: None)
    return embedder.encode_documents(sentences())


def vectors(count: int, seed: int = 1) -> NDArray[np.float32]:
    """Return vectors distributed like those of real sentences, shape (count, dimensions)."""
    real, rng = _sample_vectors(), np.random.default_rng(seed)
    shares = rng.uniform(0.3, 0.7, (count, 1)).astype(np.float32)
    mixed = shares * real[rng.integers(0, len(real), count)]
    mixed += (1 - shares) * real[rng.integers(0, len(real), count)]
    mixed += 0.01 * rng.standard_normal(mixed.shape, np.float32)
    return np.asarray(mixed / np.linalg.norm(mixed, axis=1, keepdims=True), np.float32)


def load(store: Store, count: int, *, partitions: int = 1) -> None:
    """Store messages without embedding them."""
    writer, counter, now = Writer(), load_counter("approximate"), datetime.now(UTC)
    for part in range(partitions):
        messages = list(writer.messages(count // partitions, part))
        for start in range(0, len(messages), _BATCH):
            batch = messages[start : start + _BATCH]
            scope = Scope(f"part-{part}", f"tool-{start // _BATCH % 4}")
            with store.write():
                talks = dict.fromkeys(message.conversation_id for message in batch)
                store.add_conversations(scope, [Conversation(str(talk)) for talk in talks])
                store.add(scope, batch, counter=counter, now=now)


def embed(store: Store) -> None:
    """Store a synthetic vector for every message that has none."""
    name = DEFAULT_MODEL
    model = load_embedder(name, offline=True, progress=lambda *_: None).model_id
    store.activate_model(model, name)
    turn = 0
    while batch := store.unembedded(_BATCH, Scope(None)):
        turn += 1
        passages = {
            message.key: [Passage(message.id, 0, 0, len(message.content), vector)]
            for message, vector in zip(batch, vectors(len(batch), turn), strict=True)
        }
        store.add_passages(model, passages)


def build(folder: Path, count: int, *, partitions: int = 1) -> Path:
    """Build a store of a size, unless the folder already has it; return its path.

    Partitions are ``part-0``, ``part-1`` and so on, each with instances ``tool-0`` to ``tool-3``.
    """
    path = folder / f"{count}-in-{partitions}.db"
    if path.exists():
        return path
    unfinished = path.with_suffix(".unfinished")
    for leftover in folder.glob(unfinished.name + "*"):
        leftover.unlink()
    store = open_store(str(unfinished))
    load(store, count, partitions=partitions)
    embed(store)
    store.close()
    return unfinished.rename(path)
