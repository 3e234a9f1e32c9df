"""BM25 in which the messages around a message lend it their words. Pure numpy."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.retrieval.sessions import Places, Sessions
from reservoir_cli.storage.candidates import Posting
from reservoir_cli.util.bm25_formula import norm, rarity, saturate

Floats = NDArray[np.float64]

#: What a neighbour's word counts, and how many neighbours there are on each side.
NEIGHBOUR_WORDS, NEIGHBOURS = 0.3, 2
#: A neighbour lends as if it had no more words, so that long ones lend no advantage.
LENT = 60
#: Counts are added up in an array of all messages if a term stands in so large a part of them.
_DENSE = 50


def bm25(postings: Sequence[Posting], terms: NDArray[np.int32], found: Sessions) -> Floats:
    """Score messages by the question's stems, with the words of their neighbours.

    A term's count, and a message's length, take in the two messages before and after it, of each
    at most 60 words; document frequencies are those of the scope.

    :param postings: for each stem of the question, where it stands and how often.
    :param terms: shape (n,), words of each message.
    :returns: shape (n,).
    """
    total = len(terms)
    scores = np.zeros(total)
    if not postings or not total:
        return scores
    words = found.laid(terms)
    if "norms" not in found.known:
        around = _around(words, found)
        found.known["norms"] = norm(around, float(around.mean()))
    length_norms = found.known["norms"]
    for posting in postings:
        where, counts = _with_neighbours(found.spots(posting.places), posting.counts, words, found)
        scores[where] += rarity(total, len(where)) * saturate(counts, length_norms[where])
    return found.back(scores)


def _with_neighbours(
    places: Places, counts: NDArray[np.int32], words: NDArray[np.int32], found: Sessions
) -> tuple[Places, Floats]:
    """Return where a term counts, neighbours included, and how much; in session order."""
    share = np.minimum(1.0, LENT / np.maximum(words[places], 1))
    lent = np.asarray(NEIGHBOUR_WORDS * counts * share, np.float64)
    spots, shares = [places], [counts.astype(np.float64)]
    for shift in (*range(-NEIGHBOURS, 0), *range(1, NEIGHBOURS + 1)):
        inside = _has_neighbour(found, shift)[places]
        spots.append(places[inside] + shift)
        shares.append(lent[inside])
    where, weights = np.concatenate(spots), np.concatenate(shares)
    if _DENSE * len(where) > len(words):  # adding them up in place takes a tenth of sorting them
        sums = np.asarray(np.bincount(where, weights, len(words)), np.float64)
        where = np.flatnonzero(sums > 0)
        return where, sums[where]
    order = np.argsort(where, kind="stable")  # np.unique would load numpy's masked arrays
    where = where[order]
    begins = np.concatenate([[True], where[1:] != where[:-1]])[: len(where)]
    sums = np.asarray(np.bincount(np.cumsum(begins) - 1, weights[order]), np.float64)
    return where[begins], sums


def _has_neighbour(found: Sessions, shift: int) -> NDArray[np.bool_]:
    """Return whether so far behind each message, or before it, another of its session stands."""
    key = "neighbour", shift
    if key not in found.known:
        there = np.zeros(len(found.number), bool)
        if abs(shift) < len(there):
            there[max(0, -shift) : len(there) - max(0, shift)] = found.together(abs(shift))
        found.known[key] = there
    has_neighbour: NDArray[np.bool_] = found.known[key]
    return has_neighbour


def _around(words: NDArray[np.int32], found: Sessions) -> Floats:
    """Return the words of each message and those its neighbours lend; in session order."""
    sums = words.astype(np.float64)
    for place, part in found.parts():
        lent, around = np.minimum(words[place], LENT), sums[place]
        for distance in range(1, min(NEIGHBOURS, len(lent) - 1) + 1):
            together = part.together(distance)
            around[distance:] += lent[:-distance] * together
            around[:-distance] += lent[distance:] * together
    return sums
