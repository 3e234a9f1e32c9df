"""What the importers of other packages build upon: docs/plugins.md describes it."""

from reservoir_cli.messages import Conversation, Message
from reservoir_cli.transfer.reading.file import File, Head, Unreadable
from reservoir_cli.transfer.reading.importer import Importer, Place, Record, Skipped
from reservoir_cli.transfer.reading.json_stream import read_entries
from reservoir_cli.transfer.reading.transcripts import Transcript, TranscriptImporter, Turn

__all__ = [
    "Conversation",
    "File",
    "Head",
    "Importer",
    "Message",
    "Place",
    "Record",
    "Skipped",
    "Transcript",
    "TranscriptImporter",
    "Turn",
    "Unreadable",
    "read_entries",
]
