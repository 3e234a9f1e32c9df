"""Compute how much of a question's evidence a ranking or a context contains, with intervals."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]
Span = tuple[int, int]

#: The numbers of best messages for which recall is reported.
DEPTHS = (5, 10, 20)
#: Resamplings of the bootstrap.
_ROUNDS = 2_000
#: The share of a passage that must be printed for its answer to count as printed.
_INSIDE = 0.9


#: Characters that count as three quarters of a token; others count as a quarter.
_CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")


def cost(text: str) -> int:
    """Return the estimated tokens of a message: characters / 4 + 4."""
    return math.ceil((len(text) + 2 * len(_CJK.findall(text))) / 4) + 4


@dataclass(frozen=True, slots=True)
class Rows:
    """Every message of a question's scope in chronological order; arrays have shape (n,).

    :param evidence_count: messages that answer the question, in the store or not.
    :param sessions: the positions of each session's messages, oldest first.
    :param created_at: seconds since 1970.
    :param asks: whether a message contains a question mark.
    :param costs: tokens of a message in :func:`fill_budget`.
    :param terms: words of its text.
    :param passages: number of its passages.
    :param counts: how often each stem of the question occurs in it, shape (stems, n).
    :param evidence: whether it answers the question.
    :param cosine: raw, of its best passage.
    :param bm25: raw, with the words of its neighbours.
    :param plain_bm25: raw, of its own words, by FTS5.
    :param dates: nearness to a date that the question names, in 0…1.
    :param similarity: the program's own, like ``recency`` and ``priority``.
    """

    evidence_count: int
    sessions: tuple[Positions, ...]
    created_at: Floats
    asks: NDArray[np.bool_]
    costs: NDArray[np.int64]
    terms: NDArray[np.int64]
    passages: NDArray[np.int64]
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
    """The share of each question's evidence that was found.

    :param by_budget: within each budget, shape (questions, budgets); NaN if a question has nothing
        to find.
    :param by_depth: among the best messages, shape (questions, depths); empty for contexts.
    """

    by_budget: Floats
    by_depth: Floats

    @property
    def scores(self) -> Floats:
        """The score of each question: its mean over the budgets."""
        return np.asarray(self.by_budget.mean(axis=1))

    def at(self, chosen: NDArray[np.bool_]) -> "Recall":
        """Return the recall of some of the questions."""
        return Recall(
            self.by_budget[chosen], self.by_depth[chosen] if self.by_depth.size else self.by_depth
        )


def best_first(priority: Floats) -> Positions:
    """Return positions by descending priority, ties newest first."""
    return np.lexsort((-np.arange(len(priority)), -priority))


def fill_budget(order: Positions, costs: NDArray[np.int64], budget: int) -> list[int]:
    """Return the positions that fit a budget, in this order, skipping those that are too large."""
    least = int(costs.min(initial=budget + 1))
    selected = []
    for position in order:
        if costs[position] <= budget:
            selected.append(int(position))
            budget -= int(costs[position])
            if budget < least:
                break
    return selected


def shares(priority: Floats, rows: Rows, budgets: Sequence[int]) -> tuple[list[float], list[float]]:
    """Return the share of the evidence within each budget, and among the best few messages."""
    order, total, evidence = best_first(priority), rows.evidence_count, rows.evidence
    inside = [evidence[fill_budget(order, rows.costs, budget)].sum() / total for budget in budgets]
    return inside, [evidence[order[:depth]].sum() / total for depth in DEPTHS]


def is_covered(needed: Span | None, printed: Sequence[Span] | None, exact: bool) -> bool:
    """Return whether the answering part of a message is printed.

    :param needed: the position of the answer; ``None`` if any part is sufficient.
    :param printed: the printed parts; ``None`` for the whole message.
    :param exact: whether every character is needed, not just most of them.
    """
    if needed is None or printed is None:
        return True
    start, end = needed
    inside = sum(max(0, min(end, high) - max(start, low)) for low, high in printed)
    return inside >= (1 if exact else _INSIDE) * (end - start)


def answering_passage(passages: Sequence[frozenset[str]], answer: frozenset[str]) -> int:
    """Return the index of the passage that shares most words with the answer; first wins ties.

    :param passages: the words of each passage.
    """
    return max(range(len(passages)), key=lambda index: (len(passages[index] & answer), -index))


def lost_at_larger(by_budget: Floats) -> float:
    """Return the share of questions that lose evidence at some larger budget."""
    return float((np.diff(by_budget, axis=1) < -1e-9).any(axis=1).mean())


def interval(scores: Floats) -> tuple[float, float]:
    """Return the 95% interval of a mean, by bootstrap over the questions (Efron, 1979).

    To compare two rankings of the same questions, pass the differences of their scores.
    """
    random = np.random.default_rng(1)
    picks = random.integers(0, len(scores), (_ROUNDS, len(scores)))
    low, high = np.percentile(scores[picks].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def figures(recall: Recall, budgets: Sequence[int]) -> dict[str, Any]:
    """Return the figures of a ranking or of contexts as JSON values; ``{}`` without questions."""
    is_known = ~np.isnan(recall.by_budget).any(axis=1)
    if not is_known.any():
        return {}
    recall = recall.at(is_known)
    means = zip(map(str, budgets), recall.by_budget.mean(axis=0).tolist(), strict=True)
    depths = recall.by_depth.mean(axis=0).tolist() if recall.by_depth.size else []
    return {
        "questions": int(is_known.sum()),
        "score": float(recall.scores.mean()),
        "interval": list(interval(recall.scores)),
        "by_budget": dict(means),
        "all_evidence": float((recall.by_budget > 1 - 1e-9).mean()),
        "lose_at_larger": lost_at_larger(recall.by_budget),
        "by_depth": dict(zip(map(str, DEPTHS), depths, strict=False)),
    }


def gate_curve(true: Floats, foreign: Floats) -> list[dict[str, float]]:
    """Return the shares of true and of foreign questions that each floor refuses.

    :param true: relevance of questions that the store can answer.
    :param foreign: relevance of questions that it cannot.
    """
    return [
        {
            "floor": float(floor),
            "true": float((true < floor).mean()),
            "foreign": float((foreign < floor).mean()) if len(foreign) else float("nan"),
        }
        for floor in np.arange(0.20, 0.521, 0.02)
    ]
