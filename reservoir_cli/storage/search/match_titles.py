"""Find the messages whose conversations have a word of a question in their title."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from reservoir_cli.messages import Scope
from reservoir_cli.storage.keys import thread_key
from reservoir_cli.storage.portable_sql import Connection
from reservoir_cli.storage.search import fulltext
from reservoir_cli.storage.search.candidates import Candidates
from reservoir_cli.storage.search.stemmer import split_stems
from reservoir_cli.storage.tables import conversations

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Titles:
    """The titles of conversations, prepared to be searched for words.

    :param rows: the title of each, behind what names its thread, if that is needed.
    """

    def __init__(self, rows: Sequence[tuple[str, ...]]) -> None:
        self._rows = rows
        titles = (row[-1] for row in rows)
        lines = [
            title if title.isascii() else " ".join(fulltext.without_accents(title).split())
            for title in titles
        ]
        self._text = "\n".join(lines).lower()
        self._ends = list(accumulate(len(line) + 1 for line in lines))
        self._keys: dict[int, int] = {}

    def find(self, stems: Sequence[str]) -> dict[str, list[int]]:
        """Return by stem the titles that contain it, by their positions."""
        words_at: dict[int, str] = {}
        for beginning in {stem[: len(stem) - 1 or 1] for stem in stems}:
            words_at.update(self._words(beginning))
        # Few words begin like one of the question, so only they are stemmed.
        words = sorted({*words_at.values()})
        stems_of_word = {
            word: set(word_stems).intersection(stems)
            for word, word_stems in zip(words, split_stems(words), strict=True)
        }
        matches: dict[str, set[int]] = {}
        for position, word in words_at.items():
            for stem in stems_of_word[word]:
                matches.setdefault(stem, set()).add(bisect_right(self._ends, position))
        return {stem: sorted(numbers) for stem, numbers in matches.items()}

    def _words(self, beginning: str) -> Iterator[tuple[int, str]]:
        """Yield where words with a beginning are, and the words.

        As the expression begins with letters, most of the text is skipped at once.
        """
        letters = re.escape(beginning)
        for match in re.finditer(rf"{letters}(?<![^\W_]{letters})[^\W_]*", self._text):
            yield match.start(), match[0]

    def positions(self, candidates: Candidates, numbers: Iterable[int]) -> NDArray[np.intp]:
        """Return where the messages of some titles' threads are among the candidates."""
        import numpy as np

        for number in numbers:
            if number not in self._keys:
                self._keys[number] = thread_key(*self._rows[number][:3])
        keys = np.sort(np.array([self._keys[number] for number in numbers], np.int64))
        at = keys.searchsorted(candidates.thread).clip(max=len(keys) - 1)
        return np.flatnonzero(keys[at] == candidates.thread)


def read_titles(connection: Connection, scope: Scope) -> Titles:
    """Read the titles of a scope."""
    return Titles(conversations.titles_in(connection, scope))


def find_titled(
    connection: Connection,
    candidates: Candidates,
    scope: Scope,
    stems: Sequence[str],
    read: Callable[[Connection, Scope], Titles] = read_titles,
) -> dict[str, NDArray[np.intp]]:
    """Return by stem the positions of messages whose conversation has it in its title, if any."""
    if not stems or not len(candidates.ids):
        return {}
    titles = read(connection, scope)
    positions_by_stem = {
        stem: titles.positions(candidates, numbers) for stem, numbers in titles.find(stems).items()
    }
    return {stem: positions for stem, positions in positions_by_stem.items() if len(positions)}


def titled_with_all(titles: Sequence[str], text: str) -> list[int]:
    """Return the titles that contain every word of a text, by their positions."""
    [repeated] = split_stems([fulltext.searched_text(text)])
    stems = list(dict.fromkeys(repeated))
    matches = Titles([(title,) for title in titles]).find(stems)
    numbers = [set(matches.get(stem, ())) for stem in stems]
    return sorted(set.intersection(*numbers)) if numbers else []
