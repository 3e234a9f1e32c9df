"""Decide whether a store holds anything relevant to a question. Pure numpy."""

import math
import re
from collections.abc import Collection, Iterable

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.search.candidates import Candidates, Posting
from reservoir_cli.storage.search.fulltext import without_accents
from reservoir_cli.util.languages import guess_language

Floats = NDArray[np.float64]

#: The weights of the share of the question's words and of a date in it, relative to the cosine.
WORDS_SHARE, DATE_SHARE = 0.7, 0.4
#: Short questions have few words that could match: relevance is adjusted by this share of the
#: difference between one over the number of words (at least the second value) and the third value,
#: which is that of three or four words.
FEW_WORDS, FEWEST, USUAL = 0.4, 2, 0.3
#: The best of many is near by chance: subtracted for each factor of e in the rarest word's weight.
SIZE_SHARE = 0.1
_NOUN = 0.5  # in a language that capitalises all nouns, the share that a capitalised word counts
_WORD = re.compile(r"\w+")
_SENTENCE_END = frozenset(".?!:\n")
FLOORS = {"a2cf0741a1a1aae893fd8821c3ff77da": 0.25}  # measured, by the id of the model
WORDS_FLOOR = 0.15  # the floor without vectors to compare
LOST_SHARE = 0.002  # the largest share of answerable questions that a calibrated floor may reject


def recall_floor(settings: Settings, model_id: str | None, stored: str | None = None) -> float:
    """Return the relevance below which nothing is recalled: as set, calibrated, or measured."""
    if settings.recall_floor is not None:
        return settings.recall_floor
    if model_id is None:
        return WORDS_FLOOR
    calibrated = _parse_floor(stored)
    return FLOORS.get(model_id, 0.0) if calibrated is None else calibrated


def floor_property(model_id: str | None) -> str:
    """Return the name of the store property that holds a model's calibrated floor."""
    return f"recall_floor_{model_id}"


def _parse_floor(stored: str | None) -> float | None:
    try:
        floor = float(stored or "nan")
    except ValueError:
        return None
    return floor if 0 <= floor <= 1 + WORDS_SHARE + DATE_SHARE else None


def highest_floor(relevances: Floats) -> float:
    """Return the highest floor, in thousandths, that rejects at most 0.2% of the questions.

    :param relevances: relevance of questions whose answer is stored, shape (n,), n ≥ 1.
    """
    allowed = int(LOST_SHARE * len(relevances))
    return math.floor(1000 * max(0.0, float(np.sort(relevances)[allowed]))) / 1000


def count_absent(question: str, absent: Collection[str]) -> float:
    """Return how many words the stems that no message contains count as.

    Numbers and names count as none: people rarely write their own names, or a date in figures.
    """
    if not absent:
        return 0.0
    names = [without_accents(name.casefold()) for name in _capitalised(question)]
    as_name = _NOUN if names and guess_language(question) == "de" else 0.0
    total = 0.0
    for stem in absent:
        is_name = any(name.startswith(stem[:-1]) for name in names)
        is_number = any(character.isdigit() for character in stem)
        total += 0.0 if is_number else as_name if is_name else 1.0
    return total


def _capitalised(text: str) -> list[str]:
    if text.isupper():
        return []
    words, begins = [], True
    for word in _WORD.finditer(text):
        if word[0][0].isupper() and not begins:
            words.append(word[0])
        begins = not _SENTENCE_END.isdisjoint(text[word.end() : word.end() + 2])
    return words


def fit(
    candidates: Candidates, dates: Floats, running: NDArray[np.bool_], absent: float | None = None
) -> Floats:
    """Return how well each message fits the question: cosine + 0.7 · share of words + 0.4 · date.

    0.4 · (1 / words of the question - 0.3) is added, which demands more of long questions: they
    are near to something by chance. For the same reason, 0.1 · ln of the rarest word's weight is
    subtracted, which demands more in large stores. Messages that a filter excludes fit by 0.

    A message without a vector is scored by words and date only. A follow-up is compared alone, and
    together with the last turns; the latter only with other sessions.

    :param dates: shape (n,), nearness to a date in the question.
    :param running: shape (n,), whether a message is in the running session.
    :param absent: how many words the question's words that no message contains count as; ``None``
        to count them all.
    """
    absent = len(candidates.absent) if absent is None else absent
    total, matching = len(candidates.ids), candidates.matching
    left_out = np.zeros(0, np.intp) if matching is None else np.flatnonzero(~matching)
    matched, total_weight = weigh_words(candidates.postings, absent, total)
    share = matched / (total_weight or 1)
    own_fit = _scores(candidates.cosine, share, dates, left_out)
    adjustment = _adjustment(candidates, absent)
    if candidates.talk is None:
        return _adjust(own_fit, adjustment)
    for weight, postings in candidates.talk.postings:
        extra, extra_weight = weigh_words(postings, 0, total)
        matched, total_weight = matched + weight * extra, total_weight + weight * extra_weight
    share = matched / (total_weight or 1)
    left_out = np.flatnonzero(running if matching is None else running | ~matching)
    elsewhere = _scores(candidates.talk.cosine, share, dates, left_out)
    return _adjust(np.maximum(own_fit, elsewhere), adjustment)


def _adjust(scores: Floats, adjustment: float) -> Floats:
    scores[scores > 0] += adjustment
    return np.maximum(scores, 0.0, out=scores)


def _adjustment(candidates: Candidates, absent: float) -> float:
    """Return the adjustment for the numbers of words and messages; 0 without any cosine."""
    has_vector, matching = ~np.isnan(candidates.cosine), candidates.matching
    if not (has_vector if matching is None else has_vector & matching).any():
        return 0.0
    words = max(FEWEST, len(candidates.postings) + absent)
    rarest = _weight(len(candidates.ids), 1)
    return FEW_WORDS * (1 / words - USUAL) - SIZE_SHARE * math.log(max(1.0, rarest))


def _scores(
    cosine: NDArray[np.float32], share: Floats, dates: Floats, left_out: NDArray[np.intp]
) -> Floats:
    scores = WORDS_SHARE * share
    scores += cosine
    if (without_vector := np.isnan(cosine)).any():
        scores = np.where(without_vector, share, scores)
    if dates.any():
        scores += DATE_SHARE * dates
    scores[left_out] = 0.0
    return scores


def weigh_words(postings: Iterable[Posting], absent: float, total: int) -> tuple[Floats, float]:
    """Return the total weight of the stems in each message, and that of all and the absent."""
    matched, total_weight = np.zeros(total), absent * _weight(total, 1)
    for posting in postings:
        positions = posting.all_positions()
        weight = _weight(total, len(positions))
        matched[positions] += weight
        total_weight += weight
    return matched, total_weight


def _weight(total: int, holding: int) -> float:
    """Return an inverse document frequency that is positive in small stores too."""
    return float(np.log1p(max(0.0, total - holding + 0.5) / (holding + 0.5)))
