"""Plain text and Markdown: a file is one message."""

from collections.abc import Iterator

from reservoir_cli.messages import Message, content_hash
from reservoir_cli.transfer.importers import File, Record, Skipped
from reservoir_cli.util.files import LARGEST


class Plain:
    """Reads any text as one message of the user.

    :param name: ``text`` or ``markdown``, which differ in nothing else.
    """

    instance = None

    def __init__(self, name: str) -> None:
        self.name = name

    def detect(self, head: str) -> bool:
        """Everything is text."""
        return True

    def read(self, file: File) -> Iterator[Record | Skipped]:
        """One message, its outer blank lines taken off; none where there is nothing else."""
        with file.open() as stream:
            data = stream.read(LARGEST + 1)
        if len(data) > LARGEST:
            yield Skipped("the file", f"larger than {LARGEST >> 20} MB")
            return
        content = data.decode("utf-8-sig", "surrogateescape").strip("\r\n")
        if content.strip():
            message = Message("user", content)
            yield Record(
                Message("user", content, source=self.name, source_id=content_hash(message))
            )
