"""Compute BM25 scores that include the words of neighbouring messages. Pure numpy."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.retrieval import ranking_constants as constants
from reservoir_cli.retrieval.sessions import Positions, Sessions
from reservoir_cli.storage.search.candidates import Posting
from reservoir_cli.util.bm25_formula import norm, rarity, saturate

Floats = NDArray[np.float64]

_DENSE_RATIO = 50  # use a dense array if a term occurs in more than one message in this many


def bm25(postings: Sequence[Posting], terms: NDArray[np.int32], sessions: Sessions) -> Floats:
    """Score messages by the question's stems, including the words of their neighbours, shape (n,).

    A term's count and a message's length include the two messages before and after it, with at
    most 60 words of each. Document frequencies are those of the scope.

    :param postings: for each stem of the question, its positions and counts.
    :param terms: shape (n,), words of each message.
    """
    total = len(terms)
    scores = np.zeros(total)
    if not postings or not total:
        return scores
    words = sessions.to_session_order(terms)
    if "norms" not in sessions.cache:
        around = _words_around(words, sessions)
        sessions.cache["norms"] = norm(around, float(around.mean()))
    length_norms = sessions.cache["norms"]
    for posting in postings:
        positions, counts = _with_neighbours(posting, words, sessions)
        scores[positions] += rarity(total, len(positions)) * saturate(
            counts, length_norms[positions]
        )
    return sessions.to_candidate_order(scores)


def _with_neighbours(
    posting: Posting, words: NDArray[np.int32], sessions: Sessions
) -> tuple[Positions, Floats]:
    """Return the positions where a term counts, neighbours and titles included, and its weights."""
    positions, counts = sessions.session_positions(posting.positions), posting.counts
    share = np.minimum(1.0, constants.MOST_LENT_WORDS / np.maximum(words[positions], 1))
    lent = np.asarray(constants.NEIGHBOUR_WEIGHT * counts * share, np.float64)
    position_lists, shares = [positions], [counts.astype(np.float64)]
    for shift in (*range(-constants.NEIGHBOURS, 0), *range(1, constants.NEIGHBOURS + 1)):
        inside = _has_neighbour(sessions, shift)[positions]
        position_lists.append(positions[inside] + shift)
        shares.append(lent[inside])
    if posting.titled is not None:
        position_lists.append(sessions.session_positions(posting.titled))
        shares.append(np.full(len(posting.titled), constants.TITLE_WEIGHT))
    all_positions, all_weights = np.concatenate(position_lists), np.concatenate(shares)
    if _DENSE_RATIO * len(all_positions) > len(words):  # ten times as fast as sorting
        sums = np.asarray(np.bincount(all_positions, all_weights, len(words)), np.float64)
        all_positions = np.flatnonzero(sums > 0)
        return all_positions, sums[all_positions]
    order = np.argsort(all_positions, kind="stable")  # np.unique would load numpy's masked arrays
    all_positions = all_positions[order]
    begins = np.concatenate([[True], all_positions[1:] != all_positions[:-1]])[: len(all_positions)]
    sums = np.asarray(np.bincount(np.cumsum(begins) - 1, all_weights[order]), np.float64)
    return all_positions[begins], sums


def _has_neighbour(sessions: Sessions, distance: int) -> NDArray[np.bool_]:
    key = "neighbour", distance
    if key not in sessions.cache:
        mask = np.zeros(len(sessions.number), bool)
        if abs(distance) < len(mask):
            inside = slice(max(0, -distance), len(mask) - max(0, distance))
            mask[inside] = sessions.same_session(abs(distance))
        sessions.cache[key] = mask
    has_neighbour: NDArray[np.bool_] = sessions.cache[key]
    return has_neighbour


def _words_around(words: NDArray[np.int32], sessions: Sessions) -> Floats:
    """Return the words of each message plus those of its neighbours, in session order."""
    sums = words.astype(np.float64)
    for span, part in sessions.parts():
        lent, around = np.minimum(words[span], constants.MOST_LENT_WORDS), sums[span]
        for distance in range(1, min(constants.NEIGHBOURS, len(lent) - 1) + 1):
            together = part.same_session(distance)
            around[distance:] += lent[:-distance] * together
            around[:-distance] += lent[distance:] * together
    return sums
