"""Correct words of a question that the index lacks: find the most similarly spelled stems.

Stems are compared, so words that differ only by an ending are already equal. The vocabulary is
read only for words without a single hit, and only the part with the same first letters.
"""

from collections.abc import Callable, Collection, Iterable
from itertools import chain

from reservoir_cli.storage.search.candidates import Correction, Posting
from reservoir_cli.storage.search.fulltext import content_words
from reservoir_cli.storage.search.stemmer import SplitStems, words_by_stem
from reservoir_cli.util.languages import foreign_function_words

#: The shortest stem to correct, because shorter ones have too many neighbours, and the shortest
#: one in which two slips are allowed.
SHORTEST, LONG = 5, 9
#: The endings that the stemmer removes if they are spelled correctly.
_ENDINGS = (
    *("ation", "ations", "ization", "ement", "ments", "ment", "ness", "ence", "ance"),
    *("able", "ible", "ities", "ously", "fully", "ively"),
)
_LONGEST_ENDING = max(map(len, _ENDINGS))
#: The most words of a question that are corrected, the most neighbours tried for each, and how
#: many common words show its language.
_WORDS, _TRIED, _COMMON = 3, 5, 4


def slips_allowed(stem: str) -> int:
    """Return the number of typing errors up to which a stem is corrected."""
    if len(stem) < SHORTEST or not stem.isalpha():
        return 0
    return 2 if len(stem) >= LONG else 1


def correct(
    question: str,
    absent: Collection[str],
    split: SplitStems,
    vocabulary: Callable[[str], Iterable[tuple[str, int]]],
    posting_of: Callable[[str], Posting],
) -> tuple[tuple[Correction, ...], tuple[Posting, ...]]:
    """Find the stems that were probably meant by words that no message of a scope contains.

    Messages without the most common words of the question's language are in another language: its
    other words may be correct, and are left as they are.

    :param absent: the stems of those words.
    :param split: splits texts into the stems of the index.
    :param vocabulary: returns the stems of the index that begin like a stem, with the number of
        their messages.
    """
    common = split(foreign_function_words(question)[:_COMMON])
    if not all(len(posting_of(stem).positions) for stem in chain(*common)):
        return (), ()
    words: list[Correction] = []
    postings: list[Posting] = []
    typed = words_by_stem(content_words(question).split(), split)
    usable = [stem for stem in typed if stem in absent and slips_allowed(stem)]
    for stem in usable[:_WORDS]:
        for other in _nearest(stem, vocabulary(stem))[:_TRIED]:
            posting = posting_of(other)
            if len(posting.positions):
                words.append(Correction(typed[stem], other, int(posting.positions[-1]), stem))
                postings.append(posting)
                break
    return tuple(words), tuple(postings)


def _nearest(stem: str, vocabulary: Iterable[tuple[str, int]]) -> list[str]:
    most, letters = slips_allowed(stem), set(stem)
    shorter = stems_without_ending(stem)
    near = []
    for other, count in vocabulary:
        if other in shorter:
            near.append((1, -count, other))
            continue
        # Each slip changes at most two letters of the set: this test rejects nearly all stems.
        if (
            abs(len(other) - len(stem)) > most
            or len(letters.symmetric_difference(other)) > 2 * most
        ):
            continue
        if other.isalpha() and (slips := count_slips(stem, other)) <= most:
            near.append((slips, -count, other))
    return [other for *_, other in sorted(near)]


def stems_without_ending(stem: str) -> list[str]:
    """Return the beginnings of a stem that a misspelled ending follows."""
    return [
        stem[:length]
        for length in range(max(SHORTEST, len(stem) - _LONGEST_ENDING - 1), len(stem) - 2)
        if any(count_slips(stem[length:], ending) == 1 for ending in _ENDINGS)
    ]


def count_slips(one: str, other: str) -> int:
    """Count the letters omitted, added, replaced or swapped with their neighbour."""
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
