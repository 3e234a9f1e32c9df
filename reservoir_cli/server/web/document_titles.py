"""Find the title of a stored document: in its front matter, its first heading or its first line."""

import re

from reservoir_cli.messages import DOCUMENT_SOURCES, StoredMessage, title_of
from reservoir_cli.util.front_matter import FRONT_MATTER, find_title

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
    front_matter = FRONT_MATTER.match(text)
    body = text[front_matter.end() if front_matter else 0 :].lstrip()
    line, _, rest = body.partition("\n")
    is_heading = _HEADING.match(line)
    if front_matter and (title := title_of(find_title(front_matter[2]))):
        return title, rest if is_heading else body
    return title_of(line.strip("# \t") if is_heading else line) or "Untitled document", rest
