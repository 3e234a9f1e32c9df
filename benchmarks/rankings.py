"""Rankings to compare: what came before the default, and the default part by part. Pure.

The formula is written down here a second time, by loops over sessions where the program is fast.
That the two agree is tested.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from evidence import Floats, Rows
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Ranking = Callable[[Rows], Floats]

_DAY = 86_400.0


def min_max(values: Floats) -> Floats:
    """Stretch values to 0…1; of equal values, 0 if they are 0, else 1."""
    low, high = values.min(), values.max()
    if low == high:
        return np.zeros(len(values)) if high == 0 else np.ones(len(values))
    return np.asarray((values - low) / (high - low))


def mixed(rows: Rows, words: Floats | None = None) -> Floats:
    """0.6 · mm(cosine) + 0.4 · mm(BM25), of a message's own words unless others are given."""
    return 0.6 * min_max(rows.cosine) + 0.4 * min_max(rows.plain_bm25 if words is None else words)


def with_neighbours(rows: Rows) -> Floats:
    """The mix, and 0.2 of each neighbour's in the session."""
    own, found = mixed(rows), mixed(rows)
    for places in rows.sessions:
        found[places[1:]] += 0.2 * own[places[:-1]]
        found[places[:-1]] += 0.2 * own[places[1:]]
    return found


def with_session(rows: Rows) -> Floats:
    """With neighbours, and 0.2 of the mean of the session's best three."""
    found = with_neighbours(rows)
    for places in rows.sessions:
        found[places] += 0.2 * np.sort(found[places])[-3:].mean()
    return found


def around(
    rows: Rows,
    *,
    context_words: bool = True,
    link: float = 0.2,
    best: float = 0.3,
    reach: int = 10,
    date: float = 0.4,
    reach_tokens: int = 0,
) -> Floats:
    """The program's similarity, each of its parts to be switched off.

    :param context_words: BM25 with the words of neighbours.
    :param link: what a reply inherits from the question before it.
    :param best: weight of the best message within reach.
    :param reach: messages before and after.
    :param reach_tokens: tokens before and after, instead of messages.
    """
    own = mixed(rows, rows.bm25 if context_words else None)
    inherited = own.copy()
    for places in rows.sessions:
        inherited[places[1:]] += np.where(rows.asks[places[:-1]], link * own[places[:-1]], 0.0)
    found = inherited + date * rows.dates
    for places in rows.sessions:
        if reach_tokens:
            near = best_within_tokens(inherited[places], rows.costs[places], reach_tokens)
        else:
            near = best_within(inherited[places], reach)
        found[places] += best * near
    return min_max(found)


def best_within(values: Floats, reach: int) -> Floats:
    """The greatest of so many values before and after each."""
    padded = np.pad(values, reach, constant_values=-np.inf)
    return np.asarray(sliding_window_view(padded, 2 * reach + 1).max(axis=1))


def best_within_tokens(values: Floats, costs: NDArray[np.int64], reach: int) -> Floats:
    """The greatest of the values whose messages begin or end within so many tokens of each.

    The messages right before and after are always within reach.
    """
    ends = np.cumsum(costs)
    starts = ends - costs
    here = np.arange(len(values))
    first = np.minimum(np.searchsorted(ends, starts - reach, "right"), np.maximum(here - 1, 0))
    last = np.maximum(
        np.searchsorted(starts, ends + reach, "left") - 1, np.minimum(here + 1, len(values) - 1)
    )
    return np.array([values[low : high + 1].max() for low, high in zip(first, last, strict=True)])


def with_recency(similarity: Floats, recency: Floats) -> Floats:
    """0.7 · similarity + 0.3 · recency."""
    return 0.7 * similarity + 0.3 * recency


def linear_recency(rows: Rows) -> Floats:
    """1 for the newest message, falling evenly with rank."""
    return np.arange(1, len(rows.costs) + 1) / len(rows.costs)


def half_life_recency(rows: Rows) -> Floats:
    """Halved every 30 days, a day after the last message."""
    return np.asarray(np.exp2(-(rows.created_at[-1] + _DAY - rows.created_at) / (30 * _DAY)))


def fused(rows: Rows, k: int = 20) -> Floats:
    """Reciprocal rank fusion of cosine and BM25 (Cormack, Clarke and Büttcher, 2009)."""
    found = np.zeros(len(rows.costs))
    for scores in (rows.cosine, rows.plain_bm25):
        ranks = np.empty(len(scores))
        ranks[np.lexsort((-np.arange(len(scores)), -scores))] = np.arange(1, len(scores) + 1)
        found += np.where((scores > 0) | (scores is rows.cosine), 1 / (k + ranks), 0.0)
    return found


def _cosine(rows: Rows) -> Floats:
    return np.maximum(0.0, rows.cosine)


#: What came before, weakest first, and the default.
RANKINGS: Mapping[str, Ranking] = {
    "recency only": lambda rows: rows.recency,
    "0.7 cosine + 0.3 linear recency": lambda rows: with_recency(
        _cosine(rows), linear_recency(rows)
    ),
    "0.7 cosine + 0.3 half-life of 30 days": lambda rows: with_recency(
        _cosine(rows), half_life_recency(rows)
    ),
    "BM25 (FTS5)": lambda rows: rows.plain_bm25,
    "cosine": lambda rows: rows.cosine,
    "reciprocal rank fusion, k = 20": fused,
    "0.6 mm(cosine) + 0.4 mm(BM25)": mixed,
    "+ neighbours": with_neighbours,
    "+ session support": with_session,
    "the same, 0.7 + 0.3 recency": lambda rows: with_recency(
        min_max(with_session(rows)), rows.recency
    ),
    "similarity": lambda rows: rows.similarity,
    "default: 0.7 similarity + 0.3 recency": lambda rows: rows.priority,
}

#: The default without one of its parts.
PARTS: Mapping[str, Ranking] = {
    f"without {name}": partial(
        lambda rows, off: with_recency(around(rows, **off), rows.recency), off=off
    )
    for name, off in {
        "words of neighbours": {"context_words": False},
        "reply link": {"link": 0.0},
        "best around": {"best": 0.0},
        "dates": {"date": 0.0},
    }.items()
}


class PlainBM25:
    """FTS5's own BM25 over a list of texts, nothing but their own words."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._index = sqlite3.connect(":memory:")
        self._index.execute("CREATE VIRTUAL TABLE t USING fts5(text, tokenize='porter unicode61')")
        self._index.executemany("INSERT INTO t (rowid, text) VALUES (?, ?)", enumerate(texts))
        self._count = len(texts)

    def scores(self, words: str) -> Floats:
        """BM25 of each text, higher is better; 0 where none of the words stands.

        :param words: parted by spaces.
        """
        found = np.zeros(self._count)
        if not words:
            return found
        query = " OR ".join(f'"{word}"' for word in words.split())
        for place, score in self._index.execute(
            "SELECT rowid, bm25(t) FROM t WHERE t MATCH ?", [query]
        ):
            found[place] = -score
        return found
