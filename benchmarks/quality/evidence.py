"""How much of a question's evidence a ranking brings into a budget, and how sure that is. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

#: How far down the list recall is counted, in messages.
DEPTHS = (5, 10, 20)
_ROUNDS = 2_000


@dataclass(frozen=True, slots=True)
class Question:
    """A question, where it is asked, and the source ids of the messages that answer it."""

    instance: str
    text: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Rows:
    """Every message of a question's scope, in order of time; all arrays have shape (n,).

    :param sessions: the places of each session's messages, oldest first.
    :param created_at: seconds since 1970.
    :param asks: whether a message contains a question mark.
    :param costs: tokens of a message in :func:`taken`.
    :param terms: words of its text.
    :param counts: how often each stem of the question stands in it, shape (stems, n).
    :param evidence: whether it answers the question.
    :param cosine: raw, of its best passage.
    :param bm25: raw, with the words of its neighbours.
    :param plain_bm25: raw, of its own words, by FTS5.
    :param dates: nearness to a date that the question names, in 0…1.
    :param similarity: as the program has it, and so are ``recency`` and ``priority``.
    """

    sessions: tuple[Places, ...]
    created_at: Floats
    asks: NDArray[np.bool_]
    costs: NDArray[np.int64]
    terms: NDArray[np.int64]
    counts: NDArray[np.int64]
    evidence: NDArray[np.bool_]
    cosine: Floats
    bm25: Floats
    plain_bm25: Floats
    dates: Floats
    similarity: Floats
    recency: Floats
    priority: Floats


@dataclass(frozen=True, slots=True)
class Recall:
    """What became of each question's evidence.

    :param by_budget: share of the evidence inside each budget, shape (questions, budgets).
    :param by_depth: among the best messages, shape (questions, depths); empty where there is no
        order, only a selection.
    """

    by_budget: Floats
    by_depth: Floats

    @property
    def scores(self) -> Floats:
        """The score of each question: its mean over the budgets."""
        return np.asarray(self.by_budget.mean(axis=1))


def best_first(priority: Floats) -> Places:
    """Places by priority, ties newest first."""
    return np.lexsort((-np.arange(len(priority)), -priority))


def taken(order: Places, costs: NDArray[np.int64], budget: int) -> list[int]:
    """Places that fit into a budget, tried in this order; what is too large is skipped."""
    least = int(costs.min(initial=budget + 1))
    kept = []
    for place in order:
        if costs[place] <= budget:
            kept.append(int(place))
            budget -= int(costs[place])
            if budget < least:
                break
    return kept


def shares(priority: Floats, rows: Rows, budgets: Sequence[int]) -> tuple[list[float], list[float]]:
    """Share of the evidence inside each budget, and among the best few messages."""
    order, whole = best_first(priority), rows.evidence.sum()
    inside = [rows.evidence[taken(order, rows.costs, budget)].sum() / whole for budget in budgets]
    return inside, [rows.evidence[order[:depth]].sum() / whole for depth in DEPTHS]


def interval(scores: Floats) -> tuple[float, float]:
    """95% interval of a mean, by bootstrap over the questions (Efron, 1979).

    For the difference of two rankings, give the differences of their scores: their questions are
    the same.
    """
    random = np.random.default_rng(1)
    picks = random.integers(0, len(scores), (_ROUNDS, len(scores)))
    low, high = np.percentile(scores[picks].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def figures(recall: Recall, budgets: Sequence[int]) -> Mapping[str, object]:
    """The figures of a ranking, as they go into JSON."""
    low, high = interval(recall.scores)
    means = zip(map(str, budgets), recall.by_budget.mean(axis=0), strict=True)
    return {
        "score": float(recall.scores.mean()),
        "interval": [low, high],
        "by_budget": {name: float(share) for name, share in means},
        "all_evidence": float((recall.by_budget > 1 - 1e-9).mean()),
        "by_depth": dict(
            zip(map(str, DEPTHS), map(float, recall.by_depth.mean(axis=0)), strict=True)
        )
        if recall.by_depth.size
        else {},
    }
