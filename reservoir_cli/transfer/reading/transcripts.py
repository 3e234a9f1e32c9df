"""Read transcripts: objects with a role and content blocks, in each program's envelope."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from reservoir_cli.messages import Conversation, Message
from reservoir_cli.transfer.reading import content_blocks
from reservoir_cli.transfer.reading.block_shapes import as_blocks
from reservoir_cli.transfer.reading.conversation_identity import SourceIds, Thread
from reservoir_cli.transfer.reading.foreign_values import folder_name, text
from reservoir_cli.transfer.reading.importer import Importer, Record, Skipped
from reservoir_cli.transfer.reading.input_files import File
from reservoir_cli.transfer.reading.json_stream import read_entries
from reservoir_cli.transfer.reading.message_times import moment

#: Roles of a transcript, and ours.
ROLES = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "model", "gemini", "bot"), "assistant"),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function"), "tool"),
}


@dataclass(frozen=True, slots=True)
class Turn:
    """What a transcript says of one message: a text or parts, and a time in any form.

    :param source_id: its id, unique among all files of the program.
    :param call_id: of a tool's message, the call that it answers.
    """

    role: str
    content: Any
    source_id: str | None = None
    time: Any = None
    model: str | None = None
    call_id: str | None = None

    def messages(self) -> list[Message]:
        """Return the messages of the turn; raise ValueError if it cannot be read."""
        role, time = ROLES.get(self.role), moment(self.time)
        if role is None:
            raise ValueError("unknown role")
        if role == "tool":
            content = [content_blocks.tool_result(self.call_id, as_blocks(self.content))]
            return content_blocks.messages("user", content, time)
        return content_blocks.messages(role, as_blocks(self.content), time, self.source_id or "")


class Transcript:
    """A conversation while its file is read; ``source`` is the name of the importer."""

    source: ClassVar[str]

    def __init__(self, file: File) -> None:
        self.file = file
        about = Conversation(file.stem, source=self.source)
        self.thread = Thread(self.source, about, identities=SourceIds())

    def describe(
        self, *, identity: Any = None, title: Any = None, model: Any = None, folder: Any = None
    ) -> None:
        """Update the metadata of the conversation, as far as a value is a text."""
        about = self.thread.conversation
        path = text(folder)
        self.thread.folder = path or self.thread.folder
        self.thread.conversation = replace(
            about,
            id=text(identity) or about.id,
            title=text(title) or about.title,
            model=text(model) or about.model,
            project=folder_name(path) or about.project,
        )

    def turns(self, value: dict[str, Any]) -> Iterable[Turn]:
        """Yield the turns of an object after updating the metadata; ValueError if it is invalid."""
        raise NotImplementedError

    def read(self) -> Iterator[Record | Skipped]:
        """Yield the messages of the file."""
        return read_entries(self.file, self._read_object)

    def _read_object(self, place: str, value: dict[str, Any]) -> Iterator[Record | Skipped]:
        try:
            turns = list(self.turns(value))
        except ValueError as error:
            yield Skipped(place, str(error))
            return
        for number, turn in enumerate(turns, 1):
            if turn.model:
                self.describe(model=turn.model)
            if turn.source_id:
                self.thread.follow(turn.source_id)
            where = place if len(turns) == 1 else f"{place}, message {number}"
            yield from self.thread.convert(where, turn.source_id, turn.messages)


class TranscriptImporter(Importer):
    """The base class of importers of transcripts."""

    transcript: ClassVar[type[Transcript]]

    def read(self, file: File) -> Iterator[Record | Skipped]:
        """Yield the messages in order."""
        return self.transcript(file).read()


def read_conversation(
    thread: Thread, place: str, turns: Iterable[tuple[int, Turn | None]]
) -> Iterator[Record | Skipped]:
    """Yield the messages of numbered turns; ``None`` stands for one that is not a message."""
    for number, turn in turns:
        where = f"{place}, message {number}"
        if turn is None:
            yield Skipped(where, "not a message")
            continue
        thread.update(model=turn.model)
        if turn.source_id:
            thread.follow(turn.source_id)
        yield from thread.convert(where, turn.source_id, partial(turn.messages))
