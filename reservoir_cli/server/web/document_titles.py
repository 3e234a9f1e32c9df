"""Find the title of a stored document: in its front matter, its first heading or its first line."""

import re

from reservoir_cli.messages import DOCUMENT_SOURCES, StoredMessage, title_of

#: Front matter between two lines of dashes (YAML) or plus signs (TOML), and the title in it.
_FRONT_MATTER = re.compile(r"\s*(---|\+\+\+)[ \t]*\n(.{0,65536}?)\n\1[ \t]*(?:\n|\Z)", re.S)
_TITLE = re.compile(r"""^["']?title["']?[ \t]*[:=](.+)$""", re.I | re.M)
_HEADING = re.compile(r"#{1,6}[ \t]")
_SEARCHED = 10_000  # how many characters are searched for a title


def is_document(message: StoredMessage) -> bool:
    """Return whether a message is a document, which is in no conversation."""
    return message.source in DOCUMENT_SOURCES and message.conversation_id is None


def document_title(message: StoredMessage) -> str:
    """Return the title of a document."""
    return split_title(message.content)[0]


def split_title(text: str) -> tuple[str, str]:
    """Return the title of a document, and the text behind it."""
    text = text[:_SEARCHED].replace("\r\n", "\n")
    front_matter = _FRONT_MATTER.match(text)
    body = text[front_matter.end() if front_matter else 0 :].lstrip()
    titled = _TITLE.search(front_matter[2]) if front_matter else None
    line, _, rest = body.partition("\n")
    is_heading = _HEADING.match(line)
    if titled and (title := title_of(titled[1].strip(" \t\"'"))):
        return title, rest if is_heading else body
    return title_of(line.strip("# \t") if is_heading else line) or "Untitled document", rest
