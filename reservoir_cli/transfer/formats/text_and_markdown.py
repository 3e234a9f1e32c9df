"""Import plain text and Markdown: each file is one message."""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import PurePath

from reservoir_cli.messages import Conversation, Message, clean_name, content_hash, title_of
from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.importer import Importer, Record, Skipped
from reservoir_cli.util import front_matter
from reservoir_cli.util.read_files import LARGEST

#: A day in the name of a file.
_DAY = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_.]?)([01]\d)\2([0-3]\d)(?!\d)")


class Plain(Importer):
    """Reads any text as one message of the user."""

    name = "text"
    title = "notes"
    instance = None

    def detect(self, head: Head) -> bool:
        return True

    def read(self, file: File) -> Iterator[Record | Skipped]:
        with file.open() as stream:
            data = stream.read(LARGEST + 1)
        if len(data) > LARGEST:
            yield Skipped("the file", f"larger than {LARGEST >> 20} MB")
            return
        content = data.decode("utf-8-sig", "surrogateescape").strip("\r\n")
        if content.strip():
            fields = front_matter.find_fields(content)
            written = find_date(fields, PurePath(file.name).name) or file.modified
            source_id = content_hash(Message("user", content))
            title = title_of(front_matter.find_title(fields))
            tags = dict.fromkeys(map(clean_name, front_matter.find_tags(fields)))
            about = Conversation(source_id[:32], title, self.name) if title else None
            message = Message(
                "user",
                content,
                written,
                conversation_id=about.id if about else None,
                source=self.name,
                source_id=source_id,
                tags=tuple(filter(None, tags)),
            )
            yield Record(message, conversation=about)


class Markdown(Plain):
    """Reads Markdown like plain text, with its own source name."""

    name = "markdown"


def find_date(fields: str, name: str) -> datetime | None:
    """Return a document's date, from front matter or file name; local without a zone."""
    days = (f"{year}-{month}-{day}" for year, _, month, day in _DAY.findall(name))
    dates = map(_parse_date, (*front_matter.find_dates(fields), *days))
    return next(filter(None, dates), None)


def _parse_date(text: str) -> datetime | None:
    """Parse a time in ISO 8601, with dashes or slashes; local without a zone."""
    with suppress(ValueError, OverflowError, OSError):
        moment = datetime.fromisoformat(text.replace("/", "-"))
        if moment.year >= 1970 and not text.isdigit():
            return moment.astimezone(UTC)
    return None
