"""Stores of any size with text that looks real, for measuring what size costs.

Texts are chains of the words of ``samples/`` with names and numbers of their own in between, so
that words are as unevenly spread as in life and the vocabulary grows with the store. The vector of
a message is a mix of two sample sentences' vectors and a little noise.
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

from reservoir_cli.embedding import load_embedder
from reservoir_cli.messages import Conversation, Message, Scope
from reservoir_cli.settings.schema import DEFAULT_MODEL_NAME
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.factory import open_store
from reservoir_cli.storage.records import Passage
from reservoir_cli.tokens import load_counter

SAMPLES = Path(__file__).parents[2] / "samples"
START = datetime(2019, 1, 1, tzinfo=UTC)
#: Questions in the words of the samples: what is asked of every store.
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
    found = []
    for file in sorted(SAMPLES.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            found += re.split(r"(?<=[.?!])\s+", json.loads(line)["content"])
    return [each.strip() for each in found if len(each.split()) > 3]


class Writer:
    """Writes messages without end, the same for the same seed."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self._follow: dict[str, list[str]] = {}
        for sentence in sentences():
            words = ["", *sentence.split(), ""]
            for one, two in itertools.pairwise(words):
                self._follow.setdefault(one, []).append(two)

    def text(self) -> str:
        """Return a message of about 30 words, rarely of several hundred."""
        wanted = int(self._random.lognormvariate(3.1, 0.8))
        words: list[str] = []
        last = ""
        while len(words) < wanted:
            last = self._random.choice(self._follow[last])
            words.append(last or f"{self._invented()}.")
        return " ".join(words)

    def _invented(self) -> str:
        """Return a name; the n-th is drawn with a frequency of about 1/n."""
        number = int(2 ** self._random.uniform(0, 20))
        return f"{'bcdfghklmnprst'[number % 14]}{'aeiou'[number % 5]}{number:x}"

    def messages(self, count: int, seed: int = 0) -> Iterator[Message]:
        """Conversations of twenty messages over the years."""
        for number in range(count):
            talk, place = divmod(number, _TALK)
            yield Message(
                ("user", "assistant")[place % 2],
                self.text() + ("?" if place % 2 == 0 else ""),
                created_at=START + timedelta(minutes=3 * number + 5 * talk),
                conversation_id=f"talk-{seed}-{talk}",
                trace_id=f"trace-{seed}-{number // 2}",
                source="synthetic",
                source_id=f"{seed}-{number}",
            )


@cache
def _sample_vectors() -> NDArray[np.float32]:
    embedder = load_embedder(DEFAULT_MODEL_NAME, offline=True, progress=lambda *_: None)
    return embedder.encode_documents(sentences())


def vectors(count: int, seed: int = 1) -> NDArray[np.float32]:
    """Vectors spread as those of real sentences are, shape (count, dimensions)."""
    real, chance = _sample_vectors(), np.random.default_rng(seed)
    shares = chance.uniform(0.3, 0.7, (count, 1)).astype(np.float32)
    mixed = shares * real[chance.integers(0, len(real), count)]
    mixed += (1 - shares) * real[chance.integers(0, len(real), count)]
    mixed += 0.01 * chance.standard_normal(mixed.shape, np.float32)
    return np.asarray(mixed / np.linalg.norm(mixed, axis=1, keepdims=True), np.float32)


def load(store: Store, count: int, *, partitions: int = 1) -> None:
    """Store messages, nothing embedded yet."""
    writer, counter, now = Writer(), load_counter("approximate"), datetime.now(UTC)
    for part in range(partitions):
        messages = list(writer.messages(count // partitions, part))
        for start in range(0, len(messages), _BATCH):
            some = messages[start : start + _BATCH]
            scope = Scope(f"part-{part}", f"tool-{start // _BATCH % 4}")
            with store.write():
                talks = dict.fromkeys(each.conversation_id for each in some)
                store.add_conversations(scope, [Conversation(str(each)) for each in talks])
                store.add(scope, some, counter=counter, now=now)


def embed(store: Store, *, synapse_threshold: float = 0.85) -> None:
    """Give every pending message a vector."""
    name = DEFAULT_MODEL_NAME
    model = load_embedder(name, offline=True, progress=lambda *_: None).model_id
    store.activate_model(model, name)
    turn = 0
    while some := store.unembedded(_BATCH, Scope(None)):
        turn += 1
        fresh = vectors(len(some), turn)
        passages = {
            each.key: [Passage(each.id, 0, 0, len(each.content), vector)]
            for each, vector in zip(some, fresh, strict=True)
        }
        store.add_passages(model, passages, synapse_threshold)


def build(folder: Path, count: int, *, partitions: int = 1) -> Path:
    """Make a store of a size, unless the folder has it.

    Partitions are ``part-0``, ``part-1`` and so on, each with instances ``tool-0`` to ``tool-3``.
    """
    path = folder / f"{count}-in-{partitions}.db"
    if path.exists():
        return path
    unfinished = path.with_suffix(".unfinished")
    for each in folder.glob(unfinished.name + "*"):
        each.unlink()
    store = open_store(str(unfinished))
    load(store, count, partitions=partitions)
    embed(store)
    store.close()
    return unfinished.rename(path)
