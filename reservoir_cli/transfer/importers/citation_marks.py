"""Remove the marks for citations and links from the answers of OpenAI's models.

OpenAI's applications render them. A mark is delimited by private-use characters and holds its kind
and fields, such as the search results that a citation refers to.
"""

import json
import re
from contextlib import suppress

#: Two more characters enclose the cited words.
_MARK = re.compile(
    "(?P<blanks>[ \t]{0,3})\ue200(?P<kind>[^\ue200-\ue202]*+)"
    "(?:\ue202(?P<fields>[^\ue200\ue201]*+))?\ue201|[\ue203\ue204]"
)


def remove_marks(text: str) -> str:
    """Return a text without citation marks; keep names and titles that belong to a sentence."""
    return _MARK.sub(_visible_text, text) if "\ue200" in text else text


def _visible_text(mark: re.Match[str]) -> str:
    """Return the visible text of a mark: an entity's name, a link's title."""
    if mark["kind"] not in ("entity", "url"):
        return ""
    words = (mark["fields"] or "").partition("\ue202")[0]
    if words.startswith("["):  # the kind of an entity, and its name
        with suppress(ValueError, RecursionError, LookupError):
            words = json.loads(words)[1]
    return f"{mark['blanks']}{words}" if isinstance(words, str) else ""
