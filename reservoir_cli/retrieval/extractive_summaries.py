"""Summarise a conversation by its own sentences, and choose the summaries for a question."""

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from reservoir_cli.embedding import Embedder
from reservoir_cli.messages import Role, StoredMessage
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.summaries import Summary
from reservoir_cli.tokens import ApproximateCounter

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The most tokens of an extractive summary.
_MOST_TOKENS = 60
#: How many sentences of the most central messages are compared.
_MOST_SENTENCES = 100
#: The fewest and most words of a sentence worth quoting.
_FEWEST_WORDS, _MOST_WORDS = 4, 60
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。\uff01\uff1f])|\n+")


def extract(
    messages: Sequence[StoredMessage], passages: Sequence[Passage], embedder: Embedder
) -> str:
    """Return the sentences nearest to a conversation's centroid, in order, at most 60 tokens.

    :param messages: of the conversation, in order of time.
    :param passages: embedded by this model; without any, the centroid is that of the sentences.
    :returns: an empty text if no message contains a sentence.
    """
    candidates = _split_sentences(messages)
    if not candidates:
        return ""
    if passages:
        centroid = np.mean([passage.vector for passage in passages], axis=0)
        candidates = _most_central(candidates, messages, passages, centroid)
    candidates = candidates[:_MOST_SENTENCES]
    vectors = embedder.encode_documents([sentence for _, sentence in candidates])
    if not passages:
        centroid = vectors.mean(axis=0)
    return _join_fitting([sentence for _, sentence in candidates], vectors @ centroid)


def _split_sentences(messages: Sequence[StoredMessage]) -> list[tuple[int, str]]:
    """Return the sentences of messages, each with its message's index."""
    message_of: dict[str, int] = {}
    for index, message in enumerate(messages):
        if message.role in (Role.USER, Role.ASSISTANT):
            for sentence in _SENTENCE_END.split(_CODE.sub("\n", message.content)):
                words = sentence.split()
                enough = len(words) >= _FEWEST_WORDS or len(sentence) - sentence.count(" ") > 20
                if enough and len(words) <= _MOST_WORDS and len(sentence) <= 600:
                    message_of.setdefault(" ".join(words), index)
    return [(index, sentence) for sentence, index in message_of.items()]


def _most_central(
    candidates: list[tuple[int, str]],
    messages: Sequence[StoredMessage],
    passages: Sequence[Passage],
    centroid: "NDArray[np.float32]",
) -> list[tuple[int, str]]:
    """Return the sentences of the messages nearest to the centroid, up to the limit."""
    similarities: dict[int, float] = {}
    for passage in passages:
        cosine = float(passage.vector @ centroid)
        similarities[passage.message_id] = max(cosine, similarities.get(passage.message_id, -1.0))
    ranked = sorted(candidates, key=lambda pair: -similarities.get(messages[pair[0]].id, -1.0))
    return sorted(ranked[:_MOST_SENTENCES], key=candidates.index)


def _join_fitting(sentences: Sequence[str], similarities: "NDArray[np.float32]") -> str:
    """Return the nearest sentences that fit the limit together, in order."""
    count = ApproximateCounter().count
    chosen: list[int] = []
    for index in np.argsort(-similarities, kind="stable").tolist():
        text = " ".join(sentences[chosen_index] for chosen_index in sorted([*chosen, index]))
        if count(text) <= _MOST_TOKENS:
            chosen.append(index)
    return " ".join(sentences[index] for index in sorted(chosen))


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
    available = [
        (float(summary.vector @ vector), summary)
        for summary in summaries
        if summary.vector is not None
        and summary.model_id == model_id
        and (summary.instance, summary.conversation_id) not in printed
    ]
    return [summary for _, summary in sorted(available, key=lambda pair: -pair[0])]
