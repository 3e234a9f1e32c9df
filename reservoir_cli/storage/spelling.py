"""Words of a question that stand nowhere, and the words of the index that are spelt almost so.

Stems are compared: what differs by an ending is the same word already. The vocabulary is read only
for words without a single hit, and only where it begins with the same letters.
"""

from collections.abc import Callable, Iterable, Mapping

from reservoir_cli.storage.candidates import Posting, Respelt

#: Shorter stems have too many neighbours; from the second length on, two slips are allowed.
SHORTEST, LONG = 5, 9
#: What the stemmer takes off the end of a word if it is spelt right.
_ENDINGS = (
    *("ation", "ations", "ization", "ement", "ments", "ment", "ness", "ence", "ance"),
    *("able", "ible", "ities", "ously", "fully", "ively"),
)
_LONGEST_ENDING = max(map(len, _ENDINGS))
#: So many words of a question are looked up, and so many neighbours of each are tried.
_WORDS, _TRIED = 3, 5


def slips_allowed(stem: str) -> int:
    """Return by how many slips of the pen another stem may differ and still be meant."""
    if len(stem) < SHORTEST or not stem.isalpha():
        return 0
    return 2 if len(stem) >= LONG else 1


def respell(
    absent: Mapping[str, str],
    vocabulary: Callable[[str], Iterable[tuple[str, int]]],
    posting_of: Callable[[str], Posting],
) -> tuple[tuple[Respelt, ...], tuple[Posting, ...]]:
    """Find what was probably meant by words that stand nowhere in a scope.

    :param absent: the stems of the words, and the words as typed.
    :param vocabulary: returns stems of the index that begin as a stem does, with their messages.
    :param posting_of: returns where a stem stands in the scope.
    :returns: the words that were found another way, and where the stems meant by them stand.
    """
    words: list[Respelt] = []
    postings: list[Posting] = []
    usable = [stem for stem in absent if slips_allowed(stem)]
    for stem in usable[:_WORDS]:
        for other in _nearest(stem, vocabulary(stem))[:_TRIED]:
            posting = posting_of(other)
            if len(posting.places):
                words.append(Respelt(absent[stem], other, int(posting.places[-1])))
                postings.append(posting)
                break
    return tuple(words), tuple(postings)


def _nearest(stem: str, vocabulary: Iterable[tuple[str, int]]) -> list[str]:
    """Return the stems that differ least, of equally near ones the most common first."""
    most, letters = slips_allowed(stem), set(stem)
    shorter = without_ending(stem)
    near = []
    for other, count in vocabulary:
        if other in shorter:
            near.append((1, -count, other))
            continue
        # Each slip changes at most two letters of the set: nearly all stems end here.
        if (
            abs(len(other) - len(stem)) > most
            or len(letters.symmetric_difference(other)) > 2 * most
        ):
            continue
        if other.isalpha() and (slips := count_slips(stem, other)) <= most:
            near.append((slips, -count, other))
    return [other for *_, other in sorted(near)]


def without_ending(stem: str) -> list[str]:
    """Return beginnings of a stem behind which an ending with one slip stands."""
    return [
        stem[:length]
        for length in range(max(SHORTEST, len(stem) - _LONGEST_ENDING - 1), len(stem) - 2)
        if any(count_slips(stem[length:], ending) == 1 for ending in _ENDINGS)
    ]


def count_slips(one: str, other: str) -> int:
    """Count the letters left out, added, replaced or swapped with their neighbour."""
    before, above = [0] * (len(other) + 1), list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        current = [row]
        for column, against in enumerate(other, 1):
            least = min(
                above[column] + 1, current[column - 1] + 1, above[column - 1] + (letter != against)
            )
            if row > 1 < column and letter == other[column - 2] and one[row - 2] == against:
                least = min(least, before[column - 2] + 1)
            current.append(least)
        before, above = above, current
    return above[-1]
