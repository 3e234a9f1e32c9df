"""What was measured of the recall floor of an embedding model."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was measured; shares are in 0…1.

    :param model: the name of the embedding model.
    :param model_id: the identity of its vectors, which the floor holds for.
    :param questions: how many questions with a stored reply were measured.
    :param unrelated: how many of them were compared with other sessions than their own.
    :param recall_floor: the floor, which the store keeps; 0 is off.
    :param before: the floor for this model until now.
    :param lost: the share of the questions that the floor refuses although the reply is stored.
    :param refused: the share that it refuses when their own session is left out.
    :param related_median: the median relevance of the questions to the store.
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
