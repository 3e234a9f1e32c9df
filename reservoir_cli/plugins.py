"""What the importers of other packages build upon: docs/plugins.md describes it."""

from reservoir_cli.messages import Conversation as Conversation
from reservoir_cli.messages import Message as Message
from reservoir_cli.transfer.reading.decompressed_file import File as File
from reservoir_cli.transfer.reading.decompressed_file import Head as Head
from reservoir_cli.transfer.reading.decompressed_file import Unreadable as Unreadable
from reservoir_cli.transfer.reading.importer import Importer as Importer
from reservoir_cli.transfer.reading.importer import Place as Place
from reservoir_cli.transfer.reading.importer import Record as Record
from reservoir_cli.transfer.reading.importer import Skipped as Skipped
from reservoir_cli.transfer.reading.json_stream import read_entries as read_entries
from reservoir_cli.transfer.reading.transcripts import Transcript as Transcript
from reservoir_cli.transfer.reading.transcripts import TranscriptImporter as TranscriptImporter
from reservoir_cli.transfer.reading.transcripts import Turn as Turn
