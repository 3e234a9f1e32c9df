"""Rankings to compare: what came before the default, and the default part by part. Pure.

The formula is written down here a second time, by loops over sessions where the program is fast.
That the two agree is tested.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from evidence import Floats, Rows
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from reservoir_cli.storage.fulltext import indexed_text

Ranking = Callable[[Rows], Floats]

_DAY = 86_400.0


def min_max(values: Floats) -> Floats:
    """Stretch values to 0…1; of equal values, 0 if they are 0, else 1."""
    low, high = values.min(), values.max()
    if low == high:
        return np.zeros(len(values)) if high == 0 else np.ones(len(values))
    return np.asarray((values - low) / (high - low))


def mixed(rows: Rows, words: Floats | None = None, meaning: Floats | None = None) -> Floats:
    """0.6 · mm(cosine) + 0.4 · mm(BM25), of a message's own words unless others are given."""
    meaning = rows.cosine if meaning is None else meaning
    return 0.6 * min_max(meaning) + 0.4 * min_max(rows.plain_bm25 if words is None else words)


def with_neighbours(rows: Rows) -> Floats:
    """Return the mix, with 0.2 of each neighbour's in the session."""
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
    words: Floats | None = None,
    meaning: Floats | None = None,
    link: float = 0.2,
    length: float = 0.03,
    short: float = 60,
    best: float = 0.3,
    reach: int = 10,
    date: float = 0.4,
    reach_tokens: int = 0,
    mean: float = 0.3,
    asking: float = 0.07,
) -> Floats:
    """Return the program's similarity; each of its parts can be switched off.

    :param words: BM25, the program's unless another is given.
    :param meaning: cosine, likewise.
    :param link: what a reply inherits from the question before it.
    :param length: what the cosine loses for each e-fold of passages.
    :param short: a reply of more words inherits less.
    :param best: weight of the best message within reach.
    :param reach: messages before and after.
    :param reach_tokens: tokens before and after, instead of messages.
    :param mean: in short talk, the share of a score that goes by the mean of four messages before
        and after, and itself.
    :param asking: there, what a message loses of its own if it asks.
    """
    meaning = rows.cosine if meaning is None else meaning
    meaning = meaning - length * np.log(rows.passages)
    own = mixed(rows, rows.bm25 if words is None else words, meaning)
    linked = link * np.minimum(1, short / np.maximum(rows.terms, 1))
    inherited = own.copy()
    for places in rows.sessions:
        inherited[places[1:]] += np.where(
            rows.asks[places[:-1]], linked[places[1:]] * own[places[:-1]], 0.0
        )
    found = inherited + date * rows.dates
    for places in rows.sessions:
        if reach_tokens:
            near = best_within_tokens(inherited[places], rows.costs[places], reach_tokens)
        else:
            near = best_within(inherited[places], reach)
        found[places] += best * near
        lengths = mean_within(rows.terms[places].astype(np.float64), 4)
        nearer = mean * (mean_within(inherited[places], 4) - inherited[places])
        less = asking * rows.asks[places] * own[places]
        found[places] += np.clip(2 - lengths / 60, 0, 1) * (nearer - less)
    return min_max(found)


def context_bm25(rows: Rows, *, share: float = 0.3, b: float = 0.75, lent: float = 60) -> Floats:
    """BM25 in which the two messages before and after count for a share of themselves.

    :param share: of a neighbour's words; 0 is BM25 of a message's own words.
    :param b: how far a long message is held to be about more; 0 switches that off.
    :param lent: a neighbour lends as if it had no more words.
    """
    counts, lengths = rows.counts.astype(np.float64), rows.terms.astype(np.float64)
    for places in rows.sessions:
        for shift in (1, 2) if share else ():
            for here, there in (
                (places[shift:], places[:-shift]),
                (places[:-shift], places[shift:]),
            ):
                part = np.minimum(1, lent / np.maximum(rows.terms[there], 1))
                counts[:, here] += share * part * rows.counts[:, there]
                lengths[here] += np.minimum(rows.terms[there], lent)
    norms = 1.2 * (1 - b + b * lengths / lengths.mean())
    found = np.zeros(len(lengths))
    for each in counts[(counts > 0).any(axis=1)]:
        holding = (each > 0).sum()
        rarity = max(np.log((len(each) - holding + 0.5) / (holding + 0.5)), 1e-6)
        found += rarity * 2.2 * each / (each + norms)
    return found


def best_within(values: Floats, reach: int) -> Floats:
    """Return the greatest of this many values before and after each."""
    padded = np.pad(values, reach, constant_values=-np.inf)
    return np.asarray(sliding_window_view(padded, 2 * reach + 1).max(axis=1))


def mean_within(values: Floats, reach: int) -> Floats:
    """Return the mean of this many values before and after each, and itself."""
    padded = np.pad(values, reach, constant_values=np.nan)
    return np.asarray(np.nanmean(sliding_window_view(padded, 2 * reach + 1), axis=1))


def best_within_tokens(values: Floats, costs: NDArray[np.int64], reach: int) -> Floats:
    """Return the greatest value among messages that begin or end this many tokens from each.

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


DEFAULT = "default: 0.7 similarity + 0.3 recency"

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


def changed(**change: Any) -> Ranking:
    """Return the default with other values in :func:`around`."""
    return lambda rows: with_recency(around(rows, **change), rows.recency)


def _own_words(rows: Rows) -> Floats:
    return with_recency(around(rows, words=rows.plain_bm25), rows.recency)


def oracle(rows: Rows) -> Floats:
    """Put the evidence first, the short before the long: what could be reached."""
    return rows.evidence / rows.costs


#: The default without one of its parts.
PARTS: Mapping[str, Ranking] = {
    "without words of neighbours": _own_words,
    "without reply link": changed(link=0.0),
    "without the length rules": lambda rows: with_recency(
        around(rows, words=context_bm25(rows, lent=np.inf), length=0, short=np.inf), rows.recency
    ),
    "without length in the cosine": changed(length=0),
    "without a limit to lent words": lambda rows: with_recency(
        around(rows, words=context_bm25(rows, lent=np.inf)), rows.recency
    ),
    "without a limit to the reply link": changed(short=np.inf),
    "without best around": changed(best=0.0),
    "without dates": changed(date=0.0),
    "without the rules of short talk": changed(mean=0.0, asking=0.0),
    "without the loss of what asks": changed(asking=0.0),
    "oracle": oracle,
}


class Index:
    """A full-text index over a list of texts, nothing but FTS5's own."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._db, self._size = sqlite3.connect(":memory:"), len(texts)
        self._db.execute("CREATE VIRTUAL TABLE t USING fts5(text, tokenize='porter unicode61')")
        self._db.execute("CREATE VIRTUAL TABLE places USING fts5vocab(t, instance)")
        self._db.execute("CREATE VIRTUAL TABLE q USING fts5(text, tokenize='porter unicode61')")
        self._db.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(q, row)")
        self._db.executemany(
            "INSERT INTO t (rowid, text) VALUES (?, ?)", enumerate(map(indexed_text, texts))
        )

    def close(self) -> None:
        """Give its memory back."""
        self._db.close()

    def scores(self, words: str) -> Floats:
        """FTS5's BM25 of each text, higher is better; 0 where none of the words stands.

        :param words: parted by spaces.
        """
        query = " OR ".join(f'"{word}"' for word in words.split()) or '""'
        found = np.zeros(self._size)
        for place, score in self._db.execute(
            "SELECT rowid, bm25(t) FROM t WHERE t MATCH ?", [query]
        ):
            found[place] = -score
        return found

    def counts(self, words: str) -> NDArray[np.int64]:
        """How often each distinct stem of the words stands in each text, shape (stems, texts)."""
        self._db.execute("DELETE FROM q")
        self._db.execute("INSERT INTO q VALUES (?)", [words])
        stems = [row[0] for row in self._db.execute("SELECT term FROM stems ORDER BY term")]
        found = np.zeros((len(stems), self._size), np.int64)
        for number, stem in enumerate(stems):
            for (place,) in self._db.execute("SELECT doc FROM places WHERE term = ?", [stem]):
                found[number, place] += 1
        return found
