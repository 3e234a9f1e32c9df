"""Read the transcripts of Cursor's agent: messages without ids, times and results, one a line."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reservoir_cli.transfer.reading.foreign_values import obj, text
from reservoir_cli.transfer.reading.input_files import File
from reservoir_cli.transfer.reading.transcripts import Transcript, Turn

_FOLDER = "agent-transcripts"
_QUERY = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)


class CursorTranscript(Transcript):
    """A transcript while it is read. Its messages have the time of the file."""

    source = "cursor"

    def __init__(self, file: File) -> None:
        super().__init__(file)
        names = file.name.replace("\\", "/").split("/")
        if _FOLDER in names[1:]:
            position = names.index(_FOLDER, 1)
            self.describe(folder=_project_folder(names[position - 1]))
            session = names[position + 1]
            if len(names) > position + 2 and session != file.stem:  # of a subagent
                self.thread.parent = session

    def turns(self, value: dict[str, Any]) -> Iterator[Turn]:
        if "role" not in value and "type" in value:  # such as the end of a turn
            return
        content = obj(value.get("message")).get("content", value.get("content"))
        role = str(value.get("role"))
        if role == "user":
            content = _typed(content)
        yield Turn(role, content, None, self.file.modified and self.file.modified.isoformat())


def _typed(content: Any) -> Any:
    """Return what the user typed in a message; other texts are Cursor's."""
    parts = content if isinstance(content, list) else [content]
    words = [
        text(obj(part).get("text")) or (part if isinstance(part, str) else "") for part in parts
    ]
    queries = [query for word in words for query in _QUERY.findall(word)]
    if not queries:
        return content
    others = [part for part in parts if isinstance(part, dict) and "text" not in part]
    return [*others, "\n".join(queries)]


def _project_folder(slug: str) -> str:
    """Return a project's folder from its name with dashes, or the last part of that."""
    found = Path("/")
    rest = slug.split("-")
    while rest:
        for length in range(len(rest), 0, -1):
            if (found / "-".join(rest[:length])).is_dir():
                found, rest = found / "-".join(rest[:length]), rest[length:]
                break
        else:
            return f"/{'/'.join(slug.split('-'))}"
    return str(found)
