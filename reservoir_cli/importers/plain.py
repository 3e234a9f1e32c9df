"""Plain text and Markdown: a file is one message."""

from collections.abc import Iterator

from reservoir_cli.importers import Record, Skipped
from reservoir_cli.messages import Message, content_hash


class Plain:
    """Reads any text as one message of the user."""

    name = "text"

    def detect(self, head: str) -> bool:
        """Everything is text."""
        return True

    def read(self, text: str) -> Iterator[Record | Skipped]:
        """One message, its outer blank lines taken off."""
        content = text.strip("\r\n")
        if not content.strip():
            yield Skipped("the file", "empty")
            return
        message = Message("user", content)
        yield Record(Message("user", content, source=self.name, source_id=content_hash(message)))
