"""Search for words, phrases and prefixes as typed, ranked by BM25 over the scope."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from reservoir_cli.errors import UsageError
from reservoir_cli.storage.keys import Keys
from reservoir_cli.storage.search import fulltext
from reservoir_cli.util import bm25_formula

#: The size from which a scope is large, and the share of its messages from which a word is dropped
#: there.
LARGE, COMMON = 20_000, 0.1
MOST_STEMS = 10_000  #: The most stems of a query: more take seconds, and nobody types them.


def search(
    text: str,
    split: Callable[[Sequence[str]], list[list[str]]],
    count_matches: Callable[[list[str], bool], Mapping[int, int]],
    lengths: Mapping[int, int],
    limit: int,
    matching: Keys | None = None,
) -> tuple[list[tuple[int, float]], bool]:
    """Find the messages that contain all typed terms, or else any of them.

    :param split: splits texts into the stems of the index.
    :param count_matches: counts how often each message contains stems in sequence, and whether the
        last one is a prefix.
    :param lengths: the number of words of each message of a scope, by its id.
    :param matching: the only messages that may be hits; scores stay those of the scope.
    :returns: (id, BM25) best first, ties newest first, and whether the hits contain all terms.
    """
    terms = list(dict.fromkeys(fulltext.typed_terms(text)))
    if not terms or not lengths:
        return [], True
    stemmed = split([term.rstrip("*").strip('"') for term in terms])
    if sum(map(len, stemmed)) > MOST_STEMS:
        raise UsageError(f"a keyword search takes {MOST_STEMS:,} words at most")
    counts = (
        count_matches(stems, term.endswith("*"))
        for stems, term in zip(stemmed, terms, strict=True)
        if stems
    )
    return rank(lengths, counts, limit, matching)


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
    holders = [ids & allowed for _, ids in terms]
    whole = set.intersection(*holders) if holders else set()
    hits = whole or set().union(*holders)
    mean = sum(lengths.values()) / len(lengths)
    weighted = [(bm25_formula.rarity(len(lengths), len(ids)), counts) for counts, ids in terms]

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
