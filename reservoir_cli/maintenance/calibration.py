"""Calibrate: measure the recall floor of an embedding model on the questions in a store."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.context.prompts_that_ask_nothing import asks_nothing, is_order
from reservoir_cli.embedding import Embedder
from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import EVERYWHERE, Filter, Key, Role, Scope, StoredMessage
from reservoir_cli.retrieval.recall_floor import (
    FLOORS,
    count_absent,
    fit,
    floor_property,
    highest_floor,
    recall_floor,
)
from reservoir_cli.retrieval.sessions import group_sessions
from reservoir_cli.settings.config import Config
from reservoir_cli.storage.store import Store
from reservoir_cli.util.progress import Progress


@dataclass(frozen=True, slots=True)
class Calibration:
    """A measured recall floor; shares are in 0…1.

    :param recall_floor: the floor, which the store keeps; 0 is off.
    :param lost: share of the questions that the floor refuses although their session is stored.
    :param refused: share of the questions that it refuses when their session is left out.
    """

    model: str
    model_id: str
    questions: int
    unrelated: int
    recall_floor: float
    before: float
    lost: float
    refused: float
    related_median: float
    unrelated_median: float


FEWEST, MOST = 100, 1_000  #: The minimum and maximum number of questions to measure.
#: Questions needed to measure a loss of 0.2%. With fewer, a single question would decide, so the
#: floor is not lowered.
ENOUGH = 500


def calibrate(store: Store, config: Config, embedder: Embedder, progress: Progress) -> Calibration:
    """Measure the recall floor of a model, and keep it in the store.

    Each question of the store is asked twice: with itself and its reply left out of the messages,
    and with its whole session left out. The floor is the highest that refuses at most 0.2% of the
    former. The reply is left out because it repeats the question's words; later questions will use
    others. Fewer than 500 questions do not lower the built-in floor of the model.
    """
    _require_embedded(store, embedder)
    replies = _replies(store)
    questions = _questions(store, replies)
    if len(questions) < FEWEST:
        raise ReservoirError(
            f"the store has too few questions with a reply: {len(questions)}, and {FEWEST} are "
            "needed",
            hint="import or add conversations first, or set recall_floor",
        )
    scores = np.array(list(_measure(store, config, embedder, questions, replies, progress)))
    related, unrelated = scores[:, 0], scores[:, 1]
    unrelated = unrelated[~np.isnan(unrelated)]
    if not len(unrelated):
        raise ReservoirError(
            "all questions are from one session, so nothing unrelated can be compared with them",
            hint="import or add other conversations first, or set recall_floor",
        )
    unset = config.settings()._replace(recall_floor=None)
    name = floor_property(embedder.model_id)
    before = recall_floor(unset, embedder.model_id, store.get_property(name))
    floor = highest_floor(related)
    if len(related) < ENOUGH:
        floor = max(floor, FLOORS.get(embedder.model_id, 0.0))
    store.set_property(name, str(floor))
    return Calibration(
        embedder.name,
        embedder.model_id,
        len(related),
        len(unrelated),
        floor,
        before,
        _share(related < floor),
        _share(unrelated < floor),
        round(float(np.median(related)), 3),
        round(float(np.median(unrelated)), 3),
    )


def _share(refused: NDArray[np.bool_]) -> float:
    return round(float(refused.mean()), 4)


def _require_embedded(store: Store, embedder: Embedder) -> None:
    active = store.active_model()
    if active and active[0] != embedder.model_id:
        raise ReservoirError(
            f"the embeddings of the store are from another model ({active[1]})",
            hint="reservoir embed --rebuild",
        )
    if pending := store.count_unembedded():
        noun = "message is" if pending == 1 else "messages are"
        raise ReservoirError(f"{pending:,} {noun} not embedded yet", hint="reservoir embed")


def _questions(store: Store, replies: Mapping[Key, int]) -> list[StoredMessage]:
    answered = list(replies)
    step = max(1, len(answered) // MOST)
    keys = answered[::step][:MOST]
    return [
        message
        for message in store.by_key(keys)
        if not (asks_nothing(message.content) or is_order(message.content))
    ]


def _replies(store: Store) -> dict[Key, int]:
    questions = set(store.find(EVERYWHERE, Filter(role=Role.USER, documents=False)))
    replies = set(store.find(EVERYWHERE, Filter(role=Role.ASSISTANT, documents=False)))
    conversations = store.ids_by_conversation(EVERYWHERE, Filter(documents=False))
    return {
        Key(partition, first): second
        for (partition, _, _), ids in conversations.items()
        for first, second in pairwise(ids)
        if (partition, first) in questions and (partition, second) in replies
    }


def _measure(
    store: Store,
    config: Config,
    embedder: Embedder,
    questions: Sequence[StoredMessage],
    replies: Mapping[Key, int],
    progress: Progress,
) -> Iterator[tuple[float, float]]:
    """Yield two relevances of each question: without its reply, and without its session or NaN."""
    for number, question in enumerate(questions):
        progress("calibrating", number, len(questions))
        scope, text = Scope(question.partition), question.content
        candidates = store.candidates(scope, None, text, embedder.encode_query(text))
        grouped = group_sessions(
            candidates, round(1000 * config.settings(scope.partition).session_gap)
        )
        session, itself = grouped.to_candidate_order(grouped.number), candidates.ids == question.id
        elsewhere = session != session[itself]
        undated, running = np.zeros(len(itself)), np.zeros(len(itself), bool)
        reply = candidates.ids == replies[Key(question.partition, question.id)]
        absent = count_absent(text, candidates.absent)
        related, unrelated = (
            fit(candidates._replace(matching=matching), undated, running, absent).max()
            for matching in (~(itself | reply), elsewhere)
        )
        yield related, unrelated if elsewhere.any() else np.nan
