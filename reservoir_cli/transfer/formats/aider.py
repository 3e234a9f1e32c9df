"""Import aider's history: a Markdown file in each project, to which sessions are appended.

The user's input is in headings of level four, aider's own output in block quotes. Their lines end
with two blanks, which distinguishes them from headings and quotes in a model's replies. Editors
strip such blanks: a session whose first line has none was stripped.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from reservoir_cli.messages import Message, clean_text
from reservoir_cli.settings.paths import expand_user
from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.importer import (
    Importer,
    Place,
    Record,
    Skipped,
    SourceIds,
    Thread,
)
from reservoir_cli.transfer.reading.json_stream import read_lines
from reservoir_cli.transfer.reading.times import moment
from reservoir_cli.util.read_files import LARGEST

_HISTORY = ".aider.chat.history.md"
_STARTED = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$", re.M)
_TYPED, _NOTE = "#### ", ">"
_MODEL = re.compile(r"> (?:Main model|Models?): (\S{1,200})(?: with |,|\s*$)")
#: Commands that send a question to the model; aider itself handles all others.
_ASKING_COMMAND = re.compile(r"/(?:ask|code|architect|context|help)\s+(?=\S)")
_COMMAND = re.compile(r"[/!]\S")


class Aider(Importer):
    """Reads ``.aider.chat.history.md``."""

    name = "aider"
    title = "aider"
    endings = (_HISTORY,)
    instance = "aider"

    def detect(self, head: Head) -> bool:
        """Recognise a session at the beginning; a document may quote one further down."""
        return _STARTED.match(head.start) is not None

    def places(self) -> Iterator[Place]:
        """Yield the history of the current project, else of the home folder."""
        if path := os.environ.get("AIDER_CHAT_HISTORY_FILE"):
            yield Place(expand_user(path), (".md",))
            return
        folders = [Path.home()]
        with suppress(OSError):  # the current folder was deleted
            here = Path.cwd()
            folders = [here, *here.parents, *folders]
        present = [folder for folder in folders if (folder / _HISTORY).is_file()]
        yield Place((present or folders[-1:])[0] / _HISTORY, (".md",), nearby=True)

    def read(self, file: File) -> Iterator[Record | Skipped]:
        place = file.place
        session = _Session(place.parent.as_posix() if place.name == _HISTORY else None)
        for number, line in _lines(file):
            if line is None:
                yield Skipped(f"line {number}", f"larger than {LARGEST >> 20} MB")
                continue
            if started := _STARTED.fullmatch(line):
                yield from session.end()
                session = _Session(session.folder, started[1], session.identities)
            else:
                yield from session.read_line(number, line)
        yield from session.end()


def _lines(file: File) -> Iterator[tuple[int, str | None]]:
    """Yield the lines with their numbers; ``None`` for one that is too large."""
    with file.open() as stream:
        for number, (line, _) in enumerate(read_lines(stream), 1):
            if len(line) > LARGEST:
                yield number, None
                continue
            text = line.decode("utf-8", "surrogateescape").rstrip("\r\n")
            yield number, text.removeprefix("\ufeff") if number == 1 else text


@dataclass
class _Session:
    folder: str | None
    started: str = ""
    identities: SourceIds = field(default_factory=SourceIds)
    role: str = "assistant"
    has_question: bool = False
    stripped: bool | None = None  #: Whether its lines lost their trailing blanks.
    lines: list[str] = field(default_factory=list)
    size: int = 0  #: Characters of the message being read.
    number: int = 0

    def __post_init__(self) -> None:
        # The conversation's id is that of its first message, which depends on the start time.
        self.thread = Thread(Aider.name, identities=self.identities)
        self.thread.follow(self.started)
        self.thread.update(folder=self.folder)
        self.time = _parse_local_time(self.started)

    def read_line(self, number: int, line: str) -> Iterator[Record | Skipped]:
        """Add a line, and yield the message that it ends, if any."""
        if self.stripped is None and line.strip():  # the first line is aider's, never a model's
            self.stripped = line.startswith(("####", _NOTE)) and not line.endswith("  ")
        marked = self.stripped or line.endswith("  ")
        if marked and line.startswith(_NOTE):
            yield from self.end()
            if match := _MODEL.match(line):
                self.thread.update(model=clean_text(match[1]))
            return
        role = "user" if marked and f"{line} ".startswith(_TYPED) else "assistant"
        if role != self.role:
            yield from self.end()
            self.role = role
        if not self.lines:
            self.number = number
        self.size += len(line) + 1
        if self.size <= LARGEST:
            self.lines.append(line[len(_TYPED) :].rstrip() if role == "user" else line)

    def end(self) -> Iterator[Record | Skipped]:
        """Yield the message read so far, unless it is empty or not for or from a model."""
        content, size = "\n".join(self.lines).strip("\n"), self.size
        self.lines, self.size = [], 0
        if size > LARGEST:
            yield Skipped(f"line {self.number}", f"larger than {LARGEST >> 20} MB")
            return
        if self.role == "user":
            content = _strip_command(content)
            self.has_question = bool(content.strip())
        # Text after a command is its output, of which aider marks only the first line.
        if not content.strip() or not self.has_question:
            return
        yield self.thread.record(Message(self.role, content, self.time))


def _strip_command(content: str) -> str:
    """Return the user's question to the model; an empty text for a command."""
    if content == "<blank>":
        return ""
    if match := _ASKING_COMMAND.match(content):
        return content[match.end() :]
    return "" if _COMMAND.match(content) else content


def _parse_local_time(started: str) -> datetime | None:
    with suppress(ValueError, OverflowError, OSError):
        return moment(datetime.fromisoformat(started).astimezone(UTC).isoformat())
    return None
