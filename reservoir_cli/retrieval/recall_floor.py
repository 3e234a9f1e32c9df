"""Whether a store knows anything about a question: a gate on the question. Pure numpy."""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.candidates import Candidates, Posting

Floats = NDArray[np.float64]

#: What the share of the question's words, and a date it names, count beside the cosine.
WORDS_SHARE, DATE_SHARE = 0.4, 0.4
#: A question of few words says little that could fit: it is given this share of one over their
#: number, counted from two on, above what one of three or four words is given.
FEW_WORDS, FEWEST, USUAL = 0.3, 2, 0.3
#: The measured floors by the identity of the embedding model.
FLOORS = {"a2cf0741a1a1aae893fd8821c3ff77da": 0.36}
#: The floor where there are no vectors to compare.
WORDS_FLOOR = 0.15
#: The largest share of questions with an answer in the store that a calibrated floor may refuse.
LOST_SHARE = 0.002


def recall_floor(settings: Settings, model_id: str | None, kept: str | None = None) -> float:
    """Return the relevance below which nothing is recalled; 0 recalls always.

    The setting comes first, then the floor calibrated on the store, then the measured one.

    :param model_id: the model that the question is compared by; ``None`` for words alone.
    :param kept: the store's property named by ``floor_property``.
    """
    if settings.recall_floor is not None:
        return settings.recall_floor
    if model_id is None:
        return WORDS_FLOOR
    calibrated = _parsed(kept)
    return FLOORS.get(model_id, 0.0) if calibrated is None else calibrated


def floor_property(model_id: str | None) -> str:
    """Return the name of the store's property that keeps the calibrated floor of a model."""
    return f"recall_floor_{model_id}"


def _parsed(kept: str | None) -> float | None:
    """Return a calibrated floor; ``None`` if there is none, or what is kept is no floor."""
    try:
        floor = float(kept or "nan")
    except ValueError:
        return None
    return floor if 0 <= floor <= 1 + WORDS_SHARE + DATE_SHARE else None


def highest_floor(related: Floats) -> float:
    """Return the highest floor, in thousandths, that refuses at most 0.2% of the questions.

    :param related: relevance of questions whose answer is stored, shape (n,), n ≥ 1.
    """
    lost = int(LOST_SHARE * len(related))
    return math.floor(1000 * max(0.0, float(np.sort(related)[lost]))) / 1000


def relevance(candidates: Candidates, dates: Floats, running: NDArray[np.bool_]) -> float:
    """Return the greatest of cosine + 0.4 · share of words + 0.4 · date over all messages.

    To that 0.3 · (1 / words of the question - 0.3) is added, which asks more of long questions:
    they are near to something by chance. Messages that a filter leaves out do not count.

    The share is that of the question's words that stand in the message. A message without a
    vector has words and date alone. A follow-up fits by itself or together with what was said
    last, which is compared with other sessions only.

    :param dates: shape (n,), nearness to a date that the question names.
    :param running: shape (n,), whether a message is of the running session.
    """
    held, whole = _weights(candidates.postings, candidates.absent, len(candidates.ids))
    passing = candidates.matching
    if passing is None or passing.all():
        fit = _best(candidates.cosine, held / (whole or 1), dates)
        passing = np.ones(len(running), bool)
    else:
        fit = _best(candidates.cosine[passing], (held / (whole or 1))[passing], dates[passing])
    more_for_few = _more_for_few_words(candidates, passing)
    if candidates.talk is None:
        return max(0.0, fit + more_for_few)
    for weight, postings in candidates.talk.postings:
        more, total = _weights(postings, 0, len(candidates.ids))
        held, whole = held + weight * more, whole + weight * total
    elsewhere = ~running & passing
    near = candidates.talk.cosine[elsewhere], (held / (whole or 1))[elsewhere], dates[elsewhere]
    return max(0.0, max(fit, _best(*near)) + more_for_few)


def _more_for_few_words(candidates: Candidates, passing: NDArray[np.bool_]) -> float:
    """Return what a question is given for its number of words; 0 where words alone decide."""
    if np.isnan(candidates.cosine[passing]).all():
        return 0.0
    words = max(FEWEST, len(candidates.postings) + candidates.absent)
    return FEW_WORDS * (1 / words - USUAL)


def _best(cosine: NDArray[np.float32], share: Floats, dates: Floats) -> float:
    fits = WORDS_SHARE * share
    fits += cosine
    if (without := np.isnan(fits)).any():
        fits = np.where(without, share, fits)
    if dates.any():
        fits += DATE_SHARE * dates
    return float(fits.max(initial=0.0))


def _weights(postings: Iterable[Posting], absent: int, total: int) -> tuple[Floats, float]:
    """Return the weight of the stems that each message holds, and that of all stems.

    :param absent: stems that no message holds: they weigh as much as the rarest.
    """
    held, whole = np.zeros(total), absent * _weight(total, 1)
    for posting in postings:
        weight = _weight(total, len(posting.places))
        held[posting.places] += weight
        whole += weight
    return held, whole


def _weight(total: int, holding: int) -> float:
    """Return an inverse document frequency that is above 0 in small stores, too."""
    return float(np.log1p(max(0.0, total - holding + 0.5) / (holding + 0.5)))
