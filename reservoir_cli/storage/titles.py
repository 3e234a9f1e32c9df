"""Find the messages whose conversations have a word of a question in their title."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from reservoir_cli.messages import Scope
from reservoir_cli.storage import conversations, fulltext
from reservoir_cli.storage.candidates import Candidates
from reservoir_cli.storage.keys import thread_key
from reservoir_cli.storage.portable_sql import Connection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Letters at the end of a stem that its words may have in another form: "studi", "studies".
_CHANGED = 1


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
    from reservoir_cli.storage.postgres.stemmer import Stemmer

    stemmer = Stemmer()
    [stems] = stemmer.stems([fulltext.searched_text(text)])
    stemmer.close()
    matches = match_titles(titles, stems)
    numbers = [set(matches.get(stem, ())) for stem in stems]
    return sorted(set.intersection(*numbers)) if numbers else []


def match_titles(titles: Sequence[str], stems: Sequence[str]) -> dict[str, list[int]]:
    """Return by stem the titles that contain it, by their positions."""
    if not titles:
        return {}
    beginnings = {stem: stem[: max(1, len(stem) - _CHANGED)] for stem in stems}
    expression = re.compile("|".join(sorted({re.escape(part) for part in beginnings.values()})))
    # Most titles have no word that begins like one of the question, and need no stemming.
    near = [
        number
        for number, title in enumerate(titles)
        if expression.search(title.lower()) or not title.isascii()
    ]
    matches: dict[str, list[int]] = {}
    if not near:
        return matches
    from reservoir_cli.storage.postgres.stemmer import Stemmer

    stemmer = Stemmer()
    stemmed = stemmer.stems([fulltext.indexed_text(titles[number]) for number in near])
    stemmer.close()
    for number, words in zip(near, map(frozenset, stemmed), strict=True):
        for stem in words.intersection(stems):
            matches.setdefault(stem, []).append(number)
    return matches


def _positions(candidates: Candidates, threads: Sequence[tuple[str, str, str]]) -> NDArray[np.intp]:
    """Return the positions of the messages of conversations."""
    import numpy as np

    keys = np.sort(np.array([thread_key(*thread) for thread in threads], np.int64))
    at = keys.searchsorted(candidates.thread).clip(max=len(keys) - 1)
    return np.flatnonzero(keys[at] == candidates.thread)
