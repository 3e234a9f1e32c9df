"""Marks in the answers of OpenAI's models, in whose place its applications render something.

They are made of private-use characters: the kind of the mark and its fields, such as the results of
a search that a citation names.
"""

import json
import re
from contextlib import suppress

#: Two more characters enclose the words that a citation is for.
_MARK = re.compile(
    "(?P<blanks>[ \t]{0,3})\ue200(?P<kind>[^\ue200-\ue202]*+)"
    "(?:\ue202(?P<fields>[^\ue200\ue201]*+))?\ue201|[\ue203\ue204]"
)


def without_marks(said: str) -> str:
    """Leave out citations and the like; keep the names and titles that are part of a sentence."""
    return _MARK.sub(_shown, said) if "\ue200" in said else said


def _shown(mark: re.Match[str]) -> str:
    """Return the words that a mark shows: an entity's name, a link's title."""
    if mark["kind"] not in ("entity", "url"):
        return ""
    words = (mark["fields"] or "").partition("\ue202")[0]
    if words.startswith("["):  # the kind of an entity, and its name
        with suppress(ValueError, RecursionError, LookupError):
            words = json.loads(words)[1]
    return f"{mark['blanks']}{words}" if isinstance(words, str) else ""
