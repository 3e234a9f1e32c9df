"""Summarise a conversation by its own sentences, and choose the summaries for a question."""

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from reservoir_cli.embedding import Embedder
from reservoir_cli.messages import Role, StoredMessage
from reservoir_cli.storage.records import Passage
from reservoir_cli.storage.summaries import Summary
from reservoir_cli.tokens import ApproximateCounter

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The most tokens of an extractive summary.
_TOKENS = 60
#: How many sentences of the most central messages are compared.
_SENTENCES = 100
#: The fewest and most words of a sentence worth quoting.
_FEWEST, _MOST = 4, 60
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。\uff01\uff1f])|\n+")


def extract(
    messages: Sequence[StoredMessage], passages: Sequence[Passage], embedder: Embedder
) -> str:
    """Return the sentences nearest to a conversation's centroid, in order, at most 60 tokens.

    :param messages: of the conversation, in order of time.
    :param passages: embedded by this model; without any, the centroid is that of the sentences.
    :returns: an empty text if no message contains a sentence.
    """
    candidates = _sentences(messages)
    if not candidates:
        return ""
    if passages:
        centroid = np.mean([passage.vector for passage in passages], axis=0)
        candidates = _central(candidates, messages, passages, centroid)
    candidates = candidates[:_SENTENCES]
    vectors = embedder.encode_documents([sentence for _, sentence in candidates])
    if not passages:
        centroid = vectors.mean(axis=0)
    return _fitting([sentence for _, sentence in candidates], vectors @ centroid)


def _sentences(messages: Sequence[StoredMessage]) -> list[tuple[int, str]]:
    """Return the sentences of messages, each with its message's index."""
    found: dict[str, int] = {}
    for at, message in enumerate(messages):
        if message.role in (Role.USER, Role.ASSISTANT):
            for sentence in _END.split(_CODE.sub("\n", message.content)):
                words = sentence.split()
                enough = len(words) >= _FEWEST or len(sentence) - sentence.count(" ") > 20
                if enough and len(words) <= _MOST and len(sentence) <= 600:
                    found.setdefault(" ".join(words), at)
    return [(at, sentence) for sentence, at in found.items()]


def _central(
    candidates: list[tuple[int, str]],
    messages: Sequence[StoredMessage],
    passages: Sequence[Passage],
    centroid: "NDArray[np.float32]",
) -> list[tuple[int, str]]:
    """Return the sentences of the messages nearest to the centroid, up to the limit."""
    likeness: dict[int, float] = {}
    for passage in passages:
        near = float(passage.vector @ centroid)
        likeness[passage.message_id] = max(near, likeness.get(passage.message_id, -1.0))
    ranked = sorted(candidates, key=lambda pair: -likeness.get(messages[pair[0]].id, -1.0))
    return sorted(ranked[:_SENTENCES], key=candidates.index)


def _fitting(sentences: Sequence[str], likeness: "NDArray[np.float32]") -> str:
    """Return the nearest sentences that fit the limit together, in order."""
    count = ApproximateCounter().count
    chosen: list[int] = []
    for at in np.argsort(-likeness, kind="stable").tolist():
        together = " ".join(sentences[each] for each in sorted([*chosen, at]))
        if count(together) <= _TOKENS:
            chosen.append(at)
    return " ".join(sentences[at] for at in sorted(chosen))


def best_summaries(
    summaries: Sequence[Summary],
    model_id: str,
    vector: "NDArray[np.float32]",
    printed: Collection[tuple[str, str | None]],
) -> list[Summary]:
    """Return the summaries of conversations that are not printed, the most similar first.

    :param model_id: the model of the question's vector; summaries of other models are skipped.
    :param printed: (instance, conversation) of the printed messages.
    """
    open_to = [
        (float(summary.vector @ vector), summary)
        for summary in summaries
        if summary.vector is not None
        and summary.model_id == model_id
        and (summary.instance, summary.conversation_id) not in printed
    ]
    return [summary for _, summary in sorted(open_to, key=lambda pair: -pair[0])]
