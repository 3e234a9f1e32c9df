"""Import plain text and Markdown: each file is one message."""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import PurePath

from reservoir_cli.messages import Conversation, Message, clean_name, content_hash, title_of
from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.importer import Importer, Record, Skipped
from reservoir_cli.util.front_matter import FRONT_MATTER, find_title
from reservoir_cli.util.read_files import LARGEST

#: The names of a date in front matter, the best first.
_DATE_KEYS = ("date", "created", "created_at", "published", "updated", "modified", "lastmod")
_KEY = re.compile(r"""^[ \t]*"?([A-Za-z_]+)"?[ \t]*[:=][ \t]*["']?([^"'#\r\n]*)""", re.M)
#: The tags in front matter: one, several between commas, or one a line.
_TAGS = re.compile(
    r"""^["']?tags["']?[ \t]*[:=][ \t]*(\[[^]]*\]|[^\r\n]*(?:\r?\n[ \t]*-[ \t][^\r\n]*)*)""",
    re.I | re.M,
)
_COMMENT = re.compile(r"(?:^|[ \t])#[ \t].*", re.M)
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
            written = find_date(content, PurePath(file.name).name) or file.modified
            source_id = content_hash(Message("user", content))
            front_matter = FRONT_MATTER.match(content)
            title = title_of(find_title(front_matter[2])) if front_matter else None
            about = Conversation(source_id[:32], title, self.name) if title else None
            message = Message(
                "user",
                content,
                written,
                conversation_id=about.id if about else None,
                source=self.name,
                source_id=source_id,
                tags=find_tags(content),
            )
            yield Record(message, conversation=about)


class Markdown(Plain):
    """Reads Markdown like plain text, with its own source name."""

    name = "markdown"


def find_tags(content: str) -> tuple[str, ...]:
    """Return the tags in a document's front matter, without the ``#`` that some programs write."""
    front_matter = FRONT_MATTER.match(content)
    if not front_matter or not (listed := _TAGS.search(front_matter[2])):
        return ()
    words = re.split(r"[,\r\n]", _COMMENT.sub("", listed[1].strip("[]")))
    names = [clean_name(word.strip("\"' \t-").removeprefix("#")) for word in words]
    return tuple(dict.fromkeys(name for name in names if name not in ("", "~", "null")))


def find_date(content: str, name: str) -> datetime | None:
    """Return a document's date, from front matter or file name; local without a zone."""
    front_matter = FRONT_MATTER.match(content)
    fields = dict(reversed(_KEY.findall(front_matter[2]))) if front_matter else {}
    values_by_name = {key.lower(): value.strip() for key, value in fields.items()}
    values = [values_by_name[key] for key in _DATE_KEYS if key in values_by_name]
    values += [f"{year}-{month}-{day}" for year, _, month, day in _DAY.findall(name)]
    return next((moment for moment in map(_parse_date, values) if moment), None)


def _parse_date(text: str) -> datetime | None:
    """Parse a time in ISO 8601, with dashes or slashes; local without a zone."""
    with suppress(ValueError, OverflowError, OSError):
        moment = datetime.fromisoformat(text.replace("/", "-"))
        if moment.year >= 1970 and not text.isdigit():
            return moment.astimezone(UTC)
    return None
