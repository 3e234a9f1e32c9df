"""Rank the messages of a keyword search by BM25 over the scope."""

from collections.abc import Iterable, Mapping

from reservoir_cli.storage.keys import Keys
from reservoir_cli.util import bm25_formula

#: The size from which a scope is large, and the share of its messages from which a word is dropped
#: there.
LARGE, COMMON = 20_000, 0.1


def rank(
    lengths: Mapping[int, int],
    counts_by_term: Iterable[Mapping[int, int]],
    limit: int,
    matching: Keys | None = None,
) -> tuple[list[tuple[int, float]], bool]:
    """Rank the messages that contain all terms, or else any of them.

    :param lengths: the number of words of each message of a scope, by its id.
    :param counts_by_term: for each term its count in messages of any scope, by their ids.
    :returns: (id, BM25) best first, ties newest first, and whether the hits contain all terms.
    """
    allowed = lengths.keys() if matching is None else lengths.keys() & matching.ids
    terms = [(counts, counts.keys() & lengths.keys()) for counts in counts_by_term]
    holders = [known & allowed for _, known in terms]
    whole = set.intersection(*holders) if holders else set()
    hits = whole or set().union(*holders)
    mean = sum(lengths.values()) / len(lengths)
    weighted = [(bm25_formula.rarity(len(lengths), len(known)), counts) for counts, known in terms]

    def score(message: int) -> float:
        norm = bm25_formula.norm(lengths[message], mean)
        gains = (
            rarity * bm25_formula.saturate(counts[message], norm)
            for rarity, counts in weighted
            if message in counts
        )
        return sum(gains)

    best = sorted((-score(message), -message) for message in hits)
    best = best[:limit] if limit >= 0 else best
    return [(-message, -score) for score, message in best], bool(whole or not hits)
