"""Rankings to compare: predecessors of the default, and the default without each of its parts.

This is a second implementation of the program's formula, with simple loops over sessions. A test
checks that both agree.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from evidence import Floats, Rows
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from reservoir_cli.storage.search.fulltext import indexed_text

Ranking = Callable[[Rows], Floats]

_DAY = 86_400.0


def min_max(values: Floats) -> Floats:
    """Scale values to 0…1; equal values become 0 if they are 0, else 1."""
    low, high = values.min(), values.max()
    if low == high:
        return np.zeros(len(values)) if high == 0 else np.ones(len(values))
    return np.asarray((values - low) / (high - low))


def mixed(rows: Rows, words: Floats | None = None, meaning: Floats | None = None) -> Floats:
    """Return 0.6 · mm(cosine) + 0.4 · mm(BM25), by default of a message's own words."""
    meaning = rows.cosine if meaning is None else meaning
    return 0.6 * min_max(meaning) + 0.4 * min_max(rows.plain_bm25 if words is None else words)


def with_neighbours(rows: Rows) -> Floats:
    """Return :func:`mixed`, plus 0.2 of each neighbour's value in the session."""
    own, scores = mixed(rows), mixed(rows)
    for positions in rows.sessions:
        scores[positions[1:]] += 0.2 * own[positions[:-1]]
        scores[positions[:-1]] += 0.2 * own[positions[1:]]
    return scores


def with_session(rows: Rows) -> Floats:
    """Return :func:`with_neighbours`, plus 0.2 of the mean of the session's best three."""
    scores = with_neighbours(rows)
    for positions in rows.sessions:
        scores[positions] += 0.2 * np.sort(scores[positions])[-3:].mean()
    return scores


def around(
    rows: Rows,
    *,
    words: Floats | None = None,
    meaning: Floats | None = None,
    link: float = 0.2,
    length: float = 0.03,
    short: float = 60,
    best: float = 0.3,
    reach: int = 10,
    date: float = 1.0,
    reach_tokens: int = 0,
    mean: float = 0.3,
    asking: float = 0.07,
) -> Floats:
    """Return the program's similarity; each of its parts can be switched off.

    :param words: BM25; by default the program's.
    :param meaning: cosine; by default the program's.
    :param link: the share that a reply inherits from the question before it.
    :param length: how much the cosine loses per e-fold of passages.
    :param short: replies with more words than this inherit less.
    :param best: weight of the best message within reach.
    :param reach: messages before and after.
    :param reach_tokens: tokens before and after, instead of messages.
    :param mean: in short talk, the weight of the mean over a message and the four before and after.
    :param asking: in short talk, the share that a message loses if it is a question.
    """
    meaning = rows.cosine if meaning is None else meaning
    meaning = meaning - length * np.log(rows.passages)
    own = mixed(rows, rows.bm25 if words is None else words, meaning)
    linked = link * np.minimum(1, short / np.maximum(rows.terms, 1))
    inherited = own.copy()
    for positions in rows.sessions:
        inherited[positions[1:]] += np.where(
            rows.asks[positions[:-1]], linked[positions[1:]] * own[positions[:-1]], 0.0
        )
    scores = inherited + date * rows.dates
    for positions in rows.sessions:
        if reach_tokens:
            near = best_within_tokens(inherited[positions], rows.costs[positions], reach_tokens)
        else:
            near = best_within(inherited[positions], reach)
        scores[positions] += best * near
        lengths = mean_within(rows.terms[positions].astype(np.float64), 4)
        nearer = mean * (mean_within(inherited[positions], 4) - inherited[positions])
        less = asking * rows.asks[positions] * own[positions]
        scores[positions] += np.clip(2 - lengths / 60, 0, 1) * (nearer - less)
    return min_max(scores)


def context_bm25(rows: Rows, *, share: float = 0.3, b: float = 0.75, lent: float = 60) -> Floats:
    """Return BM25 in which the words of two messages before and after count in part.

    :param share: weight of a neighbour's words; 0 is BM25 of a message's own words.
    :param b: strength of the length normalisation; 0 switches it off.
    :param lent: the most words that a neighbour contributes.
    """
    counts, lengths = rows.counts.astype(np.float64), rows.terms.astype(np.float64)
    for positions in rows.sessions:
        for shift in (1, 2) if share else ():
            for own, near in (
                (positions[shift:], positions[:-shift]),
                (positions[:-shift], positions[shift:]),
            ):
                part = np.minimum(1, lent / np.maximum(rows.terms[near], 1))
                counts[:, own] += share * part * rows.counts[:, near]
                lengths[own] += np.minimum(rows.terms[near], lent)
    norms = 1.2 * (1 - b + b * lengths / lengths.mean())
    scores = np.zeros(len(lengths))
    for stem in counts[(counts > 0).any(axis=1)]:
        frequency = (stem > 0).sum()
        idf = max(np.log((len(stem) - frequency + 0.5) / (frequency + 0.5)), 1e-6)
        scores += idf * 2.2 * stem / (stem + norms)
    return scores


def best_within(values: Floats, reach: int) -> Floats:
    """Return for each value the greatest of this many values before and after it, and itself."""
    padded = np.pad(values, reach, constant_values=-np.inf)
    return np.asarray(sliding_window_view(padded, 2 * reach + 1).max(axis=1))


def mean_within(values: Floats, reach: int) -> Floats:
    """Return for each value the mean of this many values before and after it, and itself."""
    padded = np.pad(values, reach, constant_values=np.nan)
    return np.asarray(np.nanmean(sliding_window_view(padded, 2 * reach + 1), axis=1))


def best_within_tokens(values: Floats, costs: NDArray[np.int64], reach: int) -> Floats:
    """Return for each message the greatest value among those at most this many tokens away.

    The messages directly before and after are always within reach.
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
    """Return 0.7 · similarity + 0.3 · recency."""
    return 0.7 * similarity + 0.3 * recency


def linear_recency(rows: Rows) -> Floats:
    """Return 1 for the newest message, falling linearly with rank."""
    return np.arange(1, len(rows.costs) + 1) / len(rows.costs)


def half_life_recency(rows: Rows) -> Floats:
    """Return recency that halves every 30 days, seen from a day after the last message."""
    return np.asarray(np.exp2(-(rows.created_at[-1] + _DAY - rows.created_at) / (30 * _DAY)))


def fused(rows: Rows, k: int = 20) -> Floats:
    """Return the reciprocal rank fusion of cosine and BM25 (Cormack, Clarke, Büttcher, 2009)."""
    total = np.zeros(len(rows.costs))
    for scores in (rows.cosine, rows.plain_bm25):
        ranks = np.empty(len(scores))
        ranks[np.lexsort((-np.arange(len(scores)), -scores))] = np.arange(1, len(scores) + 1)
        total += np.where((scores > 0) | (scores is rows.cosine), 1 / (k + ranks), 0.0)
    return total


def _cosine(rows: Rows) -> Floats:
    return np.maximum(0.0, rows.cosine)


DEFAULT = "default: 0.7 similarity + 0.3 recency"

#: Predecessors of the default, weakest first, and the default.
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
    DEFAULT: lambda rows: rows.priority,
}

#: The lines of a plot.
DRAWN = (
    "recency only",
    "0.7 cosine + 0.3 linear recency",
    "BM25 (FTS5)",
    "cosine",
    "0.6 mm(cosine) + 0.4 mm(BM25)",
    DEFAULT,
)


def default_with(**parameters: Any) -> Ranking:
    """Return the default ranking with other parameters of :func:`around`."""
    return lambda rows: with_recency(around(rows, **parameters), rows.recency)


def _own_words(rows: Rows) -> Floats:
    return with_recency(around(rows, words=rows.plain_bm25), rows.recency)


def oracle(rows: Rows) -> Floats:
    """Rank the evidence first, shorter messages before longer: the upper bound."""
    return rows.evidence / rows.costs


#: The default without one of its parts.
PARTS: Mapping[str, Ranking] = {
    "without words of neighbours": _own_words,
    "without reply link": default_with(link=0.0),
    "without the length rules": lambda rows: with_recency(
        around(rows, words=context_bm25(rows, lent=np.inf), length=0, short=np.inf), rows.recency
    ),
    "without length in the cosine": default_with(length=0),
    "without a limit to lent words": lambda rows: with_recency(
        around(rows, words=context_bm25(rows, lent=np.inf)), rows.recency
    ),
    "without a limit to the reply link": default_with(short=np.inf),
    "without best around": default_with(best=0.0),
    "without dates": default_with(date=0.0),
    "without the rules of short talk": default_with(mean=0.0, asking=0.0),
    "without the loss of what asks": default_with(asking=0.0),
    "oracle": oracle,
}


class Index:
    """A plain FTS5 index over a list of texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._db, self._size = sqlite3.connect(":memory:"), len(texts)
        self._db.execute("CREATE VIRTUAL TABLE t USING fts5(text, tokenize='porter unicode61')")
        self._db.execute("CREATE VIRTUAL TABLE positions USING fts5vocab(t, instance)")
        self._db.execute("CREATE VIRTUAL TABLE q USING fts5(text, tokenize='porter unicode61')")
        self._db.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(q, row)")
        self._db.executemany(
            "INSERT INTO t (rowid, text) VALUES (?, ?)", enumerate(map(indexed_text, texts))
        )

    def close(self) -> None:
        """Close the index, and free its memory."""
        self._db.close()

    def scores(self, words: str) -> Floats:
        """Return FTS5's BM25 of each text, higher is better; 0 if it contains none of the words.

        :param words: separated by spaces.
        """
        query = " OR ".join(f'"{word}"' for word in words.split()) or '""'
        scores = np.zeros(self._size)
        for position, score in self._db.execute(
            "SELECT rowid, bm25(t) FROM t WHERE t MATCH ?", [query]
        ):
            scores[position] = -score
        return scores

    def counts(self, words: str) -> NDArray[np.int64]:
        """Return how often each stem of the words occurs in each text, shape (stems, texts)."""
        self._db.execute("DELETE FROM q")
        self._db.execute("INSERT INTO q VALUES (?)", [words])
        stems = [row[0] for row in self._db.execute("SELECT term FROM stems ORDER BY term")]
        counts = np.zeros((len(stems), self._size), np.int64)
        for row, stem in enumerate(stems):
            for (text,) in self._db.execute("SELECT doc FROM positions WHERE term = ?", [stem]):
                counts[row, text] += 1
        return counts
