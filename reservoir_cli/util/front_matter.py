"""Read the front matter of a document: fields between two lines of dashes or plus signs."""

import re

#: Fields in YAML (dashes) or TOML (plus signs) at the beginning; the second group has them.
FRONT_MATTER = re.compile(r"\s*(---|\+\+\+)[ \t]*\r?\n(.{0,65536}?)\n\1[ \t]*(?:\r?\n|\Z)", re.S)
_FIELD = re.compile(r"""^[ \t]*["']?\w[\w-]*["']?[ \t]*[:=]""", re.M)
#: A line that is not blank.
_LINE = re.compile(r"^[^\S\n]*\S", re.M)


def find_fields(text: str) -> str:
    """Return the lines of a document's front matter; empty without any."""
    front_matter = FRONT_MATTER.match(text)
    return front_matter[2] if front_matter else ""


def body_start(text: str) -> int:
    """Return where a text begins after front matter; 0 without any, or if it is all there is."""
    front_matter = FRONT_MATTER.match(text)
    if not front_matter or not _FIELD.search(front_matter[2]):
        return 0
    line = _LINE.search(text, front_matter.end())
    return line.start() if line else 0


def find_title(fields: str) -> str:
    """Return the title among the fields of front matter; empty without one."""
    titled = re.search(r"""^["']?title["']?[ \t]*[:=](.+)$""", fields, re.I | re.M)
    return titled[1].strip(" \t\r\"'") if titled else ""


def find_tags(fields: str) -> list[str]:
    """Return the tags among the fields, without the ``#`` that some programs write.

    There is one, several between commas, or one a line.
    """
    values = r"(\[[^]]*\]|[^\r\n]*(?:\r?\n[ \t]*-[ \t][^\r\n]*)*)"
    listed = re.search(rf"""^["']?tags["']?[ \t]*[:=][ \t]*{values}""", fields, re.I | re.M)
    if not listed:
        return []
    without_comments = re.sub(r"(?:^|[ \t])#[ \t].*", "", listed[1].strip("[]"), flags=re.M)
    words = re.split(r"[,\r\n]", without_comments)
    names = [word.strip("\"' \t-").removeprefix("#") for word in words]
    return [name for name in names if name not in ("", "~", "null")]


def find_dates(fields: str) -> list[str]:
    """Return the dates among the fields, the best first."""
    key = r"""^[ \t]*"?([A-Za-z_]+)"?[ \t]*[:=][ \t]*["']?([^"'#\r\n]*)"""
    values = {
        name.lower(): value.strip() for name, value in reversed(re.findall(key, fields, re.M))
    }
    names = ("date", "created", "created_at", "published", "updated", "modified", "lastmod")
    return [values[name] for name in names if name in values]
