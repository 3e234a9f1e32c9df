"""Find the messages whose conversations have a word of a question in their title."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from reservoir_cli.messages import Scope
from reservoir_cli.storage.keys import thread_key
from reservoir_cli.storage.portable_sql import Connection
from reservoir_cli.storage.search import fulltext
from reservoir_cli.storage.search.candidates import Candidates
from reservoir_cli.storage.search.stemmer import Stemmer
from reservoir_cli.storage.tables import conversations

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def find_titled(
    connection: Connection, candidates: Candidates, scope: Scope, stems: Sequence[str]
) -> dict[str, NDArray[np.intp]]:
    """Return by stem the positions of messages whose conversation has it in its title, if any."""
    rows = conversations.titles_in(connection, scope) if stems and len(candidates.ids) else []
    matches = match_titles([title for *_, title in rows], stems)
    found = {}
    for stem, numbers in matches.items():
        positions = _positions(candidates, [rows[number][:3] for number in numbers])
        if len(positions):
            found[stem] = positions
    return found


def titled_with_all(titles: Sequence[str], text: str) -> list[int]:
    """Return the titles that contain every word of a text, by their positions."""
    stemmer = Stemmer()
    [repeated] = stemmer.stems([fulltext.searched_text(text)])
    stems = list(dict.fromkeys(repeated))
    stemmer.close()
    matches = match_titles(titles, stems)
    numbers = [set(matches.get(stem, ())) for stem in stems]
    return sorted(set.intersection(*numbers)) if numbers else []


def match_titles(titles: Sequence[str], stems: Sequence[str]) -> dict[str, list[int]]:
    """Return by stem the titles that contain it, by their positions."""
    if not titles or not stems:
        return {}
    lines = [title if title.isascii() else _without_accents(title) for title in titles]
    text = "\n".join(lines).lower()
    places = [place for stem in stems for place in _find_words(text, stem[: len(stem) - 1 or 1])]
    if not places:
        return {}
    # Few words begin like one of the question, so only they are stemmed.
    words = sorted({word for _, word in places})
    stemmer = Stemmer()
    stem_of = dict(zip(words, stemmer.stems(words), strict=True))
    stemmer.close()
    ends = list(accumulate(len(line) + 1 for line in lines))
    matches: dict[str, list[int]] = {}
    for place, word in sorted(set(places)):
        for stem in set(stem_of[word]).intersection(stems):
            numbers = matches.setdefault(stem, [])
            number = bisect_right(ends, place)
            if number not in numbers[-1:]:
                numbers.append(number)
    return matches


def _find_words(text: str, beginning: str) -> Iterator[tuple[int, str]]:
    start = text.find(beginning)
    while start >= 0:
        end = start + len(beginning)
        if not (start and text[start - 1].isalnum()):
            while end < len(text) and text[end].isalnum():
                end += 1
            yield start, text[start:end]
        start = text.find(beginning, end)


def _without_accents(title: str) -> str:
    """Return a title as it is indexed, in one line, without the marks that the index ignores."""
    letters = unicodedata.normalize("NFKD", fulltext.indexed_text(title))
    return " ".join("".join(x for x in letters if not unicodedata.combining(x)).split())


def _positions(candidates: Candidates, threads: Sequence[tuple[str, str, str]]) -> NDArray[np.intp]:
    import numpy as np

    keys = np.sort(np.array([thread_key(*thread) for thread in threads], np.int64))
    at = keys.searchsorted(candidates.thread).clip(max=len(keys) - 1)
    return np.flatnonzero(keys[at] == candidates.thread)
