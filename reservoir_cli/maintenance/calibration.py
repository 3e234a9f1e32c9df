"""The result of measuring an embedding model's recall floor."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Calibration:
    """A measured recall floor; shares are in 0…1.

    :param model: the name of the embedding model.
    :param model_id: the identity of its embeddings, to which the floor applies.
    :param questions: number of measured questions with a stored reply.
    :param unrelated: number of them that were compared with other sessions.
    :param recall_floor: the floor, which the store keeps; 0 is off.
    :param before: the previous floor of this model.
    :param lost: share of the questions that the floor refuses although their session is stored.
    :param refused: share of the questions that it refuses when their session is left out.
    :param related_median: median relevance of the questions to the store.
    :param unrelated_median: the same without their own session.
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
