"""Find the front matter of a document: fields between two lines of dashes or plus signs."""

import re

#: Fields in YAML (dashes) or TOML (plus signs) at the beginning; the second group has them.
FRONT_MATTER = re.compile(r"\s*(---|\+\+\+)[ \t]*\r?\n(.{0,65536}?)\n\1[ \t]*(?:\r?\n|\Z)", re.S)
_FIELD = re.compile(r"""^[ \t]*["']?\w[\w-]*["']?[ \t]*[:=]""", re.M)
#: A line that is not blank.
_LINE = re.compile(r"^[^\S\n]*\S", re.M)
_TITLE = re.compile(r"""^["']?title["']?[ \t]*[:=](.+)$""", re.I | re.M)


def find_title(fields: str) -> str:
    """Return the title among the fields of front matter; empty without one."""
    titled = _TITLE.search(fields)
    return titled[1].strip(" \t\r\"'") if titled else ""


def body_start(text: str) -> int:
    """Return where a text begins after front matter; 0 without any, or if it is all there is."""
    match = FRONT_MATTER.match(text)
    if not match or not _FIELD.search(match[2]):
        return 0
    line = _LINE.search(text, match.end())
    return line.start() if line else 0
